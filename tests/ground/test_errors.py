"""The named errors: where they live, what they are,
and that each message names the argument and the value.
"""

import pickle

import numpy as np
import pytest

import ibukit as ik
from ibukit import errors

BASES = {
    "InvalidDistribution": ValueError,
    "AlphabetMismatch": ValueError,
    "ImpossibleReport": ValueError,
    "MechanismMismatch": ValueError,
    "NotInvertible": ValueError,
    "Infeasible": ValueError,
    "ConvergenceError": RuntimeError,
    "DataChanged": RuntimeError,
    "MissingExtra": ImportError,
    "ForeignFile": ValueError,
    "TooLarge": ValueError,
    "NoExactSampler": ValueError,
    "LikelihoodUnknown": ValueError,
    "MechanismUnknown": ValueError,
    "NotCertified": ValueError,
    "MatrixUncertain": ValueError,
    "WeightsRefused": ValueError,
    "UselessDesign": ValueError,
    "CollinearDesign": ValueError,
    "SeparatedDesign": ValueError,
}


@pytest.mark.parametrize("name", BASES)
def test_each_error_is_both_named_and_of_a_usual_kind(name):
    error = getattr(ik.errors, name)
    assert issubclass(error, ik.IbukitError)
    assert issubclass(error, BASES[name])
    assert error.__doc__.strip()


def test_two_stand_on_top_and_the_others_in_errors():
    assert set(ik.__all__) & {*BASES, "IbukitError"} == {"IbukitError", "ConvergenceError"}
    assert ik.ConvergenceError is ik.errors.ConvergenceError
    assert ik.IbukitError is ik.errors.IbukitError


def test_there_are_no_others():
    defined = {
        name
        for name, thing in vars(errors).items()
        if getattr(thing, "__module__", "") == errors.__name__
    }
    assert defined == {*BASES, "IbukitError"}
    assert not issubclass(ik.IbukitError, (ValueError, RuntimeError))


@pytest.mark.parametrize("name", [name for name in BASES if name != "ConvergenceError"])
def test_errors_travel_between_processes(name):
    again = pickle.loads(pickle.dumps(getattr(errors, name)("counts must not be negative, got -1")))
    assert type(again) is getattr(errors, name)
    assert str(again) == "counts must not be negative, got -1"


RR = ik.RandomizedResponse(3, 1.0)
CALLS = [
    # a privacy parameter out of range
    (lambda: ik.RandomizedResponse(3, -1.0), ValueError, ["epsilon", "-1.0"]),
    (lambda: ik.Rappor(3, float("nan")), ValueError, ["epsilon", "nan"]),
    (lambda: ik.TruncatedGeometric(3, 0), ValueError, ["epsilon", "0"]),
    (lambda: ik.Exponential(3, "one"), ValueError, ["epsilon", "'one'"]),
    (lambda: ik.LinearGeometric(3, float("inf")), ValueError, ["epsilon", "inf"]),
    # matrices
    (
        lambda: ik.MatrixMechanism([[0.5, 0.5], [0.5, 0.499]]),
        ik.errors.InvalidDistribution,
        ["matrix", "row 1", "0.999"],
    ),
    (
        lambda: ik.MatrixMechanism([[1.1, -0.1]]),
        ik.errors.InvalidDistribution,
        ["matrix", "-0.1", "row 0, column 1"],
    ),
    (
        lambda: ik.MatrixMechanism([[np.nan, 1.0]]),
        ik.errors.InvalidDistribution,
        ["matrix", "nan", "row 0, column 0"],
    ),
    (lambda: ik.MatrixMechanism([0.5, 0.5]), ik.errors.InvalidDistribution, ["matrix", "(2,)"]),
    (
        lambda: ik.MatrixMechanism(np.eye(2), ik.Line(0, 2)),
        ik.errors.AlphabetMismatch,
        ["matrix", "3 secrets", "2 rows"],
    ),
    (
        lambda: ik.compose(RR, np.eye(2)),
        ik.errors.AlphabetMismatch,
        ["channel", "3 reports", "2 rows"],
    ),
    # counts
    (
        lambda: RR.tally_counts([1, 2]),
        ik.errors.AlphabetMismatch,
        ["counts", "3 elements", "2 counts"],
    ),
    (lambda: RR.tally_counts([1, -2, 3]), ValueError, ["counts", "-2", "index 1"]),
    (lambda: RR.tally_counts([1, 2.5, 3]), ValueError, ["counts", "2.5", "index 1"]),
    (lambda: RR.tally_counts([1, np.nan, 3]), ValueError, ["counts", "nan", "index 1"]),
    (lambda: RR.tally_counts(["1", "2", "3"]), ValueError, ["counts", "whole numbers"]),
    (lambda: RR.tally_counts([0, 0, 0]), ValueError, ["tally is empty"]),
    (lambda: RR.tally([]), ValueError, ["tally is empty"]),
    (
        lambda: RR.simulate([1, 2], np.random.default_rng(1)),
        ik.errors.AlphabetMismatch,
        ["secret_counts", "2 counts"],
    ),
    # reports and secrets outside the alphabet
    (lambda: RR.tally([0, 1, 3]), ik.errors.AlphabetMismatch, ["reports", "0..2", "3", "index 2"]),
    (lambda: RR.tally([0, -1]), ik.errors.AlphabetMismatch, ["reports", "-1", "index 1"]),
    (
        lambda: ik.Rappor(3, 1.0).tally([[0, 1]]),
        ik.errors.AlphabetMismatch,
        ["reports", "(n, 3)", "(1, 2)"],
    ),
    (
        lambda: ik.Rappor(3, 1.0).tally([[0, 1, 2]]),
        ik.errors.AlphabetMismatch,
        ["reports", "0 and 1", "2"],
    ),
    (lambda: ik.LinearGeometric(3, 1.0).tally([0.5]), ValueError, ["reports", "0.5", "index 0"]),
    (
        lambda: RR.randomize([0, 3], np.random.default_rng(1)),
        ik.errors.AlphabetMismatch,
        ["secrets", "3", "index 1"],
    ),
    (lambda: ik.Alphabet("abc"), ValueError, ["values", "'abc'"]),
    (lambda: ik.Alphabet(["a", "b"]).codes(["c"]), ik.errors.AlphabetMismatch, ["labels", "'c'"]),
    (lambda: ik.Line(17, 90).codes([16]), ik.errors.AlphabetMismatch, ["labels", "16", "17..90"]),
    (
        lambda: ik.Grid(2, 2).codes([[0, 2]]),
        ik.errors.AlphabetMismatch,
        ["labels", "(0, 2)", "2 x 2"],
    ),
    # mechanisms and data that do not belong together
    (
        lambda: ik.MatrixMechanism([[1.0, 0.0]]).tally([0, 1]),
        ik.errors.ImpossibleReport,
        ["reports", "1", "MatrixMechanism"],
    ),
    (
        lambda: RR.tally([0]) + ik.RandomizedResponse(4, 1.0).tally([0]),
        ik.errors.AlphabetMismatch,
        ["Line(0, 2)", "Line(0, 3)"],
    ),
    # estimators
    (
        lambda: ik.inv(ik.MatrixMechanism([[0.5, 0.5], [0.5, 0.5]]).tally([0])),
        ik.errors.NotInvertible,
        ["rank 1", "2 secrets"],
    ),
    (
        lambda: ik.gap(RR.tally([0]), [0.5, 0.5, 0.5]),
        ik.errors.InvalidDistribution,
        ["distribution", "1.5"],
    ),
    (
        lambda: ik.ibu(RR.tally([0]), start=[1, 0, 0]),
        ik.errors.InvalidDistribution,
        ["start", "entry 1"],
    ),
    (
        lambda: ik.ibu(RR.tally([0]), strict=True, max_iter=1),
        ik.ConvergenceError,
        ["stop=Gap(tol=1e-06)", "max_iter=1"],
    ),
    (
        lambda: ik.compare(RR.tally([0]), ik.RandomizedResponse(4, 1.0).tally([0])),
        ik.errors.AlphabetMismatch,
        ["tally_2", "Line(0, 2)", "Line(0, 3)"],
    ),
    (
        lambda: ik.compare(RR.tally([0]), RR.tally([1]), method="bootstrap"),
        ValueError,
        ["method", "'bootstrap'", "'profile'"],
    ),
    (lambda: ik.mle(RR.tally([0, 1])).largest(4), ValueError, ["m must", "3", "4"]),
    (
        lambda: ik.mle(RR.tally([0, 1])).interval(method="bootstrap", estimator=lambda _: [1.0]),
        ik.errors.AlphabetMismatch,
        ["estimator", "3 secrets", "list of shape (1,)"],
    ),
    (lambda: ik.plan(RR, difference=1.5), ValueError, ["difference", "1.5"]),
    (lambda: ik.datasets.load_gowalla("rome"), ValueError, ["city", "'rome'", "manhattan"]),
]


@pytest.mark.parametrize(("call", "error", "words"), CALLS, ids=range(len(CALLS)))
def test_the_message_names_the_argument_and_the_value(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error, "the most precise name there is"
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    # nothing internal stands between the reader and the message
    assert caught.value.__cause__ is None
