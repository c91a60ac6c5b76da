"""Draws without a rounding: from random bits to reports by whole numbers alone."""

from ibukit.exact.probabilities import Chance as Chance
from ibukit.exact.probabilities import distance_excess as distance_excess
from ibukit.exact.probabilities import exponential as exponential
from ibukit.exact.probabilities import log_up as log_up
from ibukit.exact.probabilities import odds as odds
from ibukit.exact.probabilities import ratio as ratio
from ibukit.exact.random_bits import OPERATING_SYSTEM as OPERATING_SYSTEM
from ibukit.exact.random_bits import Exact as Exact
from ibukit.exact.random_bits import Source as Source
from ibukit.exact.rational_matrix import Table as Table
from ibukit.exact.samplers import below as below
from ibukit.exact.samplers import bits as bits
from ibukit.exact.samplers import flip as flip
from ibukit.exact.samplers import geometric as geometric
from ibukit.exact.samplers import planar as planar
from ibukit.exact.samplers import response as response
from ibukit.exact.samplers import subsets as subsets
from ibukit.exact.samplers import two_sided as two_sided
