"""The probabilities of the secret behind each report: `Estimate.given`."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch, ImpossibleReport, TooLarge

PLANS = ["basic", "plus", "gold"]
KRR = ik.RandomizedResponse(PLANS, epsilon=1.5)


def by_hand(theta, column):
    joint = theta * column
    return joint / joint.sum()


def test_rows_are_bayes_theorem_for_each_report_in_its_order():
    estimate = ik.mle(KRR.tally_counts([500, 300, 200]))
    reports = pd.Series(["gold", "basic", "gold"], index=["ann", "bob", "cy"])
    frame = estimate.given(reports)
    assert list(frame.columns) == PLANS
    assert list(frame.index) == ["ann", "bob", "cy"]
    matrix = KRR.matrix()
    for person, report in reports.items():
        right = by_hand(estimate.distribution, matrix[:, PLANS.index(report)])
        assert np.allclose(frame.loc[person], right, rtol=1e-12)


def test_their_mean_is_one_step_of_the_update_and_leaves_a_maximum_where_it_is():
    tally = ik.TruncatedGeometric(6, epsilon=0.8).tally_counts([50, 80, 30, 20, 10, 5])
    estimate = ik.mle(tally, tol=1e-12)
    frame = estimate.given(tally.parts[0].reports)
    mean = tally.parts[0].counts @ frame.to_numpy() / tally.n
    assert np.allclose(mean, estimate.distribution, atol=1e-6)


def test_reports_that_are_rows_of_bits():
    mechanism = ik.Rappor(3, epsilon=1.0)
    rows = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0]])
    estimate = ik.mle(mechanism.tally(rows, counts=[50, 20, 30]))
    frame = estimate.given(rows)
    for row, found in zip(rows, frame.to_numpy(), strict=True):
        likelihoods = np.array([mechanism.tally([row]).forward(np.eye(3)[x])[0] for x in range(3)])
        assert np.allclose(found, by_hand(estimate.distribution, likelihoods), rtol=1e-9)


def test_reports_that_were_seen_were_not_lost():
    matrix = np.array([[0.6, 0.2], [0.1, 0.3]])
    detector = ik.MatrixMechanism(matrix, efficiency=True)
    estimate = ik.mle(detector.tally_counts([600, 300]))
    found = estimate.given([0, 1]).to_numpy()
    for report in (0, 1):
        assert np.allclose(found[report], by_hand(estimate.distribution, matrix[:, report]))


def test_rows_of_likelihoods_are_numbered():
    rows = np.array([[1, 0.5], [0.2, 1], [0.3, 0.3]])
    estimate = ik.mle(ik.Tally.from_likelihoods(rows, [30, 20, 5]))
    found = estimate.given([2, 0]).to_numpy()
    assert np.allclose(found[1], by_hand(estimate.distribution, rows[0]))
    assert np.allclose(found[0], estimate.distribution)
    with pytest.raises(AlphabetMismatch, match="0 to 2"):
        estimate.given([3])


def test_a_pool_needs_to_know_the_mechanism():
    other = ik.RandomizedResponse(PLANS, epsilon=0.5)
    estimate = ik.mle(KRR.tally_counts([500, 300, 200]) + other.tally_counts([5, 3, 2]))
    with pytest.raises(ValueError, match="must be given: the tally pools the reports of 2"):
        estimate.given(["gold"])
    right = by_hand(estimate.distribution, other.matrix()[:, 2])
    assert np.allclose(estimate.given(["gold"], other), right)


def test_secrets_of_a_line_without_an_end():
    mechanism = ik.LinearGeometric(ik.Line(None, None), epsilon=1.0)
    estimate = ik.mle(mechanism.tally([3, 3, 4, 9]))
    frame = estimate.given([3, 200], mechanism)
    assert list(frame.columns) == list(estimate.alphabet.values)
    assert np.allclose(frame.sum(axis=1), 1)


def test_what_cannot_be_answered_is_refused():
    estimate = ik.mle(KRR.tally_counts([500, 300, 200]))
    with pytest.raises(AlphabetMismatch, match="secrets of the estimate"):
        estimate.given(["basic"], ik.RandomizedResponse(["basic", "plus"], 1.0))
    with pytest.raises(AlphabetMismatch):
        estimate.given(["silver"])
    sure = ik.mle(ik.MatrixMechanism(np.eye(2), ["a", "b"], ["a", "b"]).tally_counts([5, 0]))
    with pytest.raises(ImpossibleReport, match="no probability"):
        sure.given(["b"])
    with ik.solvers.limits(dense_entries=8), pytest.raises(TooLarge, match="part of them"):
        estimate.given(["basic"] * 3)


def test_no_reports_make_an_empty_table():
    assert ik.mle(KRR.tally_counts([5, 3, 2])).given([]).shape == (0, 3)


def test_reports_over_a_background_are_given_their_secrets_or_the_background():
    response = np.array([[0.5, 0.1, 0.2], [0.1, 0.6, 0.1], [0.2, 0.2, 0.3]])
    background, counts = np.array([10.0, 0.0, 30.0]), np.array([90, 60, 80])
    for matrix in (response, 3 * response):
        found = ik.unfold(counts, matrix, background=background)
        right = found.counts[:, None] * matrix / (found.counts @ matrix + background)
        for more in ({}, {"mechanism": found.mechanism}):
            given = found.given(np.arange(len(counts)), **more).to_numpy()
            np.testing.assert_allclose(given, right.T, rtol=1e-12)
    with pytest.raises(ValueError, match="mechanism must be left out over a background"):
        found.given([0], ik.MatrixMechanism(np.eye(len(response))))
    nothing = ik.unfold([3, 4], np.eye(2), background=[9, 9])
    assert not nothing.given([0, 1]).to_numpy().any()


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (
            lambda found: found.certificate(),
            ik.errors.NotCertified,
            "over a background .* its `gap` bounds",
        ),
        (
            lambda found: found.fit_test(),
            ValueError,
            "which of the counts are background is not known",
        ),
        (
            lambda found: found.pool_test(),
            ValueError,
            "which of the counts are background is not known",
        ),
        (lambda found: ik.smooth(found.tally), TypeError, "over a background has no tally"),
    ],
)
def test_what_needs_a_tally_names_the_background(ask, error, message):
    found = ik.unfold([80, 80], [[0.6, 0.2], [0.1, 0.3]], background=[10, 30])
    with pytest.raises(error, match=message):
        ask(found)
