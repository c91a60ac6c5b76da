"""Bad input to any mechanism: a named error that says which argument and which value."""

from decimal import Decimal

import numpy as np
import pytest

import ibukit as ik
from ibukit.mechanisms import FiniteMechanism
from ibukit.mechanisms.categorical.bit_reports import BitReports
from mechanism_cases import KINDS, name

# a matrix has no epsilon of its own, and chances have the one that follows
PRIVATE = [
    mechanism
    for mechanism in KINDS
    if not isinstance(mechanism, (ik.MatrixMechanism, ik.UnaryEncoding))
]
CODED = [m for m in KINDS if isinstance(m, FiniteMechanism) and not isinstance(m, BitReports)]
LISTED = [m for m in KINDS if isinstance(m, FiniteMechanism)]
private = pytest.mark.parametrize("mechanism", PRIVATE, ids=name)
every = pytest.mark.parametrize("mechanism", KINDS, ids=name)
coded = pytest.mark.parametrize("mechanism", CODED, ids=name)
listed = pytest.mark.parametrize("mechanism", LISTED, ids=name)

# At an infinite level these release the truth.
TRUTHFUL = {
    ik.RandomizedResponse,
    ik.Exponential,
    ik.TightConstraints,
    ik.TruncatedGeometric,
    ik.LinearLaplace,
    ik.PlanarLaplace,
    ik.TruncatedPlanarGeometric,
}


@private
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, -0.0, 0, -np.inf, np.inf, np.nan, np.float32(-2)])
def test_epsilon_must_be_finite_and_above_zero(mechanism, epsilon):
    if epsilon == np.inf and type(mechanism) in TRUTHFUL:
        assert type(mechanism)(mechanism.alphabet, epsilon).epsilon == np.inf
        return
    with pytest.raises(
        ValueError, match=f"epsilon must be a finite number above 0, got .*{epsilon}"
    ):
        type(mechanism)(mechanism.alphabet, epsilon)


@private
@pytest.mark.parametrize(
    "epsilon",
    ["1", "one", None, True, [1.0], np.array([1.0]), 1j, Decimal(1)],
    ids=lambda value: type(value).__name__,
)
def test_epsilon_must_be_a_number(mechanism, epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be a number, got "):
        type(mechanism)(mechanism.alphabet, epsilon)


@private
@pytest.mark.parametrize(
    "epsilon",
    [2, np.int64(2), np.float32(2), np.float64(2)],
    ids=lambda value: type(value).__name__,
)
def test_any_kind_of_number_will_do(mechanism, epsilon):
    made = type(mechanism)(mechanism.alphabet, epsilon)
    assert made == type(mechanism)(mechanism.alphabet, 2.0)
    assert type(made.epsilon) is float


@every
def test_secrets_must_be_codes(mechanism, rng):
    codes = rf"secrets must be codes 0\.\.{mechanism.k - 1}"
    for wrong in (mechanism.k, -1):
        with pytest.raises(ik.errors.AlphabetMismatch, match=rf"{codes}, got {wrong} at index 1"):
            mechanism.randomize([0, wrong], rng, codes=True)
    with pytest.raises(ValueError, match=r"secrets must be whole numbers, got 0\.5 at index 0"):
        mechanism.randomize([0.5], rng, codes=True)
    with pytest.raises(ValueError, match=r"secrets must have 1 dimension\(s\), got shape \(1, 1\)"):
        mechanism.randomize([[0]], rng, codes=True)


@every
def test_nobody_reports_nothing(mechanism, rng):
    assert len(mechanism.randomize([], rng)) == 0


@coded
def test_reports_must_be_in_the_alphabet(mechanism):
    for wrong in (mechanism.m, -1, 2**40):
        with pytest.raises(
            ik.errors.AlphabetMismatch,
            match=rf"reports must be codes 0\.\.{mechanism.m - 1}, got {wrong} at",
        ):
            mechanism.tally([0, wrong], codes=True)
    with pytest.raises(ValueError, match="reports must be whole numbers, got nan at index 1"):
        mechanism.tally([0, np.nan], codes=True)
    with pytest.raises(ValueError, match="reports must be whole numbers, got an array of type"):
        mechanism.tally(["a"], codes=True)


@every
def test_an_empty_tally_is_refused(mechanism, rng):
    nothing = mechanism.randomize([], rng)
    with pytest.raises(ValueError, match="the tally is empty: at least one report is needed"):
        mechanism.tally(nothing)
    with pytest.raises(ValueError, match="the tally is empty"):
        mechanism.simulate(np.zeros(mechanism.k, dtype=int), rng)
    if isinstance(mechanism, FiniteMechanism):
        with pytest.raises(ValueError, match="the tally is empty"):
            mechanism.tally_counts(np.zeros(mechanism.m, dtype=int))


BAD_COUNTS = [
    (
        lambda size: np.ones(size + 1, int),
        ik.errors.AlphabetMismatch,
        "must have one count for each of the {size} elements, got {more} ",
    ),
    (
        lambda size: np.ones(size - 1, int),
        ik.errors.AlphabetMismatch,
        "must have one count for each of the {size} elements, got {less} ",
    ),
    (
        lambda size: np.r_[-3, np.ones(size - 1, int)],
        ValueError,
        "must not be negative, got -3 at index 0",
    ),
    (
        lambda size: np.r_[1.5, np.ones(size - 1)],
        ValueError,
        r"must be whole numbers, got 1\.5 at index 0",
    ),
    (
        lambda size: np.r_[np.nan, np.ones(size - 1)],
        ValueError,
        "must be whole numbers, got nan at index 0",
    ),
    (lambda size: np.full(size, "1"), ValueError, "must be whole numbers, got an array of type"),
    (
        lambda size: np.ones((size, 1), int),
        ValueError,
        r"must have 1 dimension\(s\), got shape \({size}, 1\)",
    ),
]
bad_counts = pytest.mark.parametrize(
    ("make", "error", "message"),
    BAD_COUNTS,
    ids=["long", "short", "negative", "fraction", "nan", "text", "shape"],
)


@every
@bad_counts
def test_counts_of_secrets(mechanism, make, error, message, rng):
    k = mechanism.k
    told = message.format(size=k, more=k + 1, less=k - 1)
    with pytest.raises(error, match=f"^secret_counts {told}"):
        mechanism.simulate(make(k), rng)


@listed
@bad_counts
def test_counts_of_reports(mechanism, make, error, message):
    m = mechanism.m
    told = message.format(size=m, more=m + 1, less=m - 1)
    with pytest.raises(error, match=f"^counts {told}"):
        mechanism.tally_counts(make(m))


@listed
def test_vectors_of_the_wrong_length(mechanism):
    k, m = mechanism.k, mechanism.m
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=rf"theta must have shape \({k},\), got \({k + 1},\)"
    ):
        mechanism.forward(np.ones(k + 1))
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=rf"w must have shape \({m},\), got \({m + 1},\)"
    ):
        mechanism.adjoint(np.ones(m + 1))
