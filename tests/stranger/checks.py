"""Whether they keep what they promise."""

import numpy as np

from ibukit.testing import check_channel, check_mechanism
from stranger.coins import CoinResponse
from stranger.fast import FastWithRefusals
from stranger.refusals import WithRefusals

MECHANISMS = [
    WithRefusals(5, epsilon=1.0, refusal=0.25),
    FastWithRefusals(5, epsilon=1.0, refusal=0.25),
    CoinResponse(5, epsilon=1.0, coins=12),
]


def check(mechanism):
    """Raise AssertionError with the finding if a sampler, a matrix,
    a level or a shortcut is wrong.
    """
    check_mechanism(mechanism, rng=np.random.default_rng(1))
    check_channel(mechanism.channel(np.arange(mechanism.m)))
