"""Orders and spellings of arguments:
one for all, and no call in another order is taken for this one.
"""

import inspect
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import ibukit as ik
from ibukit import testing
from ibukit._ground.arguments import losses
from ibukit.solvers import METHODS, maximise
from source_rules import public_objects

THEORY = ik.theory
KRR = ik.RandomizedResponse(3, 1.0)
TALLY = KRR.tally_counts([6, 3, 1])
PUBLIC = {name: thing for name, thing in public_objects().items() if inspect.isfunction(thing)}


def positional(function):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [
        name for name, each in inspect.signature(function).parameters.items() if each.kind in kinds
    ]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_generator_is_handed_over_by_its_name(name):
    assert "rng" not in positional(PUBLIC[name])


def test_a_generator_by_position_is_seen():
    assert "rng" in positional(
        ik.RandomizedResponse.randomize
    )  # there, and for simulate, the order is as it was
    assert sum("rng" in inspect.signature(function).parameters for function in PUBLIC.values()) >= 6


# What a function of many things takes first, second, ...

ORDERS = [
    ("prior", "secret", "block", "loss", "adversary_loss"),
    ("prior", "alphabet", "beta"),
    ("k", "epsilon", "n", "alpha"),
    ("mechanism", "prior", "beta"),
]


def out_of_order(names):
    """Pairs of neighbouring arguments that stand in another order than everywhere else."""
    return [
        (first, second)
        for order in ORDERS
        for first, second in pairwise([name for name in names if name in order])
        if order.index(first) > order.index(second)
    ]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_arguments_stand_in_one_order(name):
    assert out_of_order(inspect.signature(PUBLIC[name]).parameters) == []


@pytest.mark.parametrize(
    "names",
    [("n", "k", "epsilon", "alpha"), ("mechanism", "secret", "prior"), ("n", "epsilon", "alpha")],
)
def test_another_order_is_seen(names):
    assert len(out_of_order(names)) == 1


# Another order of the arguments, in which numbers would be taken for others


@pytest.mark.parametrize(
    ("function", "old", "new"),
    [
        (THEORY.rappor_concavity_bound, (25, 10, 1.0), {"k": 10, "epsilon": 1.0, "n": 25}),
        (
            THEORY.van_trees_bound,
            (25, 10, 1.0, 0.5),
            {"k": 10, "epsilon": 1.0, "n": 25, "alpha": 0.5},
        ),
        (THEORY.binary_response_mse, (25, 1.0, 0.5), {"epsilon": 1.0, "n": 25, "alpha": 0.5}),
    ],
)
def test_another_order_is_refused(function, old, new):
    assert np.isfinite(function(**new)).all()
    first = positional(function)
    assert (
        function(*(new[name] for name in first), **{n: v for n, v in new.items() if n not in first})
        is not None
    )
    names = list(inspect.signature(function).parameters)
    for count in range(1, len(old) + 1):  # the first ones by position, the others by name
        by_name = dict(zip(sorted(new, key=["n", "k", "epsilon", "alpha"].index), old, strict=True))
        rest = dict(list(by_name.items())[count:])
        with pytest.raises(TypeError):
            function(*old[:count], **rest)
    assert names[0] != "n"


def test_errors_of_two_secrets_have_names():
    found = THEORY.binary_response_mse(1.0, n=10, alpha=0.5)
    assert found == (found.distribution, found.frequencies)
    assert found.distribution > found.frequencies


# Arguments that are keyword-only


def rng():
    return np.random.default_rng(1)


@pytest.mark.parametrize(
    "by_position",
    [
        lambda: ik.posterior(TALLY, 0.5, "frequencies", "enumerate"),
        lambda: ik.posterior_mean(TALLY, 0.5, "distribution", "gibbs", rng(), 2000),
        lambda: THEORY.bayes_limits(KRR, 0.5, rng(), draws=50),
        lambda: THEORY.posterior_entropy_bound(-1.0, 3, 10),
        lambda: testing.check_mechanism(KRR, rng(), 1000),
        lambda: testing.check_tally(TALLY, rng()),
        lambda: testing.check_tally(TALLY, rng(), rng=rng()),
    ],
)
def test_keyword_arguments_are_refused_by_position(by_position):
    with pytest.raises(TypeError, match="positional argument"):
        by_position()


# Spellings


@pytest.mark.parametrize(
    "call",
    [
        lambda name: ik.mle(TALLY, method=name),
        lambda name: maximise(TALLY.operator, TALLY.counts, method=name),
        lambda name: ik.shokri([0.5, 0.5], 2, 0.2, choice=name),
    ],
)
def test_a_name_that_is_not_known_is_refused(call):
    with pytest.raises(ValueError, match="'no such name'"):
        call("no such name")


def test_no_name_has_spaces():
    assert [name for name in METHODS if " " in name] == []


@pytest.mark.parametrize(
    "thing", [ik.mle(TALLY), ik.posterior(TALLY, 0.5), THEORY.bayes_limits(KRR, 0.5, rng=rng())]
)
def test_standard_errors_are_a_method_and_no_array(thing):
    assert np.shape(thing.standard_errors()) in ((3,), (4,))
    for use in (lambda it: it[0], lambda it: 1.0 / it, lambda it: np.sqrt(it)):
        with pytest.raises(TypeError):
            use(thing.standard_errors)


def test_what_an_estimator_calls_by_a_name_that_is_taken_goes_into_a_partial():
    def tilted(tally, weights):
        return ik.normalize(tally.counts * np.asarray(weights))

    both = TALLY + ik.RandomizedResponse(3, 2.0).tally_counts([5, 4, 1])
    found = ik.combine_results(both, partial(tilted, weights=[1, 2, 3]))
    assert found.method.startswith("[tilted]_R, weights: n_A / n")


@pytest.mark.parametrize("shape", [(2, 3), (4, 3), (3, 0), (3,)])
def test_losses_are_a_row_for_each_secret(shape):
    with pytest.raises(ik.errors.AlphabetMismatch, match="one row for each of the 3 secrets"):
        losses("loss", np.ones(shape), 3)
