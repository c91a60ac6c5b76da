"""Protocols that are in use: local hashing, Hadamard response, sketches, numbers and places."""

from ibukit.protocols.linked import LinkedRounds as LinkedRounds
from ibukit.protocols.local_hashing import LocalHashing as LocalHashing
from ibukit.protocols.longitudinal_hashing import LongitudinalHashing as LongitudinalHashing
from ibukit.protocols.memoised import LongitudinalResponse as LongitudinalResponse
from ibukit.protocols.memoised import LongitudinalUnaryEncoding as LongitudinalUnaryEncoding
from ibukit.protocols.thresholded import ThresholdedHistogram as ThresholdedHistogram
