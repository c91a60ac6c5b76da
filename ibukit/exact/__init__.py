"""Draws without a rounding: from random bits to reports by whole numbers alone."""

from ibukit.exact.chances import Chance as Chance
from ibukit.exact.chances import distance_excess as distance_excess
from ibukit.exact.chances import exponential as exponential
from ibukit.exact.chances import log_up as log_up
from ibukit.exact.chances import odds as odds
from ibukit.exact.chances import ratio as ratio
from ibukit.exact.samplers import below as below
from ibukit.exact.samplers import bits as bits
from ibukit.exact.samplers import flip as flip
from ibukit.exact.samplers import geometric as geometric
from ibukit.exact.samplers import planar as planar
from ibukit.exact.samplers import response as response
from ibukit.exact.samplers import subsets as subsets
from ibukit.exact.samplers import two_sided as two_sided
from ibukit.exact.source import OPERATING_SYSTEM as OPERATING_SYSTEM
from ibukit.exact.source import Exact as Exact
from ibukit.exact.source import Source as Source
from ibukit.exact.table import Table as Table
