"""One rule for failure: what iterates takes `strict`,
and where it misses its goal the error carries what is best.
"""

import ast
import functools
import importlib
import inspect
import re
from dataclasses import fields, is_dataclass, replace

import numpy as np
import ot
import pytest
import scipy.integrate
import scipy.optimize

import ibukit as ik
from ibukit.design import least_information
from ibukit.identification._polytope_ranges import VertexRanges
from ibukit.solvers import interior_point, maximise, table
from source_rules import SOURCES, faults, public_objects

LINE = ik.Line(0, 4)
PRIOR = ik.normalize([5, 4, 3, 2, 1])
CROWD = [50, 40, 30, 20, 10]
TALLY = ik.LinearLaplace(LINE, 0.5).tally_counts(CROWD)
POOLED = TALLY + ik.LinearLaplace(LINE, 1.0).tally_counts(CROWD)
ATTACKED = ik.attack.poison_outputs(
    ik.LinearLaplace(LINE, 2.0).tally_counts([900, 600, 300, 20, 1]), 4, 0.1
)
# which of the last two secrets people have is not determined
MERGED = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]]).tally_counts([50, 50])


def in_module(name):
    """A module, which may bear the name of a public function."""
    return importlib.import_module(f"ibukit.{name}")


# Ways to make an iteration miss its goal, of functions that have no argument for it


def lame_solvers(monkeypatch):
    """Every solver stops on the way,
    at a point between the one it finds and the uniform distribution.
    """

    def run(solver, problem, tol):
        theta, *steps = solver.run(problem, tol)
        return 0.9 * theta + 0.1 / problem.k, *steps

    monkeypatch.setattr(
        table, "SOLVERS", [replace(s, run=functools.partial(run, s)) for s in table.SOLVERS]
    )


def lame_optimum(monkeypatch):
    best = interior_point.maximise

    def run(rows, q, tol):
        theta, steps = best(rows, q, tol)
        return 0.9 * theta + 0.1 / len(theta), steps

    monkeypatch.setattr(interior_point, "maximise", run)


def lame_newton(monkeypatch):
    lame_optimum(monkeypatch)
    monkeypatch.setattr(
        in_module("identification.fixed_points"), "_newton", lambda rows, q, theta, rank: theta
    )


def lame_trade(monkeypatch):
    truth = least_information.Optimum(np.eye(5), np.inf)  # keeps the bound, and hides nothing
    monkeypatch.setattr(least_information, "solve_at_distortion", lambda source, wanted: truth)


def lame_programmes(monkeypatch):
    gives_up = scipy.optimize.OptimizeResult(
        x=None, status=4, success=False, message="the solver gave up"
    )
    for module in ("ibukit.design._linear_programme", "scipy.optimize"):
        monkeypatch.setattr(f"{module}.linprog", lambda *given, **how: gives_up)
    # nor does the walk that needs none find anything
    monkeypatch.setattr(
        "ibukit.identification._polytope.ranges", lambda centre, basis: VertexRanges(len(centre))
    )


def lame_designs(monkeypatch):
    monkeypatch.setattr(
        in_module("design.optimal.optimal_private"),
        "optimal_design",
        lambda _, start, measure: (start, 0.5),
    )


def lame_root(monkeypatch):
    brentq = functools.partial(scipy.optimize.brentq, maxiter=2)
    monkeypatch.setattr("ibukit.attack.breakdown.brentq", brentq)


def lame_transport(monkeypatch):
    def run(p, q, costs, **how):
        cost, log = emd2(p, q, costs, **how)
        return 1.1 * cost, {**log, "warning": "numItermax reached before optimality"}

    emd2 = ot.emd2
    monkeypatch.setattr(ot, "emd2", run)


def lame_quadrature(monkeypatch):
    def run(*given, **how):
        value, error, *rest = quad(*given, **how)
        return 1.01 * value, 0.01 + error, *rest, "the rule gave up"

    quad = scipy.integrate.quad
    monkeypatch.setattr(scipy.integrate, "quad", run)


def lame_smoother(monkeypatch):
    roughness = in_module("estimators._roughness")
    for name in ("QUICK", "CAREFUL", "DAMPED"):
        monkeypatch.setattr(roughness, name, getattr(roughness, name)._replace(max_steps=1))


def lame_chains(monkeypatch):
    monkeypatch.setattr(in_module("bayes._gibbs"), "MIN_ESS", 10**9)


def lame_steps(monkeypatch):
    """An argument does it."""


def rng():
    return np.random.default_rng(1)


def privic(**choices):
    """A loop with one cycle behind it."""
    loop = ik.Privic(LINE, **choices)
    loop.collect(loop.mechanism().simulate(CROWD, rng()))
    return loop


# as it was found while the solver worked
FOUND = ik.theory.mle_set(MERGED)

# name: how its goal is missed, a call that says whether it is strict
GIBBS = {"alpha": 0.5, "method": "gibbs", "max_sweeps": 1250}
SQUARES = LINE.distances() ** 2
CASES = {
    "ibu": (
        lame_steps,
        lambda strict, miss: ik.ibu(TALLY, max_iter=2 if miss else 10**6, strict=strict),
    ),
    "gibu": (
        lame_steps,
        lambda strict, miss: ik.gibu([TALLY], max_iter=2 if miss else 10**6, strict=strict),
    ),
    "mle": (lame_solvers, lambda strict, miss: ik.mle(TALLY, strict=strict)),
    "unfold": (
        lame_solvers,
        lambda strict, miss: ik.unfold([50, 40, 30], np.eye(3) * 0.7 + 0.1, strict=strict),
    ),
    "unfold, with a background": (
        lame_solvers,
        lambda strict, miss: ik.unfold(
            [50, 40, 30], np.eye(3) * 0.7 + 0.1, background=[5, 5, 5], strict=strict
        ),
    ),
    "regress": (
        lame_steps,
        lambda strict, miss: ik.regress(
            [0, 0, 0, 1, 1, 1],
            [0, 1, 1, 0, 0, 1],
            ik.RandomizedResponse(2, 2.0),
            max_iter=1 if miss else 500,
            strict=strict,
        ),
    ),
    "solvers.maximise": (
        lame_solvers,
        lambda strict, miss: maximise(TALLY.operator, TALLY.counts, strict=strict),
    ),
    "smooth": (lame_smoother, lambda strict, miss: ik.smooth(TALLY, 10.0, strict=strict)),
    "posterior": (
        lame_chains,
        lambda strict, miss: ik.posterior(TALLY, **GIBBS, rng=rng(), strict=strict),
    ),
    "posterior_mean": (
        lame_chains,
        lambda strict, miss: ik.posterior_mean(TALLY, **GIBBS, rng=rng(), strict=strict),
    ),
    "combine_results": (
        lame_solvers,
        lambda strict, miss: ik.combine_results(POOLED, ik.mle, strict=strict),
    ),
    "combine_mechanisms": (
        lame_solvers,
        lambda strict, miss: ik.combine_mechanisms(POOLED, ik.mle, strict=strict),
    ),
    "emd": (
        lame_transport,
        lambda strict, miss: ik.emd(PRIOR, PRIOR[::-1], ik.Alphabet(range(5)), strict=strict),
    ),
    "blahut_arimoto": (
        lame_optimum,
        lambda strict, miss: ik.blahut_arimoto(PRIOR, LINE, 1.0, None, strict=strict),
    ),
    "rate_distortion": (
        lame_optimum,
        lambda strict, miss: ik.rate_distortion(PRIOR, LINE, 1.0, strict=strict),
    ),
    "rate_distortion, of a distortion": (
        lame_optimum,
        lambda strict, miss: ik.rate_distortion(PRIOR, LINE, distortion=0.5, strict=strict),
    ),
    "shokri": (lame_trade, lambda strict, miss: ik.shokri(PRIOR, LINE, 0.5, strict=strict)),
    "shokri, vertex": (
        lame_programmes,
        lambda strict, miss: ik.shokri(PRIOR, LINE, 0.5, choice="vertex", strict=strict),
    ),
    "shokri, two losses": (
        lame_programmes,
        lambda strict, miss: ik.shokri(PRIOR, LINE, 0.5, adversary_loss=SQUARES, strict=strict),
    ),
    "design.protection_gap": (
        lame_programmes,
        lambda strict, miss: ik.design.protection_gap(
            ik.RandomizedResponse(LINE, 4.0), PRIOR, 0.3, adversary_loss=SQUARES, strict=strict
        ),
    ),
    "optimal_private": (
        lame_designs,
        lambda strict, miss: ik.optimal_private(PRIOR, LINE, 1.0, strict=strict),
    ),
    "Privic.mechanism": (
        lame_optimum,
        lambda strict, miss: ik.Privic(LINE, ba_steps=None).mechanism(strict=strict),
    ),
    "Privic.collect": (
        lame_solvers,
        lambda strict, miss: (loop := ik.Privic(LINE, ibu_steps=None)).collect(
            loop.mechanism().simulate(CROWD, rng()), strict=strict
        ),
    ),
    "Privic.estimate": (
        lame_solvers,
        lambda strict, miss: privic().estimate(pooled=True, strict=strict),
    ),
    "attack.robust_mle": (
        lame_solvers,
        lambda strict, miss: ik.attack.robust_mle(ATTACKED, strict=strict),
    ),
    "attack.detect_poisoning": (
        lame_solvers,
        lambda strict, miss: ik.attack.detect_poisoning(ATTACKED, rng=rng(), strict=strict),
    ),
    "attack.breakdown_fraction": (
        lame_root,
        lambda strict, miss: ik.attack.breakdown_fraction(
            [0.4, 0.3, 0.2, 0.1, 0.0], LINE, 0.5, 4, strict=strict
        ),
    ),
    "theory.fixed_points": (
        lame_newton,
        lambda strict, miss: ik.theory.fixed_points(TALLY, strict=strict),
    ),
    "theory.mle_set": (lame_solvers, lambda strict, miss: ik.theory.mle_set(MERGED, strict=strict)),
    "theory.mle_set, ranges": (
        lame_programmes,
        lambda strict, miss: ik.theory.mle_set(MERGED, strict=strict),
    ),
    "theory.MleSet.bounds": (
        lame_programmes,
        lambda strict, miss: FOUND.bounds([1, 2, 4], strict=strict),
    ),
    "theory.MleSet.distance": (
        lame_programmes,
        lambda strict, miss: FOUND.distance([0.1, 0.8, 0.1], strict=strict),
    ),
    "theory.bayes_limits": (
        lame_quadrature,
        lambda strict, miss: ik.theory.bayes_limits(
            ik.RandomizedResponse(2, 1.0), 0.5, strict=strict
        ),
    ),
}


def same(one, other):
    """Whether two results are equal to the last bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return all(
            same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)
        )
    return one == other or (one != one and other != other)


def distributions_in(found):
    """Every distribution that a result is made of."""
    if isinstance(found, np.ndarray):
        return [found]
    if isinstance(found, ik.MatrixMechanism):
        return list(found.matrix())
    if hasattr(found, "mechanism"):
        return list(found.mechanism.matrix())
    if hasattr(found, "points"):
        return [found.estimate.distribution, *found.points]
    for name in ("estimate", "distribution", "mean", "theta"):
        if hasattr(found, name) and not isinstance(getattr(found, name), float):
            return distributions_in(getattr(found, name))
    return []


def usable(found):
    """Whether a result can be gone on with:
    distributions that are ones, numbers that are finite.
    """
    numbers = [
        number
        for number in (found if isinstance(found, tuple) else (found,))
        if isinstance(number, float)
    ]
    return np.isfinite(numbers).all() and all(
        (p >= 0).all() and p.sum() == pytest.approx(1, abs=1e-9) for p in distributions_in(found)
    )


def findings(strict, lenient):
    """What is wrong with the way in which a call with `strict` fails,
    beside what it returns without.
    """
    try:
        strict()
    except ik.ConvergenceError as error:
        carried, said = error.estimate, str(error)
    except Exception as error:
        return [f"{type(error).__name__} is raised"]
    else:
        return ["nothing is raised"]
    return [
        *([] if usable(carried) else ["what is carried cannot be used"]),
        *([] if same(carried, lenient()) else ["strict=False returns something else"]),
        *(
            []
            if "strict=False" in said or "max_iter" in said or "max_sweeps" in said
            else ["no way out is named"]
        ),
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_miss_is_an_error_that_carries_the_best_result(name, monkeypatch):
    spoil, call = CASES[name]
    monkeypatch.setattr(in_module("bayes._gibbs"), "N_DRAWS", 250)  # chains of any length may miss
    reached = call(True, False)  # where the goal is met nothing is raised
    assert same(reached, call(False, False))
    spoil(monkeypatch)
    missed = call(False, True)
    assert findings(lambda: call(True, True), lambda: missed) == []
    assert not same(reached, missed), "what was missed must be seen in the result"


def test_what_breaks_the_rule_is_found():
    def fails(error):
        raise error

    best, broken = ik.mle(TALLY), np.full(5, np.nan)
    assert findings(lambda: best, lambda: best) == ["nothing is raised"]
    assert findings(lambda: fails(RuntimeError("strict=False")), lambda: best) == [
        "RuntimeError is raised"
    ]
    for carried, said, found in (
        (broken, "strict=False", ["what is carried cannot be used"]),
        (ik.ibu(TALLY), "strict=False", ["strict=False returns something else"]),
        (best, "missed", ["no way out is named"]),
        (best, "strict=False", []),
    ):
        returned = broken if carried is broken else best
        error = ik.ConvergenceError(said, carried)
        assert (
            findings(functools.partial(fails, error), functools.partial(same_as_given, returned))
            == found
        )


def same_as_given(thing):
    """The thing itself."""
    return thing


def taking_strict():
    """Every public function and method with an argument `strict`."""
    things = public_objects() | {
        "ibukit.solvers.maximise": maximise,
        "ibukit.design.Privic": ik.Privic,
    }
    members = {
        f"{name}.{method}": function
        for name, thing in things.items()
        if inspect.isclass(thing)
        for method, function in vars(thing).items()
        if inspect.isfunction(function) and not method.startswith("_")
    }
    functions = {
        name: thing for name, thing in things.items() if inspect.isfunction(thing)
    } | members
    return {
        name: function
        for name, function in functions.items()
        if "strict" in inspect.signature(function).parameters
    }


def test_all_that_takes_strict_is_tested_here():
    tested = {name.partition(",")[0] for name in CASES}
    ours = {resolved(name) for name in tested}
    assert {name for name, function in taking_strict().items() if function not in ours} == set()
    assert len(ours) == len(tested) > 20


def resolved(name):
    return functools.reduce(getattr, name.split("."), ik)


def bare_errors(source):
    """Errors raised that have no name of their own."""
    tree = (
        ast.walk(ast.parse(source))
        if re.search("RuntimeError|Exception|ArithmeticError", source)
        else ()
    )
    raised = (node.exc for node in tree if isinstance(node, ast.Raise) and node.exc)
    names = (ast.unparse(error.func if isinstance(error, ast.Call) else error) for error in raised)
    return [name for name in names if name in ("RuntimeError", "Exception", "ArithmeticError")]


def test_no_error_is_bare():
    assert faults(SOURCES, lambda name, source: bare_errors(source)) == {}


@pytest.mark.parametrize("source", ["raise RuntimeError('no')", "def f():\n    raise Exception"])
def test_a_bare_error_is_found(source):
    assert len(bare_errors(source)) == 1


def raising(source):
    """Public functions and methods that raise ConvergenceError themselves,
    with the names of their arguments.
    """
    tree = ast.walk(ast.parse(source)) if "ConvergenceError" in source else ()
    functions = [node for node in tree if isinstance(node, ast.FunctionDef)]
    return {
        node.name: [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        for node in functions
        if not node.name.startswith("_")
        and any(
            isinstance(inner, ast.Raise) and "ConvergenceError" in ast.unparse(inner)
            for inner in ast.walk(node)
        )
    }


def without_strict(name, source):
    return [
        function for function, arguments in raising(source).items() if "strict" not in arguments
    ]


def test_who_raises_takes_strict():
    assert faults(SOURCES, without_strict) == {}
    assert len(faults(SOURCES, lambda name, source: raising(source))) > 3


def test_who_raises_without_it_is_seen():
    assert raising("def mle(tally):\n    if tally:\n        raise ConvergenceError('no', 1)") == {
        "mle": ["tally"]
    }
