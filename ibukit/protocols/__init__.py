"""Protocols that are in use: local hashing, Hadamard response, sketches, numbers and places."""

from ibukit.protocols.bloom_rappor import BloomRappor as BloomRappor
from ibukit.protocols.count_mean_sketch import CountMeanSketch as CountMeanSketch
from ibukit.protocols.count_mean_sketch import HadamardCountMeanSketch as HadamardCountMeanSketch
from ibukit.protocols.hadamard_mechanism import HadamardMechanism as HadamardMechanism
from ibukit.protocols.hadamard_response import HadamardResponse as HadamardResponse
from ibukit.protocols.histogram_encoding import HistogramEncoding as HistogramEncoding
from ibukit.protocols.linked import LinkedRounds as LinkedRounds
from ibukit.protocols.local_hashing import LocalHashing as LocalHashing
from ibukit.protocols.longitudinal_hashing import LongitudinalHashing as LongitudinalHashing
from ibukit.protocols.memoised import LongitudinalResponse as LongitudinalResponse
from ibukit.protocols.memoised import LongitudinalUnaryEncoding as LongitudinalUnaryEncoding
from ibukit.protocols.thresholded import ThresholdedHistogram as ThresholdedHistogram
