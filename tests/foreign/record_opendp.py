"""opendp: how often each of its exact samplers gave each report,
and the levels that it says they have.
"""

from collections import Counter
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp

from foreign.inputs import DRAWS, LINE, LINE_EPSILON, SECRETS
from foreign.record import write

dp.enable_features("contrib")
NUMBERS = (dp.atom_domain(T=int), dp.absolute_distance(T=int))
F = 0.5  # a bit is drawn anew with this chance, and is then fair


def histogram(draw):
    """How often each outcome came in so many draws, as pairs."""
    return sorted(Counter(draw() for _ in range(DRAWS)).items())


def answers(measurement, secret):
    return {"level": measurement.map(1), "draws": histogram(lambda: measurement(secret))}


bits = dp.m.make_randomized_response_bitvec(
    dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=F
)
one_hot = np.packbits([1, 0, 0, 0, 0, 0, 0, 0]).tobytes()
write(
    "opendp",
    "opendp",
    version("opendp"),
    {
        "geometric": answers(dp.m.make_geometric(*NUMBERS, scale=1 / LINE_EPSILON), 3),
        "geometric, slow": answers(dp.m.make_geometric(*NUMBERS, scale=20.0), 0),
        "laplace": answers(dp.m.make_laplace(*NUMBERS, scale=1 / LINE_EPSILON), 3),
        "geometric within bounds": answers(
            dp.m.make_geometric(*NUMBERS, scale=1 / LINE_EPSILON, bounds=(0, LINE - 1)), 3
        ),
        "randomized response": answers(
            dp.m.make_randomized_response(list(range(SECRETS)), prob=0.5), 2
        ),
        "two secrets": answers(dp.m.make_randomized_response_bool(prob=0.75), True),
        "bits": {"level": bits.map(1), "draws": histogram(lambda: bits(one_hot)[0])},
    },
)
