"""Intervals that allow for a matrix measured in trials, which others take for exactly known."""

from ibukit.intervals.measured.methods import default_ends as default_ends
from ibukit.intervals.measured.methods import method_of as method_of
