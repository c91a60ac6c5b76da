"""Plans for bits without a list of the reports:
moments against the list, groups of secrets against single ones.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.planning import ascent, bits
from ibukit.planning.bit_moments import BitMoments
from ibukit.planning.bits import BitVariances
from ibukit.planning.dense import DenseVariances
from mechanism_cases import name

BITS = [
    ik.Rappor(4, 1.0),
    ik.Rappor(9, 5.0),
    ik.OptimizedUnaryEncoding(6, 2.0),
    ik.OptimizedUnaryEncoding(6, 0.01),
    ik.SubsetSelection(6, 1.0),
    ik.SubsetSelection(7, 3.0, size=3),
    ik.SubsetSelection(5, 2.0, size=4),
    ik.SubsetSelection(5, 1.0, size=1),
]
EACH = pytest.mark.parametrize("mechanism", BITS, ids=name)


@EACH
def test_moments_are_those_of_all_reports(mechanism, rng):
    k = mechanism.k
    theta, w = rng.dirichlet(np.ones(k)), rng.normal(size=(k, 1))
    moments, dense = BitMoments(mechanism), DenseVariances(mechanism.matrix())
    ours, listed = moments.at(theta, w), dense.at(theta, w)
    assert ours.variances == pytest.approx(listed.variances, rel=1e-9)
    assert ours.slopes == pytest.approx(listed.slopes, rel=1e-9)
    along = np.eye(k) - 1 / k  # directions that keep the sum
    expected = along @ dense.curvature(theta, listed, w) @ along
    assert along @ moments.curvature(theta, ours, w) @ along == pytest.approx(
        expected, abs=1e-7 * np.abs(expected).max()
    )


@EACH
def test_slopes_and_curvature_are_derivatives(mechanism, rng):
    theta, w = rng.dirichlet(np.full(mechanism.k, 5.0)), rng.normal(size=(mechanism.k, 1))
    move = rng.normal(size=mechanism.k)
    move = 1e-3 * theta.min() * (move - move.mean())
    for space in (BitMoments(mechanism), DenseVariances(mechanism.matrix())):
        before, here, after = (space.at(theta + step * move, w) for step in (-1, 0, 1))
        slope = here.slopes[:, 0] - 2 * w[:, 0] * (w[:, 0] @ theta)
        first, second = (
            after.variances - before.variances,
            after.variances - 2 * here.variances + before.variances,
        )
        assert first[0] / 2 == pytest.approx(slope @ move, rel=1e-4, abs=1e-9 * here.variances[0])
        assert second[0] == pytest.approx(
            -move @ space.curvature(theta, here, w) @ move, abs=1e-8 * here.variances[0]
        )


@EACH
def test_the_climb_ends_where_that_on_the_list_ends(mechanism, rng):
    w = rng.normal(size=(mechanism.k, 1))
    ours = ascent.climb(BitMoments(mechanism), w)
    listed = ascent.climb(DenseVariances(mechanism.matrix()), w)
    assert ours.lower <= ours.upper <= ours.lower * (1 + 1e-6)
    assert ours.upper == pytest.approx(listed.upper, rel=1e-6)


@EACH
def test_secrets_that_are_weighed_alike_may_be_merged(mechanism, monkeypatch):
    weights = (np.arange(mechanism.k) % 3)[None] + 0.0
    merged = BitVariances(mechanism).worst_case(weights)
    monkeypatch.setattr(bits, "MAX_GROUP_ENTRIES", 0)
    single = BitVariances(mechanism).worst_case(weights)
    assert merged.upper == pytest.approx(single.upper, rel=1e-6)
    assert merged.theta == pytest.approx(single.theta, abs=1e-3)


@EACH
def test_merged_reports_have_probabilities(mechanism):
    sizes = np.array([1, mechanism.k - 1])
    matrix = bits.grouped(mechanism, sizes)
    assert matrix.sum(axis=1) == pytest.approx([1, 1])
    # the chance that the first secret's own bit is set
    rows = np.unpackbits(mechanism._all_reports, axis=1, count=mechanism.k)
    first, last = mechanism.matrix()[[0, -1]] @ rows[:, 0]
    assert (first, last) == pytest.approx((mechanism.p_one, mechanism.p_zero))


def test_the_mean_of_many_values_has_a_worst_case():
    adults = ik.datasets.load_adult_ages()
    mechanism, ages = (
        ik.OptimizedUnaryEncoding(adults.alphabet, 1.0),
        np.arange(len(adults.alphabet)),
    )
    worst = ik.plan(mechanism, width=2.0, of=ages)
    assert worst.gap <= 1e-6
    for near in (ik.uniform(len(ages)), adults):
        assert ik.plan(mechanism, width=2.0, of=ages, near=near).n < worst.n
    assert ik.plan(mechanism, width=2.0, of=ages, near=worst.distribution).n == pytest.approx(
        worst.n, rel=1e-6
    )
