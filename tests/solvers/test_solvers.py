"""Which solver mle takes for which tally, why, what happens when one misses,
and that all of them agree.
"""

import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import DenseChannel
from ibukit.solvers import SOLVERS, Problem, active_set, anderson, candidates, maximise, table
from ibukit.solvers.maximum import ROUNDING_OF_GAP
from instances import INSTANCES, NAMES
from oracles import naive

WIRED = {solver.name: solver for solver in SOLVERS}
LONGEST = 100
EVERYWHERE = ["dense", "active-set", "ibu"]


def counted(mechanism, users=2000):
    """A tally of `users` people with a Zipf distribution."""
    p = 1 / np.arange(1, mechanism.k + 1)
    rng = np.random.default_rng(1)
    return mechanism.simulate(rng.multinomial(users, p / p.sum()), rng)


def some_rows(mechanism, n):
    rng = np.random.default_rng(2)
    return mechanism.tally(rng.integers(0, 2, (n, mechanism.k)))


def spread(mechanism):
    """Every report of a finite mechanism once."""
    return mechanism.tally(np.arange(mechanism.m))


# name: the tally, the solvers that auto tries in their order, and all that apply
STRUCTURES = {
    "k-RR": (
        lambda: counted(ik.RandomizedResponse(5, 1.0)),
        ["closed-form", *EVERYWHERE],
        ["closed-form", "pooled", *EVERYWHERE],
    ),
    "geometric": (
        lambda: counted(ik.LinearGeometric(30, 0.5)),
        ["line", *EVERYWHERE],
        ["line", "pooled", *EVERYWHERE],
    ),
    "truncated geometric": (
        lambda: counted(ik.TruncatedGeometric(30, 0.5)),
        ["line", *EVERYWHERE],
        ["line", "pooled", *EVERYWHERE],
    ),
    "long line": (
        lambda: spread(ik.TruncatedGeometric(6000, 0.5)),
        ["line", "active-set", "ibu"],
        ["line", "active-set", "ibu"],
    ),
    "Laplace": (lambda: counted(ik.LinearLaplace(30, 0.5)), EVERYWHERE, ["pooled", *EVERYWHERE]),
    "small grid": (
        lambda: counted(ik.TruncatedPlanarGeometric(ik.Grid(5, 6), 1.0)),
        EVERYWHERE,
        ["pooled", *EVERYWHERE],
    ),
    "large grid": (
        lambda: spread(ik.TruncatedPlanarGeometric(ik.Grid(100, 90), 1.0)),
        ["plane", "active-set", "ibu"],
        ["plane", "active-set", "ibu"],
    ),
    "many rows of bits": (
        lambda: some_rows(ik.Rappor(20, 1.0), 2000),
        ["bits", *EVERYWHERE],
        ["bits", *EVERYWHERE],
    ),
    "many rows of few bits": (
        lambda: some_rows(ik.Rappor(9, 1.0), 1000),
        EVERYWHERE,
        ["bits", *EVERYWHERE],
    ),
    "few rows of bits": (
        lambda: some_rows(ik.Rappor(60, 1.0), 700),
        EVERYWHERE,
        ["bits", *EVERYWHERE],
    ),
    "two unary encodings": (
        lambda: (
            some_rows(ik.Rappor(20, 1.0), 1500)
            + some_rows(ik.OptimizedUnaryEncoding(20, 2.0), 1500)
        ),
        ["bits", *EVERYWHERE],
        ["bits", *EVERYWHERE],
    ),
    "bits and others": (
        lambda: some_rows(ik.Rappor(20, 1.0), 2000) + spread(ik.RandomizedResponse(20, 1.0)),
        ["bits", *EVERYWHERE],
        ["bits", *EVERYWHERE],
    ),
    "bits and a large grid": (
        lambda: (
            some_rows(ik.Rappor(ik.Grid(100, 90), 1.0), 9)
            + spread(ik.PlanarLaplace(ik.Grid(100, 90), 1.0))
        ),
        ["active-set", "ibu"],
        ["active-set", "ibu"],
    ),
    "small pool": (
        lambda: counted(ik.RandomizedResponse(30, 1.0)) + counted(ik.TruncatedGeometric(30, 0.5)),
        EVERYWHERE,
        ["pooled", *EVERYWHERE],
    ),
    "pool of k-RR": (
        lambda: counted(ik.RandomizedResponse(9, 1.0)) + counted(ik.RandomizedResponse(9, 2.0)),
        ["pooled", *EVERYWHERE],
        ["pooled", *EVERYWHERE],
    ),
    "pool": (
        lambda: counted(ik.RandomizedResponse(301, 3.0)) + counted(ik.TruncatedGeometric(301, 0.5)),
        ["pooled", *EVERYWHERE],
        ["pooled", *EVERYWHERE],
    ),
    "dense pool": (
        lambda: counted(ik.LinearLaplace(301, 1.0)) + counted(ik.Exponential(301, 0.5)),
        EVERYWHERE,
        ["pooled", *EVERYWHERE],
    ),
}
structures = pytest.mark.parametrize("name", STRUCTURES)
# where a solver runs for long enough to be kept out of the fast tests
LARGE = {"long line", "large grid", "bits and a large grid"}


def asked(tally):
    return Problem(tally.operator, tally.counts)


@cache
def tally_of(name):
    return STRUCTURES[name][0]()


@structures
def test_auto_takes_what_suits_the_structure(name):
    tally, (_, expected, _) = tally_of(name), STRUCTURES[name]
    assert [solver.name for solver in candidates(asked(tally))] == expected
    if name not in LARGE:
        estimate = ik.mle(tally)
        assert estimate.method.startswith(f"mle, {WIRED[expected[0]].why(asked(tally))}")


@structures
def test_all_that_apply_and_no_others_can_be_asked_for_by_name(name):
    tally, (_, _, applicable) = tally_of(name), STRUCTURES[name]
    for solver in SOLVERS:
        if solver.name in applicable:
            assert list(candidates(asked(tally), solver.name)) == [solver]
            continue
        with pytest.raises(ValueError, match="for this tally there are 'auto'") as error:
            ik.mle(tally, method=solver.name)
        names = ", ".join(repr(other) for other in ["auto", *applicable])
        expected = f"method={solver.name!r} needs {solver.needs}; for this tally there are {names}"
        assert str(error.value) == expected
        assert len(solver.needs) > 10


@pytest.mark.parametrize("method", ["fastest", "", "Dense", "AUTO", None, 3])
def test_a_name_that_is_none(method):
    tally = tally_of("k-RR")
    with pytest.raises(
        ValueError,
        match=r"^method=.* is not known; for this tally there are 'auto', 'closed-form', ",
    ):
        ik.mle(tally, method=method)


def test_every_solver_says_why_in_one_short_line():
    # the largest that anyone will have
    problem = SimpleNamespace(
        k=10**7,
        channel=SimpleNamespace(k=10**7, size=10**7),
        parts=[(SimpleNamespace(size=10**9), None)] * 100,
    )
    reasons = [f"mle, {solver.why(problem)}" for solver in SOLVERS]
    for reason in reasons:
        assert len(reason) <= LONGEST
        assert "\n" not in reason
        assert ":" in reason
        assert str(10**7) in reason
    assert len(set(reasons)) == len(reasons)
    assert len(WIRED) == len(SOLVERS)


def test_the_documentation_lists_the_names():
    listed = ik.mle.__doc__.split("By name:")[1].split("Returns")[0]
    assert all(f'- "{solver.name}":' in listed for solver in SOLVERS)
    assert listed.count('- "') == len(SOLVERS)


# When one misses


def spoilt(solver, calls, theta=None):
    """The solver, counted; with a distribution of ours in place of its own."""

    def run(problem, tol):
        calls.append((solver.name, tol))
        return (np.full(problem.k, 1 / problem.k), 7) if theta is None else (theta, 7)

    return replace(solver, run=run)


def counting(solver, calls):
    def run(problem, tol):
        calls.append((solver.name, tol))
        return solver.run(problem, tol)

    return replace(solver, run=run)


def test_auto_goes_on_to_the_next_where_one_misses(monkeypatch):
    calls, tally = [], tally_of("bits and others")
    lame = [
        spoilt(solver, calls) if solver.name == "bits" else counting(solver, calls)
        for solver in SOLVERS
    ]
    monkeypatch.setattr(table, "SOLVERS", lame)
    estimate = ik.mle(tally, tol=1e-6)
    assert [name for name, _ in calls] == ["bits", "dense"]
    assert estimate.gap <= 1e-6
    assert estimate.method.startswith(f"mle, {WIRED['dense'].why(asked(tally))}")
    # what bounds max g - 1 is e^tol - 1, because the gap is the logarithm
    assert all(tol == np.expm1(1e-6) for _, tol in calls)


def test_a_solver_asked_for_by_name_is_not_replaced(monkeypatch):
    calls, tally = [], tally_of("bits and others")
    monkeypatch.setattr(table, "SOLVERS", [spoilt(solver, calls) for solver in SOLVERS])
    with pytest.raises(
        ik.ConvergenceError, match="tol=1e-06 was not certified: the best gap is"
    ) as error:
        ik.mle(tally, tol=1e-6, method="bits")
    assert [name for name, _ in calls] == ["bits"]
    assert error.value.estimate.method == f"mle, {WIRED['bits'].why(asked(tally))}"
    assert error.value.estimate.n_iter == 7


def test_where_all_miss_the_best_is_handed_over(monkeypatch):
    tally = tally_of("Laplace")
    best = ik.mle(tally).distribution
    thetas = {
        "dense": 0.9 * best + 0.1 / 30,
        "active-set": 0.99 * best + 0.01 / 30,
        "ibu": 0.5 * best + 0.5 / 30,
    }
    calls = []
    lame = [spoilt(solver, calls, thetas.get(solver.name)) for solver in SOLVERS]
    monkeypatch.setattr(table, "SOLVERS", lame)
    with pytest.raises(ik.ConvergenceError) as error:
        ik.mle(tally)
    assert [name for name, _ in calls] == list(thetas)
    found = error.value.estimate
    assert np.array_equal(found.distribution, thetas["active-set"])
    assert found.gap == ik.gap(tally, thetas["active-set"])
    assert found.status is ik.Status.MAX_ITER
    assert f"the best gap is {found.gap:.3g} after 7 steps of mle, active set" in str(error.value)


def test_nobody_is_asked_to_mend_rounding(monkeypatch):
    tally = ik.RandomizedResponse(4, 3.0).tally_counts([31, 17, 20, 19])
    calls = []
    monkeypatch.setattr(table, "SOLVERS", [counting(solver, calls) for solver in SOLVERS])
    exact = ik.mle(tally).distribution
    off = exact * (1 + 3e-14 * np.array([1, -1, 1, -1]))
    assert 0 < ik.gap(tally, off) <= ROUNDING_OF_GAP
    calls.clear()
    monkeypatch.setattr(table, "SOLVERS", [spoilt(solver, calls, off) for solver in SOLVERS])
    with pytest.raises(ik.ConvergenceError) as error:
        ik.mle(tally, tol=1e-20)
    assert [name for name, _ in calls] == ["closed-form"]
    assert error.value.estimate.gap == ik.gap(tally, off)
    calls.clear()
    assert np.array_equal(maximise(tally.operator, tally.counts, tol=1e-20).theta, off)
    assert [name for name, _ in calls] == ["closed-form"]


# The room itself, which knows neither tallies nor estimates


@pytest.mark.parametrize("name", sorted(set(STRUCTURES) - LARGE))
def test_the_room_finds_what_mle_finds(name):
    tally = tally_of(name)
    theta, method = maximise(tally.operator, tally.counts)
    estimate = ik.mle(tally)
    assert np.array_equal(theta, estimate.distribution)
    assert estimate.method == f"mle, {method}"
    assert asked(tally).gap(theta) == pytest.approx(estimate.gap, abs=1e-14)


def test_weights_need_not_be_counts():
    channel = DenseChannel(np.array([[0.9, 0.1], [0.3, 0.7]]))
    np.testing.assert_allclose(
        maximise(channel, [0.6, 0.4]).theta, maximise(channel, [60, 40]).theta, atol=1e-12
    )


def test_what_cannot_be_maximised_is_named():
    channel = DenseChannel(np.array([[0.9, 0.1, 0.0], [0.3, 0.7, 0.0]]))
    with pytest.raises(ValueError, match="counts must be above 0, got 0"):
        maximise(channel, [1, 0, 1])
    with pytest.raises(ik.errors.ImpossibleReport, match="no secret can produce"):
        maximise(channel, [1, 1, 1])
    with pytest.raises(ValueError, match="counts"):
        maximise(channel, [1, 1])
    with pytest.raises(ValueError, match="method='line' needs"):
        maximise(channel.take(slice(2)), [1, 1], method="line")


def test_the_best_is_returned_where_none_gets_there(monkeypatch):
    tally = tally_of("Laplace")
    monkeypatch.setattr(table, "SOLVERS", [spoilt(solver, []) for solver in SOLVERS])
    with pytest.raises(ik.ConvergenceError, match="tol=1e-09 was not certified") as error:
        maximise(tally.operator, tally.counts)
    theta, method = maximise(tally.operator, tally.counts, strict=False)
    assert np.array_equal(error.value.estimate.theta, theta)
    assert np.array_equal(theta, np.full(30, 1 / 30))
    assert asked(tally).gap(theta) > 1e-3
    assert method == WIRED["dense"].why(asked(tally))


# Agreement

BRUTE = {"ibu": 1e-6}  # what does not go to the vertex is asked for less


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_all_that_apply_find_the_same_maximum(instance):
    found = []
    for solver in SOLVERS:
        if solver.applies(asked(instance.tally)):
            tol = BRUTE.get(solver.name, 1e-11)
            estimate = ik.mle(instance.tally, tol=tol, method=solver.name)
            assert estimate.method.startswith(f"mle, {solver.why(asked(instance.tally))}")
            assert naive.gap(instance.matrix, instance.counts, estimate.distribution) <= tol + 1e-13
            found.append(estimate)
    assert len(found) >= 3
    for one, other in combinations(found, 2):
        n, scale = instance.tally.n, abs(one.log_likelihood)
        assert (
            abs(one.log_likelihood - other.log_likelihood)
            <= n * (one.gap + other.gap) + 1e-12 * scale
        )


# The same digits whatever the number of threads

PLACE = "TruncatedPlanarGeometric(ik.Grid(20, 14, cell_size=0.5), 1.0)"
# each by its name, on a problem large enough that BLAS would share it
THREADED = {
    "closed-form": ("RandomizedResponse(5000, 6.0)", 1e-9),
    "line": ("LinearGeometric(3000, 0.05)", 1e-9),
    "plane": ("TruncatedPlanarGeometric(ik.Grid(50, 50), 1.0)", 1e-8),
    "bits": ("Rappor(40, 1.0)", 1e-9),
    "pooled": ("TruncatedGeometric(400, 0.1)", 1e-9),
    "dense": (PLACE, 1e-9),
    "active-set": (PLACE, 1e-9),
    "ibu": (PLACE, 1e-3),
}
DIGEST = """
import hashlib, sys
import numpy as np
import ibukit as ik
for name, mechanism, tol in {todo!r}:
    mechanism = eval("ik." + mechanism)
    p = 1 / np.arange(1, mechanism.k + 1)
    rng = np.random.default_rng(3)
    tally = mechanism.simulate(rng.multinomial(20_000, p / p.sum()), rng)
    if name == "pooled":
        other = ik.RandomizedResponse(mechanism.k, 3.0)
        tally = tally + other.simulate(rng.multinomial(20_000, p / p.sum()), rng)
    estimate = ik.mle(tally, tol=tol, method=name)
    bits = hashlib.sha256(estimate.distribution.tobytes()).hexdigest()
    print(name, estimate.n_iter, bits, sep=": ")
"""


@cache
def digests(threads):
    todo = [(name, *THREADED[name]) for name in WIRED]
    limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(limits, str(threads))}
    code = DIGEST.format(todo=todo)
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return dict(line.split(": ", 1) for line in run.stdout.splitlines())


@pytest.mark.parametrize("threads", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WIRED)
def test_the_same_bits_for_any_number_of_threads(name, threads):
    assert digests(threads)[name] == digests(1)[name]


def test_a_sum_that_is_known_is_not_computed_again():
    channel = DenseChannel(np.eye(2))
    assert Problem(channel, np.array([3.0, 4.0])).n == 7
    assert Problem(channel, np.array([3.0, 4.0]), total=7.5).n == 7.5


def test_of_many_secrets_no_solver_is_asked_for_more_than_rounding_allows(rng, monkeypatch):
    """The certificate's bound on rounding grows with secrets and reports beyond 1e-13."""
    place = (np.arange(500) + 0.5) / 500
    matrix = np.exp(-0.5 * ((place[:, None] - place) / 0.02) ** 2)
    mechanism = ik.MatrixMechanism(matrix / matrix.sum(axis=1, keepdims=True))
    tally = mechanism.simulate(rng.multinomial(10**5, np.full(500, 1 / 500)), rng)
    for others in (active_set, anderson):
        monkeypatch.setattr(others, "maximise", None)
    found = ik.theory.mle_set(tally)
    assert 1e-13 < found.estimate.gap <= 3e-13
    assert found.estimate.identified.all()
