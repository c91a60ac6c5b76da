"""Mechanisms over numbers: geometric, Laplace, Gaussian, staircase, square wave, piecewise."""
