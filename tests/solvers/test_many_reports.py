"""Many reports of channels that are neither bits nor written out:
alone, and pooled with all other kinds.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import Channel
from ibukit.channels.lookup import LookupChannel, pack_levels
from ibukit.solvers import Problem, bits, maximise

K = 6


def levels(rng, size=4000):
    """Reports with one of three entries for each secret,
    drawn from a distribution of the secrets.
    """
    table = np.array([0.2, 0.5, 1.0])
    found = LookupChannel(K, pack_levels(rng.integers(0, 3, (size, K)), 3), table, np.ones(size))
    return found, rng.multinomial(3 * size, np.full(size, 1 / size)) + 1


class Somebody(Channel):
    """Forward and adjoint, and nothing more."""

    def __init__(self, channel):
        self.inner, self.k = channel, channel.k

    @property
    def size(self):
        return self.inner.size

    def forward(self, theta):
        return self.inner.forward(theta)

    def adjoint(self, w):
        return self.inner.adjoint(w)


@pytest.mark.parametrize("kind", [lambda channel: channel, Somebody], ids=["levels", "somebody's"])
def test_they_are_solved_by_a_parabola_and_certified(kind, rng):
    channel, counts = levels(rng)
    theta, method = maximise(kind(channel), counts, 1e-10, method="bits")
    assert method.startswith("parabola of many reports")
    assert Problem(channel, counts).gap(theta) <= 1e-10
    dense, _ = maximise(channel, counts, 1e-12, method="dense")
    np.testing.assert_allclose(theta, dense, atol=1e-5)


def test_few_are_solved_as_a_matrix(rng):
    channel, counts = levels(rng, 20 * K)
    _, method = maximise(channel, counts)
    assert method.startswith("dense matrix")


def test_a_hessian_of_all_is_the_likelihoods_own(rng):
    channel, counts = levels(rng, 300)
    theta, n = rng.dirichlet(np.ones(K)), counts.sum()
    rows = channel.rows(np.arange(K))
    exact = (rows * (counts / n / (theta @ rows) ** 2)) @ rows.T
    found = bits.Reports(channel, counts, n)
    np.testing.assert_allclose(found.hessian(theta, 1), exact, rtol=1e-12)
    np.testing.assert_allclose(found.hessian(theta, 3), exact, rtol=0.3)
    assert np.abs(found.hessian(theta, 3) / exact - 1).max() > 1e-6
    np.testing.assert_allclose(
        found.gradient(theta), rows @ (counts / n / (theta @ rows)), rtol=1e-12
    )


def test_a_pool_of_every_kind_is_certified(rng):
    """Bits, levels, Hadamard's few reports, k-RR,
    a line and a channel that only its two maps are known of.
    """
    theta = rng.dirichlet(np.ones(K))
    mechanisms = [
        ik.Rappor(K, 1.0),
        ik.HadamardResponse(K, 1.0),
        ik.BloomRappor(K, bits=8, hashes=2, cohorts=4, f=0.5, p=0.5, q=0.75),
        ik.CountMeanSketch(K, 2.0, rows=4, width=8),
        ik.HistogramEncoding(K, 1.0),
        ik.RandomizedResponse(K, 0.5),
        ik.TruncatedGeometric(K, 0.7),
    ]
    tally = sum(mechanism.simulate(rng.multinomial(700, theta), rng) for mechanism in mechanisms)
    best = ik.mle(tally, 1e-9, method="bits")
    assert best.gap <= 1e-9
    assert "many" in best.method
    assert (
        best.log_likelihood >= ik.mle(tally, 1e-9, method="dense").log_likelihood - 7 * 700 * 1e-9
    )


@pytest.mark.slow
def test_sixteen_mechanisms_with_a_million_reports_are_one_likelihood(rng):
    line = ik.Line(0, 99)
    mechanisms = [
        ik.RandomizedResponse(line, 3.0),
        ik.Rappor(line, 2.0),
        ik.OptimizedUnaryEncoding(line, 1.0),
        ik.SubsetSelection(line, 1.0),
        ik.LocalHashing(line, 1.0),
        ik.HadamardResponse(line, 2.0),
        ik.HadamardMechanism(line, 1.0),
        ik.CountMeanSketch(line, 2.0, rows=64, width=64),
        ik.HadamardCountMeanSketch(line, 2.0, rows=64, width=64),
        ik.BloomRappor(line, bits=64, hashes=2, cohorts=16, f=0.5, p=0.5, q=0.75),
        ik.HistogramEncoding(line, 2.0),
        ik.ThresholdedHistogram(line, 2.0),
        ik.SquareWave(line, 1.0),
        ik.Piecewise(line, 1.0),
        ik.TruncatedGeometric(line, 0.1),
        ik.LongitudinalUnaryEncoding.osue(line, 1.0, 2.0),
    ]
    ages = ik.datasets.load_adult_ages().distribution
    tally = sum(m.simulate(rng.multinomial(62_500, ik.quantize(ages)), rng) for m in mechanisms)
    assert tally.n == 10**6
    best = ik.mle(tally, 1e-8)
    assert best.gap <= 1e-8
    assert ik.emd(best, ages, line) < 1
