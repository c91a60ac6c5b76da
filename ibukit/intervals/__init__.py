"""Intervals for linear questions: what the reports leave possible, by optimisation with a proof of each end."""

from ibukit.intervals.methods import REGIONS as REGIONS
from ibukit.intervals.methods import ends as ends
