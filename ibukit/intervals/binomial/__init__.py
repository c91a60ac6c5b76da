"""Intervals of questions that one binomial count answers."""
