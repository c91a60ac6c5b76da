"""Intervals of differences and ratios between two independent tallies."""
