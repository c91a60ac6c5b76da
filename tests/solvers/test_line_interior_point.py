"""The solver on a line against dense linear algebra, the dense solver,
extreme noise levels and large sizes.
"""

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import LineChannel
from ibukit.solvers import _line_kernels as kernels
from ibukit.solvers import interior_point, line
from ibukit.solvers.line import maximise
from instances import unchecked

AGES = 48_842


def kernel_matrix(channel):
    """decay^|x - position|, scaled: the channel as a matrix, by its formula."""
    with np.errstate(under="ignore"):
        powers = channel.decay ** np.abs(np.arange(channel.k)[:, None] - channel.positions)
    return powers * channel.scale


def excess(channel, q, theta):
    return channel.adjoint(q / channel.forward(theta)).max() - 1


def assert_certified(channel, q, tol):
    theta, steps = maximise(channel, q, tol)
    assert theta.shape == (channel.k,)
    assert (theta >= 0).all()
    assert abs(theta.sum() - 1) <= 1e-12
    assert excess(channel, q, theta) <= tol
    return theta, steps


def draw(rng, k_max=300, log_eps=(-6, 1.7)):
    """A channel and frequencies:
    truncated or not, n from 1 to 1e7, of the model or (a quarter) of anything.
    """
    k = int(np.exp(rng.uniform(0, np.log(k_max))))
    eps = np.clip(10 ** rng.uniform(*log_eps), 5e-15, 36.0)  # others cannot be drawn from
    truncated = k > 1 and rng.integers(2)
    n = int(
        10 ** rng.uniform(0, 7 if truncated else 3.5)
    )  # on all integers nearly every report is another one
    mechanism = ik.TruncatedGeometric(k, eps) if truncated else ik.LinearGeometric(k, eps)
    if rng.integers(4) == 0:
        counts = rng.multinomial(n, rng.dirichlet(np.full(k, 10 ** rng.uniform(-1, 1))))
        reports = np.flatnonzero(counts)
        return mechanism.tally(reports).operator, counts[reports] / n
    secrets = rng.multinomial(n, rng.dirichlet(np.full(k, 10 ** rng.uniform(-2, 1))))
    tally = mechanism.simulate(secrets, rng)
    return tally.operator, tally.frequencies


def towns(k):
    """Four broad and up to two hundred narrow peaks on a line."""
    x = np.arange(k) / k
    p = sum(w * np.exp(-0.5 * ((x - m) / s) ** 2) / s for w, m, s in PEAKS)
    places = np.random.default_rng(1)
    spots = places.choice(k, min(k, 200), replace=False)
    p *= 0.8 / p.sum()
    p[spots] += 0.2 * places.dirichlet(np.full(len(spots), 0.3))
    return p / p.sum()


PEAKS = ((0.4, 0.2, 0.05), (0.3, 0.5, 0.02), (0.2, 0.55, 0.1), (0.1, 0.8, 0.01))


def large(k, n, eps, rng):
    tally = ik.TruncatedGeometric(k, eps).simulate(rng.multinomial(n, towns(k)), rng)
    return tally.operator, tally.frequencies


# --- the kernels


def state(rng, k, eps, gaps=True):
    """A work array at a random interior point,
    and the dense kernel matrix on the same positions.
    """
    seen = np.cumsum(rng.integers(1, 4, k)) if gaps else np.arange(k)
    work = line._workspace(rng.dirichlet(np.ones(k)), seen, np.exp(-eps))
    K = np.exp(-eps * np.abs(seen[:, None] - seen))
    work[kernels.THETA] = rng.dirichlet(np.full(k, 0.5)) + 1e-12
    work[kernels.NU] = work[kernels.THETA] @ K
    lam = work[kernels.Q] / work[kernels.NU] * rng.uniform(0.5, 1.5, k)
    work[kernels.LAM] = lam / (1.1 * (K @ lam).max())
    work[kernels.S] = 1 - K @ work[kernels.LAM]
    work[kernels.SECOND_Q] = 0.1 * work[kernels.Q] * rng.normal(size=k)
    work[kernels.SECOND_C] = 1e-3 * work[kernels.THETA] * rng.normal(size=k)
    return work, K


@pytest.mark.parametrize("eps", [1e-15, 1e-9, 1e-3, 1.0, 30.0])
def test_what_falls_between_neighbours_keeps_its_digits(eps):
    decay = float(np.exp(-eps))
    work = line._workspace(np.full(4, 0.25), np.array([2, 3, 10, 11]), decay)
    for i, distance in enumerate([1, 7, 1]):
        exact = Fraction(decay) ** distance
        assert work[kernels.RATIO, i] == pytest.approx(float(exact), rel=1e-14, abs=0)
        assert work[kernels.LOSS, i] == pytest.approx(float(1 - exact**2), rel=1e-14, abs=0)
    assert work[[kernels.RATIO, kernels.LOSS], 3].tolist() == [0, 1]


LEVELS = [1e-7, 1e-4, 0.01, 0.3, 2.0, 50.0]


@pytest.mark.parametrize("eps", LEVELS)
@pytest.mark.parametrize("k", [1, 2, 3, 40])
def test_sweeps(k, eps, rng):
    work, K = state(rng, k, eps)
    cost = rng.uniform(0.5, 2, k)
    work[kernels.COST], work[kernels.SHARE] = cost, 1 / cost
    nu, g = work[kernels.NU], work[kernels.G]
    largest = kernels.fit(work, work[kernels.THETA])
    assert np.allclose(nu, work[kernels.THETA] @ K, rtol=1e-13, atol=0)
    assert np.allclose(g, K @ (work[kernels.Q] / nu) / cost, rtol=1e-13, atol=0)
    assert largest == g.max()
    back = np.empty(k)
    kernels.unsweep(work[kernels.RATIO], work[kernels.LOSS], nu, back)
    assert np.allclose(back, work[kernels.THETA], rtol=0, atol=1e-15 * (1 + 1 / eps))


@pytest.mark.parametrize("eps", LEVELS)
@pytest.mark.parametrize("k", [1, 2, 3, 40])
def test_direction_solves_the_whole_newton_system(k, eps, rng):
    work, K = state(rng, k, eps)
    q, theta, lam, s, nu = work[: kernels.NU + 1][
        [kernels.Q, kernels.THETA, kernels.LAM, kernels.S, kernels.NU]
    ]
    target = 1e-3 * theta @ s / k
    # lam nu = q - second_q and theta s = target - second_c, linearised in (theta, lam); s = 1 - K
    # lam
    system = np.block([[lam[:, None] * K, np.diag(nu)], [np.diag(s), -theta[:, None] * K]])
    right = np.r_[
        q - work[kernels.SECOND_Q] - lam * nu, target - work[kernels.SECOND_C] - theta * s
    ]
    d_theta, d_lam = np.split(np.linalg.solve(system, right), 2)
    kernels.factor(work, theta, s, lam)
    kernels.direction(work, target)
    size = np.abs(np.r_[d_theta, d_lam]).max()
    assert np.abs(work[kernels.Y] - K @ d_theta).max() <= 1e-12 * size
    assert np.abs(work[kernels.V] - K @ d_lam).max() <= 1e-12 * size
    # K^-1 has entries of the size of 1 / eps
    assert np.abs(work[kernels.D_THETA] - d_theta).max() <= (1e-12 + 1e-15 / eps) * size
    fastest = max(0, (-work[kernels.D_THETA] / theta).max())
    change = (q - work[kernels.SECOND_Q] - lam * work[kernels.Y]) / nu - lam
    dual = max(0, (work[kernels.V] / s).max(), (-change / lam).max())
    assert kernels.fastest_decrease(work) == pytest.approx((fastest, dual), rel=1e-13)


@pytest.mark.parametrize("eps", [0.01, 0.1, 0.3, 2.0])
def test_newton_on_a_support(eps, rng):
    k = 40
    work, K = state(rng, k, eps)
    on = np.zeros(k, dtype=bool)
    on[[3, 11, 12, 30]] = True
    point = np.where(on, rng.uniform(0.2, 0.3, k), 0.0)
    # frequencies whose maximiser has all of this support: g = K (q / nu) = 1 for the nearby theta
    work[kernels.Q] = ((point * rng.uniform(0.9, 1.1, k)) @ K) * np.linalg.solve(K, np.ones(k))
    kernels.fit(work, point)
    nu, q = point @ K, work[kernels.Q]
    hessian = (K[on] * (q / nu**2)) @ K[on].T
    expected = np.maximum(point[on] + np.linalg.solve(hessian, K[on] @ (q / nu) - 1), 0)
    kernels.newton(work, point)
    assert (point[~on] == 0).all()
    digits = 1e-15 * np.linalg.cond(hessian)  # that the dense solution has lost
    assert np.abs(point[on] - expected).max() <= (1e-12 + digits) * expected.max()
    assert (point[on] > 0).all()


def test_peaks_join_the_support_where_g_is_above_1():
    work = np.zeros((kernels.ROWS, 7))
    work[kernels.G] = [1.2, 1.1, 1.0, 1.3, 1.4, 0.9, 0.8]
    point = np.array([0.0, 0, 0.5, 0, 0, 0.5, 0])
    assert kernels.set_support(work, point)
    assert np.flatnonzero(point).tolist() == [0, 2, 4, 5]
    # nothing joins while g on the support is worse
    work[kernels.G, 5] = 0.55
    point = np.array([0.0, 0, 0.5, 0, 0, 0.5, 0])
    assert kernels.set_support(work, point)
    assert np.flatnonzero(point).tolist() == [2, 5]
    work[kernels.G, 5] = 0.4
    assert not kernels.set_support(work, point)


def test_fit_says_where_nothing_reaches_a_report():
    work = line._workspace(np.full(3, 1 / 3), np.arange(3), 0.0)
    theta = np.array([0.5, 0.0, 0.5])
    assert kernels.fit(work, theta) == np.inf


@pytest.mark.parametrize("eps", [1e-5, 0.05, 5.0])
def test_compiled_and_plain_are_one(eps, rng, monkeypatch):
    tally = ik.TruncatedGeometric(30, eps).simulate(
        rng.multinomial(5000, rng.dirichlet(np.ones(30))), rng
    )
    compiled = maximise(tally.operator, tally.frequencies, 1e-10)
    for name in dir(kernels):
        if hasattr(getattr(kernels, name), "py_func"):
            monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    plain = maximise(tally.operator, tally.frequencies, 1e-10)
    assert compiled[1] == plain[1]
    assert np.allclose(compiled[0], plain[0], rtol=1e-9, atol=1e-15)


# --- the solver


@pytest.mark.parametrize("seed", range(400))
def test_agrees_with_the_dense_solver_within_the_sum_of_the_gaps(seed):
    channel, q = draw(np.random.default_rng(seed))
    theta, _ = assert_certified(channel, q, 1e-10)
    matrix = kernel_matrix(channel)
    dense, _ = interior_point.maximise(matrix, q, 1e-10)
    dense_gap = (matrix @ (q / (dense @ matrix))).max() - 1
    assert dense_gap <= 1e-9
    difference = q @ np.log(theta @ matrix) - q @ np.log(dense @ matrix)
    assert -excess(channel, q, theta) - 1e-13 <= difference <= dense_gap + 1e-13


def test_the_comparison_sees_a_distribution_that_is_not_the_maximiser(rng):
    channel, q = large(100, AGES, 0.05, rng)
    theta, _ = assert_certified(channel, q, 1e-10)
    moved = 0.999 * theta + 0.001 / 100
    assert excess(channel, q, moved) > 1e-7
    assert q @ np.log(channel.forward(moved) / channel.forward(theta)) < -1e-7


@pytest.mark.parametrize(
    "eps", [1e-17, 1e-16, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 20.0, 50.0, 200.0, 700.0, 1e4]
)
@pytest.mark.parametrize("kind", [ik.TruncatedGeometric, ik.LinearGeometric])
def test_extreme_noise_levels(eps, kind, rng):
    for k in (2, 17, 300):
        tally = unchecked(kind, k, eps).tally(rng.integers(0, k, 500))
        assert_certified(tally.operator, tally.frequencies, 1e-12)


@pytest.mark.parametrize("decay", [1.0, np.nextafter(1, 0), 1 - 1e-12, 1e-300, 5e-324, 0.0])
def test_any_decay(decay, rng):
    q = rng.dirichlet(np.ones(50))
    channel = LineChannel(60, decay, np.sort(rng.choice(60, 50, replace=False)), np.ones(50))
    theta, _ = assert_certified(channel, q, 1e-12)
    if decay == 1:
        assert theta.tolist() == [1 / 60] * 60
    if decay < 1e-200:
        assert np.abs(theta[channel.positions] - q).max() <= 1e-12


def test_no_noise_gives_the_frequencies():
    q = np.array([0.5, 0.2, 0.3])
    theta, steps = maximise(LineChannel(5, np.exp(-60), np.array([0, 2, 4]), np.ones(3)), q, 1e-12)
    assert np.allclose(theta, [0.5, 0, 0.2, 0, 0.3], rtol=0, atol=1e-15)
    assert steps == 0


def test_one_secret():
    channel = ik.LinearGeometric(1, 0.5).tally([-7, 0, 2]).operator
    theta, _ = maximise(channel, np.full(3, 1 / 3), 1e-12)
    assert theta.tolist() == [1.0]


@pytest.mark.parametrize("position", [0, 3, 8])
@pytest.mark.parametrize("eps", [1e-3, 1.0, 40.0])
def test_one_position_takes_all(position, eps):
    theta, _ = maximise(
        LineChannel(9, np.exp(-eps), np.array([position]), np.array([0.3])), np.ones(1), 1e-12
    )
    assert theta.tolist() == (np.arange(9) == position).tolist()


def test_nothing_stands_where_nothing_was_seen(rng):
    seen = np.sort(rng.choice(1000, 60, replace=False))
    channel = LineChannel(1000, np.exp(-0.01), seen, np.ones(60))
    theta, _ = assert_certified(channel, rng.dirichlet(np.ones(60)), 1e-12)
    assert set(np.flatnonzero(theta)) <= set(seen)


def test_reports_beyond_an_end_count_as_that_end():
    theta, _ = maximise(
        ik.LinearGeometric(6, 0.3).tally([-9, -2, 0, 3, 5, 6, 90]).operator,
        np.full(7, 1 / 7),
        1e-13,
    )
    merged, _ = maximise(
        ik.TruncatedGeometric(6, 0.3).tally([0, 3, 5]).operator, np.array([3, 1, 3]) / 7, 1e-13
    )
    assert np.allclose(theta, merged, rtol=0, atol=1e-12)


def test_neither_scale_nor_order_of_the_reports_matters(rng):
    channel, q = large(80, 20_000, 0.1, rng)
    order = rng.permutation(len(q))
    other = LineChannel(
        80, channel.decay, channel.positions[order], 10 ** rng.uniform(-150, 0, len(q))
    )
    theta, steps = maximise(channel, q, 1e-12)
    again, steps_again = maximise(other, q[order], 1e-12)
    assert np.array_equal(theta, again)
    assert steps == steps_again


@pytest.mark.parametrize("eps", [0.01, 0.05, 0.5, 2.0])
def test_zeros_are_exact_and_the_gap_is_rounding(eps, rng):
    channel, q = large(200, AGES, eps, rng)
    theta, _ = assert_certified(channel, q, 1e-9)
    assert excess(channel, q, theta) <= 1e-13
    dense, _ = interior_point.maximise(kernel_matrix(channel), q, 1e-12)
    assert np.array_equal(theta > 0, dense > 0)
    assert np.abs(theta - dense).max() <= 1e-6


@pytest.mark.parametrize("settings", line.TRIES)
def test_each_try_alone_would_do(settings, monkeypatch):
    monkeypatch.setattr(line, "TRIES", (settings,))
    for seed in range(100):
        assert_certified(*draw(np.random.default_rng(5000 + seed)), 1e-9)


def test_a_second_try_is_made_and_the_best_point_kept(rng, monkeypatch):
    channel, q = large(100, AGES, 0.05, rng)
    _, enough = maximise(channel, q, 1e-10)
    short = replace(line.TRIES[0], em_steps=1, max_iter=4)
    monkeypatch.setattr(line, "TRIES", (short, *line.TRIES))
    _, steps = assert_certified(channel, q, 1e-10)
    assert steps == 4 + enough
    monkeypatch.setattr(
        line, "TRIES", (short, replace(short, em_steps=0, uniform_share=1.0, max_iter=1))
    )
    theta, _ = maximise(channel, q, 1e-10)
    monkeypatch.setattr(line, "TRIES", (short,))
    assert np.array_equal(theta, maximise(channel, q, 1e-10)[0])
    assert 1e-10 < excess(channel, q, theta) < 1


def test_an_impossible_tolerance_gives_the_best_there_is(rng):
    for _ in range(20):
        channel, q = draw(rng, log_eps=(-2, 0))
        theta, _ = maximise(channel, q, 1e-30)
        assert abs(theta.sum() - 1) <= 1e-12
        assert excess(channel, q, theta) <= 1e-12


def test_repeats_to_the_last_bit(rng):
    channel, q = large(1000, 10**6, 0.02, rng)
    first, second = maximise(channel, q, 1e-10), maximise(channel, q, 1e-10)
    assert np.array_equal(first[0], second[0])
    assert first[1] == second[1]


# --- sizes


def test_few_steps_whatever_the_size(rng):
    assert assert_certified(*large(100, AGES, 0.05, rng), 1e-10)[1] <= 15
    assert assert_certified(*large(10**5, 10**7, 0.01, rng), 1e-10)[1] <= 30


@pytest.mark.parametrize("k", [2 * 10**5, pytest.param(10**6, marks=pytest.mark.slow)])
def test_memory_is_a_few_vectors(k, rng):
    channel, q = large(k, 10 * k, 0.05, rng)
    tracemalloc.start()
    theta, _ = maximise(channel, q, 1e-10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert excess(channel, q, theta) <= 1e-10
    assert kernels.ROWS * len(q) * 8 <= peak <= 30 * k * 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_random_problems(seed):
    rng = np.random.default_rng(10_000 + seed)
    for _ in range(100):
        k_max, log_eps = [(300, (-6, 1.7)), (300, (-15, 2.84)), (20_000, (-5, 1))][rng.integers(3)]
        assert_certified(*draw(rng, k_max, log_eps), 1e-9)


@pytest.mark.slow
def test_ten_million_secrets(rng):
    k = 10**7
    counts = rng.poisson(np.convolve(towns(k), np.full(201, 1 / 201), mode="same") * 10**9)
    tally = ik.TruncatedGeometric(k, 0.01).tally_counts(counts)
    assert assert_certified(tally.operator, tally.frequencies, 1e-10)[1] <= 30


@pytest.mark.parametrize("decay", [0.3, 0.9, 0.999, 1.0])
def test_costs_are_what_other_rows_are(decay, rng):
    """Over {c . theta = 1} the maximiser is that of the matrix
    with rows M_x / c_x, divided by c.
    """
    k, cost = 30, rng.uniform(0.2, 2, 30)
    channel = LineChannel(k, decay, rng.integers(0, k, 12), rng.uniform(0.5, 1, 12))
    q = rng.dirichlet(np.ones(12))
    theta, _ = line.maximise(channel, q, 1e-12, cost)
    assert theta.min() >= 0
    assert cost @ theta == pytest.approx(1, rel=1e-12)
    rows = channel.rows(np.arange(k))
    g = rows @ (q / (theta @ rows)) / cost
    assert g.max() <= 1 + 1e-11, "no other distribution fits better"
    without, _ = line.maximise(channel, q, 1e-12)
    assert (rows @ (q / (without / (cost @ without) @ rows)) / cost).max() > 1 + 1e-3, (
        "the costs must matter"
    )
