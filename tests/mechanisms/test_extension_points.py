"""Our classes as parents:
what inherits from them is checked as they are, and `dataclasses.replace` works on all.
"""

import pickle
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.domain.alphabet import UnboundedLine
from ibukit.domain.grid import UnboundedGrid
from mechanism_cases import KINDS
from number_cases import BAD_NUMBERS, NUMBERS

TWO = [ik.RandomizedResponse(4, 1.0), ik.TruncatedGeometric(4, 0.5)]
MECHANISMS = [
    *KINDS,
    ik.LinearGeometric(ik.Line(0, None), 1.0),
    ik.PlanarGeometric(ik.Grid(None, None, 0.5), 1.0),
]
# tests of their own say what they promise
PROTOCOLS = [
    ik.LinkedRounds(4, (0.5, 0.25), (0.75, 0.25), 3),
    ik.LocalHashing(4, 1.0),
    ik.LongitudinalHashing(4, 1.0, 2.0),
    ik.LongitudinalResponse(4, 1.0, 2.0),
    ik.LongitudinalUnaryEncoding(4, (0.5, 0.25), (0.75, 0.25)),
    ik.ThresholdedHistogram(4, 1.0),
    ik.BloomRappor(4, 8, 2, 2, 0.5, 0.5, 0.75),
    ik.CountMeanSketch(4, 1.0, 4, 8),
    ik.HadamardCountMeanSketch(4, 1.0, 4, 8),
    ik.HadamardMechanism(4, 1.0),
    ik.HadamardResponse(4, 1.0),
    ik.HistogramEncoding(4, 1.0),
]
USERS = ik.FreeWill(TWO, [0.25, 0.75], "two")
ALPHABETS = [
    ik.Alphabet(["a", "b"]),
    ik.Alphabet([3, 1, 2], distances=[[0, 1, 2], [1, 0, 1.5], [2, 1.5, 0]], unit="km"),
    ik.Line(-4, 3, unit="year"),
    ik.Line(None, None),
    ik.Line(0, None, unit="year"),
    ik.Line(None, 0),
    ik.Grid(3, 4, (1.0, 0.5), "mile", first=(-2, 5)),
    ik.Grid.from_bounds(40.7, 40.8, -74.0, -73.9, 2, 3),
    ik.Grid(None, None, 0.5, "mile"),
]
ALL = [*MECHANISMS, *NUMBERS, *PROTOCOLS, USERS, *ALPHABETS]
# of each, a change that it refuses, and how
BAD = [
    *[
        (m, {"epsilon": -1.0}, ValueError, "epsilon must be a finite number above 0")
        for m in KINDS[:12]
    ],
    *[(m, {"epsilon": "2"}, ValueError, "epsilon must be a number, got '2'") for m in KINDS[:12]],
    *[
        (m, {"alphabet": 2.5}, ValueError, "alphabet must be a whole number")
        for m in (*KINDS[:4], KINDS[5], *KINDS[10:])
    ],
    *[(m, {"alphabet": 3}, TypeError, "alphabet must be a Grid") for m in KINDS[7:10]],
    *[
        (m, {"alphabet": ik.Alphabet(["a", "b", "c"])}, TypeError, "alphabet must be a Line")
        for m in KINDS[4:7]
    ],
    (KINDS[3], {"size": 6}, ValueError, "size must be at most k - 1 = 5, got 6"),
    (
        KINDS[11],
        {"epsilon": 0.01},
        ik.errors.Infeasible,
        "too small for the tight-constraints mechanism",
    ),
    (
        KINDS[12],
        {"entries": [[0.5, 0.4]]},
        ik.errors.InvalidDistribution,
        "matrix must have rows that sum to 1",
    ),
    (
        KINDS[12],
        {"alphabet": 4},
        ik.errors.AlphabetMismatch,
        "matrix must have one row for each of the 4 secrets",
    ),
    (KINDS[13], {"q": 0.7}, ValueError, "p must be larger than q, got p=0.6 and q=0.7"),
    (PROTOCOLS[0], {"rounds": 0}, ValueError, "rounds must be"),
    (PROTOCOLS[1], {"g": 1}, ValueError, "g must be"),
    (PROTOCOLS[2], {"epsilon_inf": 1.0}, ValueError, "epsilon must be below epsilon_inf"),
    (PROTOCOLS[3], {"epsilon": 2.0}, ValueError, "epsilon must be below epsilon_inf"),
    (PROTOCOLS[4], {"permanent": (0.25, 0.5)}, ValueError, "permanent must be"),
    (PROTOCOLS[5], {"threshold": 2}, ValueError, "threshold must be in"),
    (PROTOCOLS[6], {"hashes": 0}, ValueError, "hashes must be at least 1, got 0"),
    (PROTOCOLS[7], {"width": 1}, ValueError, "width must be at least 2, got 1"),
    (PROTOCOLS[8], {"width": 1}, ValueError, "width must be at least 2, got 1"),
    (PROTOCOLS[9], {"bits": 0}, ValueError, "bits must be at least 1, got 0"),
    (PROTOCOLS[10], {"blocks": 5}, ValueError, "blocks must be at most the 4 secrets, got 5"),
    (PROTOCOLS[11], {"epsilon": -1.0}, ValueError, "epsilon must be a finite number above 0"),
    (USERS, {"mechanisms": []}, ValueError, "at least one mechanism"),
    (USERS, {"shares": [0.5, 0.6]}, ik.errors.InvalidDistribution, "shares must sum to 1"),
    *BAD_NUMBERS,
    (ALPHABETS[0], {"values": ["a", "a"]}, ValueError, "values must all be different"),
    (ALPHABETS[1], {"values": [1, 2]}, ValueError, r"distances must have shape \(2, 2\)"),
    (ALPHABETS[2], {"last": -5}, ValueError, "last must not be below first, got first=-4, last=-5"),
    (
        ALPHABETS[4],
        {"ends": (0, 9)},
        ValueError,
        r"ends must be a pair with None in it, got \(0, 9\)",
    ),
    (ALPHABETS[4], {"ends": (0.5, None)}, ValueError, "first must be a whole number, got 0.5"),
    (ALPHABETS[6], {"n_rows": 0}, ValueError, "n_rows must be at least 1, got 0"),
    (
        ALPHABETS[6],
        {"cell_size": (1.0, -1.0)},
        ValueError,
        "cell_size must be a finite number above 0",
    ),
    (ALPHABETS[6], {"first": (0,)}, ValueError, "first must be a pair"),
    (ALPHABETS[7], {"bounds": (1, 0, 0, 1)}, ValueError, "bounds must be south < north"),
    (
        ALPHABETS[8],
        {"cell_size": 0},
        ValueError,
        "cell_size must be a finite number above 0, got 0",
    ),
]


def name(thing):
    return f"{type(thing).__name__}-{getattr(thing, 'alphabet', '')}"


def heir(kind, **options):
    """A class that inherits and adds nothing, or one field, as a stranger would write it."""

    class Mine(kind):
        __annotations__ = dict.fromkeys(options, float)
        locals().update(options)

    Mine.__name__ = Mine.__qualname__ = f"Mine{kind.__name__}"
    # arrays are not compared by ==, so a class that has them brings its own equality
    return dataclass(
        frozen=True, eq="__eq__" not in vars(kind) and not issubclass(kind, ik.Alphabet)
    )(Mine)


def given(thing):
    """The fields that the constructor takes."""
    return {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}


def as_heir(thing, **options):
    return heir(type(thing), **options)(**given(thing))


def test_every_public_mechanism_and_alphabet_is_here():
    kinds = {type(thing) for thing in ALL}
    public = {
        thing
        for thing in (getattr(ik, name) for name in ik.__all__)
        if isinstance(thing, type) and issubclass(thing, (ik.Mechanism, ik.Alphabet, ik.FreeWill))
    }
    assert kinds == public - {ik.Mechanism, ik.FiniteMechanism} | {UnboundedLine, UnboundedGrid}
    assert {type(thing) for thing, *_ in BAD} == kinds


@pytest.mark.parametrize("thing", ALL, ids=name)
def test_replace_of_nothing_gives_an_equal_one(thing):
    again = replace(thing)
    assert again is not thing
    assert type(again) is type(thing)
    assert again == thing
    assert hash(again) == hash(thing)
    assert repr(again) == repr(thing)


@pytest.mark.parametrize(
    "mechanism",
    [m for m in MECHANISMS if type(m) not in (ik.MatrixMechanism, ik.UnaryEncoding)],
    ids=name,
)
def test_replace_of_the_level_is_the_mechanism_at_that_level(mechanism):
    more = {"size": mechanism.size} if isinstance(mechanism, ik.SubsetSelection) else {}
    assert replace(mechanism, epsilon=3) == type(mechanism)(mechanism.alphabet, 3.0, **more)
    assert replace(mechanism, epsilon=3) != mechanism


def test_replace_of_the_secrets_converts_as_the_constructor_does():
    assert replace(ik.RandomizedResponse(3, 1.0), alphabet=5) == ik.RandomizedResponse(5, 1.0)
    assert replace(ik.LinearGeometric(3, 1.0), alphabet=5).alphabet == ik.Line(0, 4)
    matrix = ik.MatrixMechanism(np.eye(3))
    assert replace(matrix, alphabet=ik.Alphabet(["a", "b", "c"])).alphabet.values.tolist() == [
        "a",
        "b",
        "c",
    ]
    assert replace(matrix, entries=np.full((3, 2), 0.5)) == ik.MatrixMechanism(np.full((3, 2), 0.5))
    assert replace(USERS, shares=None).shares.tolist() == [0.5, 0.5]
    assert replace(USERS, name="three").name == "three"


def test_replace_on_alphabets_says_what_the_constructor_says():
    assert replace(ALPHABETS[1], unit="m").distances().tolist() == ALPHABETS[1].distances().tolist()
    assert replace(ALPHABETS[2], last=5) == ik.Line(-4, 5)
    assert replace(ALPHABETS[2], last=5).unit == "year"
    assert replace(ALPHABETS[2], last=None) == ik.Line(-4, None)
    assert replace(ALPHABETS[4], ends=(None, 7)) == ik.Line(None, 7)
    assert replace(ALPHABETS[6], n_cols=2) == ik.Grid(3, 2, (1.0, 0.5), first=(-2, 5))
    assert replace(ALPHABETS[6], n_rows=None, n_cols=None, first=(0, 0)) == ik.Grid(
        None, None, (1.0, 0.5)
    )
    assert replace(ALPHABETS[8], cell_size=2) == ik.Grid(None, None, 2)
    assert replace(ALPHABETS[8], cell_size=2).unit == "mile"


@pytest.mark.parametrize(
    ("thing", "change", "error", "words"), BAD, ids=lambda value: str(value)[:40]
)
def test_a_bad_value_is_refused_by_constructor_replace_and_heir_alike(thing, change, error, words):
    values = given(thing) | change
    for make in (
        lambda: replace(thing, **change),
        lambda: type(thing)(**values),
        lambda: heir(type(thing))(**values),
    ):
        with pytest.raises(error, match=words) as caught:
            make()
        assert type(caught.value) is error


@pytest.mark.parametrize("thing", ALL, ids=name)
def test_what_inherits_is_converted_and_replaced_as_its_parent(thing):
    own = as_heir(thing)
    assert {n: type(v) for n, v in given(own).items()} == {
        n: type(v) for n, v in given(thing).items()
    }
    assert replace(own) == own
    for attribute, value in given(thing).items():
        assert np.array_equal(getattr(own, attribute), value)


@pytest.mark.parametrize("thing", ALL, ids=name)
def test_a_class_with_one_more_field_works(thing):
    own = as_heir(thing, weight=0.5)
    assert own.weight == 0.5
    assert replace(own, weight=2.0).weight == 2.0
    assert given(replace(own, weight=2.0)).keys() == {*given(thing), "weight"}
    if isinstance(thing, ik.FiniteMechanism):
        np.testing.assert_array_equal(own.matrix(), thing.matrix())


def test_the_order_of_arguments_is_inherited():
    assert heir(ik.RandomizedResponse)(3, 1.0).alphabet == ik.Line(0, 2)
    assert heir(ik.SubsetSelection)(6, 1.0, 2).size == 2
    assert heir(ik.MatrixMechanism)([[1.0, 0.0]]).alphabet == ik.Line(0, 0)
    assert heir(ik.Line)(1, 3).values.tolist() == [1, 2, 3]
    assert heir(ik.Grid)(2, 3, 0.5, unit="m").cell_size == 0.5
    assert heir(ik.Alphabet)(["a", "b"], [[0, 2], [2, 0]]).distances().tolist() == [[0, 2], [2, 0]]


def test_the_checks_are_seen_to_be_missing_where_a_constructor_does_not_make_them():
    # what our classes were like before: dataclasses write an __init__ over the one that checks
    class Old:
        def __init__(self, level):
            raise ValueError("level must be above 0")

    @dataclass(frozen=True)
    class Unchecked(Old):
        level: float

    assert Unchecked(-1.0).level == -1.0

    @dataclass(frozen=True)
    class Hidden(ik.RandomizedResponse):
        def __post_init__(self):
            """Forgets the parent's checks."""

    assert Hidden(3, -1.0).epsilon == -1.0
    with pytest.raises(TypeError):
        replace(Old.__new__(Old))


@dataclass(frozen=True)
class Counted(ik.RandomizedResponse):
    """With a field that only it has, and a check of its own after the parent's."""

    users: int = field(default=1)

    def __post_init__(self):
        super().__post_init__()
        if self.users < 1:
            raise ValueError(f"users must be at least 1, got {self.users}")


def test_a_check_is_added_to_the_parents():
    assert Counted(3, 1.0, users=7).alphabet == ik.Line(0, 2)
    with pytest.raises(ValueError, match="users must be at least 1, got 0"):
        Counted(3, 1.0, users=0)
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0"):
        Counted(3, -1.0, users=7)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(Counted(3, 1.0, users=7), protocol))
        assert again == Counted(3, 1.0, users=7)


@pytest.mark.parametrize("thing", ALL, ids=name)
def test_a_pickle_gives_the_same_thing_and_read_only_arrays(thing):
    again = pickle.loads(pickle.dumps(thing))
    assert (type(again), again, hash(again)) == (type(thing), thing, hash(thing))
    assert not any(
        value.flags.writeable for value in vars(again).values() if isinstance(value, np.ndarray)
    )


@pytest.mark.parametrize("mechanism", KINDS, ids=name)
def test_a_mechanism_made_from_scratch_checks_what_all_have(mechanism):
    @dataclass(frozen=True)
    class Own(ik.FiniteMechanism):
        alphabet: ik.Alphabet
        epsilon: float = np.inf

    assert Own(mechanism.alphabet).k == mechanism.k
    assert Own(3).alphabet == ik.Line(0, 2)
    for bad in (-1.0, 0, np.nan, "2", True):
        with pytest.raises(ValueError, match="epsilon must be a"):
            Own(3, bad)
    with pytest.raises(ValueError, match="alphabet must be a whole number"):
        Own(2.5)
    with pytest.raises(
        NotImplementedError, match=r"Own does not say its probabilities: define make_matrix"
    ):
        Own(3).matrix()


@pytest.mark.parametrize("mechanism", KINDS, ids=name)
def test_reports_go_round_in_the_form_in_which_they_are_made(mechanism, rng):
    reports = mechanism.draw(np.arange(mechanism.k).repeat(20), rng)
    kept = mechanism.check_reports(reports)
    again = mechanism.restore_reports(kept)
    np.testing.assert_array_equal(again, reports)
    np.testing.assert_array_equal(mechanism.check_reports(again), kept)
    seen = mechanism.tally(mechanism.label_reports(reports)).parts[0]
    np.testing.assert_array_equal(
        mechanism.check_reports(mechanism.restore_reports(seen.reports)), seen.reports
    )


def test_kept_bits_are_not_their_public_form():
    rappor = ik.Rappor(12, 2.0)
    kept = rappor.check_reports(np.eye(12)[:1])
    assert kept.tolist() == [[128, 0]]
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"bit rows of shape \(n, 12\)"):
        rappor.check_reports(kept)
