"""Standard errors of estimates whose matrix was measured: the delta method."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.fisher_information.measured_matrix import covariance_with_trials

THETA = np.array([0.5, 0.3, 0.2])
ROWS = np.array([[0.7, 0.2, 0.05, 0.05], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])


def test_two_secrets_have_rogan_and_gladens_formula():
    trials = np.array([[45, 5], [3, 197]])
    estimate = ik.mle(ik.MatrixMechanism.from_trials(trials).tally_counts([60, 1440]))
    a, b = trials[:, 0] / trials.sum(axis=1)
    share, of_reports = estimate.distribution[0], 0.04 * 0.96 / 1500
    variance = of_reports + share**2 * a * (1 - a) / 50 + (1 - share) ** 2 * b * (1 - b) / 200
    expected = np.sqrt(variance) / (a - b)
    assert estimate.standard_errors() == pytest.approx([expected] * 2, rel=1e-6)
    assert estimate.standard_errors([3.0, 1.0]) == pytest.approx(2 * expected, rel=1e-6)
    assert np.sqrt(np.diag(estimate.covariance())) == pytest.approx([expected] * 2, rel=1e-6)
    lower, upper = estimate.interval(of=[1, 0], method="wald")
    assert (upper - lower) / 2 == pytest.approx(1.959964 * expected, rel=1e-6)
    # The people's own frequencies have the error of the matrix, and not that of who was asked.
    own = estimate.standard_errors([1, 0], target="frequencies")
    assert own**2 == pytest.approx(expected**2 - share * (1 - share) / 1500, rel=1e-6)


def test_as_many_reports_as_secrets_are_inverted():
    matrix, totals = ROWS[:, :3] + np.outer(ROWS[:, 3], [0, 0, 1]), np.array([80, 100, 120])
    trials = np.rint(matrix * totals[:, None]).astype(int)
    mechanism = ik.MatrixMechanism.from_trials(trials)
    counts = np.array([400, 330, 270])
    estimate = ik.mle(mechanism.tally_counts(counts))
    inverse, theta, q = np.linalg.inv(mechanism.matrix()), estimate.distribution, counts / 1000
    total = (np.diag(q) - np.outer(q, q)) / 1000
    for share, row, n in zip(theta, mechanism.matrix(), trials.sum(axis=1), strict=True):
        total += share**2 * (np.diag(row) - np.outer(row, row)) / n
    assert estimate.covariance() == pytest.approx(inverse.T @ total @ inverse, rel=1e-6)


def test_the_errors_are_those_of_drawn_trials_and_reports():
    rng = np.random.default_rng(3)
    totals, n, known = [400, 300, 500], 2000, ik.RandomizedResponse(3, 1.5)
    estimates = []
    for _ in range(300):
        trials = np.array([rng.multinomial(t, row) for t, row in zip(totals, ROWS, strict=True)])
        tally = ik.MatrixMechanism.from_trials(trials).tally_counts(
            rng.multinomial(n, THETA @ ROWS)
        ) + known.tally_counts(rng.multinomial(500, THETA @ known.matrix()))
        estimates.append(ik.mle(tally).distribution)
    trials = np.rint(ROWS * np.array(totals)[:, None])
    expected = ik.MatrixMechanism.from_trials(trials).tally_counts(
        np.rint(n * THETA @ ROWS).astype(int)
    ) + known.tally_counts(np.rint(500 * THETA @ known.matrix()).astype(int))
    covariance = covariance_with_trials(expected, THETA)
    # Standard deviations of 300 draws have a standard error of 4 %; four of these are 16 %.
    assert np.std(estimates, axis=0) == pytest.approx(np.sqrt(np.diag(covariance)), rel=0.16)
    assert covariance.sum(axis=1) == pytest.approx(np.zeros(3), abs=1e-12)
    # The matrix is a good part of it, or the test would show nothing.
    exact = ik.MatrixMechanism(ROWS).tally_counts(np.rint(n * THETA @ ROWS).astype(int))
    alone = ik.mle(exact + expected.parts[1].mechanism.tally_counts(expected.parts[1].counts))
    assert (np.sqrt(np.diag(covariance)) > 1.15 * alone.standard_errors())[:2].all()


def test_undetermined_secrets_stay_so():
    test = ik.MatrixMechanism.from_trials([[50, 50], [20, 80], [20, 80]])
    estimate = ik.mle(test.tally_counts([40, 60]))
    errors = estimate.standard_errors()
    assert np.isinf(errors[1:]).all()
    assert np.isfinite(errors[0])
    assert np.isfinite(estimate.standard_errors([0, 1, 1]))
    assert np.isinf(estimate.covariance()[1:]).all()


def test_a_single_secret_has_no_error():
    estimate = ik.mle(ik.MatrixMechanism.from_trials([[5, 3]]).tally_counts([4, 4]))
    assert estimate.standard_errors() == pytest.approx([0.0])
    assert estimate.covariance() == pytest.approx(np.zeros((1, 1)))
