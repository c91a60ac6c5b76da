"""Channels of reports that are real numbers."""

from ibukit.channels.points.slopes import SlopeChannel as SlopeChannel
