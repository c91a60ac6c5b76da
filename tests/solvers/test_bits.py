"""Unary encodings from their packed bits:
the parabola, its maximum, how often the rows are read, and pools.
"""

import tracemalloc

import numpy as np
import pytest
from scipy import optimize

import ibukit as ik
from ibukit.channels import BitChannel
from ibukit.solvers import _em_kernels, bits
from ibukit.solvers.bits import BitReports, _Problem
from ibukit.solvers.pooled import PooledModel

ENCODINGS = [ik.Rappor, ik.OptimizedUnaryEncoding]
encodings = pytest.mark.parametrize("encoding", ENCODINGS)


def zipf(k, rng):
    p = 1 / np.arange(1, k + 1)
    rng.shuffle(p)
    return p / p.sum()


def drawn(encoding, k, epsilon, n, rng, p=None):
    p = zipf(k, rng) if p is None else p
    return encoding(k, epsilon).simulate(rng.multinomial(n, p), rng)


def rows_of(tally, weight=1.0):
    """The rows with weights that are no multiples of one number, and their matrix."""
    q = tally.frequencies * (1 + np.arange(len(tally.counts)) % 7)
    rows = BitReports(tally.operator, weight * q / q.sum())
    matrix = tally.matrix()
    return rows, matrix / matrix.max(axis=0)


# The parabola


@encodings
@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("chunk", [8192, 50])
def test_hessian_of_all_rows_is_the_second_derivative(encoding, weight, chunk, monkeypatch, rng):
    monkeypatch.setattr(bits, "MIN_CHUNK_ENTRIES", chunk)
    k = 13
    rows, _ = rows_of(drawn(encoding, k, 1.3, 400, rng), weight)
    matrix = np.array([rows.channel.forward(unit) for unit in np.eye(k)])
    theta = rng.dirichlet(np.ones(k))
    exact = (matrix * (rows.counts / (theta @ matrix) ** 2)) @ matrix.T
    found = rows.hessian(theta, 1)
    np.testing.assert_allclose(found, exact, rtol=1e-5)  # single precision
    np.testing.assert_allclose(found, found.T, rtol=1e-13)


def test_hessian_of_some_rows_is_that_of_those_with_the_weight_of_all(rng):
    k, thin = 9, 4
    rows, _ = rows_of(drawn(ik.Rappor, k, 1.3, 2000, rng), 0.6)
    matrix = np.array([rows.channel.forward(unit) for unit in np.eye(k)])
    theta = rng.dirichlet(np.ones(k))
    w = (
        (rows.counts / (theta @ matrix) ** 2)[::thin]
        * rows.counts.sum()
        / rows.counts[::thin].sum()
    )
    np.testing.assert_allclose(
        rows.hessian(theta, thin), (matrix[:, ::thin] * w) @ matrix[:, ::thin].T, rtol=1e-5
    )


def problem_of(bits, others=()):
    tally = sum([*bits, *others])
    rows, kept, q = [], [], [np.empty(0)]
    for part, share in tally.split(tally.frequencies):
        if isinstance(part.channel, BitChannel):
            rows.append(BitReports(part.channel, part.counts, tally.n))
        else:
            kept.append(part.channel)
            q.append(share)
    return tally, _Problem(rows, PooledModel.of(tuple(kept), tally.k), np.concatenate(q))


def test_g_of_a_pool(rng):
    k = 8
    bits = [drawn(encoding, k, 1.0, 300, rng) for encoding in ENCODINGS]
    others = [ik.TruncatedGeometric(k, 0.5).tally(rng.integers(0, k, 200))]
    tally, problem = problem_of(bits, others)
    theta = rng.dirichlet(np.ones(k))
    g = problem.gradient(theta)
    matrix = tally.matrix()
    np.testing.assert_allclose(g, matrix @ (tally.frequencies / (theta @ matrix)), rtol=1e-12)
    both = problem.hessian(theta, 1)
    each = [rows.hessian(theta, 1) for rows in problem.bits]
    np.testing.assert_allclose(both, each[0] + each[1], rtol=1e-14)


@pytest.mark.parametrize("with_others", [False, True])
def test_a_step_ends_at_the_maximum_of_parabola_and_others(with_others, rng):
    k = 6
    others = (
        [ik.RandomizedResponse(k, 1.0).tally_counts([30, 1, 2, 9, 4, 1])] if with_others else []
    )
    _, problem = problem_of([drawn(ik.Rappor, k, 2.0, 500, rng)], others)
    theta = np.array([0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    g = problem.gradient(theta)
    hessian = problem.hessian(theta, 1)
    g_others = problem.others.adjoint(problem.q_others / problem.others.forward(theta))

    def objective(phi):
        """Minus the rows' parabola around theta,
        minus the others' likelihood, plus the sum, then 1.
        """
        step, fitted = phi - theta, problem.others.forward(phi)
        value = (
            phi.sum()
            - (g - g_others) @ step
            + step @ hessian @ step / 2
            - problem.q_others @ np.log(fitted)
        )
        return value, 1 - (g - g_others) + hessian @ step - problem.others.adjoint(
            problem.q_others / fitted
        )

    options = {"maxiter": 9999, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 30}
    bounds = [(1e-14, None)] * k
    theirs = optimize.minimize(
        objective, theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
    ours = problem.step(theta, g, hessian, 1e-9)
    np.testing.assert_allclose(ours, theirs / theirs.sum(), atol=1e-5)
    assert np.array_equal(ours > 0, theirs > 1e-6)
    assert abs(ours.sum() - 1) <= 1e-14
    assert np.abs(ours - theta).max() > 0.05


def test_a_step_without_others_is_the_same_by_an_active_set_and_by_the_interior_point(
    monkeypatch, rng
):
    _, problem = problem_of([drawn(ik.Rappor, 9, 2.0, 500, rng)])
    theta = rng.dirichlet(np.ones(9))
    g, hessian = problem.gradient(theta), problem.hessian(theta, 1)
    found = problem.step(theta, g, hessian, 1e-9)
    np.testing.assert_allclose(problem.step(found, g, hessian, 1e-9).sum(), 1, rtol=1e-14)
    monkeypatch.setattr(bits, "MAX_K_ACTIVE_SET", 8)
    np.testing.assert_allclose(problem.step(theta, g, hessian, 1e-9), found, atol=1e-8)
    assert (found == 0).any()
    for start in (theta, found):
        assert bits._without_sum(-hessian, g, start) is None  # not definite
        # The maximum is at 0, which is no distribution.
        assert bits._without_sum(hessian, -np.ones(9), start) is None


def test_the_active_set_from_a_support_ends_where_it_ends_from_no_mass(rng):
    _, problem = problem_of([drawn(ik.Rappor, 30, 0.5, 900, rng)])
    theta = rng.dirichlet(np.ones(30))
    hessian = problem.hessian(theta, 1)
    b = problem.gradient(theta) - 1 + hessian @ theta
    found = bits._without_sum(hessian, b, theta)
    assert 0 < np.count_nonzero(found) < 30
    other = np.where(np.arange(30) % 2, theta, 0.0)
    np.testing.assert_allclose(bits._without_sum(hessian, b, other), found, atol=1e-12)


def test_an_active_set_that_takes_too_long_leaves_the_step_to_the_interior_point(monkeypatch, rng):
    _, problem = problem_of([drawn(ik.Rappor, 9, 2.0, 500, rng)])
    theta = rng.dirichlet(np.ones(9))
    g, hessian = problem.gradient(theta), problem.hessian(theta, 1)
    found = problem.step(theta, g, hessian, 1e-9)
    monkeypatch.setattr(bits, "MAX_FULL_SYSTEMS", 0)
    assert bits._without_sum(hessian, g - 1 + hessian @ theta, theta) is None
    np.testing.assert_allclose(problem.step(theta, g, hessian, 1e-9), found, atol=1e-8)


def test_many_secrets_of_bits_alone(monkeypatch, rng):
    monkeypatch.setattr(bits, "MAX_K_ACTIVE_SET", 200)
    tally = drawn(ik.Rappor, 230, 2.0, 6000, rng)
    estimate = ik.mle(tally, tol=1e-10)
    assert estimate.method.startswith("mle, parabola of the packed bits")
    assert tally.k > bits.MAX_K_ACTIVE_SET
    assert estimate.gap <= 1e-10


# How many rows, and how often


def test_the_hessian_is_thinned_where_rows_are_many(monkeypatch, rng):
    def every(n, k):
        rows = [BitReports(None, np.empty(size)) for size in n]
        return _Problem(rows, PooledModel((), k), np.empty(0)).hessian_stride()

    assert every([100_000], 20) == 10  # a tenth
    assert every([1_000_000], 100) == 10
    assert every([20_000], 100) == 4  # 50 rows a secret
    assert every([4_999], 100) == 1
    assert every([1], 100) == 1
    assert every([1_000_000, 20_000], 100) == 4  # the smallest encoding counts


def test_a_new_hessian_is_made_where_it_costs_less_than_the_steps_it_saves():
    def pays(rate, to_go, n=10**5, k=100):
        channel = BitChannel(k, np.broadcast_to(np.uint8(255), (n, k // 8)), 2.0, 1.0, np.empty(0))
        return _Problem(
            [BitReports(channel, np.empty(n))], PooledModel((), k), np.empty(0)
        ).is_new_hessian_worthwhile(rate, to_go)

    assert not pays(0.09, 1e9)  # a digit a step is quick
    assert pays(1.0, 1.5)  # no progress at all, or away from it
    assert pays(7.0, 1.5)
    # a step costs 4 n k and 4 k^3, a Hessian n k^2 / 2: for many rows as much as k / 8 steps
    many = 10**9
    assert [pays(0.5, 2.0**steps, many, 80) for steps in (9, 11)] == [False, True]
    assert [pays(0.5, 2.0**steps, many, 160) for steps in (19, 21)] == [False, True]
    assert [pays(0.5, 2.0**steps, 6400, 80) for steps in (4, 6)] == [False, True]
    assert [pays(0.25, 4.0**steps, many, 80) for steps in (9, 11)] == [False, True]


class Readings:
    """Rows read: in forward, in adjoint, and by the compiled pass that does both at once."""

    def __init__(self, monkeypatch):
        self.rows = 0
        for owner, name in (
            (BitChannel, "forward"),
            (BitChannel, "adjoint"),
            (_em_kernels, "bits"),
        ):
            monkeypatch.setattr(owner, name, self._counting(getattr(owner, name)))

    def _counting(self, function):
        def counted(first, *others):
            self.rows += len(getattr(first, "packed", first))  # a channel, or the rows themselves
            return function(first, *others)

        return counted


@encodings
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_a_hundred_thousand_rows_of_twenty_bits(encoding, epsilon, monkeypatch, rng):
    tally = drawn(encoding, 20, epsilon, 100_000, rng)
    readings = Readings(monkeypatch)
    estimate = ik.mle(tally, tol=1e-10)
    assert estimate.method.startswith("mle, parabola of the packed bits")
    assert estimate.gap <= 1e-10
    # the Hessian's share of the rows and the two readings for the certificate included, and the
    # two chunks of each Hessian by which single precision is checked
    assert readings.rows <= (12 if epsilon <= 1 else 16) * len(tally.counts)


@pytest.mark.slow
@encodings
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_million_rows_of_a_hundred_bits(encoding, epsilon, monkeypatch, rng):
    tally = drawn(encoding, 100, epsilon, 1_000_000, rng)
    packed = tally.parts[0].reports.nbytes
    readings = Readings(monkeypatch)
    tracemalloc.start()
    estimate = ik.mle(tally, tol=1e-10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert estimate.method.startswith("mle, parabola of the packed bits")
    assert estimate.gap <= 1e-10
    assert estimate.n_iter <= 9
    assert readings.rows <= 12 * len(tally.counts)
    assert peak < 3 * packed


@encodings
@pytest.mark.parametrize("epsilon", [4.0, 8.0, 14.0, 20.0])
@pytest.mark.parametrize("concentration", [0.05, 1.0])
def test_with_little_noise_there_is_always_a_certificate(encoding, epsilon, concentration, rng):
    p = rng.dirichlet(np.full(20, concentration))
    tally = drawn(encoding, 20, epsilon, 50_000, rng, p)
    assert ik.mle(tally, tol=1e-10).gap <= 1e-10


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3])
def test_with_hardly_any_information_there_is_one_too(epsilon, rng):
    tally = drawn(ik.Rappor, 12, epsilon, 20_000, rng)
    assert ik.mle(tally, tol=1e-10, method="bits").gap <= 1e-10


def test_uniform_is_found_in_one_pass():
    tally = ik.Rappor(8, 1.0).tally(np.eye(8, dtype=int))
    theta, passes = bits.maximise(
        [BitReports(tally.operator, tally.frequencies)], PooledModel((), 8), np.empty(0), 1e-12
    )
    assert passes == 1
    np.testing.assert_allclose(theta, 1 / 8)


def test_the_best_is_returned_where_passes_run_out(monkeypatch, rng):
    tally = drawn(ik.Rappor, 10, 1.0, 5000, rng)
    monkeypatch.setattr(bits, "MAX_PASSES", 4)
    theta, passes = bits.maximise(
        [BitReports(tally.operator, tally.frequencies)], PooledModel((), 10), np.empty(0), 1e-30
    )
    assert passes == 4
    assert abs(theta.sum() - 1) <= 1e-14
    assert ik.gap(tally, theta) < 1e-2 * ik.gap(tally, np.full(10, 0.1))


def test_zeros_are_exact(rng):
    p = np.array([0.6, 0.4, 0, 0, 0, 0, 0, 0, 0, 0])
    tally = drawn(ik.Rappor, 10, 3.0, 30_000, rng, p)
    found, dense = ik.mle(tally, tol=1e-11, method="bits"), ik.mle(tally, tol=1e-11, method="dense")
    assert np.array_equal(found.distribution == 0, dense.distribution == 0)
    assert (found.distribution == 0).any()
    np.testing.assert_allclose(found.distribution, dense.distribution, atol=1e-8)


# Pools


def mixed(k, n, rng):
    p = rng.dirichlet(np.full(k, 0.3))
    mechanisms = [ik.RandomizedResponse(k, 4.0), ik.TruncatedGeometric(k, 0.1), ik.Rappor(k, 1.0)]
    return sum(mechanism.simulate(rng.multinomial(n, p), rng) for mechanism in mechanisms)


def test_response_geometric_and_bits_together(rng):
    estimate = ik.mle(mixed(200, 20_000, rng), tol=1e-8)
    assert estimate.method.startswith("mle, parabola of the packed bits")
    assert estimate.gap <= 1e-8


@pytest.mark.slow
def test_response_geometric_and_bits_together_for_a_thousand_secrets(rng):
    tally = mixed(1000, 100_000, rng)
    assert ik.mle(tally, tol=1e-8).gap <= 1e-8


def test_two_encodings_with_their_weights(rng):
    tally = drawn(ik.Rappor, 12, 1.0, 9000, rng) + drawn(
        ik.OptimizedUnaryEncoding, 12, 2.0, 3000, rng
    )
    bits, dense = (ik.mle(tally, tol=1e-11, method=name) for name in ("bits", "dense"))
    assert abs(bits.log_likelihood - dense.log_likelihood) <= tally.n * 2e-11 + 1e-12 * abs(
        dense.log_likelihood
    )


@pytest.mark.filterwarnings("error")
def test_rows_that_tell_nothing_leave_the_prior_its_intervals():
    mechanism, counts = ik.HadamardMechanism(2, 1.0, bits=2), np.zeros(16, dtype=int)
    counts[6], counts[11] = 1, 10**6
    lower, upper = ik.mle(mechanism.tally_counts(counts)).interval(
        method="credible", target="frequencies"
    )
    np.testing.assert_allclose([lower, upper], [[0.025] * 2, [0.975] * 2], atol=0.02)
