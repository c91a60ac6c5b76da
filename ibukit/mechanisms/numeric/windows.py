"""Base classes of mechanisms whose reports are real numbers, counted in finitely many bins.

The density of a window mechanism is high in a window around the secret, and low elsewhere. Between
two neighbouring ends of windows it is constant for every secret, so the interval in which a report
lies says as much as the report.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.labels import CountsLike, LabelsLike, aligned_counts
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.points.real_numbers import real_numbers
from ibukit.tally.tally import Tally

# Distance beyond an end of the support at which reports are accepted, relative to its length,
# because other programs round their own formulas.
END_TOLERANCE = 1e-9
# Smallest width of a window relative to the support. A narrower one has few doubles in it, and what
# is drawn no longer follows its law.
MIN_WINDOW_SHARE = 2.0**-40


class Windows(NamedTuple):
    """Windows of one width whose starts are equally spaced.

    The window of secret x begins at start + places_x step. The support reaches from `start` to
    start + last step + width.
    """

    start: float
    step: float
    width: float
    places: Ints
    last: int

    @property
    def length(self) -> float:
        """Length of the support."""
        return self.last * self.step + self.width


class RealReports(FiniteMechanism):
    """A mechanism whose reports are real numbers that fall into finitely many classes.

    Reports are numbers everywhere: as drawn, and as `tally` takes them. A tally keeps the codes of
    their classes.
    """

    report_kind: ClassVar[ReportKind] = ReportKind.REALS

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        return Line(0, self.m - 1)

    @override
    def code_reports(self, reports: LabelsLike) -> NDArray[Any]:
        return real_numbers("reports", reports)

    @override
    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        return reports

    @abstractmethod
    def _columns(self, codes: Ints) -> Floats:
        """Columns of the matrix, shape (k, len(codes))."""

    @override
    def make_matrix(self) -> Floats:
        return self._columns(np.arange(self.m))

    @property
    def _has_own_matrix(self) -> bool:
        """True for a subclass that has a matrix of its own, which then is its law."""
        return type(self).make_matrix is not RealReports.make_matrix

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        # There are about twice as many classes as secrets: only the columns that were seen are
        # made.
        if self._has_own_matrix:
            return super().channel(reports)
        limits.require_channel("the channel of these reports", self.k, len(reports))
        return DenseChannel(np.ascontiguousarray(self._columns(reports)))

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        """Draw a class from the matrix for each user, and return a number of that class."""
        return self.restore_reports(super().draw(secrets, rng))

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population.

        If there are few users, their reports are drawn one by one. If there are many, there is one
        multinomial for each secret, which takes as many steps as the matrix has entries.
        """
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        if counts.sum() < self.k * self.m and not self._has_own_matrix:
            return Mechanism.simulate(self, counts, rng)
        return super().simulate(counts, rng)


class IntervalReports(RealReports):
    """A mechanism whose reports are real numbers, counted by the interval in which they lie.

    A subclass defines `breaks` and `_columns`.
    """

    @property
    @abstractmethod
    def breaks(self) -> Floats:
        """Ends of the intervals, ascending; interval i holds its lower end.

        Shape (m + 1,).
        """

    @property
    @override
    def m(self) -> int:
        return len(self.breaks) - 1

    @override
    def check_reports(self, reports: ArrayLike) -> Ints:
        numbers, (low, high) = real_numbers("reports", reports), self.breaks[[0, -1]]
        slack = END_TOLERANCE * (high - low)
        bad = (numbers < low - slack) | (numbers > high + slack)
        if bad.any():
            first = int(np.argmax(bad))
            raise AlphabetMismatch(
                f"reports must be numbers from {low:.6g} to {high:.6g}, got {numbers[first]} at "
                f"index {first}"
            )
        return np.clip(np.searchsorted(self.breaks, numbers, side="right") - 1, 0, self.m - 1)

    @override
    def restore_reports(self, kept: NDArray[Any]) -> Floats:
        return (self.breaks[kept] + self.breaks[kept + 1]) / 2


class WindowReports(IntervalReports):
    """Windows of one width around the secrets: a high density inside, a low one outside.

    The density is `inside` / width in the window of the secret, and `outside` elsewhere.
    """

    @property
    @abstractmethod
    def windows(self) -> Windows:
        """Position and width of the windows."""

    @property
    @abstractmethod
    def inside(self) -> float:
        """Probability that the report is in the secret's window."""

    @property
    @abstractmethod
    def outside(self) -> float:
        """Density outside the window, computed without cancellation."""

    @cached_property
    def _ends(self) -> tuple[Floats, Floats, Ints]:
        """Starts of the intervals, their widths, and first and last code of each window, (2, k).

        Widths of intervals are computed as sums of whole steps and widths of windows, because
        differences of rounded ends would lose digits where the windows are narrow.
        """
        # Each end is start + steps * step + widths * width: the support's start, the windows'
        # starts, their ends, and the support's end.
        w = self.windows
        steps = np.concatenate([[0], w.places, w.places, [w.last]])
        widths = np.concatenate([[0], np.zeros(self.k), np.ones(self.k), [1]])
        at = steps * w.step + widths * w.width
        order = np.argsort(at, kind="stable")
        gaps = np.diff(steps[order]) * w.step + np.diff(widths[order]) * w.width
        # Two ends that differ only by rounding are taken as one.
        new = np.r_[True, gaps > 4 * np.finfo(float).eps * w.length]
        code = np.empty(len(at), dtype=np.int64)
        code[order] = np.cumsum(new) - 1
        kept = order[new]
        gaps = np.diff(steps[kept]) * w.step + np.diff(widths[kept]) * w.width
        return w.start + at[kept], gaps, code[1:-1].reshape(2, self.k)

    @property
    @override
    def breaks(self) -> Floats:
        """Ends of the intervals, ascending; interval i holds its lower end.

        Shape (m + 1,).
        """
        return self._ends[0]

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Start and end of each window, and the largest double below each, shapes (k,)."""
        first, last = self._ends[2]
        starts, ends = self._ends[0][first], self._ends[0][last]
        return starts, ends, np.nextafter(starts, -np.inf), np.nextafter(ends, starts)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        if self._has_own_matrix:
            return super().draw(secrets, rng)
        # A rounded point must not leave the intervals of its window, or enter them from outside:
        # in the narrowest windows there are few doubles.
        w, (starts, ends, below_starts, below_ends) = self.windows, self._bounds
        places = w.places * w.step
        reports = np.empty(len(secrets))
        inside = rng.random(len(secrets)) < self.inside
        x = secrets[inside]
        points = w.start + places[x] + w.width * rng.random(len(x))
        reports[inside] = np.clip(points, starts[x], below_ends[x])

        # The support without the window has the same length for all secrets. A uniform number
        # below the window's start is a report to the left of it, another one to the right.
        x = secrets[~inside]
        rest = w.last * w.step * rng.random(len(x))
        left = rest < places[x]
        top = np.nextafter(self._ends[0][-1], w.start)
        reports[~inside] = np.where(
            left,
            np.minimum(w.start + rest, below_starts[x]),
            np.clip(w.start + w.width + rest, ends[x], top),
        )
        return reports

    @override
    def _columns(self, codes: Ints) -> Floats:
        _, gaps, (first, last) = self._ends
        within = (codes >= first[:, None]) & (codes < last[:, None])
        return np.where(within, self.inside / self.windows.width, self.outside) * gaps[codes]
