"""Least variance of answers from a channel matrix, at one distribution and in the worst case.

An estimator u of w . theta with M u = w is unbiased at every theta. The least variance at theta is

    v(theta) = min over u with M u = w of sum_z p_z u_z^2 - (w . theta)^2,    p = theta M,

a minimum of concave functions of theta, and so concave. With D = diag(p) the best u is
D^-1 M^T J^+ w with J = M D^-1 M^T.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit._ground.limits import max_dense_entries, max_factorised_order
from ibukit._ground.threads import one_thread
from ibukit.errors import NotInvertible, TooLarge
from ibukit.fisher_information.dense import FLAT_SHARE
from ibukit.planning import ascent
from ibukit.planning.ascent import Point
from ibukit.planning.worst_case import Worst, max_single_variance, max_variance

# A report is left out if its probability is smaller than this under every secret.
MIN_PROBABILITY = 1e-100
# A report with a smaller p_z / (max_x M_xz)^2 adds nothing to a variance but rounding, whatever its
# u_z is; that u_z is then free.
FREE_REPORT_RATIO = 1e-14
# Largest condition number of a square matrix that is inverted directly.
MAX_CONDITION = 1e10


class DenseVariances:
    """Least variances from a matrix, shape (k, m), with one or many unbiased estimators."""

    def __init__(self, matrix: Floats):
        check_matrix_size(*matrix.shape)
        self.rows = np.ascontiguousarray(matrix[:, matrix.max(axis=0) > MIN_PROBABILITY])
        self.k, self.m = self.rows.shape

    @cached_property
    def _inverse(self) -> Floats | None:
        """The inverse of a square matrix that is far from singular, else None."""
        if self.k != self.m:
            return None
        try:
            with one_thread():
                inverse = np.asarray(np.linalg.inv(self.rows), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        condition = np.abs(self.rows).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
        return inverse if condition <= MAX_CONDITION else None

    @cached_property
    def _range(self) -> Floats | None:
        """An orthonormal basis of the questions {M u} with an answer; None if all have one."""
        if self._inverse is not None:
            return None
        columns = self.rows / self.rows.max(axis=0)
        with one_thread():
            if self.m > 4 * self.k:
                # The triangular factor has the same M M^T, and so the same range.
                columns = np.asarray(np.linalg.qr(columns.T, mode="r")).T
            u, s, _ = np.linalg.svd(columns, full_matrices=False)
        rank = int((s > s[0] * max(self.k, self.m) * np.finfo(float).eps).sum())
        return None if rank == self.k else np.asarray(u[:, :rank])

    @property
    def rank(self) -> int:
        """Number of independent columns of M."""
        return self.k if self._range is None else int(self._range.shape[1])

    @property
    def has_one_estimator(self) -> bool:
        """True if the columns are independent, so that there is one u for each question."""
        return bool(self.rank == self.m)

    def weights(self, given: Floats | None) -> Floats:
        """Return the questions as columns, shape (k, r); NotInvertible if one has no answer."""
        w = np.eye(self.k) if given is None else given.T
        if self._range is None:
            return w
        residual = w - self._range @ (self._range.T @ w)
        unknown = np.flatnonzero((residual**2).sum(axis=0) > FLAT_SHARE * (w**2).sum(axis=0))
        if not len(unknown):
            return w
        shown = ", ".join(map(str, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        of = f"the probabilities of {len(unknown)} of the {self.k} secrets (codes {shown})"
        what = of if given is None else f"the questions {shown} of `of`"
        raise NotInvertible(
            f"no number of reports answers {what}: distributions that differ in them give the "
            "same reports, see theory.identifiable; ask with `of` for what the reports tell, such "
            "as the sum over secrets that look alike"
        )

    @cached_property
    def _independent(self) -> slice | Ints:
        """Indices of independent rows, which imply the others."""
        # Rows are selected rather than combined: sums would mix rows of very different lengths.
        if self._range is None:
            return slice(None)
        with one_thread():
            order = qr((self.rows / self.rows.max(axis=0)).T, mode="r", pivoting=True)[1]
        return np.asarray(order[: self.rank], dtype=np.int64)

    def at(self, theta: Floats, w: Floats) -> Point:
        """Return the best estimators u, shape (m, r), at a distribution without zeros.

        The basis is an orthonormal one of the rows of M D^-1/2, shape (m, rank), or None if there
        is only one u.
        """
        u, q = self._weighted(np.sqrt(theta @ self.rows), w)
        slopes = self.rows @ u**2
        return Point(
            u, slopes, theta @ slopes - (theta @ w) ** 2, None if self.has_one_estimator else q
        )

    def _weighted(self, root: Floats, w: Floats) -> tuple[Floats, Floats | None]:
        if self._inverse is not None:
            return self._inverse @ w, None
        rows, questions = self.rows[self._independent], w[self._independent]
        # The least-norm solution of (M D^-1/2) v = w with u = D^-1/2 v. A QR factorisation is
        # accurate although the rows of M D^-1/2 differ much in length; J = M D^-1 M^T would lose
        # half the digits.
        q, t = np.linalg.qr((rows / root).T)
        u = np.zeros((self.m, w.shape[1]))
        # The second round corrects the rounding of the first one.
        for _ in range(2):
            u += q @ solve_triangular(t, questions - rows @ u, trans="T") / root[:, None]
        return u, q

    def curvature(self, theta: Floats, point: Point, w: Floats) -> Floats:
        """Return the second derivatives of -v, summed over the questions."""
        # Each question has 2 w w^T + 2 B G B^T with B = M diag(u) and
        # G = D^-1 - D^-1 M^T J^+ M D^-1 = D^-1/2 (I - q q^T) D^-1/2, q the basis.
        total = 2 * w @ w.T
        if point.basis is None:
            return total
        root = np.sqrt(theta @ self.rows)
        for u in point.estimators.T:
            scaled = self.rows * (u / root)
            inside = scaled @ point.basis
            total += 2 * (scaled @ scaled.T - inside @ inside.T)
        return total

    def variances(self, theta: Floats, given: Floats | None) -> Floats:
        """Return the variances at any distribution; if it has zeros, the limits from inside."""
        w = self.weights(given)
        # A constant added to w changes an answer by a known number, since M 1 = 1.
        centred = w - theta @ w
        p = theta @ self.rows
        with one_thread():
            if self.has_one_estimator:
                # There is one estimator for all distributions, so any of them serves to compute it.
                root = np.sqrt(self.rows.mean(axis=0))
                return p @ self._weighted(root, centred)[0] ** 2
            rows, questions = self.rows[self._independent], centred[self._independent]
            free = p <= FREE_REPORT_RATIO * self.rows.max(axis=0) ** 2
            # Reports of probability 0 may have any u_z: the equations with them are eliminated.
            if free.any():
                across = _complement(rows[:, free])
                rows, questions = across.T @ rows[:, ~free], across.T @ questions
            t = np.linalg.qr((rows / np.sqrt(p[~free])).T, mode="r")
            return (solve_triangular(t, questions, trans="T") ** 2).sum(axis=0)

    def worst_case(self, given: Floats | None) -> Worst:
        """Return the largest variance over all questions and distributions."""
        w = self.weights(given)
        with one_thread():
            start = self.at(np.full(self.k, 1 / self.k), w)
            if given is None:
                others = start.slopes.copy()
                np.fill_diagonal(others, -np.inf)
                uppers = (
                    max_single_variance(np.diag(start.slopes), others.max(axis=0))[0]
                    if self.k > 1
                    else np.zeros(1)
                )
            else:
                uppers = np.array(
                    [max_variance(c, q)[0] for c, q in zip(start.slopes.T, w.T, strict=True)]
                )
            if not self.has_one_estimator:
                return ascent.largest_variance(self, w, uppers, start.variances)
        question = int(uppers.argmax())
        value, theta = max_variance(start.slopes[:, question], w[:, question])
        # An answer that is known for certain has variance 0, up to rounding.
        value = max(value, 0.0)
        return Worst(value, value, question, theta)

    def worst_sum(self) -> float:
        """Return an upper bound of the sum of the variances of all single probabilities."""
        with one_thread():
            return ascent.climb(self, self.weights(None)).upper


def check_matrix_size(k: int, m: int) -> None:
    """Raise TooLarge if a matrix is too large to decompose."""
    max_order, max_entries = max_factorised_order(), max_dense_entries()
    if k > max_order or k * m > max_entries:
        raise TooLarge(
            f"planning would decompose a matrix of {readable(k)} x {readable(m)} numbers, and at "
            f"most {max_order} secrets and {max_entries} numbers are accepted; take a coarser "
            "alphabet, or k-RR or geometric noise on a line, which have closed forms"
        )


def _complement(columns: Floats) -> Floats:
    """Return an orthonormal basis of the orthogonal complement of the columns."""
    u, s, _ = np.linalg.svd(columns, full_matrices=True)
    rank = int((s > s.max(initial=0.0) * max(columns.shape) * np.finfo(float).eps).sum())
    return u[:, rank:]
