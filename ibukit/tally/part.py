"""One part of a tally: the distinct reports of one mechanism, their counts and their channel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.row_table import row_table
from ibukit.channels import Channel
from ibukit.domain.alphabet import Alphabet
from ibukit.errors import ImpossibleReport
from ibukit.tally.survey import Survey

# Real numbers up to here have squares that are doubles.
MAX_MODERATE = 1e150


class ReportModel(Protocol):
    """The interface of a mechanism that a tally needs; it is hashable and comparable."""

    @property
    def alphabet(self) -> Alphabet:
        """The alphabet of the secrets."""

    def channel(self, reports: NDArray[Any]) -> Channel:
        """Return the columns of the matrix for these reports, as an operator."""

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Return the logarithm of the factor that `channel` leaves out of each column, or None."""


@dataclass(frozen=True, eq=False)
class TallyPart(arguments.ReadOnlyArrays):
    """Distinct reports of one mechanism, sorted, and their counts.

    Parameters
    ----------
    mechanism : Mechanism
    reports : ndarray, shape (s,) or (s, width)
        Codes, integers, cell coordinates or packed bit rows, as the mechanism keeps them.
    counts : ndarray of int, shape (s,)
        All at least 1. If reports are weighted, the sums of their weights: floats above 0.
    """

    mechanism: ReportModel
    reports: NDArray[Any]
    counts: Ints

    # This is not a field, because the recorded texts of tallies depend on the fields.
    _survey: ClassVar[Survey | None] = None

    mergeable: ClassVar[bool] = True
    """True if parts of equal mechanisms are joined when tallies are added."""

    @cached_property
    def channel(self) -> Channel:
        """Forward and adjoint on the seen reports."""
        return self.mechanism.channel(self.reports)

    @cached_property
    def log_scale(self) -> Floats:
        """Log of the factor that the channel leaves out of each column, shape (s,); mostly 0."""
        scale: Floats | None = self.mechanism.log_scale(self.reports)
        return np.broadcast_to(0.0, self.counts.shape) if scale is None else scale

    @cached_property
    def n(self) -> int:
        """Number of reports, or the sum of their weights."""
        mechanism: Any = self.mechanism
        if not has_likelihood(mechanism):
            # In sums of bits a person is counted as often as there are ones in the report.
            return mechanism.number_of_people(self.reports, self.counts)
        return self.counts.sum().item()

    @property
    def survey(self) -> Survey | None:
        """The weights behind the sums; None where they are not known."""
        # Counts are weights of 1.
        return Survey.of_counts(self.counts) if self.counts.dtype.kind == "i" else self._survey

    def with_mechanism(self, mechanism: ReportModel) -> TallyPart:
        """Return the same reports of another mechanism."""
        return TallyPart(mechanism, self.reports, self.counts).with_survey(self._survey)

    def with_survey(self, survey: Survey | None) -> TallyPart:
        """Return the part with the weights behind its counts."""
        if survey is self._survey:
            return self
        part = replace(self)
        part._keep(_survey=survey)
        return part

    def places(self, reports: NDArray[Any]) -> Ints | None:
        """Return the places of some reports among the distinct ones; None if one of them is new."""
        if self.reports.ndim != reports.ndim or self.reports.shape[1:] != reports.shape[1:]:
            return None
        if reports.ndim == 1:
            at = np.searchsorted(self.reports, reports)
        else:
            # After both are sorted together, each report stands behind its equal in the part.
            words = _words(np.concatenate([self.reports, reports.astype(self.reports.dtype)]))
            order = order_of_rows(words)
            new = (words[order][1:] != words[order][:-1]).any(axis=1)
            numbers = np.empty(len(words), dtype=np.int64)
            numbers[order] = np.r_[0, np.cumsum(new)]
            at = numbers[len(self.reports) :]
        if len(at) and at.max() >= len(self.reports):
            return None
        return at if np.array_equal(self.reports[at], reports) else None

    @cached_property
    def log_offset(self) -> float:
        """The sum of counts times `log_scale`: what the channel leaves out of the likelihood."""
        return float(self.counts @ self.log_scale)

    def __getstate__(self) -> dict[str, Any]:
        # Channels are rebuilt where they are needed: a tally travels to workers as reports and
        # counts only.
        state = {"mechanism": self.mechanism, "reports": self.reports, "counts": self.counts}
        return state if self._survey is None else state | {"_survey": self._survey}


def make_tally_part(
    mechanism: ReportModel, reports: NDArray[Any], counts: Ints | Floats | None = None
) -> TallyPart:
    """Make a part from reports that may repeat; raise ImpossibleReport if one has probability 0.

    Each report counts once by default.
    """
    counts = np.ones(len(reports), dtype=np.int64) if counts is None else counts
    # Reports with count 0 are allowed in the input, and left out.
    seen = counts > 0
    if not seen.any():
        raise ValueError(
            "the tally is empty: at least one report is needed, reports or counts hold none"
        )
    # The sum is checked first, because equal reports are added up below.
    arguments.refuse_too_many("counts", counts)
    if not seen.all():
        reports, counts = reports[seen], counts[seen]
    reports, counts = _distinct(reports, counts)
    part = TallyPart(mechanism, arguments.frozen(reports), arguments.frozen(counts))
    if not has_likelihood(mechanism) or (all_possible(mechanism) and _moderate(reports)):
        return part
    # A report is possible if the uniform distribution gives it a probability above 0.
    k = len(mechanism.alphabet)
    with np.errstate(over="ignore", invalid="ignore"):
        # If the density of a far report does not fit into a double, this is NaN or 0.
        likely = part.channel.forward(np.full(k, 1 / k)) > 0
    if not likely.all():
        raise ImpossibleReport(
            f"reports contains {part.reports[np.argmin(likely)]}, which no secret can produce "
            f"under {mechanism}; is this the mechanism that made the reports?"
        )
    return part


def merge_parts(parts: list[TallyPart]) -> TallyPart:
    """Join parts of equal mechanisms; the counts of equal reports are added up."""
    if len(parts) == 1:
        return parts[0]
    reports = np.concatenate([part.reports for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    merged = make_tally_part(parts[0].mechanism, reports, counts)
    if counts.dtype.kind == "i":
        return merged
    surveys, places = [], []
    for part in parts:
        survey, at = part.survey, merged.places(part.reports)
        if survey is None or at is None:
            return merged
        surveys.append(survey)
        places.append(at)
    return merged.with_survey(Survey.joined(surveys, places))


def has_likelihood(mechanism: Any) -> bool:
    """Return False if only sums of the mechanism's reports are known."""
    return bool(getattr(mechanism, "has_likelihood", True))


def all_possible(mechanism: Any) -> bool:
    """Return True if any secret may have made every report that `check_reports` takes.

    Such a mechanism sets `every_report_is_possible` in its own body: a class that inherits from it
    may have another law. A tally of its reports is then made without its channel, which may be a
    matrix.
    """
    return bool(vars(type(mechanism)).get("every_report_is_possible", False))


def _moderate(reports: NDArray[Any]) -> bool:
    """Return False if a real number is so large that its square is not a double."""
    # The logarithm of such a report's density does not fit into a double either.
    return reports.dtype.kind != "f" or max(reports.max(), -reports.min()) <= MAX_MODERATE


def on_alphabet(mechanism: Any, alphabet: Alphabet) -> Any:
    """Return the same mechanism on another alphabet."""
    return replace(mechanism, alphabet=alphabet)


def _distinct(reports: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sort the reports and add up the counts of equal ones."""
    # np.unique(axis=0) takes ten times as long for rows: it compares them as blocks of bytes.
    if reports.ndim == 1:
        # Reports that are sorted and distinct already need no work.
        if (reports[1:] > reports[:-1]).all():
            return reports.copy(), counts.copy()
        if reports.dtype.kind in "iu" and counts.dtype.kind in "iu":
            low, high = int(reports.min()), int(reports.max())
            if high - low < len(reports):
                # Integers close together are counted in one pass, without sorting them.
                totals = np.zeros(high - low + 1, dtype=counts.dtype)
                np.add.at(totals, reports - low, counts)
                seen = np.flatnonzero(totals)
                return (seen + low).astype(reports.dtype), totals[seen]
        order = np.argsort(reports, kind="stable")
    else:
        totals_of_rows = _totals_of_rows(reports, counts)
        if totals_of_rows is not None:
            return totals_of_rows
        order = order_of_rows(_words(reports))
    # Equal reports are neighbours now; each run of them begins where a report differs from the one
    # before.
    reports, counts = reports[order], counts[order]
    if reports.ndim == 1:
        differs = reports[1:] != reports[:-1]
    else:
        differs = reports[1:, 0] != reports[:-1, 0]
        alike = np.flatnonzero(~differs)
        differs[alike] = (reports[alike + 1] != reports[alike]).any(axis=1)
    if differs.all():
        return reports, counts
    first = np.r_[True, differs]
    starts = np.flatnonzero(first)
    if counts.dtype.kind == "f":
        # bincount adds one after the other: weights sum to the same all at once as step by step.
        return reports[starts], np.bincount(np.cumsum(first) - 1, counts)
    return reports[starts], np.add.reduceat(counts, starts)


def _totals_of_rows(
    rows: NDArray[Any], counts: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the sorted rows of integers and their counts by a table; None if too long."""
    if not (rows.dtype.kind in "iu" and counts.dtype.kind in "iu" and rows.shape[1]):
        return None
    table = row_table(rows, len(rows))
    if table is None:
        return None
    # The places in the table are in the order of the rows.
    totals = np.zeros(table.size, dtype=counts.dtype)
    np.add.at(totals, table.places(rows), counts)
    seen = np.flatnonzero(totals)
    return table.rows(seen), totals[seen]


def order_of_rows(rows: NDArray[Any]) -> NDArray[np.intp]:
    """Return the order that sorts rows by their columns, the first column first."""
    order = np.argsort(rows[:, 0], kind="stable")
    first = rows[order, 0]
    tied = np.flatnonzero(first[1:] == first[:-1])
    if not len(tied) or rows.shape[1] == 1:
        # Real numbers hardly ever repeat, and the other columns need not be looked at.
        return order
    # Only rows that share their first entry with another row are sorted by the other entries.
    # lexsort takes its last key as the first criterion.
    is_tied = np.zeros(len(rows), dtype=bool)
    is_tied[tied] = is_tied[tied + 1] = True
    places = np.flatnonzero(is_tied)
    rest = rows[order[places]]
    order[places] = order[places][np.lexsort(rest.T[::-1])]
    return order


def _words(rows: NDArray[Any]) -> NDArray[Any]:
    """Return packed bit rows as few 64-bit words in the same order; other rows unchanged."""
    if rows.dtype != np.uint8:
        return rows
    # Big-endian words compare as their bytes do, one after the other.
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 8)))
    return padded.view(">u8").astype(np.uint64)
