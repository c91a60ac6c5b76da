"""Small cases of the compiled loops of solvers, for runs without JIT:
`make kernels` and `make mutants` name this file.

Not collected by `make test`, whose tests meet the loops compiled. What is checked are laws:
matrices written out, exact fractions, recursions against lists of all secrets.
"""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import LineChannel
from ibukit.solvers import _em_kernels, _line_kernels
from ibukit.solvers.em import updates_of
from ibukit.solvers.line import _workspace, maximise
from ibukit.solvers.responses import _water_filling_kernels, water_filling
from test_line_interior_point import kernel_matrix
from test_updates import FURTHER
from test_water_filling import exactly
from tests.oracles import naive

EXACT = {"rtol": 1e-12, "atol": 1e-14}


@pytest.mark.parametrize("make", FURTHER.values(), ids=FURTHER)
def test_steps_are_those_of_the_oracle(make, rng):
    instance = make(rng)
    for steps in (1, 7):
        ours = ik.ibu(instance.tally, stop=ik.Steps(steps)).distribution
        assert np.abs(ours - naive.ibu(instance.matrix, instance.counts, steps)).max() <= 1e-12


@pytest.mark.parametrize("make", FURTHER.values(), ids=FURTHER)
def test_steps_leave_the_probabilities_and_the_ratios_of_where_they_end(make, rng):
    instance = make(rng)
    k, q = instance.tally.k, instance.tally.frequencies
    theta, g, p = np.full(k, 1 / k), np.ones(k), np.empty(len(q))
    updates_of(instance.tally.operator, q)(theta, p, g, 3, -1.0)
    rows = instance.tally.matrix()
    expected = theta @ rows
    np.testing.assert_allclose(p, expected, **EXACT)
    np.testing.assert_allclose(g, rows @ (q / expected), **EXACT)


@pytest.mark.parametrize("name", ["three dense", "three lines", "three k-RR", "three RAPPORs"])
def test_steps_end_at_the_first_whose_ratios_are_all_small(name, rng):
    instance = FURTHER[name](rng)
    k, q = instance.tally.k, instance.tally.frequencies
    ratios = []
    for n in range(1, 9):
        theta, g, p = np.full(k, 1 / k), np.ones(k), np.empty(len(q))
        assert updates_of(instance.tally.operator, q)(theta, p, g, n, -1.0) == n
        ratios.append(g.max())
    for enough in (ratios[2], np.nextafter(ratios[4], 0)):
        first = next(i for i, ratio in enumerate(ratios, 1) if ratio <= enough)
        theta, g, p = np.full(k, 1 / k), np.ones(k), np.empty(len(q))
        assert updates_of(instance.tally.operator, q)(theta, p, g, 8, enough) == first


def test_mass_below_the_normal_doubles_is_gone_if_it_falls():
    theta, g = np.array([1e-308, 1e-308, 1.0]), np.array([0.5, 1.5, 2.0])
    assert _em_kernels._step(theta, g) == 2.0
    assert theta.tolist() == [0.0, 1.5e-308, 2.0]
    assert g.tolist() == [0.0] * 3
    assert _em_kernels._any_above(np.array([1.0, np.nan]), 2.0)
    assert not _em_kernels._any_above(np.array([1.0, 2.0]), 2.0)


@pytest.mark.parametrize(
    "counts", [(9, 5, 3, 1), (100, 1, 1, 1), (1, 1, 1, 1), (50, 40, 2, 1, 1, 1), (7, 0, 2)]
)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_water_finds_its_level(counts, epsilon):
    k, seen = len(counts) + 1, np.flatnonzero(counts)
    q = np.array(counts)[seen] / sum(counts)
    channel = ik.RandomizedResponse(k, epsilon).channel(seen)
    contrast = channel.diagonal - channel.off
    theta = water_filling.maximise(channel, q)
    np.testing.assert_allclose(
        theta[seen], exactly(q, contrast, channel.off), atol=1e-13 * (1 + channel.off / contrast)
    )
    assert theta.sum() == pytest.approx(1, rel=1e-14)


def test_many_secrets_are_summed_in_blocks(rng):
    q = rng.dirichlet(np.ones(2 * _water_filling_kernels.BLOCK + 5))
    channel = ik.RandomizedResponse(len(q), 6.0).channel(np.arange(len(q)))
    theta = water_filling.maximise(channel, q)
    ratios = channel.adjoint(q / channel.forward(theta))
    assert abs(ratios[theta > 0] - 1).max() <= 1e-9
    assert ratios.max() <= 1 + 1e-9


def test_equal_reports_share_what_no_level_tells_apart():
    theta, q = np.zeros(4), np.array([0.4, 0.4, 0.2])
    _water_filling_kernels.fill(theta, np.array([0, 2, 3]), q, 1.0, 0.5, 0.5)
    assert theta.tolist() == [0.5, 0.0, 0.5, 0.0]
    one = np.zeros(2)
    _water_filling_kernels.fill(one, np.array([1]), np.array([1.0]), 2.0, 0.5, 0.5)
    assert one.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("eps", [1e-6, 0.05, 1.0, 8.0])
@pytest.mark.parametrize("costs", [False, True])
def test_a_line_is_climbed_to_its_top(eps, costs, rng):
    channel = LineChannel(9, math.exp(-eps), np.array([0, 1, 3, 4, 8]), np.ones(5))
    q = rng.dirichlet(np.full(5, 0.5))
    cost = rng.uniform(0.5, 2, 9) if costs else None
    theta, steps = maximise(channel, q, 1e-9, cost)
    g = channel.adjoint(q / channel.forward(theta)) / (1 if cost is None else cost)
    assert g.max() <= 1 + 1e-9
    assert (theta >= 0).all()
    assert (theta if cost is None else theta * cost).sum() == pytest.approx(1, rel=1e-12)
    assert 0 < steps <= 20


def test_steps_on_a_line_are_few(rng):
    channel = LineChannel(40, math.exp(-0.3), np.arange(40), np.ones(40))
    counts = rng.multinomial(
        500, kernel_matrix(channel)[[5, 20]].sum(axis=0) / kernel_matrix(channel)[[5, 20]].sum()
    )
    seen = np.flatnonzero(counts)
    channel = LineChannel(40, math.exp(-0.3), seen, np.ones(len(seen)))
    theta, steps = maximise(channel, counts[seen] / 500, 1e-9)
    assert channel.adjoint(counts[seen] / 500 / channel.forward(theta)).max() <= 1 + 1e-9
    assert (theta > 0).sum() < len(seen)  # exact zeros, by Newton's method on the support
    assert steps <= 25


def test_a_newton_step_on_a_line_solves_its_equations(rng):
    seen, decay = np.array([0, 1, 4, 6, 7]), 0.6
    work = _workspace(rng.dirichlet(np.ones(5)), seen, decay)
    K = decay ** np.abs(np.subtract.outer(seen, seen))
    q, theta, lam, s = work[_line_kernels.Q], *rng.random((3, 5))
    largest = _line_kernels.fit(work, theta)
    nu = theta @ K
    np.testing.assert_allclose(work[_line_kernels.NU], nu, **EXACT)
    np.testing.assert_allclose(work[_line_kernels.G], K @ (q / nu), **EXACT)
    assert largest == pytest.approx((K @ (q / nu)).max(), rel=1e-13)
    _line_kernels.factor(work, theta, s, lam)
    f, h = rng.normal(size=(2, 5))
    work[_line_kernels.Y], work[_line_kernels.V] = f, h
    _line_kernels.solve(work)
    inverse = np.linalg.inv(K)
    system = np.block([[np.diag(lam / nu), inverse], [inverse, -np.diag(theta / s)]])
    y, v = np.split(np.linalg.solve(system, np.concatenate([f, h])), 2)
    np.testing.assert_allclose(work[_line_kernels.Y], y, rtol=1e-10)
    np.testing.assert_allclose(work[_line_kernels.V], v, rtol=1e-10)
    out = np.empty(5)
    _line_kernels.unsweep(work[_line_kernels.RATIO], work[_line_kernels.LOSS], f, out)
    np.testing.assert_allclose(out, inverse @ f, rtol=1e-11)


def test_a_step_keeps_the_digits_of_a_small_mass(rng):
    """theta s = target, linearised, to the last digits of theta:
    a difference of y would leave four of them.
    """
    seen, decay, target = np.array([0, 1, 4, 6, 7]), 0.6, 1e-13
    work = _workspace(rng.dirichlet(np.ones(5)), seen, decay)
    theta, s = np.array([0.4, 1e-12, 0.3, 3e-12, 0.3]), np.array([1e-9, 0.2, 2e-9, 0.1, 1e-9])
    work[_line_kernels.THETA], work[_line_kernels.S], work[_line_kernels.LAM] = theta, s, 1.0
    work[_line_kernels.SECOND_Q] = work[_line_kernels.SECOND_C] = 0.0
    _line_kernels.fit(work, theta)
    _line_kernels.factor(work, theta, s, work[_line_kernels.LAM])
    _line_kernels.direction(work, target)
    v, d_theta = work[_line_kernels.V], work[_line_kernels.D_THETA]
    linear = (target + theta * v) / s - theta  # as ds = -v
    small = s > theta
    np.testing.assert_allclose(d_theta[small], linear[small], rtol=1e-12)
    K = decay ** np.abs(np.subtract.outer(seen, seen))
    np.testing.assert_allclose(
        d_theta[~small], np.linalg.solve(K, work[_line_kernels.Y])[~small], rtol=1e-9
    )


@pytest.mark.parametrize("careful", [False, True])
def test_a_step_far_from_the_end_goes_nine_tenths_of_the_way_to_the_boundary(careful, rng):
    """And no further: the nearest keeps a tenth;
    a bold one near the end keeps less, but a thousandth.
    """
    kept = []
    for _ in range(10):
        seen = np.arange(8)
        work = _workspace(rng.dirichlet(np.full(8, 0.2)), seen, 0.6)
        theta, s, lam = rng.uniform(0.1, 1, (3, 8))
        rows = [_line_kernels.THETA, _line_kernels.S, _line_kernels.LAM]
        work[rows] = theta / theta.sum(), s, lam
        _line_kernels.fit(work, work[_line_kernels.THETA])
        before = work[rows].copy()
        _line_kernels.advance(work, careful)
        kept.append((work[rows] / before).min())
    assert min(kept) >= (0.1 if careful else 0.001) * (1 - 1e-9)
    assert np.isclose(kept, 0.1, rtol=1e-9).any()


def test_newtons_step_on_a_support_is_that_of_its_hessian(rng):
    """Whatever stood in the workspace before; what is not in the support stays without mass."""
    seen, decay = np.array([0, 1, 4, 6, 7]), 0.6
    q, point = rng.dirichlet(np.ones(5)), np.array([0.3, 0.0, 0.4, 0.0, 0.3])
    K = decay ** np.abs(np.subtract.outer(seen, seen))
    held, nu = point > 0, point @ K
    hessian = (K * (q / nu**2)) @ K
    change = np.linalg.solve(hessian[np.ix_(held, held)], (K @ (q / nu) - 1)[held])
    for left_over in (0.0, 1.0):
        work = _workspace(q, seen, decay)
        work[_line_kernels.SECOND_C] = left_over
        moved = point.copy()
        _line_kernels.fit(work, moved)
        _line_kernels.newton(work, moved)
        np.testing.assert_allclose(moved[held], np.maximum(point[held] + change, 0), rtol=1e-10)
        assert (moved[~held] == 0).all()


def climbed(q, eps, goal=1e-9, em_steps=3, most=100, patience=8):
    """The excess that a climb ends with, its steps,
    and whether the point that it keeps has that excess.
    """
    seen = np.arange(len(q))
    work = _workspace(np.array(q), seen, math.exp(-eps))
    best, steps = _line_kernels.climb(work, goal, em_steps, 0.1, False, 1e-8, most, patience)
    K = math.exp(-eps) ** np.abs(np.subtract.outer(seen, seen))
    theta = work[_line_kernels.BEST]
    assert theta.sum() == pytest.approx(1, rel=1e-13)
    assert (K @ (q / (theta @ K))).max() - 1 == pytest.approx(best, rel=1e-9, abs=1e-14)
    return best, steps


def test_a_climb_ends_as_soon_as_it_may(rng):
    uneven = [0.6, 0.1, 0.05, 0.25]
    assert climbed([0.5, 0.5], 1.0) == (pytest.approx(0, abs=1e-15), 0)  # uniform is the maximiser
    assert climbed(uneven, 1.0, goal=0.5, em_steps=50)[1] == 0
    assert climbed(uneven, 1.0, most=2)[1] == 2
    uniform, steps = climbed(uneven, 1.0, em_steps=0, most=0)
    assert steps == 0
    assert climbed(uneven, 1.0, goal=uniform, em_steps=0) == (
        uniform,
        0,
    )  # a goal that is met exactly is met
    best, steps = climbed(
        uneven, 1.0, goal=-1.0, patience=2
    )  # no excess is below 0: it stops where none improves
    assert (abs(best) <= 1e-12, steps < 40) == (True, True)


def test_peaks_of_the_ratios_join_the_support():
    work = np.zeros((_line_kernels.ROWS, 6))
    work[_line_kernels.G] = [1.1, 1.0, 1.3, 1.3, 1.2, 1.25]
    point = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert _line_kernels.set_support(work, point)
    # of two equal neighbours the right one
    assert np.flatnonzero(point).tolist() == [0, 1, 3, 5]
    work[_line_kernels.G, 1] = 1.5
    assert not _line_kernels.set_support(work, np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))


def test_steps_end_where_the_first_number_vanishes(rng):
    names = ("Q", "THETA", "LAM", "S", "NU", "SECOND_Q", "Y", "V", "D_THETA")
    rows = [getattr(_line_kernels, name) for name in names]
    for _ in range(20):
        work = np.zeros((_line_kernels.ROWS, 4))
        work[rows[:5]] = rng.uniform(0.5, 2, (5, 4))
        work[rows[5:]] = rng.normal(size=(4, 4))
        q, theta, lam, s, nu, second_q, y, v, d_theta = work[rows]
        d_lam = (q - second_q - lam * y) / nu - lam
        dual = max((v / s).max(), (-d_lam / lam).max(), 0)
        assert _line_kernels.fastest_decrease(work) == pytest.approx(
            (max((-d_theta / theta).max(), 0), dual), rel=1e-14
        )


def test_what_reaches_no_report_is_infinitely_wrong():
    work = _workspace(np.array([0.5, 0.5]), np.array([0, 3000]), 1e-300)
    assert _line_kernels.fit(work, np.array([1.0, 0.0])) == np.inf
