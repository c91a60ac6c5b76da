"""What numpy would take for numbers without a word:
masks, imaginary parts, texts, dates, sums beyond 64 bits.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit import attack, privacy
from ibukit.attack import detection
from ibukit.mechanisms.spatial import planar_geometric
from ibukit.theory import asymptotic_mse, bayes_limits, strictly_concave

HUGE = 10**400
K3 = ik.RandomizedResponse(3, epsilon=1.0)
TALLY = K3.tally_counts([5, 3, 2])

# each takes a vector of three numbers
TAKERS = {
    "check_distribution": ik.check_distribution,
    "normalize": ik.normalize,
    "project_to_simplex": ik.project_to_simplex,
    "quantize": lambda v: ik.quantize(v, 4),
    "emd": lambda v: ik.emd(v, ik.uniform(3), ik.Line(0, 2)),
    "squared_l2": lambda v: ik.squared_l2(ik.uniform(3), v),
    "gap": lambda v: ik.gap(TALLY, v),
    "start": lambda v: ik.ibu(TALLY, start=v),
    "forward": TALLY.forward,
    "adjoint": K3.adjoint,
    "tally_counts": K3.tally_counts,
    "weights": lambda v: K3.tally_counts(v, weighted=True),
    "alpha": lambda v: ik.posterior_mean(TALLY, v),
    "loss": lambda v: privacy.quality_loss(K3, ik.uniform(3), [v, v, v]),
    "distances": lambda v: ik.Alphabet(["a", "b", "c"], distances=[v, v, v]),
    "matrix": lambda v: ik.MatrixMechanism([v, v, v]),
    "efficiency": lambda v: ik.MatrixMechanism(np.eye(3), efficiency=v),
    "of": lambda v: ik.mle(TALLY).interval(of=v),
}

# each would be a distribution if its nature were overlooked
IMPOSTORS = {
    "masked": np.ma.array([0.5, 0.25, 0.25], mask=[False, False, True]),
    "complex": np.array([0.5, 0.25, 0.25 + 1e-3j]),
    "complex one by one": np.array([0.5, 0.25, 0.25 + 0j], dtype=object),
    "texts": ["0.5", "0.25", "0.25"],
    "bytes": np.array([b"0.5", b"0.25", b"0.25"]),
    "a text among numbers": np.array([0.5, 0.25, "0.25"], dtype=object),
    "days": np.array(["1970-01-01", "1970-01-02", "1970-01-01"], dtype="datetime64[D]"),
    "beyond the doubles": [HUGE, 0, 0],
}


@pytest.mark.parametrize("impostor", IMPOSTORS)
@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.filterwarnings("error")
def test_what_is_no_number_is_named(taker, impostor):
    with pytest.raises(ValueError, match=r"must (be|not have)|missing value") as caught:
        TAKERS[taker](IMPOSTORS[impostor])
    assert "sum to 1" not in str(caught.value)  # it was not taken for numbers that are wrong


def test_numbers_of_any_kind_are_numbers():
    expected = [0.5, 0.25, 0.25]
    fine = (
        expected,
        tuple(expected),
        np.array(expected, dtype=np.float32),
        np.array(expected, dtype=object),
        np.ma.array(expected),
        [1, 0, 0],
    )
    for values in fine:
        assert ik.check_distribution(values).dtype == np.float64


@pytest.mark.parametrize(
    "count",
    [
        lambda: K3.tally_counts([2**62, 2**62, 2**62]),
        lambda: K3.tally([0, 0, 1], counts=[2**62, 2**62, 1]),
        lambda: K3.tally_counts([2**62, 1, 0]) + K3.tally_counts([2**62, 1, 0]),
        lambda: K3.simulate([2**62, 2**62, 2**62], np.random.default_rng(1)),
        lambda: K3.tally_counts([1e308, 1e308, 1e308], weighted=True),
    ],
    ids=["counts", "reports with counts", "sum of tallies", "users", "weights"],
)
def test_no_sum_of_counts_is_negative_or_infinite(count):
    with pytest.raises(ik.errors.TooLarge, match="must sum to less than"):
        count()


def test_counts_just_below_the_limit_are_right():
    tally = K3.tally_counts([2**62, 2**61, 2**60])
    assert tally.n == 2**62 + 2**61 + 2**60
    np.testing.assert_allclose(tally.frequencies, [4 / 7, 2 / 7, 1 / 7], rtol=1e-15)


def test_what_is_equal_has_one_hash_whatever_the_sign_of_its_zeros():
    plus, minus = (
        ik.MatrixMechanism([[1.0, 0.0], [0.0, 1.0]]),
        ik.MatrixMechanism([[1.0, -0.0], [-0.0, 1.0]]),
    )
    assert plus == minus
    assert hash(plus) == hash(minus)
    assert len((plus.tally([0, 1]) + minus.tally([1, 1])).parts) == 1
    near, far = (ik.Alphabet(["a", "b"], distances=[[zero, 1], [1, zero]]) for zero in (0.0, -0.0))
    assert near == far
    assert hash(near) == hash(far)


@pytest.mark.parametrize(
    "make", [lambda: ik.uniform(10**11), lambda: ik.Grid(10**6, 10**6), lambda: ik.Grid(HUGE, 2)]
)
def test_what_does_not_fit_into_memory_is_named(make):
    with pytest.raises(ik.errors.TooLarge, match="at most"):
        make()


@pytest.mark.parametrize("kind", [ik.Rappor, ik.SubsetSelection, ik.LocalHashing])
def test_more_users_than_can_be_drawn_one_by_one_are_named(kind):
    with pytest.raises(ik.errors.TooLarge, match=r"drawn one by one, got 1\.00e"):
        kind(20, 1.0).simulate([10**10] + 19 * [0], np.random.default_rng(1))


def offsets_of(tally, mechanism):
    """Frequencies of the reports by their cells."""
    part = tally.parts[0]
    return dict(zip(map(tuple, part.reports.tolist()), part.counts / part.n, strict=True))


def test_ten_billion_users_on_a_plane_have_the_law_of_one(monkeypatch):
    """Of so many the frequencies are the probabilities within a standard error of 5e-6."""
    mechanism = ik.PlanarGeometric(ik.Grid(2, 3, cell_size=(1.0, 0.5), first=(5, -2)), epsilon=1.5)
    users = np.array([3, 1, 0, 2, 0, 4]) * 10**9
    found = mechanism.simulate(users, np.random.default_rng(1))
    assert found.n == users.sum()
    part = found.parts[0]
    expected = found.forward(users / users.sum()) * np.exp(part.log_scale)
    far = np.abs(found.frequencies - expected) / np.sqrt(expected / found.n)
    assert len(far) > 500
    assert (far[expected * found.n > 25] < 5).all()
    # what draws users in bulk where they are few is the same law, too: each report of one user is
    # in reach
    monkeypatch.setattr(planar_geometric, "MAX_ONE_BY_ONE", 0)
    few = mechanism.simulate([0, 0, 0, 0, 1, 1], np.random.default_rng(2))
    assert few.n == 2


def test_a_mechanism_without_a_matrix_is_named():
    noise, plane = ik.LinearGeometric(ik.Line(0, 2), 1.0), ik.PlanarGeometric(ik.Grid(1, 3), 1.0)
    prior = ik.uniform(3)
    for mechanism in (noise, plane, np.eye(3)):
        for ask in (
            privacy.epsilon_ldp,
            privacy.epsilon_metric,
            lambda it: privacy.quality_loss(it, prior),
            lambda it: privacy.adversary_loss(it, prior),
            lambda it: privacy.best_guess(it, prior),
            lambda it: privacy.mutual_information(it, prior),
            lambda it: privacy.exposure(it, prior, 0),
            lambda it: privacy.mean_displacement(it, 0),
            lambda it: privacy.block_mass(it, 0, [0, 1]),
        ):
            with pytest.raises(TypeError, match="mechanism must have a matrix"):
                ask(mechanism)


def test_four_billion_reports_are_tested_for_an_attack(monkeypatch):
    """Numpy draws halves of less than 10^9;
    above, each report goes to one by a coin, with the same level.
    """
    people = np.random.default_rng(1)
    attacked = K3.tally_counts(np.array([2, 1, 1]) * 10**9)
    assert not attack.detect_poisoning(attacked, rng=people).attacked
    first = detection._half(attacked.parts[0].counts, people)
    assert abs(first.sum() - attacked.n / 2) < 5 * np.sqrt(attacked.n) / 2
    monkeypatch.setattr(detection, "MAX_DIVIDED", 0)
    flood = ik.RandomizedResponse(10, 1.0).tally_counts([9000] + [1000] * 9)
    assert attack.detect_poisoning(flood, rng=people).attacked


@pytest.mark.parametrize("k", [3, 4])
@pytest.mark.filterwarnings("error")
def test_a_nat_of_epsilon_costs_half_a_nat_of_entropy_for_each_free_number(k):
    """C_F is of the order of e^-eps where reports hide little:
    it is a difference of far larger covariances.
    """
    levels = (30.0, 36.0)
    near, far = (
        bayes_limits(ik.RandomizedResponse(k, e), 1.0, rng=np.random.default_rng(1), draws=50)
        for e in levels
    )
    assert far.k2 - near.k2 == pytest.approx(-(k - 1) / 2 * 6, rel=1e-6)
    assert 0 < far.frequencies < near.frequencies
    assert far.frequencies == pytest.approx(near.frequencies * np.exp(-6), rel=1e-6)


@pytest.mark.parametrize("distortion", [1e-30, 1e-100, 1e-300])
def test_next_to_nothing_of_distortion(distortion):
    """Neighbours are at distance 1,
    so the distortion is about 2 exp(-beta) times the chance of an inner secret.
    """
    point = ik.rate_distortion(ik.uniform(5), ik.Line(0, 4), distortion=distortion)
    assert point.gap <= 1e-9
    assert point.distortion == pytest.approx(distortion, rel=1e-9)
    assert point.rate == pytest.approx(np.log(5))
    assert point.beta == pytest.approx(np.log(8 / 5 / distortion), rel=1e-9)


@pytest.mark.parametrize("small", [1e-30, 1e-100, 1e-300])
def test_designs_for_a_prior_that_nearly_leaves_secrets_out(small):
    prior, line = ik.normalize([1, small, 1, 0.5, small]), ik.Line(0, 4)
    vertex = ik.shokri(prior, line, 0.4, choice="vertex")
    assert privacy.quality_loss(vertex, prior) == pytest.approx(0.4, abs=1e-6)
    design = ik.optimal_private(prior, line, 1.0)
    assert design.gap <= 1e-8
    assert privacy.epsilon_metric(design.mechanism) <= 1 + 1e-9


def test_labels_of_several_types_are_not_turned_into_texts():
    """Numpy makes "1" of 1 where a text stands beside it."""
    mixed, alike = ik.Alphabet(["a", 1]), ik.Alphabet([1, "1"])
    assert mixed.codes(["a", 1]).tolist() == [0, 1]
    assert alike.codes([1, "1"]).tolist() == [0, 1]
    assert alike.codes(np.array(["1", 1], dtype=object)).tolist() == [1, 0]
    assert ik.RandomizedResponse([1, "1"], 1.0).tally(["1", "1", 1]).counts.tolist() == [1, 2]
    with pytest.raises(ik.errors.AlphabetMismatch, match="'1'"):
        mixed.codes(["a", "1"])


def test_more_terms_than_a_double_can_count_are_named():
    """48,842 people of 100 ages: the exact posterior would have 1e313 terms."""
    ages = ik.datasets.load_adult_ages()
    tally = ik.TruncatedGeometric(ages.alphabet, 0.5).simulate(
        ages.counts, np.random.default_rng(1)
    )
    with pytest.raises(
        ik.errors.TooLarge, match=r"would add .*e\+3\d\d terms .* take method='gibbs'"
    ):
        ik.posterior(tally, 0.5)


@pytest.mark.parametrize("epsilon", [5.1e-15, 1e-9, 36.0])
@pytest.mark.parametrize(
    "kind", [ik.Rappor, ik.RandomizedResponse, ik.OptimizedUnaryEncoding, ik.TruncatedGeometric]
)
@pytest.mark.filterwarnings("error")
def test_at_the_ends_of_what_epsilon_may_be_limits_are_numbers(kind, epsilon):
    mechanism = kind(3, epsilon)
    error = asymptotic_mse(mechanism, ik.uniform(3))
    assert 0 < error < np.inf
    tally = mechanism.simulate([50, 30, 20], np.random.default_rng(1))
    direction = strictly_concave(tally).direction
    assert direction is None or np.isfinite(direction).all()
    assert ik.mle(tally, strict=False).gap < 1e-9


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-170, 1e-17])
def test_noise_that_doubles_cannot_hold_is_refused_at_once(epsilon):
    """Bisections between bounds whose product underflows would have no end."""
    with pytest.raises(ValueError, match="epsilon must be at least"):
        ik.TightConstraints(ik.Grid(3, 3, 100.0), epsilon)
