"""Each public name with the calls that a reader makes of it:
the function, the class, the methods of what it makes.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ibukit as ik
from fuzz.right import RIGHT, key_of, parameters, promised
from fuzz.world import MECHANISMS
from ibukit import attack, privacy, theory
from ibukit.channels import Channel
from ibukit.design import OptimalDesign
from public_names import ATTACK, NAMES, SURVEYS, THEORY
from source_rules import public_objects

# rooms whose names are another's matter: what is drawn, what the book does with tables of ours,
# what tests call
ELSEWHERE = ("ibukit_claims.", "ibukit.plotting.", "ibukit.testing.")
# base classes, which are inherited from and not made; the channels, which mechanisms make of arrays
# that are checked
ABSTRACT = {ik.Channel, ik.Mechanism, ik.FiniteMechanism, ik.StoppingRule}
ABSTRACT |= {ik.surveys.SurveyDesign, ik.surveys.TwoSampleDesign}
# results: how a world comes by one
MADE = {
    ik.ConvergenceError: lambda w: ik.ConvergenceError("missed", w.estimate),
    ik.Estimate: lambda w: w.estimate,
    ik.OptimalDesign: lambda w: ik.optimal_private(w.simplex, w.k, w.epsilon),
    ik.Posterior: lambda w: ik.posterior(w.tally, 0.5),
    ik.RateDistortion: lambda w: ik.rate_distortion(w.simplex, w.k, beta=w.epsilon),
    ik.Status: lambda w: w.estimate.status,
    ik.Tally: lambda w: w.pooled,
    ik.TallyGroups: lambda w: ik.TallyGroups(["day"], {1: w.tally, 2: w.pooled}),
    ik.Unfolded: lambda w: ik.unfold(w.counts(w.k + 1), w.matrix),
    attack.Detection: lambda w: attack.detect_poisoning(w.tally, rng=w.rng),
    attack.RobustEstimate: lambda w: attack.robust_mle(w.tally),
    theory.Answer: lambda w: theory.consistency(w.mechanism).conditions[0].answer,
    theory.Concavity: lambda w: theory.strictly_concave(w.tally),
    theory.Condition: lambda w: theory.consistency(w.mechanism).conditions[3],
    theory.Consistency: lambda w: theory.consistency(w.mechanism),
    theory.FixedPoint: lambda w: theory.fixed_points(w.tally)[0],
    theory.Identifiability: lambda w: theory.identifiable(w.mechanism),
    theory.MleSet: lambda w: theory.mle_set(w.tally),
    ik.solvers.Maximum: lambda w: ik.solvers.maximise(w.tally.operator, w.tally.counts),
    ik.solvers.Problem: lambda w: ik.solvers.Problem(w.tally.operator, w.tally.counts),
    ik.solvers.Solver: lambda w: next(
        ik.solvers.candidates(ik.solvers.Problem(w.tally.operator, w.tally.counts))
    ),
    privacy.Audit: lambda w: privacy.audit(w.mechanism, w.mechanism.release, n=400),
    theory.BayesLimits: lambda w: theory.bayes_limits(w.mechanism, 1.0, rng=w.rng, draws=50),
    theory.BinaryResponseMse: lambda w: theory.binary_response_mse(w.epsilon, n=100, alpha=0.5),
    theory.LdpBounds: lambda w: theory.ldp_bounds(w.k, w.epsilon),
    ik.datasets.Dataset: lambda w: w.population,
    OptimalDesign: lambda w: ik.optimal_private(w.simplex, w.k, w.epsilon),
    ik.plan.__globals__["Plan"]: lambda w: ik.plan(w.mechanism, width=0.1),
    ik.planning.PowerPlan: lambda w: ik.plan(w.mechanism, difference=0.05),
    ik.estimators.Comparison: lambda w: ik.compare(w.tally, w.pooled),
    ik.estimators.Contrast: lambda w: ik.compare(w.tally, w.pooled).difference,
    ik.plan.__globals__["Plans"]: lambda w: ik.plan([w.mechanism, w.other], width=0.1),
}
# files have tests of their own, which kill and corrupt; figures are plotting's; any key may be
# looked up in a mapping; the rest asks pandas alone
LEFT_OUT = {
    "save",
    "load",
    "plot",
    "to_geodataframe",
    "add_note",
    "with_traceback",
    "count",
    "get",
    "index",
}
# what a mechanism defines and its base class calls, with arrays that are checked
EXTENSION = {
    "channel",
    "code_reports",
    "draw",
    "invert",
    "label_reports",
    "log_scale",
    "make_matrix",
    "restore_reports",
}


@dataclass(frozen=True)
class Call:
    """One way to call a public name: which arguments it takes, and how it is called in a world."""

    name: str
    takes: dict[str, inspect.Parameter]
    keys: dict[str, str]
    kind: str | None
    run: Callable[[Any, dict[str, Any]], Any]

    def optional(self, parameter):
        return self.takes[parameter].default is not inspect.Parameter.empty

    def open(self):
        """Parameters that take what a reader has, wrong values among them."""
        # `name` of codes is how an error is to call the labels
        return [
            name
            for name, each in self.takes.items()
            if not promised(each) and self.keys[name] != "codes.name"
        ]

    def missing(self):
        """Parameters without a strategy."""
        return [f"{self.name}({name})" for name, key in self.keys.items() if not key]


def _call(name, function, owner, run, kind=None):
    takes = parameters(function)
    return Call(name, takes, {each: key_of(owner, each) for each in takes}, kind, run)


def _fits(name, function):
    """Whether a reader calls this method:
    what modules promise to each other takes arrays that are checked.
    """
    return name not in EXTENSION and not any(map(promised, parameters(function).values()))


def made(cls):
    """How a world comes by an object of a class."""
    if cls in MADE:
        return MADE[cls]
    if cls.__name__ in MECHANISMS or cls is ik.MatrixMechanism:
        return lambda world: world.of_kind(cls.__name__).mechanism
    usual = [
        name for name, each in parameters(cls).items() if each.default is inspect.Parameter.empty
    ]
    return lambda world: cls(**{name: RIGHT[key_of(cls.__name__, name)](world) for name in usual})


def methods(cls):
    """The public methods of a class, with what binds each to an object."""
    for attribute in dir(cls):
        static = inspect.getattr_static(cls, attribute)
        function = getattr(cls, attribute)
        if attribute.startswith("_") or attribute in LEFT_OUT or isinstance(static, type):
            continue
        if isinstance(static, property) or type(static).__name__ == "cached_property":
            yield attribute, None, False
        elif callable(function) and not inspect.isclass(function) and _fits(attribute, function):
            yield attribute, function, isinstance(static, (staticmethod, classmethod))


def calls_of_class(name, cls):
    """Making an object, and asking it."""
    found = []
    own = cls.__name__
    make = made(cls)
    if cls not in MADE:
        found.append(_call(name, cls, f"{own}.init", lambda _, given: cls(**given), own))
    else:
        found.append(Call(name, {}, {}, own, lambda world, _: make(world)))
    for attribute, function, bare in methods(cls):
        title = f"{name}.{attribute}"
        if function is None:
            found.append(
                Call(title, {}, {}, own, lambda world, _, a=attribute: getattr(make(world), a))
            )
        elif bare:
            found.append(
                _call(
                    title,
                    function,
                    f"{own}.{attribute}",
                    lambda _, given, f=function: f(**given),
                    own,
                )
            )
        else:
            ask = lambda world, given, a=attribute: getattr(make(world), a)(**given)  # noqa: E731
            found.append(_call(title, function, f"{own}.{attribute}", ask, own))
    return found


def _stands_elsewhere(cls):
    error = issubclass(cls, Exception) and cls is not ik.ConvergenceError
    return error or cls in ABSTRACT or issubclass(cls, (Channel, ik.channels.Score))


def registry():
    """Public name to its calls; one that two rooms show stands under the first."""
    seen, found = set(), {}
    for name, thing in sorted(
        public_objects().items(), key=lambda item: (item[0].count("."), item[0])
    ):
        if name.startswith(ELSEWHERE) or thing in seen:
            continue
        seen.add(thing)
        if inspect.isfunction(thing):
            short = thing.__name__
            found[name] = [_call(name, thing, short, lambda _, given, f=thing: f(**given))]
        elif not _stands_elsewhere(thing):
            found[name] = calls_of_class(name, thing)
    return found


def names_that_must_be_here():
    """The public names of tests/public_names.py, but modules, errors, and what nobody makes."""
    homes = [(name, getattr(ik, name)) for name in NAMES]
    homes += [(f"attack.{name}", getattr(attack, name)) for name in ATTACK]
    homes += [(f"theory.{name}", getattr(theory, name)) for name in THEORY]
    homes += [(f"surveys.{name}", getattr(ik.surveys, name)) for name in SURVEYS]
    homes += [("scale.tally", ik.scale.tally)]
    return {
        name: thing
        for name, thing in homes
        if not inspect.ismodule(thing) and thing not in ABSTRACT and thing is not ik.IbukitError
    }
