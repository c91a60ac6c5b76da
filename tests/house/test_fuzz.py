"""Every public name on every kind of wrong input:
a right answer, or an error that says which argument.

Hypothesis chooses a small world, a call, and what is wrong with its arguments. `make fuzz SEED=0
EXAMPLES=10000` runs as many examples in all, shared among the public names; a failure prints the
one line that repeats it.
"""

import os
import resource
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ibukit as ik
from fuzz.calls import Call, names_that_must_be_here, registry
from fuzz.judge import (
    TooSlow,
    Unclear,
    check_answer,
    check_error,
    close,
    outcome,
    outcomes,
    same,
)
from fuzz.labelled import in_another_order
from fuzz.right import RIGHT, key_of
from fuzz.spoiled import DRESSES, WRONG
from fuzz.world import ALPHABETS, COUNTS, MECHANISMS, World
from ibukit.bayes import _count_recursion
from source_rules import public_objects

REGISTRY = registry()
EXAMPLES = int(os.environ.get("EXAMPLES", "1000"))
# so much more than at the start: what asks for more is told so, and the machine lives on
MEMORY = 6 * 2**30
EXTREME = [
    1e-300,
    1e-160,
    1e-100,
    1e-30,
    1e-17,
    1e-15,
    1e-8,
    1e-3,
    20.0,
    36.0,
    38.0,
    73.5,
    100.0,
    300.0,
    700.0,
]
LARGE = 40
# whose designs of so many cells take a minute or more, as its docstring says
LONG = {"ibukit.optimal_private"}
# the operating system's randomness: two calls have two answers
FRESH = ("release", "audit", "Audit")
# know no alphabet: what they answer is in the order of the labels
WITHOUT_ALPHABET = ("poison_inputs", "poisoned_distribution", "mix_with_public")
# what builds the world may refuse, and what makes an alphabet of an argument: by names of their own
NAMES = {"alphabet", "k", "secrets", "values", "tally", "prior", "mechanism", "epsilon", "sigma"}
NAMES |= {"secret_counts", "counts", "reports"}


@dataclass(frozen=True)
class Example:
    """One call: repeated by `try_out(Example(...))`."""

    call: str
    world: World
    given: tuple[str, ...] = ()
    wrong: tuple[tuple[str, str], ...] = ()
    dress: str = "as it is"
    threads: int = 1


CALLS = {call.name: call for calls in REGISTRY.values() for call in calls}


@st.composite
def examples(draw, name):
    """Mostly one argument is wrong; some calls are right, but in an extreme world."""
    call = CALLS[draw(st.sampled_from([each.name for each in REGISTRY[name]]))]
    usual = st.sampled_from([0.1, 0.5, 1.0, 2.0, 5.0])
    world = World(
        k=draw(st.sampled_from([3, 2, 4, 1, 6, 3 if name in LONG else LARGE])),
        letters=draw(st.sampled_from(ALPHABETS)),
        kind=call.kind
        if call.kind in MECHANISMS
        else draw(st.sampled_from([*MECHANISMS, "MatrixMechanism"])),
        epsilon=draw(st.one_of(usual, usual, st.sampled_from(EXTREME), st.floats(1e-300, 700))),
        many=draw(st.sampled_from(COUNTS)),
        seed=draw(st.integers(0, 99)),
    )
    optional = [each for each in call.takes if call.optional(each)]
    handed = draw(st.lists(st.sampled_from(optional), unique=True, max_size=3)) if optional else []
    if draw(st.booleans()):
        handed = []
    spoiled = draw(st.sampled_from([0, 1, 1, 1, 2])) if call.open() else 0
    # an argument chosen twice is wrong once
    wrong = {
        draw(st.sampled_from(call.open())): draw(st.sampled_from(list(WRONG)))
        for _ in range(spoiled)
    }
    dress = draw(st.sampled_from(list(DRESSES)))
    return Example(
        call.name,
        world,
        tuple(handed),
        tuple(wrong.items()),
        dress,
        draw(st.sampled_from([1] * 9 + [2])),
    )


def arguments(call: Call, example, world):
    """The arguments of a call, right or wrong."""
    wrong = dict(example.wrong)
    found = {}
    for name in call.takes:
        if call.optional(name) and name not in example.given and name not in wrong:
            continue
        right = RIGHT[call.keys[name]](world)
        if name in wrong:
            found[name] = WRONG[wrong[name]](right)
        elif example.dress == "shuffled labels":
            found[name] = in_another_order(call.keys[name], right, world)
        else:
            found[name] = DRESSES[example.dress](right)
    return found


def try_out(example):
    """Make the call of an example and judge what comes of it."""
    call = CALLS[example.call]

    def run(example=example):
        world = replace(example.world)
        # whatever is drawn later, the mechanism is the same
        outcome(lambda: world.mechanism)
        return call.run(world, arguments(call, example, world))

    found = outcomes([run] * example.threads)
    if example.dress == "shuffled labels" and not (
        example.wrong or call.name.endswith((*FRESH, *WITHOUT_ALPHABET))
    ):
        (plain,) = outcomes([lambda: run(replace(example, dress="as it is"))])
        if not isinstance(found[0], ik.errors.AlphabetMismatch) and not close(found[0], plain):
            raise Unclear(f"labels in another order give {found[0]}, and without them {plain}")
    for each in found:
        if isinstance(each, TooSlow):
            raise Unclear(f"no answer: {each}")
        if isinstance(each, Exception):
            check_error(each, NAMES | {call.name.rpartition(".")[2], *call.takes})
        else:
            check_answer(each)
    if not call.name.endswith(FRESH) and not all(same(found[0], each) for each in found[1:]):
        raise Unclear(f"two threads were told {found}")


@pytest.fixture
def bounded(tmp_path, monkeypatch):
    """In a folder of its own, and with so much memory and no more."""
    monkeypatch.chdir(tmp_path)
    # the exact posterior takes up to a minute by its own limit, on a machine that does nothing else
    monkeypatch.setattr(_count_recursion, "MAX_TERMS", _count_recursion.MAX_TERMS // 40)
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="utf-8") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.slow
@pytest.mark.parametrize("name", REGISTRY)
def test_an_answer_or_a_clear_error(name, bounded):
    @settings(
        max_examples=max(1, EXAMPLES // len(REGISTRY)),
        derandomize=False,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(examples(name))
    def run(example):
        try:
            try_out(example)
        except (Unclear, TooSlow) as error:
            raise AssertionError(f"{example}\n{error}") from error

    run()


def test_every_public_name_has_a_strategy():
    known = {id(thing) for thing in _things()}
    assert [
        name for name, thing in names_that_must_be_here().items() if id(thing) not in known
    ] == []
    assert [each for call in CALLS.values() for each in call.missing()] == []


def _things():
    return [thing for name, thing in public_objects().items() if name in REGISTRY]


def test_a_name_without_a_strategy_is_seen():
    unknown = replace(
        CALLS["ibukit.mle"], keys={"tally": "tally", "novelty": key_of("mle", "novelty")}
    )
    assert unknown.missing() == ["ibukit.mle(novelty)"]


# the judge sees what it is there for


TALLY = ik.RandomizedResponse(3, 1.0).tally_counts([6, 3, 1])
FINE = ik.mle(TALLY)
WRONG_ANSWERS = {
    "NaN": float("nan"),
    "NaN in an array": np.array([1.0, np.nan]),
    "NaN in a pair": (1.0, (2.0, np.float64("nan"))),
    "a sum below 1": replace(FINE, distribution=np.array([0.5, 0.25, 0.2])),
    "a negative probability": replace(FINE, distribution=np.array([1.5, -0.5, 0.0])),
    "a gap that is no bound": replace(FINE, distribution=np.array([0.0, 0.0, 1.0]), gap=0.1),
}


@pytest.mark.parametrize("answer", WRONG_ANSWERS)
def test_a_wrong_answer_is_seen(answer):
    check_answer(FINE)
    with pytest.raises(Unclear):
        check_answer(WRONG_ANSWERS[answer])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("wrong"),
        TypeError("no start"),
        KeyError("stop"),
        OverflowError("stop"),
        RuntimeWarning("stop"),
    ],
)
def test_an_unclear_error_is_seen(error):
    check_error(ValueError("stop must be a rule"), {"stop"})
    with pytest.raises(Unclear):
        check_error(error, {"stop"})


class Refusing:
    """What a field's value is that raises when it is asked for."""

    def __init__(self, error):
        self.error = error

    def __get__(self, instance, owner):
        if instance is None:
            return  # the default
        raise self.error

    def __set__(self, instance, value):
        pass


@dataclass
class OfNone:
    values: object = Refusing(ik.errors.TooLarge("there is no end"))


@dataclass
class OfZero:
    values: object = Refusing(ZeroDivisionError("division by zero"))


def test_a_field_that_fails_is_seen_unless_it_says_why():
    check_answer(OfNone())
    with pytest.raises(Unclear):
        check_answer(OfZero())


@pytest.mark.parametrize(("pause", "says"), [(0.001, "by the clock"), (0.0, "of processor time")])
def test_a_hang_is_seen(pause, says):
    def hang():
        while True:
            time.sleep(pause) if pause else sum(range(100))

    with pytest.raises(TooSlow, match=says):
        outcomes([hang], seconds=0.02)


def test_a_warning_of_numpy_is_seen():
    (found,) = outcomes([lambda: np.float64(1.0) / np.float64(0.0)])
    assert isinstance(found, RuntimeWarning)


def test_two_threads_that_are_told_otherwise_are_seen():
    assert same(FINE, FINE)
    assert not same(FINE, replace(FINE, gap=1.0))
    assert not same(ValueError("x"), 1.0)
