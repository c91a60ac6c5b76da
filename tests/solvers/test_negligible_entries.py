"""Tiny entries of matrices: cleared, and nowhere noticed but in the time."""

import numpy as np

import ibukit as ik
from ibukit.channels.dense import NEGLIGIBLE_RATIO, DenseChannel
from ibukit.solvers import interior_point
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import portfolio

NORMAL = np.finfo(float).tiny


def narrow(k):
    """A blur with entries down to the least doubles, and reports of three of its secrets."""
    place = (np.arange(k) + 0.5) / k
    matrix = np.exp(-0.5 * ((place[:, None] - place) / 0.024) ** 2)
    assert ((matrix > 0) & (matrix < NORMAL)).any(), "some entries are subnormal"
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix, matrix[[k // 4, k // 2, k - 2]].mean(axis=0)


def test_entries_below_the_limit_are_cleared_in_a_copy():
    least = NEGLIGIBLE_RATIO
    matrix = np.array([np.ones(5), [1.0, least, 0.9 * least, 1e-310, 0.0]])
    before = matrix.copy()
    assert interior_point._scaled(matrix)[1].tolist() == [1.0, least, 0.0, 0.0, 0.0]
    assert np.array_equal(matrix, before)


def test_no_solver_is_given_a_subnormal_entry(monkeypatch):
    matrix, q = narrow(120)
    seen = []

    def noted(model, *given):
        seen.append(model.matrix)
        return np.full(model.k, 1 / model.k), 1, "nothing"

    monkeypatch.setattr(portfolio, "maximise", noted)
    interior_point.maximise(matrix, q, 1e-9)
    monkeypatch.setattr(DenseModel, "cross_over", lambda model, *given: noted(model)[1::-1])
    interior_point.from_support(matrix, q, np.full(120, 1 / 120), 2.0)
    assert len(seen) == 2
    assert all(entries[entries > 0].min() >= NEGLIGIBLE_RATIO for entries in seen)


def test_only_what_a_solver_adds_up_leaves_tiny_entries_out():
    matrix, _ = narrow(120)
    channel = DenseChannel(matrix)
    # Of the first report only.
    weights = np.arange(120) == 0
    whole = np.tril((matrix * weights) @ matrix.T)
    np.testing.assert_allclose(np.tril(channel.gram(weights)), whole, rtol=1e-13, atol=0)
    added = np.zeros((120, 120), order="F")
    channel.add_gram(added, weights)
    column = matrix[:, 0].copy()
    column[column < NEGLIGIBLE_RATIO * column.max()] = 0
    np.testing.assert_allclose(np.tril(added), np.tril(np.outer(column, column)), rtol=1e-13)
    assert (added > 0).sum() < (whole > 0).sum()
    assert np.array_equal(channel.columns, matrix)


def test_a_smooth_estimate_is_the_same_without_tiny_entries():
    matrix, q = narrow(60)
    estimate = ik.smooth(ik.MatrixMechanism(matrix).tally_counts(np.rint(q * 10**4).astype(int)))
    cleared = np.where(matrix < 1e-140 * matrix.max(axis=0), 0.0, matrix)
    assert (cleared != matrix).any()
    mechanism = ik.MatrixMechanism(cleared / cleared.sum(axis=1, keepdims=True))
    again = ik.smooth(mechanism.tally_counts(np.rint(q * 10**4).astype(int)))
    np.testing.assert_allclose(again.distribution, estimate.distribution, rtol=1e-9, atol=1e-14)


def test_what_only_a_tiny_entry_explains_is_explained_by_whoever_reports_it_most(rng):
    """A report's entries count beside the largest of them, however small that is."""
    matrix = np.array([[1 - 1e-200, 1e-200], [1 - 1e-250, 1e-250]])
    estimate = ik.mle(ik.MatrixMechanism(matrix).tally_counts([9, 1]), method="dense")
    assert estimate.distribution.tolist() == [1, 0]
    assert estimate.gap <= 1e-9
