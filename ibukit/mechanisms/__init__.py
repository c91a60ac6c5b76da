"""Mechanisms: from secrets to reports."""

# Survey designs are public as `ibukit.surveys`. They are loaded with all others, so that files find
# their classes.
from ibukit.mechanisms import surveys as surveys
from ibukit.mechanisms.base import FiniteMechanism as FiniteMechanism
from ibukit.mechanisms.base import Mechanism as Mechanism
from ibukit.mechanisms.categorical.exponential import Exponential as Exponential
from ibukit.mechanisms.categorical.hadamard_mechanism import HadamardMechanism as HadamardMechanism
from ibukit.mechanisms.categorical.hadamard_response import HadamardResponse as HadamardResponse
from ibukit.mechanisms.categorical.histogram_encoding import HistogramEncoding as HistogramEncoding
from ibukit.mechanisms.categorical.optimized_unary_encoding import (
    OptimizedUnaryEncoding as OptimizedUnaryEncoding,
)
from ibukit.mechanisms.categorical.randomized_response import (
    RandomizedResponse as RandomizedResponse,
)
from ibukit.mechanisms.categorical.rappor import Rappor as Rappor
from ibukit.mechanisms.categorical.subset_selection import SubsetSelection as SubsetSelection
from ibukit.mechanisms.categorical.thresholded_histogram import (
    ThresholdedHistogram as ThresholdedHistogram,
)
from ibukit.mechanisms.categorical.tight_constraints import TightConstraints as TightConstraints
from ibukit.mechanisms.categorical.unary_encoding import UnaryEncoding as UnaryEncoding
from ibukit.mechanisms.longitudinal.linked_rounds import LinkedRounds as LinkedRounds
from ibukit.mechanisms.longitudinal.longitudinal_hashing import (
    LongitudinalHashing as LongitudinalHashing,
)
from ibukit.mechanisms.longitudinal.longitudinal_response import (
    LongitudinalResponse as LongitudinalResponse,
)
from ibukit.mechanisms.longitudinal.longitudinal_unary_encoding import (
    LongitudinalUnaryEncoding as LongitudinalUnaryEncoding,
)
from ibukit.mechanisms.matrix import MatrixMechanism as MatrixMechanism
from ibukit.mechanisms.matrix import compose as compose
from ibukit.mechanisms.mixtures.average import average_mechanism as average_mechanism
from ibukit.mechanisms.mixtures.free_will import FreeWill as FreeWill
from ibukit.mechanisms.mixtures.product import product as product
from ibukit.mechanisms.numeric.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from ibukit.mechanisms.numeric.discrete_square_wave import DiscreteSquareWave as DiscreteSquareWave
from ibukit.mechanisms.numeric.duchi import Duchi as Duchi
from ibukit.mechanisms.numeric.hybrid import HybridMechanism as HybridMechanism
from ibukit.mechanisms.numeric.laplace import LinearLaplace as LinearLaplace
from ibukit.mechanisms.numeric.linear_gaussian import LinearGaussian as LinearGaussian
from ibukit.mechanisms.numeric.linear_geometric import LinearGeometric as LinearGeometric
from ibukit.mechanisms.numeric.piecewise import Piecewise as Piecewise
from ibukit.mechanisms.numeric.square_wave import SquareWave as SquareWave
from ibukit.mechanisms.numeric.staircase import Staircase as Staircase
from ibukit.mechanisms.numeric.staircase import least_variance_gamma as least_variance_gamma
from ibukit.mechanisms.numeric.truncated_geometric import TruncatedGeometric as TruncatedGeometric
from ibukit.mechanisms.sketches.bloom_rappor import BloomRappor as BloomRappor
from ibukit.mechanisms.sketches.count_mean_sketch import CountMeanSketch as CountMeanSketch
from ibukit.mechanisms.sketches.hadamard_count_mean_sketch import (
    HadamardCountMeanSketch as HadamardCountMeanSketch,
)
from ibukit.mechanisms.sketches.local_hashing import LocalHashing as LocalHashing
from ibukit.mechanisms.spatial.planar_gaussian import PlanarGaussian as PlanarGaussian
from ibukit.mechanisms.spatial.planar_geometric import PlanarGeometric as PlanarGeometric
from ibukit.mechanisms.spatial.planar_laplace import PlanarLaplace as PlanarLaplace
from ibukit.mechanisms.spatial.truncated_planar_geometric import (
    TruncatedPlanarGeometric as TruncatedPlanarGeometric,
)
