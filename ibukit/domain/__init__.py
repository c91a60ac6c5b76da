"""Alphabets, grids, labels and distributions, without any likelihood."""
