"""opendp: the frequencies that it makes of given bits, which draws nothing."""

from importlib.metadata import version

import numpy as np
import opendp.prelude as dp

from foreign.inputs import BITS
from foreign.record import write

dp.enable_features("contrib")
FLIP = 0.5  # f: a bit is drawn anew with this chance, and is then fair

padded = np.pad(BITS.astype(np.uint8), ((0, 0), (0, 8 - BITS.shape[1])))  # to whole bytes
reports = [np.packbits(row).tobytes() for row in padded]
write(
    "opendp_debias",
    "opendp",
    version("opendp"),
    {"f": FLIP, "debiased": dp.m.debias_randomized_response_bitvec(reports, FLIP)},
)
