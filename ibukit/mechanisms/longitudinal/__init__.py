"""Mechanisms for repeated reports: memoised answers and several rounds of one user."""
