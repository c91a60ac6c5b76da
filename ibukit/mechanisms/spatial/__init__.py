"""Mechanisms over the cells of a grid: planar geometric and planar Laplace noise."""
