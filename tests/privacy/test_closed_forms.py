"""Levels and informations of alphabets that are too large for a matrix."""

import inspect
import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.privacy import epsilon_ldp, epsilon_metric, mutual_information
from ibukit.privacy.closed_forms import registered

ALIKE = [
    ik.RandomizedResponse(5, 1.5),
    ik.RandomizedResponse(ik.Grid(2, 3, 0.5), 1.5),
    ik.Rappor(5, 1.5),
    ik.Rappor(["a", "b"], 1.5),
    ik.OptimizedUnaryEncoding(6, 1.5),
    ik.UnaryEncoding(4, 0.7, 0.2),
    ik.SubsetSelection(6, 1.0),
    ik.SubsetSelection(6, 1.0, size=1),
    ik.HadamardResponse(6, 1.0),
    ik.HadamardResponse(7, 3.0),
    ik.Exponential(9, 0.8),
    ik.TruncatedGeometric(9, 0.8),
    ik.TightConstraints(ik.Line(0, 8), 0.8),
]


@pytest.mark.parametrize("mechanism", ALIKE, ids=str)
def test_closed_levels_are_those_of_the_matrix(mechanism):
    for metric, level in ((False, epsilon_ldp), (True, epsilon_metric)):
        closed = registered(mechanism).epsilon(mechanism, metric)
        assert closed == pytest.approx(level(mechanism), rel=1e-12)


@pytest.mark.parametrize("mechanism", ALIKE[:10], ids=str)
def test_closed_informations_are_those_of_the_matrix(mechanism):
    prior = np.full(mechanism.k, 1 / mechanism.k)
    assert registered(mechanism).information(mechanism, prior) == pytest.approx(
        mutual_information(mechanism, prior), rel=1e-11
    )


@pytest.mark.parametrize("mechanism", [ALIKE[0], *ALIKE[8:10]], ids=str)
def test_two_valued_matrices_have_a_closed_information_for_every_prior(mechanism):
    prior = np.random.default_rng(1).dirichlet(np.full(mechanism.k, 0.5))
    prior[0] += prior[1]
    prior[1] = 0
    assert registered(mechanism).information(mechanism, prior) == pytest.approx(
        mutual_information(mechanism, prior), rel=1e-11
    )


def test_unknown_closed_forms_are_refused_by_name():
    skewed = np.arange(1, 101) / 5050
    for mechanism in (ik.Rappor(100, 1.0), ik.SubsetSelection(100, 1.0)):
        assert registered(mechanism).information(mechanism, skewed) is None
        with pytest.raises(ik.errors.TooLarge, match="use tally"):
            mutual_information(mechanism, skewed)


def test_heirs_with_another_law_have_no_closed_forms():
    class Shifted(ik.RandomizedResponse):
        def make_matrix(self):
            return np.roll(super().make_matrix(), 1, axis=1)

    class Flat(ik.Exponential):
        def make_matrix(self):
            return np.full((self.k, self.k), 1 / self.k)

    assert registered(Shifted(4, 1.0)) == (None, None, None)
    assert epsilon_metric(Flat(4, 1.0)) == 0


def test_a_million_values_need_no_matrix():
    k, eps = 10**6, 14.0
    mechanism = ik.RandomizedResponse(k, eps)
    p = math.exp(eps) / (math.exp(eps) + k - 1)
    right = math.log(k) + p * math.log(p) + (1 - p) * math.log((1 - p) / (k - 1))
    assert mutual_information(mechanism, ik.uniform(k)) == pytest.approx(right, rel=1e-12)
    assert epsilon_ldp(mechanism) == eps
    assert epsilon_metric(mechanism) == eps
    assert ik.privacy.block_mass(mechanism, 3, [3, 4]) == pytest.approx(p + (1 - p) / (k - 1))
    assert ik.privacy.exposure(mechanism, ik.uniform(k), 3) == pytest.approx(
        p * p + (1 - p) ** 2 / (k - 1)
    )


LARGE = 10**6
REFUSED = {
    "matrix": lambda m: m.matrix(),
    "distances": lambda m: m.alphabet.distances(),
    "best_guess": lambda m: ik.privacy.best_guess(m, ik.uniform(LARGE)),
    "adversary_loss": lambda m: ik.privacy.adversary_loss(m, ik.uniform(LARGE)),
    "quality_loss": lambda m: ik.privacy.quality_loss(m, ik.uniform(LARGE)),
    "mean_displacement": lambda m: ik.privacy.mean_displacement(m, 0),
    "tally.matrix": lambda m: m.tally_counts(np.ones(LARGE, dtype=int)).matrix(),
    "compose": lambda m: ik.compose(m, np.ones((LARGE, 1))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_matrix_beyond_the_budget_is_refused_by_name(name):
    with pytest.raises(ik.errors.TooLarge, match=r"ibukit\.solvers\.limits"):
        REFUSED[name](ik.RandomizedResponse(LARGE, 14.0))


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.TruncatedGeometric(LARGE, 1.0),
        ik.LinearLaplace(LARGE, 1.0),
        ik.Exponential(LARGE, 1.0),
        ik.SquareWave(LARGE, 1.0),
        ik.DiscreteSquareWave(LARGE, 1.0),
        ik.HadamardResponse(LARGE, 1.0),
        ik.PlanarLaplace(ik.Grid(1000, 1000), 1.0),
        ik.TruncatedPlanarGeometric(ik.Grid(1000, 1000), 1.0),
        ik.Rappor(100, 1.0),
        ik.SubsetSelection(100, 1.0),
        ik.TightConstraints(ik.Line(0, LARGE - 1), 1.0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_every_mechanism_refuses_too_large_a_matrix(mechanism):
    with pytest.raises(ik.errors.TooLarge):
        mechanism.matrix()


def test_the_budget_is_one_and_can_be_set():
    with ik.solvers.limits(dense_entries=99), pytest.raises(ik.errors.TooLarge, match="10 x 10"):
        ik.RandomizedResponse(10, 1.0).matrix()
    with ik.solvers.limits(dense_entries=100):
        assert ik.RandomizedResponse(10, 1.0).matrix().shape == (10, 10)


@pytest.mark.parametrize(
    ("mechanism", "reports"),
    [
        (ik.DiscreteGaussian(ik.Line(0, 99), 2.0), np.arange(50)),
        (ik.LinearGaussian(ik.Line(0, 99), 2.0), np.arange(50.0)),
        (ik.PlanarGaussian(ik.Grid(10, 10), 2.0), np.arange(100.0).reshape(50, 2)),
        (ik.PlanarGeometric(ik.Grid(10, 10), 2.0), np.arange(100).reshape(50, 2)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_dense_channels_of_many_reports_are_refused_by_name(mechanism, reports):
    with (
        ik.solvers.limits(channel_entries=4999),
        pytest.raises(ik.errors.TooLarge, match="100 x 50"),
    ):
        ik.mle(mechanism.tally(reports))


@pytest.mark.parametrize("k", [101, 1001])
def test_the_level_of_a_long_exponential_mechanism_is_finite(k):
    eps = 2.0
    norm = np.cumsum(np.exp(-eps / 2 * np.arange(k)))
    right = eps / 2 + np.abs(np.diff(np.log(norm + norm[::-1] - 1))).max()
    line = ik.Exponential(ik.Line(0, k - 1), eps)
    assert epsilon_metric(line) == pytest.approx(right, rel=1e-12)
    # The same distances as an alphabet: all pairs are compared.
    if k == 101:
        places = ik.Alphabet(range(k), ik.Line(0, k - 1).distances())
        assert epsilon_metric(ik.Exponential(places, eps)) == pytest.approx(right, rel=1e-12)
    assert epsilon_ldp(line) == pytest.approx(eps / 2 * (k - 1), rel=1e-12)


def test_levels_of_long_lines_do_not_underflow():
    line = ik.Line(0, 999)
    assert epsilon_metric(ik.TruncatedGeometric(line, 2.0)) == pytest.approx(2.0)
    assert epsilon_metric(ik.TightConstraints(line, 2.0)) == pytest.approx(2.0)
    assert epsilon_metric(ik.LinearLaplace(line, 2.0)) == pytest.approx(2.0)
    assert epsilon_ldp(ik.TruncatedGeometric(line, 2.0)) == pytest.approx(2 * 999)


def test_logarithms_are_those_of_the_matrix():
    for mechanism in (
        *ALIKE[-3:],
        ik.LinearLaplace(7, 0.8),
        ik.Exponential(ik.Grid(2, 3), 0.4),
        ik.TightConstraints(ik.Grid(2, 2), 1.0),
    ):
        with np.errstate(divide="ignore"):
            right = np.log(mechanism.matrix())
        assert np.allclose(
            registered(mechanism).log_matrix(mechanism), right, rtol=1e-12, atol=1e-13
        ), mechanism


def test_a_report_impossible_between_two_secrets_gives_an_infinite_level():
    mechanism = ik.MatrixMechanism([[0.5, 0.5], [0, 1], [0.5, 0.5]])
    assert epsilon_metric(mechanism) == math.inf
    assert epsilon_metric(ik.MatrixMechanism([[1, 0], [1, 0]])) == 0


def test_limits_names_its_budgets():
    assert {"dense_entries", "channel_entries"} <= set(
        inspect.signature(ik.solvers.limits).parameters
    )
