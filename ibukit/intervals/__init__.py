"""Intervals for linear questions, by several methods, each with what it proves."""

from ibukit.intervals.methods import INTERVALS as INTERVALS
from ibukit.intervals.methods import interval as interval
from ibukit.intervals.methods import level_of_each as level_of_each
from ibukit.intervals.methods import usual as usual
from ibukit.intervals.summaries import summary as summary
