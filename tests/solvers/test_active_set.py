"""The solver that asks a channel for forward and adjoint only:
the same maximum as the dense one, with few rows.
"""

import numpy as np
import pytest

import ibukit as ik
from hard_cases import FAMILIES, draw
from ibukit.channels import Channel, DenseChannel
from ibukit.solvers import active_set, interior_point
from instances import INSTANCES, NAMES

TOL = 1e-9


class Counted(Channel):
    """A channel that counts how often it is asked."""

    def __init__(self, channel):
        self.channel, self.forwards, self.adjoints = channel, 0, 0
        self.k = channel.k

    @property
    def size(self):
        return self.channel.size

    def forward(self, theta):
        self.forwards += 1
        return self.channel.forward(theta)

    def adjoint(self, w):
        self.adjoints += 1
        return self.channel.adjoint(w)


class SameParity(Channel):
    """Somebody else's channel:
    the own secret with probability `truth`, else any of the same parity.
    """

    def __init__(self, k, truth):
        self.k, self.truth = k, truth

    @property
    def size(self):
        return self.k

    def forward(self, theta):
        return self._mixed(theta)

    def adjoint(self, w):
        return self._mixed(w)

    def _mixed(self, values):
        mixed = self.truth * values
        for parity in (0, 1):
            mixed[parity::2] += (1 - self.truth) * values[parity::2].mean()
        return mixed


@pytest.fixture
def from_few(monkeypatch):
    """Few candidates at first and few at a time, so that small problems take many rounds too."""
    monkeypatch.setattr(active_set, "FIRST_CANDIDATES", 2)
    monkeypatch.setattr(active_set, "MIN_ADDED", 2)
    monkeypatch.setattr(active_set, "EM_STEPS", 2)


def excess(channel, q, theta):
    p = channel.forward(theta)
    assert (p > 0).all()
    return channel.adjoint(q / p).max() - 1


def matrix_of(channel, k):
    return np.array([channel.forward(unit) for unit in np.eye(k)])


def assert_distribution(theta, k):
    assert theta.shape == (k,)
    assert (theta >= 0).all(), "a NaN would fail too"
    assert abs(theta.sum() - 1) <= 1e-12


def assert_certified(channel, q, k, tol=TOL):
    theta, rounds = active_set.maximise(channel, q, tol, k)
    assert_distribution(theta, k)
    assert excess(channel, q, theta) <= tol + 1e-15
    return theta, rounds


def assert_as_dense(channel, q, k, tol=TOL):
    """The log-likelihoods differ by no more than the two certificates allow."""
    theta, rounds = assert_certified(channel, q, k, tol)
    dense, _ = interior_point.maximise(matrix_of(channel, k), q, tol)
    ours, theirs = (q @ np.log(channel.forward(found)) for found in (theta, dense))
    rounding = 1e-14 * (1 + abs(theirs))
    assert (
        -excess(channel, q, theta) - rounding
        <= ours - theirs
        <= excess(channel, q, dense) + rounding
    )
    return theta, rounds


@pytest.mark.usefixtures("from_few")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_agrees_with_the_dense_solver_on_every_family(family):
    rng, most_rounds = np.random.default_rng(300 + FAMILIES.index(family)), 0
    for _ in range(10):
        matrix, counts = draw(family, rng)
        tally = ik.MatrixMechanism(matrix).tally_counts(counts * matrix.any(axis=0))
        most_rounds = max(
            most_rounds, assert_as_dense(tally.operator, tally.frequencies, tally.k)[1]
        )
    # the others have a maximiser in sight of the start: rank 1 to 3, one vertex, four secrets
    few = ["least_informative_response", "identity", "equal_rows", "low_rank", "wide"]
    assert most_rounds >= (0 if family.__name__ in few else 4)


@pytest.mark.slow
@pytest.mark.usefixtures("from_few")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_certified_on_many_problems_of_every_family(family):
    rng = np.random.default_rng(400 + FAMILIES.index(family))
    for _ in range(200):
        matrix, counts = draw(family, rng)
        tally = ik.MatrixMechanism(matrix).tally_counts(counts * matrix.any(axis=0))
        assert_certified(tally.operator, tally.frequencies, tally.k)


@pytest.mark.usefixtures("from_few")
@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_agrees_with_the_dense_solver_in_every_channel(instance):
    tally = instance.tally
    assert_as_dense(tally.operator, tally.frequencies, tally.k, 1e-12)


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_certified_with_the_constants_as_they_are(instance):
    assert_certified(instance.tally.operator, instance.tally.frequencies, instance.tally.k, 1e-12)


@pytest.mark.usefixtures("from_few")
@pytest.mark.parametrize("truth", [0.05, 0.5, 0.99])
def test_a_channel_of_somebody_else(truth, rng):
    k = 400
    q = rng.dirichlet(np.full(k, 0.5))
    theta, rounds = assert_as_dense(SameParity(k, truth), q, k)
    assert rounds >= 4
    assert (theta == 0).any()


def spikes_on_a_line(rng, k=20_000):
    truth = np.zeros(k)
    truth[rng.choice(k, 12, replace=False)] = rng.dirichlet(np.ones(12))
    return ik.TruncatedGeometric(ik.Line(0, k - 1), 0.05).simulate(
        rng.multinomial(100_000, truth), rng
    )


def test_a_long_line_is_asked_for_few_rows_and_each_once(monkeypatch, rng):
    monkeypatch.setattr(active_set, "FIRST_CANDIDATES", 16)
    tally = spikes_on_a_line(rng)
    channel = Counted(tally.operator)
    theta, rounds = assert_certified(channel, tally.frequencies, tally.k)
    assert 4 <= rounds <= 10
    assert 12 <= np.count_nonzero(theta) <= 120
    # the steps before the first round, one a round, a few for the first candidates and for this
    # test
    assert channel.adjoints <= active_set.EM_STEPS + 20
    # the rows asked for: not each round anew, and of a summit of g not all neighbours
    assert channel.forwards <= channel.adjoints + 400


def test_the_same_digits_every_time(rng):
    tally = spikes_on_a_line(rng, 3000)
    one, two = (
        active_set.maximise(tally.operator, tally.frequencies, TOL, tally.k)[0] for _ in range(2)
    )
    assert np.array_equal(one, two)


def test_zeros_are_exact():
    tally = ik.RandomizedResponse(400, 3.0).tally_counts(
        np.r_[np.full(20, 500), np.ones(380, dtype=int)]
    )
    theta, _ = assert_certified(tally.operator, tally.frequencies, tally.k)
    assert np.array_equal(theta == 0, np.arange(400) >= 20)


@pytest.mark.usefixtures("from_few")
def test_every_report_gets_a_secret_that_can_produce_it():
    # the identity is the channel where no secret can stand in for another
    q = np.arange(1, 101) / 5050
    theta, _ = assert_certified(DenseChannel(np.eye(100)), q, 100, 1e-13)
    assert np.abs(theta - q).max() <= 1e-13
    # and here the first 99 reports leave the last one to a secret that has hardly any mass
    matrix = np.zeros((100, 100))
    matrix[:, :99] = 1 / 99
    matrix[57] = np.eye(100)[99]
    counts = np.r_[np.full(99, 10_000_000), 1]
    tally = ik.MatrixMechanism(matrix).tally_counts(counts)
    theta, _ = assert_certified(tally.operator, tally.frequencies, tally.k)
    assert theta[57] == pytest.approx(1 / counts.sum(), rel=1e-6)


@pytest.mark.usefixtures("from_few")
@pytest.mark.parametrize("seed", range(5))
def test_a_secret_is_kept_for_a_report_that_nothing_else_can_produce(seed):
    # at this tolerance three reports in ten thousand million weigh nothing, yet without them there
    # is no likelihood
    rng, k = np.random.default_rng(seed), 120
    line = np.exp(-0.1 * np.abs(np.subtract.outer(np.arange(k), np.arange(k))))
    line /= line.sum(axis=1, keepdims=True)
    q = rng.multinomial(5000, rng.dirichlet(np.full(k, 0.05)) @ line) / 5000
    matrix = np.block(
        [[line[:, q > 0], np.zeros((k, 3))], [np.zeros((3, np.count_nonzero(q))), np.eye(3)]]
    )
    q = np.r_[q[q > 0] * (1 - 3e-10), np.full(3, 1e-10)]
    _, rounds = assert_certified(DenseChannel(matrix), q, k + 3, 1e-4)
    assert rounds >= 3


@pytest.mark.usefixtures("from_few")
@pytest.mark.parametrize("seed", range(3))
def test_a_careless_dense_solver_does_not_send_it_round_in_circles(seed, monkeypatch):
    solve = interior_point.maximise
    monkeypatch.setattr(interior_point, "maximise", lambda matrix, q, tol: solve(matrix, q, 1e-2))
    monkeypatch.setattr(active_set, "PATIENCE", 10**9)
    rng = np.random.default_rng(seed)
    tally = ik.RandomizedResponse(60, 3.0).simulate(
        rng.multinomial(100_000, rng.dirichlet(np.full(60, 0.5))), rng
    )
    theta, rounds = active_set.maximise(tally.operator, tally.frequencies, TOL, 60)
    assert_distribution(theta, 60)
    assert rounds <= 50
    assert TOL < excess(tally.operator, tally.frequencies, theta) <= 1e-2


@pytest.mark.usefixtures("from_few")
def test_it_gives_up_where_nothing_is_gained_any_more(monkeypatch):
    solve = interior_point.maximise
    monkeypatch.setattr(interior_point, "maximise", lambda matrix, q, tol: solve(matrix, q, 3e-2))
    rounds, stubborn = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        tally = ik.TruncatedGeometric(ik.Line(0, 299), 0.1).simulate(
            rng.multinomial(100_000, np.full(300, 1 / 300)), rng
        )
        for patience, taken in ((active_set.PATIENCE, rounds), (10**9, stubborn)):
            with monkeypatch.context() as patched:
                patched.setattr(active_set, "PATIENCE", patience)
                taken.append(
                    active_set.maximise(tally.operator, tally.frequencies, TOL, tally.k)[1]
                )
    assert sum(rounds) + 15 < sum(stubborn)
    assert max(stubborn) < active_set.MAX_ROUNDS


@pytest.mark.parametrize("candidates", [0, 1, 5, 40])
@pytest.mark.usefixtures("from_few")
def test_beyond_the_budget_the_best_distribution_so_far(candidates, monkeypatch, rng):
    k = 200
    tally = ik.RandomizedResponse(k, 6.0).tally_counts(rng.integers(50, 150, k))
    channel, q = tally.operator, tally.frequencies
    monkeypatch.setattr(active_set, "max_dense_entries", lambda: candidates * k)
    solve, sizes = interior_point.maximise, []

    def noted(matrix, *rest):
        sizes.append(len(matrix))
        return solve(matrix, *rest)

    monkeypatch.setattr(interior_point, "maximise", noted)
    theta, _ = active_set.maximise(channel, q, TOL, k)
    assert_distribution(theta, k)
    assert TOL < excess(channel, q, theta) <= excess(channel, q, np.full(k, 1 / k))
    assert max(sizes, default=0) <= candidates


@pytest.mark.usefixtures("from_few")
def test_a_tolerance_out_of_reach_ends(rng):
    for _ in range(10):
        tally = ik.MatrixMechanism(rng.dirichlet(np.ones(30), 30)).tally_counts(
            rng.integers(1, 100, 30)
        )
        theta, rounds = active_set.maximise(tally.operator, tally.frequencies, 1e-30, tally.k)
        assert_distribution(theta, tally.k)
        assert excess(tally.operator, tally.frequencies, theta) <= 1e-13
        assert rounds < active_set.MAX_ROUNDS


def test_one_secret():
    tally = ik.MatrixMechanism([[0.25, 0.75]]).tally_counts([1, 5])
    theta, rounds = active_set.maximise(tally.operator, tally.frequencies, TOL, 1)
    assert (theta.tolist(), rounds) == ([1.0], 0)
