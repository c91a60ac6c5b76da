"""Reports of a table by mechanism; missing and unknown ones are refused, or dropped and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit._ground.doors import words_of
from ibukit.domain.grid import Grid
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch, TooLarge
from ibukit.tables.columns import Columns, Piece, names_of_groups
from ibukit.tables.mechanism_choice import MechanismChoice
from ibukit.tables.places import (
    advice,
    codes_of_cells,
    points_or_cells,
    read_pairs,
    refuse_action,
    refuse_geometries,
    require_pairs,
    with_degrees,
)
from ibukit.tables.readers import open_table
from ibukit.tables.report_codes import (
    bit_rows,
    codes_of_tuples,
    codes_of_values,
    has_tuples,
    number_in,
    numbered_bits,
    numbers_in_rows,
    rows_of_lists,
)
from ibukit.tables.report_forms import accepted_by, has_bit_texts, name_of, reports_of
from ibukit.tables.survey_columns import NO_SURVEY, SurveyColumns, SurveyRows


class Group(NamedTuple):
    """Reports of one mechanism in the form that its `tally` takes, with their counts."""

    mechanism: Any
    reports: NDArray[Any]
    counts: Ints
    codes: bool
    owners: Ints
    """Number of the group that each report belongs to, a place in `TableReports.owners`."""
    survey: SurveyRows | None = None
    """Columns of a survey beside the weights."""


class TableReports:
    """The reports of a table: iterate over `groups`, then read what was `dropped`.

    Parameters
    ----------
    table, mechanism, report, count, epsilon, by, unknown, missing, weighted, groups
        As for `Tally.from_table`.
    survey : SurveyColumns
        Its strata, clusters and replicate weights.
    """

    def __init__(
        self,
        table: Any,
        mechanism: Any,
        report: str | Sequence[str],
        count: str | None = None,
        epsilon: str | None = None,
        by: str | Sequence[str] | None = None,
        unknown: str = "raise",
        missing: str = "raise",
        weighted: bool = False,
        groups: str | Sequence[str] | None = None,
        survey: SurveyColumns = NO_SURVEY,
    ) -> None:
        for name, action in (("unknown", unknown), ("missing", missing)):
            if not arguments.is_one_of(action, words := words_of("Tally.from_table", name)):
                raise ValueError(f"{name} must be {arguments.choices(words)}, got {action!r}")
        if arguments.flag("weighted", weighted) and count is None:
            raise ValueError(
                "count must name the column of weights where weighted is True, got None"
            )
        self._action = {"unknown": unknown, "missing": missing}
        self._choose = MechanismChoice(mechanism, epsilon, by)
        table, report = with_degrees(table, report)
        self._table = open_table(table)
        report_columns = (
            (report,)
            if isinstance(report, str)
            else arguments.items("report", report, "a column, or several")
        )
        owners = names_of_groups(groups)
        self.columns = Columns(
            report_columns, self._choose.columns, count, weighted, owners, survey
        )
        self._check_columns()
        self.dropped: dict[str, int] = {}
        # Groups of the table with their numbers, in the order of first occurrence.
        self.owners: dict[tuple[Any, ...], int] = {}
        # What was dropped of each group, by its number.
        self.dropped_of: dict[int, dict[str, int]] = {}
        # Codes, counts and owners of reports that can be listed, by the id of their mechanism.
        self._listed: dict[int, tuple[Any, list[tuple[Any, ...]]]] = {}
        self._unweighted: list[SurveyRows | None] = []

    def _check_columns(self) -> None:
        names = self._table.names
        # All names are checked before anything is read, so that a misspelt one costs no time.
        roles: list[tuple[str, str | None]] = [("report", name) for name in self.columns.report]
        roles += [("epsilon or by", name) for name in self.columns.by]
        roles += [("groups", name) for name in self.columns.groups]
        roles += [("count", self.columns.count), *self.columns.survey.roles]
        if not self.columns.report:
            raise ValueError("report must name a column, or several, got none")
        for role, name in roles:
            if name is not None and not _is_in(names, name):
                shown = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
                raise ValueError(
                    f"{role} must name a column of the table, got {name!r}; the columns are {shown}"
                )

    def groups(self) -> Iterator[Group]:
        """Yield reports by mechanism; those that can be listed come last, added up."""
        total = 0.0
        try:
            for piece in self._table.pieces(self.columns):
                # Each piece holds less than 2^63 reports, but all pieces together may hold more.
                total += float(piece.counts.sum(dtype=np.float64))
                arguments.refuse_total("table's counts", total, whole=not self.columns.weighted)
                for mechanism, rows in self._by_mechanism(piece):
                    yield from self._groups_of(mechanism, piece, rows)
        except ValueError as error:
            # In a text file the line of the first refused row is looked for.
            located = self._table.find(self.columns, self.check)
            if located is None:
                raise
            line, reason = located
            named = (each for each in (AlphabetMismatch, TooLarge) if isinstance(reason, each))
            kind: type[Exception] = next(named, ValueError)
            raise kind(f"{line}: {reason}") from error
        # Codes take little room, so they are collected over all pieces and tallied at once.
        for mechanism, pieces in self._listed.values():
            *columns, surveys = zip(*pieces, strict=True)
            codes, counts, owners = map(np.concatenate, columns)
            if counts.any():
                yield Group(mechanism, codes, counts, True, owners, SurveyRows.joined(surveys))

    @property
    def unweighted(self) -> SurveyRows | None:
        """Rows of known reports among which some have weight 0, after `groups`; or None."""
        return SurveyRows.joined(self._unweighted)

    def order(self, mechanism: Any) -> tuple[Any, ...]:
        """Return the place of a mechanism, the same in whatever order an engine reads rows."""
        return self._choose.order(mechanism)

    def check(self, piece: Piece) -> None:
        """Raise the error that `groups` would raise at this piece."""
        for mechanism, rows in self._by_mechanism(piece):
            list(self._groups_of(mechanism, piece, rows))

    def takes(self, report: Any) -> bool:
        """Return whether the one mechanism of the table can make a report."""
        # The report becomes a piece of one row, which is accepted if checking it raises no error.
        values = np.empty(1, dtype=object)
        values[0] = report
        try:
            self.check(Piece(values, np.zeros(1, dtype=bool), None, np.ones(1, dtype=np.int64)))
        except ValueError:
            return False
        return True

    def _by_mechanism(self, piece: Piece) -> Iterator[tuple[Any, Ints]]:
        """Yield each mechanism with the indices of its rows; refuse or drop all other rows."""
        if piece.missing.any():
            self._leave_out("missing", piece, np.flatnonzero(piece.missing), self._missing)
        present = np.flatnonzero(~piece.missing)
        if piece.by is None:
            yield self._choose(()), present
            return
        # Rows are grouped by the values that name their mechanism, in the order of first
        # occurrence.
        named: dict[tuple[Any, ...], list[int]] = {}
        for row, values in zip(present.tolist(), piece.by[present].tolist(), strict=True):
            try:
                named.setdefault(values, []).append(row)
            except TypeError:
                raise ValueError(
                    f"{self._choose.shown(values)}, lists, which cannot name a mechanism: make "
                    "them strings or numbers"
                ) from None
        for values, rows in named.items():
            at = np.array(rows, dtype=np.int64)
            try:
                mechanism = self._choose(values)
            except AlphabetMismatch as unknown:
                self._leave_out("unknown", piece, at, partial(_itself, unknown))
            else:
                yield mechanism, at

    def _groups_of(self, mechanism: Any, piece: Piece, rows: Ints) -> Iterator[Group]:
        """Yield the reports of one mechanism; those that can be listed are kept for the end."""
        original = values = piece.values[rows]
        counts, owners = piece.counts[rows], self._numbers_of_owners(piece, rows)
        # Reports with labels become codes; other kinds are passed on as bits, rows or numbers.
        kind = mechanism.report_kind
        alphabet = mechanism.report_alphabet if kind is ReportKind.LABELS else None
        grid = mechanism.alphabet if kind in (ReportKind.POINTS, ReportKind.CELLS) else alphabet
        refuse_action(self._action["unknown"], mechanism, grid)
        if isinstance(grid, Grid):
            refuse_geometries(values, self.columns.report)
            require_pairs(self.columns.report, mechanism, grid)
        has_parts = alphabet is not None and not isinstance(alphabet, Grid) and values.ndim == 2
        if values.ndim == 2 and not (has_parts or has_bit_texts(values, mechanism)):
            values = numbers_in_rows(values)
        if alphabet is None:
            reports, known = self._rows(values, mechanism)
            if self._action["unknown"] == "drop" and kind is not ReportKind.POINTS:
                known[known] = accepted_by(mechanism, reports[known])
        else:
            reports = self._codes(values, alphabet, mechanism)
            known = reports >= 0
        if not known.all():
            error = partial(self._unknown, original[~known], mechanism)
            self._leave_out("unknown", piece, rows[~known], error)
        # Unknown reports have been refused, or counted as dropped.
        reports, counts, owners = reports[known], counts[known], owners[known]
        survey = None if piece.survey is None else piece.survey.take(rows[known])
        # People without weight make no report of a tally, but belong to its sample.
        self._unweighted.append(None if survey is None else survey.unweighted)
        if alphabet is not None:
            pieces = self._listed.setdefault(id(mechanism), (mechanism, []))[1]
            pieces.append((reports, counts, owners, survey))
        elif counts.any():
            # Points have been read already; without the mark they would be looked at once more.
            yield Group(mechanism, reports, counts, kind is ReportKind.POINTS, owners, survey)

    def _numbers_of_owners(self, piece: Piece, rows: Ints) -> Ints:
        """Return the number of the group of each row, 0 in a table without groups."""
        if piece.owners is None:
            return np.zeros(len(rows), dtype=np.int64)
        named = piece.owners[rows].tolist()
        try:
            return np.array(
                [self.owners.setdefault(owner, len(self.owners)) for owner in named],
                dtype=np.int64,
            )
        except TypeError:
            raise ValueError(
                f"groups must name columns of strings, numbers or dates, {self.columns.groups} "
                "hold lists, which cannot name a group: make them strings"
            ) from None

    def _codes(self, values: NDArray[Any], alphabet: Any, mechanism: Any) -> Ints:
        # Cells have two columns, all other labels one.
        named = list(self.columns.report)
        if isinstance(alphabet, Grid):
            pairs = read_pairs(values, named, alphabet)
            return codes_of_cells(pairs, alphabet, self._action["unknown"] == "nearest")
        if len(named) > 1:
            if has_tuples(alphabet, len(named)):
                return codes_of_tuples(values, alphabet, self._table.textual)
            raise ValueError(
                f"report must name one column for {name_of(mechanism)}, got {named}; labels of "
                f"{len(named)} parts are tuples, as in RandomizedResponse([(a, b), ...])"
            )
        return codes_of_values(values, alphabet, self._table.textual)

    def _rows(self, values: NDArray[Any], mechanism: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if mechanism.report_kind is ReportKind.BITS:
            return bit_rows(values, mechanism.k)
        if mechanism.report_kind in (ReportKind.POINTS, ReportKind.CELLS):
            return points_or_cells(values, self.columns.report, mechanism)
        if has_bit_texts(values, mechanism):
            return numbered_bits(values, mechanism._bits)
        if values.ndim == 1 and mechanism.report_kind is ReportKind.ROWS:
            values = rows_of_lists(values)
        if values.ndim == 2:
            known = np.isfinite(values).all(axis=1)
            return np.where(known[:, None], values, 0), known
        if values.dtype != object:
            return values, np.ones(len(values), dtype=bool)
        # The mechanism itself judges numbers: here only values that are not numbers are marked.
        # Numbers that are written as texts are parsed, in a file and in a column of a frame.
        read: list[Any] = [number_in(v) if isinstance(v, str) else v for v in values.tolist()]
        good = [isinstance(value, Real) and not isinstance(value, bool) for value in read]
        numbers = [value if fine else 0 for value, fine in zip(read, good, strict=True)]
        return np.array(numbers), np.array(good, dtype=bool)

    def _leave_out(
        self, reason: str, piece: Piece, rows: Ints, error: Callable[[], Exception]
    ) -> None:
        # A report that can be neither moved to the nearest cell nor kept is refused or dropped.
        if self._action[reason] != "drop":
            raise error()
        counts = piece.counts[rows]
        self.dropped[reason] = self.dropped.get(reason, 0) + counts.sum().item()
        if piece.owners is None:
            return
        # A row whose group itself is missing belongs to no group.
        owned = np.array([owner is not None for owner in piece.owners[rows]], dtype=bool)
        owners = self._numbers_of_owners(piece, rows[owned])
        for owner, count in zip(owners.tolist(), counts[owned].tolist(), strict=True):
            lost = self.dropped_of.setdefault(owner, {})
            lost[reason] = lost.get(reason, 0) + count

    def _missing(self) -> Exception:
        columns = ", ".join(map(repr, self.columns.report))
        survey = (*self.columns.survey.strata, *self.columns.survey.clusters)
        names = (*self.columns.by, *self.columns.groups, *survey)
        other = "".join(f" or {name!r}" for name in names)
        return ValueError(
            f"column {columns}{other} has missing values; fill them in, or leave these reports out "
            'by missing="drop", which is right only if they are like the others'
        )

    def _unknown(self, values: NDArray[Any], mechanism: Any) -> Exception:
        rows = values.tolist()
        labels = (tuple(row) if isinstance(row, list) else row for row in rows)
        shown = list(dict.fromkeys(map(arguments.brief, labels)))
        more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
        columns = ", ".join(map(repr, self.columns.report))
        which = "which is not a report" if len(shown) == 1 else "which are not reports"
        return AlphabetMismatch(
            f"column {columns} contains {', '.join(shown[:3])}{more}, {which} of "
            f"{name_of(mechanism)}: its reports are {reports_of(mechanism)}; "
            f"{advice(values, self.columns.report, getattr(mechanism, 'alphabet', None))}"
        )


def _itself(error: Exception) -> Exception:
    return error


def _is_in(names: Sequence[str], name: Any) -> bool:
    """Return whether a column has this name."""
    # A value without a hash, such as an array, is not a name; `in` a list would compare elements.
    try:
        return name in set(names)
    except TypeError:
        return False
