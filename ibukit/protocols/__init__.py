"""Protocols that are in use: local hashing, Hadamard response, sketches, numbers and places."""

from ibukit.protocols.bloom_rappor import BloomRappor as BloomRappor
from ibukit.protocols.count_mean_sketch import CountMeanSketch as CountMeanSketch
from ibukit.protocols.count_mean_sketch import HadamardCountMeanSketch as HadamardCountMeanSketch
from ibukit.protocols.gaussian import DiscreteGaussian as DiscreteGaussian
from ibukit.protocols.gaussian_points import LinearGaussian as LinearGaussian
from ibukit.protocols.gaussian_points import PlanarGaussian as PlanarGaussian
from ibukit.protocols.hadamard_mechanism import HadamardMechanism as HadamardMechanism
from ibukit.protocols.hadamard_response import HadamardResponse as HadamardResponse
from ibukit.protocols.histogram_encoding import HistogramEncoding as HistogramEncoding
from ibukit.protocols.linked import LinkedRounds as LinkedRounds
from ibukit.protocols.local_hashing import LocalHashing as LocalHashing
from ibukit.protocols.longitudinal_hashing import LongitudinalHashing as LongitudinalHashing
from ibukit.protocols.memoised import LongitudinalResponse as LongitudinalResponse
from ibukit.protocols.memoised import LongitudinalUnaryEncoding as LongitudinalUnaryEncoding
from ibukit.protocols.piecewise import Duchi as Duchi
from ibukit.protocols.piecewise import HybridMechanism as HybridMechanism
from ibukit.protocols.piecewise import Piecewise as Piecewise
from ibukit.protocols.square_wave import DiscreteSquareWave as DiscreteSquareWave
from ibukit.protocols.square_wave import SquareWave as SquareWave
from ibukit.protocols.staircase import Staircase as Staircase
from ibukit.protocols.staircase import least_variance_gamma as least_variance_gamma
from ibukit.protocols.thresholded import ThresholdedHistogram as ThresholdedHistogram
