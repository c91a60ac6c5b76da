"""A matrix that was measured keeps its trials, whatever is made of it."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch, InvalidDistribution, MatrixUncertain

TRIALS = [[45, 5], [3, 197]]


def screening(trials=TRIALS):
    return ik.MatrixMechanism.from_trials(trials, ["ill", "well"], ["+", "-"])


def test_the_matrix_is_that_of_the_shares():
    test = screening()
    assert np.array_equal(test.trials, TRIALS)
    assert test.trials.dtype == np.int64
    assert not test.trials.flags.writeable
    assert test.matrix() == pytest.approx(np.array([[0.9, 0.1], [0.015, 0.985]]), abs=1e-15)
    assert isinstance(test, ik.MatrixMechanism)
    assert test.epsilon == pytest.approx(np.log(0.9 / 0.015))
    assert "from_trials(<2 x 2>" in repr(test)
    assert "<50 to 200 trials a secret>" in repr(test)
    estimate = ik.mle(test.tally_counts({"+": 60, "-": 1440}))
    assert estimate["ill"] == pytest.approx((0.04 - 0.015) / (0.9 - 0.015), abs=1e-7)


def test_labels_of_a_frame_are_those_of_secrets_and_reports():
    frame = pd.DataFrame(TRIALS, index=["ill", "well"], columns=["+", "-"])
    assert ik.MatrixMechanism.from_trials(frame) == screening()
    assert ik.MatrixMechanism.from_trials(frame.iloc[::-1, ::-1], ["ill", "well"], ["+", "-"]) == (
        screening()
    )


@pytest.mark.parametrize(
    ("counts", "kind", "words"),
    [
        ([[0.9, 0.1], [0.2, 0.8]], InvalidDistribution, "counts must be whole numbers of trials"),
        ([[5, -1], [3, 4]], InvalidDistribution, "counts must not have negative"),
        ([[5, np.nan], [3, 4]], InvalidDistribution, "counts must not have negative or NaN"),
        ([[5, np.inf], [3, 4]], InvalidDistribution, "counts must be whole numbers"),
        ([[5, 1], [0, 0]], InvalidDistribution, "counts must have at least one trial"),
        ([5, 1], InvalidDistribution, "counts must have two dimensions"),
        ("text", InvalidDistribution, "counts must be a rectangular array"),
    ],
)
def test_what_is_no_counts_of_trials_is_refused(counts, kind, words):
    with pytest.raises(kind, match=words):
        ik.MatrixMechanism.from_trials(counts)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(AlphabetMismatch, match="one row for each of the 3 secrets"):
        ik.MatrixMechanism.from_trials(TRIALS, ["a", "b", "c"])
    with pytest.raises(AlphabetMismatch, match="one label for each of the 2 columns"):
        ik.MatrixMechanism.from_trials(TRIALS, reports=["a", "b", "c"])


def test_a_matrix_of_counts_is_sent_to_the_trials():
    with pytest.raises(InvalidDistribution, match=r"take MatrixMechanism\.from_trials\(counts\)"):
        ik.MatrixMechanism(TRIALS)
    with pytest.raises(InvalidDistribution, match="from_trials"):
        ik.unfold([60, 1440], TRIALS)


def test_mechanisms_are_equal_if_their_trials_are():
    test, same = screening(), screening()
    assert test == same
    assert hash(test) == hash(same)
    # Ten times the trials have the same matrix and another uncertainty.
    more = screening(np.array(TRIALS) * 10)
    assert np.allclose(more.matrix(), test.matrix(), atol=1e-15)
    known = ik.MatrixMechanism(test.matrix(), test.alphabet, test.reports)
    for other in (more, known):
        assert test != other
        assert other != test
    assert len({test, same, more, known}) == 3


def test_the_trials_travel(tmp_path):
    test = screening()
    for again in (pickle.loads(pickle.dumps(test)), replace(test)):
        assert again == test
        assert np.array_equal(again.trials, TRIALS)
    assert np.array_equal(replace(test, alphabet=ik.Line(0, 1)).trials, TRIALS)
    estimate = ik.mle(test.tally_counts([60, 1440]))
    estimate.tally.save(tmp_path / "tally")
    estimate.save(tmp_path / "estimate")
    assert ik.Tally.load(tmp_path / "tally").parts[0].mechanism == test
    loaded = ik.Estimate.load(tmp_path / "estimate")
    assert loaded == estimate
    assert loaded.interval() == pytest.approx(np.array(estimate.interval()), abs=0)


def test_tallies_of_one_measured_matrix_add():
    test = screening()
    both = test.tally_counts([20, 500]) + screening().tally_counts([40, 940])
    assert len(both.parts) == 1
    assert both.parts[0].counts.tolist() == [60, 1440]
    other = both + screening(np.array(TRIALS) * 10).tally_counts([1, 2])
    assert len(other.parts) == 2


def test_merged_reports_have_merged_trials():
    grades = ik.MatrixMechanism.from_trials([[40, 5, 5], [3, 60, 137]], ["ill", "well"])
    merged = ik.compose(grades, pd.DataFrame([[1, 0], [0, 1], [0, 1]], columns=["+", "-"]))
    assert np.array_equal(merged.trials, [[40, 10], [3, 197]])
    with pytest.raises(MatrixUncertain, match="a composition by chance would take it"):
        ik.compose(grades, np.full((3, 2), 0.5))
    with pytest.raises(MatrixUncertain, match="a composition would take it"):
        ik.compose(ik.RandomizedResponse(["ill", "well"], 1.0), screening())


def test_what_does_not_know_the_trials_is_refused():
    test = screening()
    tally = test.tally_counts([60, 1440])
    estimate = ik.mle(tally)
    rng = np.random.default_rng(1)
    other = ik.MatrixMechanism([[0.8, 0.2], [0.1, 0.9]], ["ill", "well"], ["+", "-"])
    for refused in (
        lambda: ik.posterior(tally, alpha=1.0),
        lambda: ik.posterior_mean(tally, alpha=1.0),
        estimate.fit_test,
        (ik.mle(tally + other.tally_counts([10, 90]))).pool_test,
        lambda: ik.unfold([60, 1440], test),
        lambda: ik.planning.plan(test, width=0.1),
        lambda: ik.combine_mechanisms(tally + other.tally_counts([10, 90]), ik.mle),
        lambda: ik.attack.detect_poisoning(tally, rng=rng),
    ):
        with pytest.raises(MatrixUncertain, match="mechanism must have a matrix that is known"):
            refused()
    # A summary does without the check that is refused.
    assert not any("fit" in warning for warning in estimate.summary().warnings)


def test_a_report_without_trials_is_impossible():
    test = ik.MatrixMechanism.from_trials([[5, 0, 5], [2, 0, 8]])
    with pytest.raises(ik.errors.ImpossibleReport):
        test.tally_counts([1, 1, 1])
