"""Base classes of mechanisms whose reports are real numbers, counted by finitely many classes.

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

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.points.real_numbers import real_numbers

# Distance beyond an end of the support at which reports are accepted, relative to its length: other
# programs round their own formulas.
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
    def code_reports(self, reports: ArrayLike) -> NDArray[Any]:
        return real_numbers("reports", reports)

    @override
    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        return reports


class IntervalReports(RealReports):
    """A mechanism whose reports are real numbers, counted by the interval in which they lie.

    A subclass has `breaks` and `make_matrix`.
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

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        return self._within(super().draw(secrets, rng), rng)

    def _within(self, intervals: Ints, rng: Generator) -> Floats:
        """A uniform point of each interval, never its upper end."""
        low, high = self.breaks[intervals], self.breaks[intervals + 1]
        points = low + (high - low) * rng.random(len(intervals))
        return np.minimum(points, np.nextafter(high, low))


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

        Widths of intervals are sums of whole steps and widths of windows: differences of rounded
        ends would lose digits where the windows are narrow.
        """
        # Each end is start + steps * step + widths * width: the support's start, the windows'
        # starts, their ends, and the support's end.
        w = self.windows
        steps = np.concatenate([[0], w.places, w.places, [w.last]])
        widths = np.concatenate([[0], np.zeros(self.k), np.ones(self.k), [1]])
        at = steps * w.step + widths * w.width
        order = np.argsort(at, kind="stable")
        gaps = np.diff(steps[order]) * w.step + np.diff(widths[order]) * w.width
        # Two ends that differ by rounding only are one.
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

    @override
    def make_matrix(self) -> Floats:
        _, gaps, (first, last) = self._ends
        codes = np.arange(len(gaps))
        within = (codes >= first[:, None]) & (codes < last[:, None])
        return np.where(within, self.inside / self.windows.width, self.outside) * gaps
