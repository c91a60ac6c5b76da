"""The least variance of answers from a channel matrix, at one distribution and in the worst case.

An estimator u of w . theta with M u = w is unbiased at every theta. The least variance at theta is

    v(theta) = min over u with M u = w of sum_z p_z u_z^2 - (w . theta)^2,    p = theta M,

a minimum of concave functions of theta, and so concave. With D = diag(p) the best u is D^-1 M^T J^+
w, J = M D^-1 M^T.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit._ground.threads import one_thread
from ibukit.errors import NotInvertible, TooLarge
from ibukit.fisher_information.dense import FLAT_SHARE
from ibukit.planning import ascent
from ibukit.planning.ascent import Point
from ibukit.planning.worst_case import Worst, greatest, greatest_single

# as for a rank test on a matrix, and numbers in one (half a gigabyte)
MAX_SECRETS, MAX_ENTRIES = 5000, 2**26
# a report that is less probable than this whoever sends it tells nothing
IMPOSSIBLE = 1e-100
# a report with a smaller p_z / (max_x M_xz)^2 adds next to nothing to a variance, whatever its u
# is: that is free
NEXT_TO_IMPOSSIBLE = 1e-14
# a condition number below which a square matrix is inverted as it is
WELL_CONDITIONED = 1e10


class Dense:
    """A matrix whose reports may allow many unbiased estimators, shape (k, m)."""

    def __init__(self, matrix: Floats):
        refuse_if_too_large(*matrix.shape)
        self.rows = np.ascontiguousarray(matrix[:, matrix.max(axis=0) > IMPOSSIBLE])
        self.k, self.m = self.rows.shape

    @cached_property
    def _inverse(self) -> Floats | None:
        """Of a square matrix that is far from singular."""
        if self.k != self.m:
            return None
        try:
            with one_thread():
                inverse = np.asarray(np.linalg.inv(self.rows), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        condition = np.abs(self.rows).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
        return inverse if condition <= WELL_CONDITIONED else None

    @cached_property
    def _range(self) -> Floats | None:
        """An orthonormal basis of what can be asked, {M u}, shape (k, rank); None where it is everything."""
        if self._inverse is not None:
            return None
        columns = self.rows / self.rows.max(axis=0)
        with one_thread():
            if self.m > 4 * self.k:
                columns = np.asarray(np.linalg.qr(columns.T, mode="r")).T  # the same M M^T
            u, s, _ = np.linalg.svd(columns, full_matrices=False)
        rank = int((s > s[0] * max(self.k, self.m) * np.finfo(float).eps).sum())
        return None if rank == self.k else np.asarray(u[:, :rank])

    @property
    def rank(self) -> int:
        """How many columns of M are independent."""
        return self.k if self._range is None else int(self._range.shape[1])

    @property
    def has_one_estimator(self) -> bool:
        """Whether the columns are independent, so that there is one u for each question."""
        return bool(self.rank == self.m)

    def weights(self, given: Floats | None) -> Floats:
        """The questions as columns, shape (k, r), if the reports answer them."""
        w = np.eye(self.k) if given is None else given.T
        if self._range is None:
            return w
        left = w - self._range @ (self._range.T @ w)
        unknown = np.flatnonzero((left**2).sum(axis=0) > FLAT_SHARE * (w**2).sum(axis=0))
        if not len(unknown):
            return w
        shown = ", ".join(map(str, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        of = f"the probabilities of {len(unknown)} of the {self.k} secrets (codes {shown})"
        what = of if given is None else f"the questions {shown} of `of`"
        raise NotInvertible(
            f"no number of reports answers {what}: distributions that differ in them give the same reports, see "
            "theory.identifiable; ask with `of` for what the reports tell, such as the sum over secrets that look alike"
        )

    @cached_property
    def _independent(self) -> slice | Ints:
        """As many rows as there are independent ones: they imply the others. Sums of rows would mix long and short."""
        if self._range is None:
            return slice(None)
        with one_thread():
            order = qr((self.rows / self.rows.max(axis=0)).T, mode="r", pivoting=True)[1]
        return np.asarray(order[: self.rank], dtype=np.int64)

    def at(self, theta: Floats, w: Floats) -> Point:
        """The best estimators u, shape (m, r), at a distribution that gives each report a probability.

        With an orthonormal basis of the rows of M D^-1/2, shape (m, rank), unless there is but one
        u.
        """
        u, q = self._weighted(np.sqrt(theta @ self.rows), w)
        slopes = self.rows @ u**2
        return Point(
            u, slopes, theta @ slopes - (theta @ w) ** 2, None if self.has_one_estimator else q
        )

    def _weighted(self, root: Floats, w: Floats) -> tuple[Floats, Floats | None]:
        if self._inverse is not None:
            return self._inverse @ w, None
        rows, asked = self.rows[self._independent], w[self._independent]
        # orthogonal triangularisation does not mind that the rows of rare secrets are long
        q, t = np.linalg.qr((rows / root).T)
        u = np.zeros((self.m, w.shape[1]))
        for _ in range(2):  # what rounding has left of M u = w
            u += q @ solve_triangular(t, asked - rows @ u, trans="T") / root[:, None]
        return u, q

    def curvature(self, theta: Floats, point: Point, w: Floats) -> Floats:
        """2 w w^T + 2 B G B^T for each question, B = M diag(u), G = D^-1 - D^-1 M^T J^+ M D^-1."""
        total = 2 * w @ w.T
        if point.basis is None:
            return np.asarray(total)
        root = np.sqrt(theta @ self.rows)
        for u in point.estimators.T:
            scaled = self.rows * (u / root)
            inside = scaled @ point.basis
            total += 2 * (scaled @ scaled.T - inside @ inside.T)
        return np.asarray(total)

    def near(self, theta: Floats, given: Floats | None) -> Floats:
        """Variances at any distribution: where it has zeros, the limits from inside."""
        w = self.weights(given)
        centred = w - theta @ w  # 1 is in the range of M, and adds to an answer what is known
        p = theta @ self.rows
        with one_thread():
            if self.has_one_estimator:
                root = np.sqrt(self.rows.mean(axis=0))  # at whatever distribution
                return np.asarray(p @ self._weighted(root, centred)[0] ** 2)
            rows, asked = self.rows[self._independent], centred[self._independent]
            free = p <= NEXT_TO_IMPOSSIBLE * self.rows.max(axis=0) ** 2
            if free.any():
                across = _complement(rows[:, free])
                rows, asked = across.T @ rows[:, ~free], across.T @ asked
            t = np.linalg.qr((rows / np.sqrt(p[~free])).T, mode="r")
            return np.asarray((solve_triangular(t, asked, trans="T") ** 2).sum(axis=0))

    def worst(self, given: Floats | None) -> Worst:
        """The hardest question at its hardest distribution."""
        w = self.weights(given)
        with one_thread():
            start = self.at(np.full(self.k, 1 / self.k), w)
            if given is None:
                others = start.slopes.copy()
                np.fill_diagonal(others, -np.inf)
                uppers = (
                    greatest_single(np.diag(start.slopes), others.max(axis=0))[0]
                    if self.k > 1
                    else np.zeros(1)
                )
            else:
                uppers = np.array(
                    [greatest(c, q)[0] for c, q in zip(start.slopes.T, w.T, strict=True)]
                )
            if not self.has_one_estimator:
                return ascent.hardest(self, w, uppers, start.variances)
        question = int(uppers.argmax())
        value, theta = greatest(start.slopes[:, question], w[:, question])
        value = max(value, 0.0)  # what is known for certain, but for rounding
        return Worst(value, value, question, theta)

    def worst_sum(self) -> float:
        """The largest sum of the variances of all single probabilities, from above."""
        with one_thread():
            return ascent.climb(self, self.weights(None)).upper


def refuse_if_too_large(k: int, m: int) -> None:
    """Refuse a matrix that is too large to decompose."""
    if k > MAX_SECRETS or k * m > MAX_ENTRIES:
        raise TooLarge(
            f"planning would decompose a matrix of {readable(k)} x {readable(m)} numbers, and at most {MAX_SECRETS} "
            f"secrets and {MAX_ENTRIES} numbers are accepted; take a coarser alphabet, or k-RR or geometric noise on "
            "a line, which have closed forms"
        )


def _complement(columns: Floats) -> Floats:
    """An orthonormal basis of what is orthogonal to all columns."""
    u, s, _ = np.linalg.svd(columns, full_matrices=True)
    rank = int((s > s.max(initial=0.0) * max(columns.shape) * np.finfo(float).eps).sum())
    return np.asarray(u[:, rank:])
