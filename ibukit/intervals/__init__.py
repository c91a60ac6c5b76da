"""Intervals for linear functionals of the distribution, by several methods."""

from ibukit.intervals.methods import INTERVALS as INTERVALS
from ibukit.intervals.methods import VOID as VOID
from ibukit.intervals.methods import default_ends as default_ends
from ibukit.intervals.methods import for_all_together as for_all_together
from ibukit.intervals.methods import interval as interval
from ibukit.intervals.methods import name_in_tables as name_in_tables
from ibukit.intervals.request import IntervalRequest as IntervalRequest
