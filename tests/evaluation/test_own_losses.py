"""Losses of one's own in `replicate`, and populations that are none."""

from functools import partial

import numpy as np
import pytest

import ibukit as ik
from replicate_cases import ESTIMATORS, LINE, MECHANISMS, PEOPLE

few = partial(
    ik.replicate, PEOPLE, MECHANISMS[:2], {"INV": ESTIMATORS["INV"], "MLE": ik.mle}, 3, 11
)


def error_of_the_mean(estimate, truth, alphabet):
    return abs((estimate - truth) @ alphabet.values)


def excess(estimate, truth, alphabet):
    return (estimate - truth).max()


def test_they_stand_beside_the_others():
    plain, table = few(), few(losses={"mean": error_of_the_mean, "excess": excess, "again": ik.emd})
    assert list(table)[5:10] == ["emd", "tv", "squared_l2", "mean", "excess"]
    assert table[list(plain)].drop(columns="seconds").equals(plain.drop(columns="seconds"))
    # where the first argument is the estimate, on a line the mean is not farther than the earth is
    # moved
    mle = table[table["estimator"] == "MLE"]
    assert (mle["mean"] <= mle["emd"] * (1 + 1e-9)).all()
    assert (mle["mean"] > 0).all()
    assert (table["excess"] <= np.sqrt(table["squared_l2"]) * (1 + 1e-9)).all()
    # off the simplex a loss of distributions is NaN, as emd is, and one of numbers is a number
    assert table["again"].equals(table["emd"])
    assert table["emd"].isna().any()
    assert table["excess"].notna().all()


def test_the_estimate_comes_first():
    seen = few(
        losses={
            "given": lambda estimate, truth, alphabet: float(
                np.array_equal(truth, PEOPLE.distribution)
            )
        }
    )
    assert (seen["given"] == 1).all()
    swapped = few(
        losses={
            "given": lambda truth, estimate, alphabet: float(
                np.array_equal(truth, PEOPLE.distribution)
            )
        }
    )
    assert (swapped["given"] == 0).all()


def test_a_run_goes_on_with_the_same_losses_only(tmp_path):
    path = tmp_path / "runs.jsonl"
    whole = few(losses={"mean": error_of_the_mean})
    ik.replicate(
        PEOPLE,
        MECHANISMS[:2],
        {"INV": ESTIMATORS["INV"], "MLE": ik.mle},
        1,
        11,
        path,
        losses={"mean": error_of_the_mean},
    )
    again = few(path, n_jobs=2, losses={"mean": error_of_the_mean})
    assert again.drop(columns="seconds").equals(whole.drop(columns="seconds"))
    before = path.read_bytes()
    for losses, said in (
        ({}, "losses: mean only there"),
        ({"mean": excess}, "losses: mean is"),
        ({"mean": error_of_the_mean, "excess": excess}, "losses: excess only here"),
    ):
        with pytest.raises(ik.errors.ForeignFile, match=said):
            few(path, losses=losses)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("losses", "error", "said"),
    [
        ({"emd": excess}, ValueError, "'emd' is a column of every table"),
        ({"status": excess}, ValueError, "'status' is a column"),
        (excess, TypeError, "losses must be a mapping from names to callables"),
        ({"mine": 3}, TypeError, "losses must map names to callables"),
        (
            {"mine": lambda estimate, truth, alphabet: estimate - truth},
            TypeError,
            "'mine' returned",
        ),
        ({"mine": lambda estimate, truth, alphabet: None}, TypeError, "'mine' returned None"),
    ],
)
def test_what_is_no_loss_is_refused(losses, error, said):
    with pytest.raises(error, match=said):
        few(losses=losses)


def test_a_loss_that_cannot_take_a_distribution_is_an_error():
    def picky(estimate, truth, alphabet):
        raise ik.errors.InvalidDistribution("p must be mine")

    with pytest.raises(ik.errors.InvalidDistribution, match="must be mine") as caught:
        ik.replicate(PEOPLE, MECHANISMS[:1], {"MLE": ik.mle}, 1, 11, losses={"picky": picky})
    assert any("'MLE'" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("population", [np.array([3, 4]), [3, 4], None, LINE])
def test_what_is_no_population_is_named(population):
    with pytest.raises(
        TypeError,
        match=r"population must have counts, distribution and alphabet.* got .* without counts",
    ):
        ik.replicate(population, MECHANISMS, ESTIMATORS, 1, 1)
