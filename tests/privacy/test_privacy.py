"""The tight privacy level of a matrix, and what the definitions of privacy say to each other."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from ibukit.privacy import epsilon_ldp, epsilon_metric
from oracles import naive
from oracles import shokri as games_oracle


@st.composite
def channels(draw):
    """A positive channel over points of the plane, its matrix and the distances."""
    k, m = draw(st.integers(2, 7)), draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrix = rng.dirichlet(np.full(m, 0.5), k) * 0.999 + 0.001 / m
    places = rng.random((k, 2))
    distances = np.hypot(*(places[:, None] - places).transpose(2, 0, 1))
    return ik.MatrixMechanism(matrix, ik.Alphabet(range(k), distances)), matrix, distances


@pytest.mark.ledger("B-D2", "B-D3", "E-D2.1")
@given(channels())
def test_levels_are_the_largest_log_ratios(channel):
    mechanism, matrix, distances = channel
    assert epsilon_ldp(mechanism) == pytest.approx(naive.epsilon_ldp(matrix), rel=1e-10, abs=1e-13)
    assert epsilon_metric(mechanism) == pytest.approx(
        naive.epsilon_metric(matrix, distances), rel=1e-10, abs=1e-13
    )


@pytest.mark.ledger("B-D2", "B-D3")
@given(channels())
def test_the_levels_are_the_least_that_the_definitions_allow(channel):
    mechanism, matrix, distances = channel
    ldp, metric = epsilon_ldp(mechanism), epsilon_metric(mechanism)
    ratios = matrix[:, None] / matrix
    assert (ratios <= np.exp(ldp) * (1 + 1e-12)).all()
    assert (ratios <= np.exp(metric * distances)[..., None] * (1 + 1e-12)).all()
    if ldp > 1e-6:
        assert (ratios > np.exp(ldp * (1 - 1e-6))).any()
        assert (ratios > np.exp(metric * (1 - 1e-6) * distances)[..., None] * (1 + 1e-13)).any()


@given(channels())
def test_metric_and_local_privacy_bound_each_other(channel):
    mechanism, _, distances = channel
    ldp, metric = epsilon_ldp(mechanism), epsilon_metric(mechanism)
    apart = distances[~np.eye(len(distances), dtype=bool)]
    assert metric <= ldp / apart.min() * (1 + 1e-12)
    assert ldp <= metric * apart.max() * (1 + 1e-12)


@given(channels(), st.floats(0.1, 10))
def test_a_longer_unit_of_distance_is_a_larger_epsilon(channel, unit):
    mechanism, matrix, distances = channel
    in_units = ik.MatrixMechanism(matrix, ik.Alphabet(range(len(matrix)), distances / unit))
    assert epsilon_metric(in_units) == pytest.approx(unit * epsilon_metric(mechanism), rel=1e-12)
    discrete = ik.MatrixMechanism(matrix, ik.Alphabet(range(len(matrix))))
    assert epsilon_metric(discrete) == pytest.approx(epsilon_ldp(mechanism), rel=1e-12)


@given(channels(), st.randoms(use_true_random=False))
def test_the_order_of_the_reports_does_not_matter(channel, random):
    mechanism, matrix, _ = channel
    order = random.sample(range(matrix.shape[1]), matrix.shape[1])
    shuffled = ik.MatrixMechanism(matrix[:, order], mechanism.alphabet)
    assert epsilon_ldp(shuffled) == epsilon_ldp(mechanism)
    assert epsilon_metric(shuffled) == epsilon_metric(mechanism)


@pytest.mark.ledger("B-D3")
@pytest.mark.parametrize("k", [2, 5, 20])
@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_randomized_response_is_d_private_on_integers(k, eps):
    """LDP at epsilon is d-privacy at epsilon wherever distances are at least 1,
    here attained by neighbours.
    """
    assert epsilon_metric(ik.RandomizedResponse(k, eps)) == pytest.approx(eps, rel=1e-12)
    assert epsilon_ldp(ik.TruncatedGeometric(k, eps)) == pytest.approx(eps * (k - 1), rel=1e-12)


@pytest.mark.ledger("B-D1")
@pytest.mark.parametrize("eps", [0.3, 2.0])
def test_noise_on_a_count_is_differentially_private_for_the_records(eps):
    """Databases of five records that do or do not have a property;
    adjacent ones differ in one record.
    """
    databases = np.array(list(itertools.product((0, 1), repeat=5)))
    differ = (databases[:, None] != databases).sum(axis=2)
    noise = ik.TruncatedGeometric(6, eps)
    released = noise.matrix()[databases.sum(axis=1)]
    # eq. (1): the ratio for adjacent databases is at most e^eps, and that is attained
    ratios = (released[:, None] / released)[differ == 1]
    assert ratios.max() == pytest.approx(np.exp(eps), rel=1e-12)
    # in other words d-privacy for the Hamming distance
    query = ik.MatrixMechanism(np.eye(6)[databases.sum(axis=1)], ik.Alphabet(range(32), differ))
    assert epsilon_metric(ik.compose(query, noise)) == pytest.approx(eps, rel=1e-12)


@pytest.mark.ledger("D-D2.1")
@pytest.mark.parametrize("a", range(2, 11))
@pytest.mark.parametrize("eps", [0.2, 1.0, 3.0])
def test_three_protocols_have_their_nominal_level(a, eps):
    assert epsilon_ldp(ik.RandomizedResponse(a, eps)) == pytest.approx(eps, abs=1e-9)
    assert epsilon_ldp(ik.OptimizedUnaryEncoding(a, eps)) == pytest.approx(eps, abs=1e-9)
    for size in range(1, a):
        # subset selection: a report is a set of `size` values, e^eps times likelier if the secret
        # is in it
        subsets = list(itertools.combinations(range(a), size))
        weights = np.array(
            [[np.exp(eps) if x in subset else 1.0 for subset in subsets] for x in range(a)]
        )
        selection = ik.MatrixMechanism(weights / weights.sum(axis=1, keepdims=True))
        assert epsilon_ldp(selection) == pytest.approx(eps, abs=1e-9)


def test_a_report_that_rules_a_secret_out_has_no_finite_level():
    for matrix in (
        np.eye(2),
        np.eye(3),
        [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]],
        [[1, 0], [0.5, 0.5]],
    ):
        mechanism = ik.MatrixMechanism(matrix)
        assert epsilon_ldp(mechanism) == np.inf
        assert epsilon_metric(mechanism) == np.inf


def test_impossible_reports_do_not_count():
    never = ik.MatrixMechanism([[0.8, 0, 0.2, 0], [0.4, 0, 0.6, 0]])
    assert epsilon_ldp(never) == pytest.approx(np.log(3), rel=1e-12)
    assert epsilon_metric(never) == pytest.approx(np.log(3), rel=1e-12)
    # 0 and 1 are alike although both rule report 2 out; only secret 2 stands apart, at any finite
    # distance
    matrix = [[0.5, 0.5, 0], [0.5, 0.5, 0], [0.2, 0.2, 0.6]]
    assert epsilon_metric(ik.MatrixMechanism(matrix)) == np.inf
    assert epsilon_metric(ik.MatrixMechanism(matrix[:2])) == 0


def test_one_secret_has_nothing_to_hide():
    alone = ik.MatrixMechanism([[0.3, 0.7]])
    assert epsilon_ldp(alone) == 0
    assert epsilon_metric(alone) == 0


def test_a_useless_channel_reveals_nothing():
    assert epsilon_ldp(ik.MatrixMechanism(np.full((4, 3), 1 / 3))) == 0
    assert epsilon_metric(ik.MatrixMechanism(np.full((4, 3), 1 / 3))) == 0


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda eps: ik.RandomizedResponse(5, eps),
        lambda eps: ik.TruncatedGeometric(5, eps),
        lambda eps: ik.LinearLaplace(5, 2 * eps),
        lambda eps: ik.Exponential(5, 2 * eps),
        lambda eps: ik.TruncatedPlanarGeometric(ik.Grid(2, 3), eps),
        lambda eps: ik.PlanarLaplace(ik.Grid(2, 3), 2 * eps),
        lambda eps: ik.Exponential(ik.Grid(2, 3), 2 * eps),
    ],
    ids=[
        "k-RR",
        "geometric",
        "Laplace",
        "exponential",
        "planar geometric",
        "planar Laplace",
        "planar exponential",
    ],
)
def test_privacy_and_truth_at_the_ends(mechanism):
    """Epsilon to infinity is no mechanism at all, and is refused;
    the more privacy the farther from the truth.
    """
    truth = [np.diag(mechanism(eps).matrix()).min() for eps in (0.2, 1.0, 5.0, 30.0, 36.0)]
    assert truth == sorted(truth)
    assert 1 - 1e-12 < truth[-1] < 1
    np.testing.assert_allclose(mechanism(36.0).matrix(), np.eye(mechanism(1.0).k), atol=1e-12)
    with pytest.raises(ValueError, match=r"epsilon must be at most .*, got (60|120)\.0"):
        mechanism(60.0)
    tally = mechanism(36.0).simulate(np.arange(1, mechanism(1.0).k + 1), np.random.default_rng(1))
    assert tally.counts.tolist() == list(range(1, mechanism(1.0).k + 1))
    estimate = ik.ibu(tally)
    np.testing.assert_allclose(estimate.distribution, tally.frequencies, atol=1e-9)


def test_unary_encodings_at_the_end(rng):
    secrets = np.repeat(np.arange(4), [10, 20, 30, 40])
    reports = ik.Rappor(4, 73.0).randomize(secrets, rng)
    assert np.array_equal(reports, np.eye(4)[secrets])
    hidden = ik.OptimizedUnaryEncoding(4, 36.0).randomize(secrets, rng)
    assert np.array_equal(hidden, np.eye(4)[secrets] * hidden.sum(axis=1, keepdims=True))
    assert 25 < hidden.sum() < 75  # the own bit is a fair coin: 5 standard deviations are 25


@st.composite
def games(draw):
    """A channel with zeros here and there, a prior and a loss,
    small enough to try every strategy.
    """
    k, m, guesses = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrix = rng.dirichlet(np.full(m, 0.5), k)
    whole = draw(st.booleans())  # many ties
    loss = rng.integers(0, 3, (k, guesses)).astype(float) if whole else rng.random((k, guesses))
    if whole and m > 1:
        matrix[:, -1] = 0  # a report that is never made
        matrix[:, 0] += 1 - matrix.sum(axis=1)
    prior = (
        np.append(0.0, rng.dirichlet(np.ones(k - 1)))
        if whole and k > 1
        else rng.dirichlet(np.ones(k))
    )
    return ik.MatrixMechanism(np.abs(matrix), ik.Alphabet(range(k))), prior, loss


@pytest.mark.ledger("C-LP1")
@given(games())
def test_no_strategy_beats_the_best_guesses(game):
    mechanism, prior, loss = game
    least, strategy = games_oracle.best_strategy(prior, mechanism.matrix(), loss)
    assert ik.privacy.adversary_loss(mechanism, prior, loss) == pytest.approx(
        least, rel=1e-12, abs=1e-15
    )
    guesses = ik.privacy.best_guess(mechanism, prior, loss)
    assert guesses.dtype == np.int64
    found = games_oracle.expected_loss(prior, mechanism.matrix(), loss, guesses)
    assert found == pytest.approx(least, rel=1e-12, abs=1e-15)
    assert guesses.tolist() == list(strategy), "the smallest codes among equals"


@pytest.mark.ledger("C-LP1")
@pytest.mark.parametrize("prior", [np.full(12, 1 / 12), np.arange(1, 13) / 78])
def test_the_best_guess_is_least_in_expectation_under_the_posterior(prior):
    grid = ik.Grid(3, 4)
    mechanism = ik.PlanarLaplace(grid, 0.7)
    guesses = ik.privacy.best_guess(mechanism, prior)
    for report, guess in enumerate(guesses):
        posterior = prior * mechanism.matrix()[:, report]
        posterior /= posterior.sum()
        expected = [posterior @ grid.distances()[:, z] for z in range(12)]
        assert expected[guess] <= min(expected) * (1 + 1e-12)


@given(games())
def test_the_user_loses_at_least_what_the_adversary_does(game):
    mechanism, prior, _ = game
    loss = np.random.default_rng(mechanism.m).random((mechanism.k, mechanism.m))
    quality = ik.privacy.quality_loss(mechanism, prior, loss)
    own = games_oracle.expected_loss(prior, mechanism.matrix(), loss, range(mechanism.m))
    assert quality == pytest.approx(own, rel=1e-12)
    assert ik.privacy.adversary_loss(mechanism, prior, loss) <= quality * (1 + 1e-12)


def test_a_report_that_is_never_made_is_guessed_as_the_first():
    mechanism = ik.MatrixMechanism([[0.5, 0, 0.5], [0, 0, 1], [0, 0, 1]])
    assert ik.privacy.best_guess(mechanism, [0.2, 0.4, 0.4]).tolist() == [0, 0, 1]


def test_equals_by_symmetry_are_equals_whatever_the_rounding():
    """Both middles are as good;
    a unit in the last place of one probability makes either look better.
    """
    mechanism, line, middle = ik.MatrixMechanism(np.ones((4, 1))), ik.Line(0, 3), 0.35
    better = set()
    for first, second in ((middle, np.nextafter(middle, 1)), (np.nextafter(middle, 1), middle)):
        prior = [0.15, first, second, 0.15]
        exact = [
            sum(Fraction(p) * int(d) for p, d in zip(prior, row, strict=True))
            for row in line.distances()
        ]
        better.add(exact.index(min(exact)))
        assert ik.privacy.best_guess(mechanism, prior).tolist() == [1]
    assert better == {1, 2}


def test_losses_by_default_are_the_distances():
    mechanism, prior = ik.TruncatedGeometric(ik.Line(3, 9), 0.6), ik.normalize(np.arange(1, 8))
    distances = ik.Line(3, 9).distances()
    assert ik.privacy.adversary_loss(mechanism, prior) == ik.privacy.adversary_loss(
        mechanism, prior, distances
    )
    assert ik.privacy.quality_loss(mechanism, prior) == ik.privacy.quality_loss(
        mechanism, prior, distances
    )


@pytest.mark.parametrize(
    "call", [ik.privacy.best_guess, ik.privacy.adversary_loss, ik.privacy.quality_loss]
)
def test_priors_and_losses_that_do_not_fit_are_refused(call):
    mechanism = ik.RandomizedResponse(3, 1.0)
    for prior, loss, error, words in (
        ([0.5, 0.5], None, ik.errors.AlphabetMismatch, ["prior", "3 elements", "got 2"]),
        ([0.5, 0.5, 0.5], None, ik.errors.InvalidDistribution, ["prior", "1.5"]),
        ([np.nan, 0.5, 0.5], None, ik.errors.InvalidDistribution, ["prior", "nan"]),
        (
            ik.uniform(3),
            np.ones((2, 3)),
            ik.errors.AlphabetMismatch,
            ["loss", "(2, 3)", "3 secrets"],
        ),
        (ik.uniform(3), np.ones((3, 0)), ik.errors.AlphabetMismatch, ["loss", "(3, 0)"]),
        (ik.uniform(3), np.ones(3), ik.errors.AlphabetMismatch, ["loss", "(3,)"]),
        (ik.uniform(3), np.diag([1.0, np.nan, 1]), ValueError, ["loss", "nan", "(1, 1)"]),
        (ik.uniform(3), np.diag([1.0, 1, -2]), ValueError, ["loss", "-2", "(2, 2)"]),
        (ik.uniform(3), [["a"] * 3] * 3, ValueError, ["loss"]),
    ):
        with pytest.raises(error) as caught:
            call(mechanism, prior, loss)
        assert type(caught.value) is error
        assert all(word in str(caught.value) for word in words)


def test_the_quality_of_other_reports_needs_a_loss_of_its_own():
    mechanism = ik.MatrixMechanism([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]])
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"loss .*\(3, 2\), got \(3, 3\)"):
        ik.privacy.quality_loss(mechanism, ik.uniform(3))
    assert ik.privacy.quality_loss(
        mechanism, ik.uniform(3), [[0, 1], [1, 0], [1, 0]]
    ) == pytest.approx(0.8 / 3)
