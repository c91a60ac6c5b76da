"""All of them in one table."""

from functools import partial

import ibukit as ik
from stranger.coins import CoinResponse
from stranger.estimators import Settled, shrunk
from stranger.fast import FastWithRefusals


def compare(population, repetitions=5, seed=1):
    """Two mechanisms, four estimators, each pair `repetitions` times."""
    mechanisms = [
        CoinResponse(population.alphabet, epsilon=3.0, coins=12),
        FastWithRefusals(population.alphabet, epsilon=3.0, refusal=0.2),
    ]
    estimators = {
        "shrunk": shrunk,
        "shrunk by half": partial(shrunk, weight=0.5),
        "IBU until settled": partial(ik.ibu, stop=Settled(1e-4)),
        "MLE": ik.mle,
    }
    return ik.replicate(
        population, mechanisms, estimators, repetitions, seed
    )
