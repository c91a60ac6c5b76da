"""Repetitions: the numbers of a loop written by hand, whatever the order,
the processes and the interruptions.
"""

import importlib
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import ibukit as ik
from ibukit.files.seeding import spawn_key
from replicate_cases import ESTIMATORS, LINE, MECHANISMS, PEOPLE, ask, noisy, numbers

module = importlib.import_module(
    "ibukit.evaluation.replicate"
)  # the attribute of that name is the function


@pytest.fixture(scope="module")
def table():
    return ask()


def test_the_numbers_are_those_of_a_loop_written_by_hand(table):
    from scipy.stats import wasserstein_distance  # not at the top, as the workers import this file

    rows = iter(table.to_dict("records"))
    for mechanism in MECHANISMS:
        for name, estimator in ESTIMATORS.items():
            for repetition in range(6):
                sequence = np.random.SeedSequence(11, spawn_key=(*spawn_key(mechanism), repetition))
                tally = mechanism.simulate(PEOPLE.counts, np.random.default_rng(sequence))
                estimate = estimator(tally)
                bare = isinstance(estimate, np.ndarray)
                theta = estimate if bare else estimate.distribution
                row = next(rows)
                assert (row["mechanism"], row["epsilon"]) == (
                    type(mechanism).__name__,
                    mechanism.epsilon,
                )
                assert (row["estimator"], row["repetition"]) == (name, repetition)
                assert row["squared_l2"] == ik.squared_l2(theta, PEOPLE.distribution)
                if (theta >= 0).all():
                    assert row["emd"] == ik.emd(theta, PEOPLE.distribution, LINE)
                    assert row["tv"] == ik.total_variation(theta, PEOPLE.distribution)
                    assert row["gap"] == ik.gap(tally, theta)
                    away = wasserstein_distance(range(8), range(8), theta, PEOPLE.distribution)
                    assert row["emd"] == pytest.approx(away, rel=1e-9)
                else:
                    assert row["status"] == "OFF_SIMPLEX"
                    assert np.isnan([row["emd"], row["tv"]]).all()
                    assert row["gap"] == np.inf
                if not bare:
                    assert (row["steps"], row["status"]) == (estimate.n_iter, estimate.status.name)
                else:
                    assert (row["steps"], row["status"]) == (0, "CLOSED_FORM")
    assert next(rows, None) is None
    assert (table["status"] == "OFF_SIMPLEX").any()
    assert (table["seconds"] >= 0).all()
    assert table["seconds"].sum() > 0


def test_the_table_is_tidy(table):
    assert list(table.columns) == module.RESULT_COLUMNS
    assert dict(table.groupby("estimator")["stop"].unique().str.join("|")) == {
        **dict.fromkeys(["noisy", "INV", "INV-N", "MLE"], ""),
        "IBU": "Steps(n=20)",
    }
    kinds = {
        name: table[name].dtype.kind
        for name in ("epsilon", "emd", "tv", "squared_l2", "gap", "seconds")
    }
    assert set(kinds.values()) == {"f"}
    assert table["repetition"].dtype.kind == table["steps"].dtype.kind == "i"


def test_two_processes_give_the_same_table(table, tmp_path):
    parallel = ask(n_jobs=2, path=tmp_path / "runs.jsonl")
    assert parallel.drop(columns="seconds").equals(table.drop(columns="seconds"))
    assert numbers(parallel) == numbers(table)
    assert ask(path=tmp_path / "runs.jsonl").equals(parallel)


@pytest.mark.parametrize(
    "other",
    [
        {"mechanisms": MECHANISMS[::-1]},
        {"mechanisms": MECHANISMS[1:]},
        {"mechanisms": [ik.Exponential(LINE, 0.5), *MECHANISMS]},
        {"estimators": dict(reversed(ESTIMATORS.items()))},
        {"estimators": {"IBU": ESTIMATORS["IBU"]}},
        {"repetitions": 2},
        {"repetitions": 9},
    ],
    ids=[
        "mechanisms backwards",
        "one less",
        "one more",
        "estimators backwards",
        "one alone",
        "fewer",
        "more",
    ],
)
def test_a_row_depends_on_nothing_else_that_is_asked(table, other):
    question = {"mechanisms": MECHANISMS, "estimators": ESTIMATORS, "repetitions": 6, **other}
    here, there = numbers(table), numbers(ik.replicate(PEOPLE, **question, seed=11))
    common = here.keys() & there.keys()
    assert len(common) == min(len(here), len(there))
    assert {key: here[key] for key in common} == {key: there[key] for key in common}


def test_every_repetition_mechanism_and_seed_has_reports_of_its_own():
    geometric = ik.TruncatedGeometric(LINE, 0.3)
    same_law = ik.MatrixMechanism(geometric.matrix(), LINE)
    alone = {"noisy": noisy}
    drawn = [
        ik.replicate(PEOPLE, [geometric, same_law], alone, 20, seed)["squared_l2"]
        for seed in (1, 2)
    ]
    assert (
        len(set(np.concatenate(drawn).tolist())) > 75
    )  # of 80; a coincidence is possible, twenty are not


def test_an_estimator_that_does_not_converge_counts_with_its_status():
    hard = {"strict": partial(ik.ibu, stop=ik.Gap(1e-12), max_iter=3, strict=True)}
    row = ik.replicate(PEOPLE, MECHANISMS[:1], hard, 1, 1).to_dict("records")[0]
    assert (row["status"], row["steps"], row["stop"]) == ("MAX_ITER", 3, "Gap(tol=1e-12)")
    assert row["gap"] > 1e-12


@pytest.mark.parametrize(
    ("returned", "error", "said"),
    [
        (
            [0.5, 0.5],
            ik.errors.AlphabetMismatch,
            "what 'it' returns must have one probability for each of the 8",
        ),
        (
            [1.5, -0.5, 0, 0, 0, 0, 0, 0],
            ik.errors.InvalidDistribution,
            "what 'it' returns must not have negative",
        ),
        (None, ik.errors.InvalidDistribution, "what 'it' returns must be"),
        (np.full(8, np.nan), ik.errors.InvalidDistribution, "NaN"),
    ],
)
def test_what_is_no_distribution_is_refused(returned, error, said):
    with pytest.raises(error, match=said) as caught:
        ik.replicate(PEOPLE, MECHANISMS, {"it": lambda tally: returned}, 1, 1)
    assert "in repetition 0 of TruncatedGeometric(epsilon=0.3)" in caught.value.__notes__[0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_linear_algebra_runs_on_one_thread(n_jobs):
    def threads(tally):
        counts = [
            library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
        ]
        assert set(counts) == {1}
        return ik.uniform(tally.k)

    assert len(ik.replicate(PEOPLE, MECHANISMS, {"threads": threads}, 2, 1, n_jobs=n_jobs)) == 6


def wrong(tally):
    if tally.parts[0].mechanism.epsilon == 1.0:
        raise KeyError("missing")
    return noisy(tally)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_another_error_says_where_it_happened_and_keeps_what_is_finished(tmp_path, n_jobs):
    path = tmp_path / "runs.jsonl"
    with pytest.raises(KeyError, match="missing") as caught:
        ik.replicate(
            PEOPLE,
            MECHANISMS[::2],
            {"good": noisy, "bad": lambda tally: wrong(tally)},
            4,
            3,
            path,
            n_jobs,
        )
    (note,) = caught.value.__notes__
    assert "of TruncatedGeometric(epsilon=1.0) with the estimator 'bad'" in note
    # in a process of their own, the last ones before the error may still have been on their way
    assert path.read_bytes().count(b"\n") in ([5] if n_jobs == 1 else range(1, 6))


def test_the_bar_is_silent_off_a_terminal(capfd):
    ik.replicate(PEOPLE, MECHANISMS, ESTIMATORS, 1, 1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"repetitions": 0}, ValueError, "repetitions must be at least 1, got 0"),
        ({"repetitions": 2.0}, ValueError, "repetitions must be a whole number, got 2.0"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": None}, ValueError, "seed must be a whole number, got None"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a number of processes.*got 0"),
        ({"n_jobs": None}, ValueError, "n_jobs must be a whole number, got None"),
        ({"mechanisms": []}, ValueError, "mechanisms must hold at least one"),
        ({"mechanisms": MECHANISMS[0]}, TypeError, r"got one: pass \[TruncatedGeometric"),
        ({"mechanisms": [0.3]}, TypeError, "sequence of mechanisms, got 0.3 in it"),
        (
            {"mechanisms": [*MECHANISMS, MECHANISMS[0]]},
            ValueError,
            r"TruncatedGeometric\(epsilon=0.3\) occurs twice",
        ),
        (
            {"mechanisms": [ik.RandomizedResponse(9, 1.0)]},
            ik.errors.AlphabetMismatch,
            r"Line\(0, 7.*Line\(0, 8",
        ),
        (
            {"mechanisms": [ik.Exponential(ik.Line(1, 8), 1.0)]},
            ik.errors.AlphabetMismatch,
            r"Line\(0, 7.*Line\(1, 8",
        ),
        ({"estimators": {}}, ValueError, "estimators must hold at least one"),
        ({"estimators": [ik.mle]}, TypeError, "mapping from names to callables"),
        ({"estimators": {"MLE": "mle"}}, TypeError, "'MLE': 'mle' in it"),
        ({"estimators": {1: ik.mle}}, TypeError, "names to callables, got 1"),
        (
            {"population": replace(PEOPLE, counts=PEOPLE.counts[1:])},
            ik.errors.AlphabetMismatch,
            "population.counts.*got 7",
        ),
        (
            {"population": replace(PEOPLE, counts=-PEOPLE.counts)},
            ValueError,
            "population.counts must not be negative",
        ),
    ],
)
def test_bad_input_is_named(changes, error, said, tmp_path):
    question = {
        "population": PEOPLE,
        "mechanisms": MECHANISMS,
        "estimators": ESTIMATORS,
        "repetitions": 1,
        "seed": 1,
    }
    with pytest.raises(error, match=said):
        ik.replicate(**{**question, **changes}, path=tmp_path / "runs.jsonl")
    assert not (tmp_path / "runs.jsonl").exists()
