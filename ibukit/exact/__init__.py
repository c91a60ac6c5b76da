"""Exact samplers: reports drawn from random bits by integer arithmetic, without rounding."""

from ibukit.exact.probabilities import ExactProbability as ExactProbability
from ibukit.exact.probabilities import distance_excess as distance_excess
from ibukit.exact.probabilities import exponential as exponential
from ibukit.exact.probabilities import log_rounded_up as log_rounded_up
from ibukit.exact.probabilities import odds as odds
from ibukit.exact.probabilities import rational as rational
from ibukit.exact.random_bits import OPERATING_SYSTEM as OPERATING_SYSTEM
from ibukit.exact.random_bits import ExactSampler as ExactSampler
from ibukit.exact.random_bits import RandomBits as RandomBits
from ibukit.exact.rational_matrix import RationalMatrix as RationalMatrix
from ibukit.exact.samplers import flip as flip
from ibukit.exact.samplers import geometric as geometric
from ibukit.exact.samplers import independent_bits as independent_bits
from ibukit.exact.samplers import planar_geometric as planar_geometric
from ibukit.exact.samplers import randomized_response as randomized_response
from ibukit.exact.samplers import subsets as subsets
from ibukit.exact.samplers import two_sided_geometric as two_sided_geometric
from ibukit.exact.samplers import uniform_below as uniform_below
