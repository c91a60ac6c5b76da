"""Channels of tallies as matrices, where these are small."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.bayes._small_matrix import MAX_ENTRIES, quick_channel
from ibukit.channels import DenseChannel

RNG = np.random.default_rng(11)
LOSSY = ik.MatrixMechanism([[0.5, 0.2, 0.1], [0.1, 0.6, 0.2]], efficiency=True)


def tally_of(*mechanisms, n=300):
    tallies = [
        each.simulate(RNG.multinomial(n, np.full(each.k, 1 / each.k)), RNG) for each in mechanisms
    ]
    return sum(tallies[1:], tallies[0])


@pytest.mark.parametrize(
    "tally",
    [
        tally_of(ik.Rappor(12, 1.0)),
        tally_of(
            ik.LinearGeometric(ik.Line(0, 11), 0.3), ik.RandomizedResponse(ik.Line(0, 11), 1.0)
        ),
        tally_of(ik.PlanarGeometric(ik.Grid(3, 4), 1.0)),
        LOSSY.tally_counts([40, 25, 10]),
    ],
    ids=["bits", "a pool", "a plane", "lost reports"],
)
def test_a_small_channel_is_its_matrix(tally):
    channel, operator = quick_channel(tally), tally.operator
    assert isinstance(channel, DenseChannel)
    theta, w = RNG.dirichlet(np.ones(tally.k)), RNG.random(len(tally.counts))
    np.testing.assert_allclose(channel.forward(theta), operator.forward(theta), rtol=1e-12)
    np.testing.assert_allclose(channel.adjoint(w), operator.adjoint(w), rtol=1e-12)


def test_a_large_channel_keeps_its_structure():
    k = 300
    tally = ik.LinearGeometric(ik.Line(0, k - 1), 0.01).tally(np.arange(MAX_ENTRIES // k + 1))
    assert quick_channel(tally) is tally.operator
