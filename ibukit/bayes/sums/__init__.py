"""Exact posterior quantiles of sums of probabilities: under k-RR, and for two secrets."""

from ibukit.bayes.sums.exact_sums import exact_ends as exact_ends
from ibukit.bayes.sums.exact_sums import exact_sums as exact_sums
