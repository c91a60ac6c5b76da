"""Intervals for linear functionals of the distribution, by several methods."""

from ibukit.intervals.methods import INTERVALS as INTERVALS
from ibukit.intervals.methods import VOID as VOID
from ibukit.intervals.methods import default_ends as default_ends
from ibukit.intervals.methods import interval as interval
from ibukit.intervals.methods import level_of_each as level_of_each
from ibukit.intervals.methods import name_in_tables as name_in_tables
from ibukit.intervals.request import IntervalRequest as IntervalRequest
