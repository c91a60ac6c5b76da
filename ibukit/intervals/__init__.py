"""Intervals for linear questions, by several methods, each with what it proves."""

from ibukit.intervals.methods import INTERVALS as INTERVALS
from ibukit.intervals.methods import interval as interval
from ibukit.intervals.methods import usual as usual
