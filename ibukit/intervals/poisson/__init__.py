"""Intervals of Poisson counts over a background, and of the numbers behind them."""
