"""Unfolding: numbers of secrets behind counts, with losses and a background."""
