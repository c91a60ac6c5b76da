"""Errors and intervals of sums of probabilities:
of the distribution, and of the people's own frequencies.
"""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

import ibukit as ik

LINE = ik.Line(0, 5)
COUNTS = [300, 250, 200, 120, 80, 50]
RNG = np.random.default_rng(20)
WEIGHTS = np.vstack([np.arange(6), [1, 1, 0, 0, 0, 0], RNG.normal(size=6), np.ones(6)])
MATRIX = ik.MatrixMechanism(RNG.dirichlet(np.ones(9), 6))
MERGED = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]]).tally_counts([60, 40])
TALLIES = {
    "k-RR": ik.RandomizedResponse(LINE, 1.0).tally_counts(COUNTS),
    "pooled k-RR": ik.RandomizedResponse(LINE, 1.0).tally_counts(COUNTS)
    + ik.RandomizedResponse(LINE, 2.0).tally_counts(COUNTS[::-1]),
    "line": ik.TruncatedGeometric(LINE, 0.7).tally_counts(COUNTS),
    "matrix": MATRIX.tally_counts(
        np.rint(1000 * MATRIX.forward(np.array(COUNTS) / 1000)).astype(int)
    ),
    "lossy": ik.MatrixMechanism(0.8 * np.eye(6) + 0.02, efficiency=np.full(6, 0.92)).tally_counts(
        COUNTS
    ),
}


@pytest.mark.parametrize("name", TALLIES)
def test_the_error_of_a_sum_is_that_of_the_covariance(name):
    estimate = ik.mle(TALLIES[name])
    expected = np.sqrt(
        np.maximum(np.einsum("rx,xy,ry->r", WEIGHTS, estimate.covariance(), WEIGHTS), 0)
    )
    found = estimate.standard_errors(of=WEIGHTS)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    assert found[-1] < 1e-7, "the sum of all is 1"
    np.testing.assert_allclose(
        estimate.standard_errors(of=np.eye(6)), estimate.standard_errors(), rtol=1e-8
    )


@pytest.mark.parametrize("name", TALLIES)
def test_labels_truth_values_and_single_questions_ask_the_same(name):
    estimate = ik.mle(TALLIES[name])
    both = [True, True, False, False, False, False]
    one = estimate.standard_errors(of=both)
    assert isinstance(one, float)
    assert (
        one == estimate.standard_errors(of={0: 1, 1: 1}) == estimate.standard_errors(of=[both])[0]
    )
    lower, upper = estimate.interval(0.9, of={0: 1, 1: 1}, method="wald")
    assert upper - lower == pytest.approx(2 * 1.6448536 * one)
    assert (lower + upper) / 2 == pytest.approx(estimate[0] + estimate[1])


@pytest.mark.parametrize("counts", [[7, 0, 5, 3], [7, 0, 0, 3], [0, 0, 0, 9]])
def test_reports_that_nobody_made(counts):
    """Under k-RR an unseen report leaves a direction flat where there are two:
    beside the generic computation.
    """
    theta = np.full(4, 0.25)
    krr = ik.RandomizedResponse(4, 1.0)
    questions = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [3, 1, 1, 2]]
    found = []
    for mechanism in (krr, ik.MatrixMechanism(krr.matrix())):
        tally = mechanism.tally_counts(counts)
        estimate = ik.Estimate(
            theta, 0.0, 0.0, ik.Status.CONVERGED, 1, "given", tally.alphabet, tally
        )
        found.append(estimate.standard_errors(of=questions))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8, atol=1e-9)


def test_a_sum_may_be_determined_where_its_terms_are_not():
    estimate = ik.mle(MERGED)
    assert estimate.standard_errors()[1:].tolist() == [np.inf, np.inf]
    assert estimate.standard_errors(of=[0, 1, 1]) == pytest.approx(estimate.standard_errors()[0])
    assert estimate.standard_errors(of=[0, 1, 0]) == np.inf
    assert estimate.interval(of=[0, 3, 1], method="wald") == (0.0, 3.0), (
        "no more than any distribution can have"
    )


# The people's own frequencies


def test_without_noise_the_frequencies_are_known():
    estimate = ik.mle(ik.MatrixMechanism(np.eye(3)).tally_counts([5, 3, 2]))
    assert np.abs(estimate.standard_errors(target="frequencies")).max() < 1e-8
    assert estimate.standard_errors().min() > 0.1


PEOPLE = np.array([900, 600, 300, 150, 30, 20])


def spread(mechanism, questions, target, draws=1500):
    """Root mean squares of the errors beside the standard errors
    that are promised, for each question.
    """
    rng, theta = np.random.default_rng(5), PEOPLE / PEOPLE.sum()
    errors, promised = [], []
    for _ in range(draws):
        people = PEOPLE if target == "frequencies" else rng.multinomial(PEOPLE.sum(), theta)
        estimate = ik.inv(mechanism.simulate(people, rng), post="project")
        errors.append(questions @ (estimate.distribution - theta))
        promised.append(estimate.standard_errors(of=questions, target=target))
    return np.sqrt(np.mean(np.square(errors), axis=0)) / np.mean(promised, axis=0)


@pytest.mark.parametrize("target", ["distribution", "frequencies"])
def test_errors_are_as_large_as_they_are_promised(target):
    questions = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [1.0, 2, 3, 0, 0, 0]])
    krr = ik.RandomizedResponse(6, 2.5)
    # 1,500 draws: a standard error of 1.8 % each
    assert np.abs(spread(krr, questions, target) - 1).max() < 0.07


def test_the_two_targets_are_told_apart():
    """The control: errors about these people are too large for errors of the distribution."""
    questions = np.array([[1.0, 0, 0, 0, 0, 0]])
    krr, rng = ik.RandomizedResponse(6, 2.5), np.random.default_rng(5)
    estimate = ik.mle(krr.simulate(PEOPLE, rng))
    assert estimate.standard_errors(
        of=questions, target="frequencies"
    ) < 0.8 * estimate.standard_errors(of=questions)


@pytest.mark.parametrize(
    ("of", "says"),
    [
        ([1, 2], "6 secrets"),
        (np.ones((2, 5)), r"\(2, 5\)"),
        (np.ones((0, 6)), r"\(0, 6\)"),
        ([1, 2, 3, 4, 5, np.nan], "nan at index 5"),
        ("mean", "the labels of of must be whole numbers"),
        ({9: 1}, "9"),
        ({1: np.inf}, "of"),
    ],
)
def test_what_is_no_question_is_refused(of, says):
    with pytest.raises(ValueError, match=says):
        ik.mle(TALLIES["k-RR"]).interval(of=of)


def test_other_targets_and_lost_reports_are_refused():
    with pytest.raises(ValueError, match="'distribution' or 'frequencies', got 'people'"):
        ik.mle(TALLIES["k-RR"]).standard_errors(target="people")
    with pytest.raises(ValueError, match="reports may be lost"):
        ik.mle(TALLIES["lossy"]).interval(target="frequencies", method="wald")


# Labels alone


def test_labels_stand_for_the_sum_of_their_probabilities():
    mechanism = ik.RandomizedResponse(["bike", "bus", "car"], 2.0)
    estimate = ik.mle(mechanism.tally_counts([150, 220, 480]))
    for labels, weights in (
        (["bike", "car"], [1, 0, 1]),
        (("car", "bike"), [1, 0, 1]),
        ("bus", [0, 1, 0]),
        (["bus"], [0, 1, 0]),
    ):
        assert estimate.interval(of=labels) == estimate.interval(of=weights)
        assert estimate.standard_errors(of=labels) == estimate.standard_errors(of=weights)
        found = ik.plan(mechanism, width=0.1, of=labels)
        assert found.n == ik.plan(mechanism, width=0.1, of=weights).n
    posterior = ik.posterior(estimate.tally, 1.0)
    assert posterior.interval(of="bus") == posterior.interval(of=[0, 1, 0])


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ("tram", "'tram', which is not in the alphabet"),
        (["bike", "tram"], "'tram', which is not in the alphabet"),
        (["bike", "bike"], "labels that are all different"),
        (["bike", 1], "numbers"),
        ([], "one weight for each of the 3 secrets"),
        ("", "'', which is not in the alphabet"),
        ([1, 2], "one weight for each of the 3 secrets"),
        ({"bike": "1"}, "numbers"),
        ([["bike"]], "numbers"),
        ({"bike"}, "list, an array or a Series"),
    ],
)
def test_labels_that_cannot_be_read_are_named(of, words):
    estimate = ik.mle(ik.RandomizedResponse(["bike", "bus", "car"], 2.0).tally_counts([15, 22, 48]))
    with pytest.raises(ValueError, match=words):
        estimate.interval(of=of)


@pytest.mark.parametrize(
    ("secrets", "of", "label"),
    [
        (ik.Line(3, 9), 4, 3),
        (ik.Line(3, 9), [4], 3),
        ([False, True], True, False),
        (ik.Grid(2, 3, cell_size=1.0), (0, 1), (0, 0)),
    ],
)
def test_labels_that_are_no_texts_go_into_a_mapping_and_the_refusal_says_so(secrets, of, label):
    mechanism = ik.RandomizedResponse(secrets, 2.0)
    estimate = ik.mle(mechanism.tally_counts(np.arange(1, mechanism.k + 1)))
    with pytest.raises(ik.errors.AlphabetMismatch, match=re.escape(f"of={{{label!r}: 1}}")):
        estimate.interval(of=of)
    assert estimate.standard_errors(of={label: 1}) == estimate.standard_errors()[0]


def test_questions_in_a_frame_keep_their_names_and_are_aligned_by_its_columns():
    mechanism = ik.RandomizedResponse(ik.Line(3, 6), 2.0)
    estimate = ik.mle(mechanism.tally_counts([150, 220, 480, 100]))
    frame = pd.DataFrame({5: [1, 0], 3: [1, 2]}, index=["odd", "low"])
    weights = [[1, 0, 1, 0], [2, 0, 0, 0]]
    np.testing.assert_array_equal(estimate.interval(of=frame), estimate.interval(of=weights))
    assert estimate.standard_errors(of=frame[:1]).shape == (1,)
    assert estimate.summary(of=frame).table.index.tolist() == ["odd", "low"]
    other = mechanism.tally_counts([200, 200, 400, 100])
    assert ik.compare(estimate.tally, other, of=frame).labels == ("odd", "low")
    with pytest.raises(ik.errors.AlphabetMismatch, match="contains 50, which is not in"):
        estimate.interval(of=frame.rename(columns={5: 50}))


def test_ends_of_tiny_shares_are_as_precise_as_those_of_large_ones():
    # Three of 2 10^12 reports under hardly any noise: c log(1 - x) and 3 log x are the likelihood.
    n = 2 * 10**12
    mechanism = ik.RandomizedResponse(["a", "b", "c"], 36.0)
    estimate = ik.mle(mechanism.tally_counts([n // 2, n // 2, 3]))
    _, upper = estimate.interval(0.95, of="c", method="profile")

    def ratio(x):
        # With y = n x the noise adds 2.3e-4 to the third kind, which hardly moves the end.
        y = n * x
        return 2 * (3 * np.log(3 / y) + y - 3) - chi2.ppf(0.95, 1)

    right = brentq(ratio, 3.1 / n, 30 / n, xtol=1e-16)
    assert upper == pytest.approx(right, rel=1e-3)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("wald", {}),
        ("profile", {}),
        ("auto", {}),
        ("calibrated", {}),
        ("guaranteed", {"by": "region"}),
        ("credible", {}),
        ("bootstrap", {"draws": 60}),
    ],
)
def test_a_question_with_the_opposite_sign_has_the_opposite_interval(method, options):
    estimate = ik.mle(ik.RandomizedResponse(3, 2.0).tally_counts([500, 300, 200]))
    lower, upper = estimate.interval(0.9, [0, -1, 1], method, **options)
    assert -1 <= lower < upper < 0, "the third secret is rarer than the second"
    opposite = estimate.interval(0.9, [0, 1, -1], method, **options)
    np.testing.assert_allclose(opposite, (-upper, -lower), atol=1e-6)
