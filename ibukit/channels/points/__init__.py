"""Channels of reports that are real numbers."""

from ibukit.channels.points.laplace_sweeps import LaplaceChannel as LaplaceChannel
