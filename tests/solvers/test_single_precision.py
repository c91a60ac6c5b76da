"""A library whose routines in single precision are wrong costs time, not answers:
each fault is planted in one routine, found, and replaced by double precision.

Without the check the same fault spoils the product, which shows that it would be felt.
"""

import numpy as np
import pytest
import scipy.fft

import ibukit as ik
from ibukit._ground.single_precision import agrees, probe
from ibukit.channels import plane
from ibukit.channels.dense import RowMajorChannel
from ibukit.channels.lookup import LookupChannel, pack_levels
from ibukit.estimators import _plane_curvature
from ibukit.solvers import _plane_preconditioner, bits
from ibukit.solvers import plane as plane_solver
from ibukit.solvers._plane_preconditioner import Preconditioner

FAULTS = {
    "a percent off": lambda a, rng: a * (1 + 0.01 * rng.normal(size=a.shape)),
    "an entry off": lambda a, rng: np.where(np.arange(a.size).reshape(a.shape) == 0, 2 * a, a),
    "not a number": lambda a, rng: np.full_like(a, np.nan),
    "something else": lambda a, rng: np.abs(a).max() * rng.normal(size=a.shape),
}


def spoiled(function, fault, is_met=lambda *a, **k: True):
    """The function with a wrong first result where the arguments are met."""
    rng = np.random.default_rng(1)

    def wrong(*arguments, **options):
        found = function(*arguments, **options)
        if not is_met(*arguments, **options):
            return found
        first = found[0] if isinstance(found, tuple) else found
        first = np.asarray(FAULTS[fault](first, rng), dtype=first.dtype)
        return (first, *found[1:]) if isinstance(found, tuple) else first

    return wrong


def is_single(array, *arguments, **options):
    return array.dtype in (np.float32, np.complex64)


def test_what_agrees_differs_by_rounding_alone():
    exact = probe(1000)
    assert 0.5 <= exact.min() < 0.501 < 1.499 < exact.max() < 1.5
    assert len(np.unique(exact)) == 1000
    assert agrees(exact.astype(np.float32), exact)
    assert agrees(np.zeros(3), np.zeros(3))
    for wrong in (1.001 * exact, exact + np.eye(1000)[7], np.full(1000, np.nan), exact * np.inf):
        assert not agrees(wrong, exact)
        assert not agrees(exact, wrong)
    assert agrees(exact + 1e-3, exact, size=100.0)


def many_reports(kind, rng, k=12, s=9000):
    """Reports of one kind in several chunks, and their counts."""
    counts = rng.integers(1, 5, s)
    if kind == "bits":
        channel = ik.Rappor(k, 2.0).simulate(np.full(k, 2000), rng).operator
        return bits.BitReports(channel, counts[: channel.size], 1.0)
    levels, table, scale = rng.integers(0, 3, (s, k)), np.array([0.2, 0.5, 1.0]), rng.random(s) + 1
    if kind == "levels":
        channel = LookupChannel(k, pack_levels(levels, 3), table, scale)
    else:
        channel = RowMajorChannel(table[levels] * scale[:, None])
    return bits.DenseReports(channel, counts, 1.0)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("where", ["first", "last"])
@pytest.mark.parametrize("kind", ["bits", "levels", "numbers"])
def test_a_wrong_product_of_many_reports_is_replaced(kind, where, fault, monkeypatch, rng):
    monkeypatch.setattr(bits, "MIN_CHUNK_ENTRIES_OF_BITS", bits.MIN_CHUNK_ENTRIES)
    reports = many_reports(kind, rng)
    theta, shapes, right = rng.dirichlet(np.ones(12)), [], bits.lower_product
    monkeypatch.setattr(
        bits, "lower_product", lambda rows: shapes.append(rows.shape) or right(rows)
    )
    exact = bits.Reports.hessian(reports, theta, 1)
    np.testing.assert_allclose(reports.hessian(theta, 1), exact, rtol=1e-5)
    # The last chunk has a shape of its own, for which a library may have another routine.
    assert len(shapes) > 1
    assert shapes[-1] != shapes[0]
    bad = shapes[0] if where == "first" else shapes[-1]
    monkeypatch.setattr(
        bits, "lower_product", spoiled(right, fault, lambda rows: rows.shape == bad)
    )
    np.testing.assert_allclose(reports.hessian(theta, 1), exact, rtol=1e-12)
    monkeypatch.setattr(bits, "fits", lambda product, image: True)
    # Of the other kinds what is not finite was found before.
    if kind == "bits" or fault != "not a number":
        assert not np.allclose(reports.hessian(theta, 1), exact, rtol=1e-4)


def rows_of_bits(rng):
    """Ages in rows of thirty bits."""
    theta = 1 / np.arange(1, 31)
    return ik.Rappor(30, 1.0).simulate(rng.multinomial(20_000, theta / theta.sum()), rng)


@pytest.mark.parametrize("fault", FAULTS)
def test_rows_of_bits_are_estimated_in_the_same_passes(fault, monkeypatch, rng):
    tally = rows_of_bits(rng)
    right = ik.mle(tally)
    monkeypatch.setattr(bits, "lower_product", spoiled(bits.lower_product, fault))
    found = ik.mle(tally)
    assert found.status is ik.Status.CONVERGED
    assert (found.method, found.n_iter) == (right.method, right.n_iter)
    np.testing.assert_allclose(found.distribution, right.distribution, atol=1e-6)


def test_without_the_check_a_wrong_product_leads_nowhere(monkeypatch, rng):
    tally = rows_of_bits(rng)
    assert "parabola" in ik.mle(tally).method
    monkeypatch.setattr(bits, "lower_product", spoiled(bits.lower_product, "something else"))
    monkeypatch.setattr(bits, "fits", lambda product, image: True)
    # A matrix of so few reports fits into memory and comes to the rescue.
    assert "parabola" not in ik.mle(tally).method
    monkeypatch.setattr(bits, "lower_product", spoiled(bits.lower_product, "not a number"))
    with pytest.raises((ValueError, RuntimeWarning), match=r"NaN|invalid value"):
        ik.mle(tally)


def map_of_reports(rng, side=24):
    """A channel of noise on a map and its frequencies."""
    k = side**2
    everything = plane.row_normalised(ik.Grid(side, side), 0.3, np.arange(k))
    q = rng.multinomial(10**5, everything.forward(rng.dirichlet(np.full(k, 0.1)))) / 10**5
    return plane.row_normalised(ik.Grid(side, side), 0.3, np.flatnonzero(q)), q[q > 0]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("routine", ["spbtrf", "spbtrs"])
def test_a_wrong_factor_of_a_strip_is_replaced(routine, fault, monkeypatch, rng):
    channel, q = map_of_reports(rng)
    d, h = 10 ** rng.uniform(-5, 1, channel.k), rng.random(channel.k) + 0.5
    x = rng.normal(size=channel.k)

    def solution():
        preconditioner = Preconditioner(channel)
        assert preconditioner.factor(d, h)
        return preconditioner.solve(x), preconditioner._factors[0].dtype

    right, dtype = solution()
    assert dtype == np.float32
    _, steps = plane_solver.maximise(channel, q, 1e-9)
    wrong = spoiled(getattr(_plane_preconditioner, routine), fault)
    monkeypatch.setattr(_plane_preconditioner, routine, wrong)
    found, dtype = solution()
    assert dtype == np.float64
    assert np.abs(found - right).max() <= 1e-4 * np.abs(right).max()
    theta, again = plane_solver.maximise(channel, q, 1e-9)
    assert again <= steps + 2
    assert channel.adjoint(q / channel.forward(theta)).max() - 1 <= 1e-9
    monkeypatch.setattr(_plane_preconditioner, "_solves", lambda *arguments: True)
    assert not np.allclose(solution()[0], right, rtol=1e-3, atol=0)


def test_a_routine_that_calls_every_strip_indefinite_is_replaced(monkeypatch, rng):
    channel, _ = map_of_reports(rng)
    monkeypatch.setattr(_plane_preconditioner, "spbtrf", lambda banded, **options: (banded, 1))
    preconditioner = Preconditioner(channel)
    assert preconditioner.factor(np.ones(channel.k), np.ones(channel.k))
    assert preconditioner._factors[0].dtype == np.float64
    monkeypatch.setattr(_plane_preconditioner, "dpbtrf", lambda banded, **options: (banded, 1))
    assert not preconditioner.factor(np.ones(channel.k), np.ones(channel.k))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("routine", ["rfft", "irfft", "fft", "ifft"])
def test_wrong_transforms_of_a_map_are_replaced(routine, fault, monkeypatch, rng):
    channel, q = map_of_reports(rng)
    x, w = rng.normal(size=channel.k), rng.random(channel.size)
    exact = channel.gram_product(w, x)
    monkeypatch.setattr(scipy.fft, routine, spoiled(getattr(scipy.fft, routine), fault, is_single))
    assert np.abs(channel.gram_single.of(w)(x) - exact).max() <= 1e-6 * np.abs(exact).max()
    if routine == "rfft":
        theta, _ = plane_solver.maximise(channel, q, 1e-9)
        assert channel.adjoint(q / channel.forward(theta)).max() - 1 <= 1e-9
    monkeypatch.setattr(plane, "agrees", lambda *arguments: True)
    unchecked = plane.row_normalised(ik.Grid(24, 24), 0.3, channel.cells @ np.array([24, 1]))
    assert not np.abs(unchecked.gram_single.of(w)(x) - exact).max() <= 1e-4 * np.abs(exact).max()


@pytest.fixture
def cosines():
    """The check of cosine transforms, which forgets the shapes that it has seen."""
    check = _plane_curvature._single_cosines_agree
    check.cache_clear()
    yield check
    check.cache_clear()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("routine", ["dctn", "idctn"])
def test_wrong_cosine_transforms_are_replaced(routine, fault, cosines, monkeypatch, rng):
    tally = ik.TruncatedPlanarGeometric(ik.Grid(27, 27), 0.5).simulate(
        rng.multinomial(10**5, rng.dirichlet(np.ones(729))), rng
    )
    right = ik.smooth(tally, 100.0)
    cosines.cache_clear()
    used = []
    levels = _plane_curvature.PlaneCurvature._levels.func
    monkeypatch.setattr(scipy.fft, routine, spoiled(getattr(scipy.fft, routine), fault, is_single))
    monkeypatch.setattr(
        _plane_curvature.PlaneCurvature,
        "_levels",
        property(lambda self: used.append(levels(self)) or used[-1]),
    )
    found = ik.smooth(tally, 100.0)
    assert {window.dtype for each in used for window, _ in each} == {np.dtype(np.float64)}
    assert found.n_iter <= right.n_iter + 1
    np.testing.assert_allclose(found.distribution, right.distribution, atol=1e-8)
    assert not cosines((27, 27))
