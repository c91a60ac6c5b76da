"""The columns of a table that are read, and pieces of the table counted by its own engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit._ground.extras import EXTRAS, missing_extra
from ibukit.tables.arrow_views import has_whole_views
from ibukit.tables.survey_columns import CLUSTER, NO_SURVEY, STRATUM, SurveyColumns, SurveyRows

# Names of the columns while they are counted; the table's own names may clash.
BY, OWNER, COUNT, BAD = "by", "owner", "count", "bad"
# The sum of counts as a double, which shows where their sum as integers exceeds 64 bits.
TOTAL = "total"
# The largest double below 2^63, so that doubles and integers are compared alike, and the step
# between it and its neighbour.
MAX_COUNT, STEP = 2**63 - 2**10, 2**10


@dataclass(frozen=True)
class Piece:
    """Counted reports: each row is a report with its count.

    Parameters
    ----------
    values : ndarray, shape (s,) or (s, width)
        Labels as Python objects or numbers; rows if a report has several columns or is a list.
    missing : ndarray of bool, shape (s,)
        True if the report or the value that names its mechanism is missing.
    by : ndarray of object, shape (s,), or None
        Tuples of the values that name the mechanism.
    counts : ndarray of int, shape (s,)
        Floats, if they are sums of weights.
    owners : ndarray of object, shape (s,), or None
        Tuples of the values that name the group to which a report belongs; None for a tuple of
        which a value is missing.
    survey : SurveyRows or None
        What else is known of the weights.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_]
    by: NDArray[Any] | None
    counts: Ints
    owners: NDArray[Any] | None = None
    survey: SurveyRows | None = None


@dataclass(frozen=True)
class Columns:
    """Names of the columns that hold the report, name the mechanism, and hold the counts."""

    report: tuple[str, ...]
    by: tuple[str, ...]
    count: str | None
    weighted: bool = False
    """True if the counts are weights, any numbers from 0 on."""
    groups: tuple[str, ...] = ()
    """Columns that name the groups, if each gets a tally of its own."""
    survey: SurveyColumns = NO_SURVEY

    def named(self, frame: Any) -> Any:
        """Return the used columns under internal names; lazy frames stay lazy."""
        selected = [
            nw.col(name).alias(key) for name, key in zip(self.report, self.keys, strict=False)
        ]
        selected += [nw.col(name).alias(f"{BY}{i}") for i, name in enumerate(self.by)]
        selected += [nw.col(name).alias(f"{OWNER}{i}") for i, name in enumerate(self.groups)]
        selected += self.survey.named()
        if self.count is not None:
            selected.append(nw.col(self.count).alias(COUNT))
        self._refuse_extensions(frame)
        frame = _groupable(frame.select(*selected))
        if self.count is None:
            return frame
        try:
            return self._whole_counts(frame)
        except ValueError as error:
            # Arrow alone compares numbers of 64 bits without a sign by making them integers.
            if not type(error).__module__.startswith("pyarrow"):
                raise
            raise ValueError(
                f"column {self.count!r} must hold {self.wanted_counts} below 2^63: {error}"
            ) from None

    @property
    def wanted(self) -> list[str]:
        """The table's own names of the columns that are used, each once."""
        names = dict.fromkeys(
            [*self.report, *self.by, *self.groups, *self.survey.names, self.count]
        )
        return [name for name in names if name is not None]

    @property
    def wanted_counts(self) -> str:
        """The values that the column of counts must hold, in words."""
        return "weights, finite numbers" if self.weighted else "counts, whole numbers"

    @property
    def keys(self) -> list[str]:
        """Internal names of the columns to group by: report, mechanism, group and unit."""
        units = ((STRATUM, self.survey.strata), (CLUSTER, self.survey.clusters))
        counted = (("report", self.report), (BY, self.by), (OWNER, self.groups), *units)
        return [f"{role}{i}" for role, names in counted for i in range(len(names))]

    def worth_grouping(self, frame: Any) -> bool:
        """Return whether reports repeat so often that grouping them pays."""
        schema = frame.collect_schema()
        owners = self.keys[len(self.report) + len(self.by) :]
        # Engines cannot group by lists, which `TableReports` then refuses by name.
        if any(_holds_lists(frame, schema[name], name) for name in owners):
            return False
        kinds = [schema[f"report{i}"] for i in range(len(self.report))]
        # Of reports in several columns, cells (row, column) repeat; coordinates and bits rarely do.
        if len(kinds) > 1:
            return len(kinds) == 2 and all(kind.is_integer() for kind in kinds)
        return not _holds_lists(frame, kinds[0])

    def grouped(self, frame: Any) -> nw.DataFrame[Any]:
        """Return the distinct reports of a frame from `named`, with their counts."""
        # The engine of the table groups and counts; only distinct reports are collected.
        groups = frame.group_by(self.keys)
        if self.count is None:
            return collected(groups.agg(nw.len().alias(COUNT)))
        rows = collected(groups.agg(*self._sums(), nw.col(BAD).sum()))
        self._refuse_bad_counts(rows, frame)
        return rows.drop(BAD)

    def added(self, parts: list[nw.DataFrame[Any]]) -> nw.DataFrame[Any]:
        """Return the sum of several results of `grouped`."""
        if len(parts) == 1:
            return parts[0]
        return collected(nw.concat(parts).group_by(self.keys).agg(*self._sums()))

    def _sums(self) -> list[Any]:
        more = self.survey.sums if self.weighted else [] if self.count is None else [TOTAL]
        return [nw.col(name).sum() for name in [COUNT, *more]]

    def piece(self, rows: nw.DataFrame[Any]) -> Piece:
        """Return the reports of a computed frame, whether its rows are grouped or not."""
        if BAD in rows.columns:
            self._refuse_bad_counts(rows, rows)
        if TOTAL in rows.columns:
            arguments.refuse_total(f"column {self.count!r}", float(rows[TOTAL].sum()))
        if len(self.report) > 1:
            values, missing = _matrix([rows[f"report{i}"] for i in range(len(self.report))])
        elif _holds_lists(rows, rows.schema["report0"]):
            values = _objects(rows["report0"].to_list())
            missing = np.array([_has_missing(row) for row in values], dtype=bool)
        else:
            values, missing = _values(rows["report0"])
        # A row without a mechanism or a group counts as missing, too.
        by, unnamed = _tuples(rows, BY, len(self.by))
        owners, unowned = _tuples(rows, OWNER, len(self.groups))
        if owners is not None:
            owners[unowned] = None
        survey = None
        if self.weighted:
            units = [_tuples(rows, STRATUM, len(self.survey.strata))]
            units.append(_tuples(rows, CLUSTER, len(self.survey.clusters)))
            sums = np.array([rows[name].to_numpy() for name in self.survey.sums], dtype=float)
            survey = SurveyRows.read(units[0][0], units[1][0], sums)
            unowned = unowned | units[0][1] | units[1][1]
        missing = missing | unnamed | unowned
        kind = float if self.weighted else int
        counts = (
            [kind(n) for n in rows[COUNT].to_list()]
            if COUNT in rows.columns
            else np.ones(len(rows))
        )
        return Piece(values, missing, by, np.asarray(counts, dtype=kind), owners, survey)

    def _whole_counts(self, frame: Any) -> Any:
        """Return the frame with wide counts and a column that marks the counts that are refused."""
        dtype = frame.collect_schema()[COUNT]
        if not dtype.is_numeric():
            raise ValueError(
                f"column {self.count!r} must hold {self.wanted_counts}, and is of type {dtype}"
            )
        # A count is bad if it is missing, negative or not whole; a weight, if missing, negative or
        # infinite.
        n = nw.col(COUNT)
        bad, wide, total = n.is_null() | (n < 0), n, n
        if self.weighted:
            wide = n.cast(nw.Float64)
            bad = bad | ~wide.is_finite()
        elif dtype.is_integer():
            # In some engines the sum of narrow integers overflows, in others the cast of wide ones.
            if dtype in (nw.UInt64, nw.Int128, nw.UInt128):
                large = n // STEP > MAX_COUNT // STEP
                bad = bad | large
                wide = nw.when(~large).then(n).otherwise(0)
            wide = wide.cast(nw.Int64)
            # Arrow refuses to make doubles of integers that do not fit exactly, hence the division.
            total = n // STEP
        else:
            bad = bad | (n.round(0) != n) | (n > float(MAX_COUNT))
        added = [bad.cast(nw.Int64).fill_null(1).alias(BAD), wide.alias(COUNT)]
        if self.weighted:
            return self.survey.with_sums(frame.with_columns(*added), COUNT)
        total = total.cast(nw.Float64) * (STEP if dtype.is_integer() else 1)
        return frame.with_columns(*added, total.alias(TOTAL))

    def _refuse_extensions(self, frame: Any) -> None:
        """Raise ValueError if Arrow holds what only another library can read, such as intervals."""
        if not frame.implementation.is_pyarrow():
            return
        for name in self.wanted:
            kind = str(frame.to_native().schema.field(name).type)
            if kind.startswith("extension<"):
                raise ValueError(
                    f"column {name!r} must be of a type that Arrow can count, got {kind}: give the "
                    "table as pandas has it, table.to_pandas()"
                )

    def _refuse_bad_counts(self, rows: nw.DataFrame[Any], frame: Any) -> None:
        if not len(rows) or not rows[BAD].sum():
            return
        # One bad value is fetched for the message.
        shown_of = COUNT if self.weighted else TOTAL
        bad = collected(frame.filter(nw.col(BAD) > 0).head(1))
        value, total = bad[COUNT].to_list()[0], bad[shown_of].to_list()[0]
        # A count too large for its column was replaced by 0 there, so the total is shown.
        value = total if total is not None and total > MAX_COUNT else value
        missing = value is None or value != value
        shown = "a missing value" if missing else repr(value)
        large = not self.weighted and value is not None and value > MAX_COUNT
        fraction = not self.weighted and not large and value is not None and value > 0
        hint = "; say weighted=True if these are weights" if fraction else ""
        hint = f"; a count is at most {MAX_COUNT}, less than 2^63" if large else hint
        if missing:
            # How much such a row stands for is unknown, so `dropped` could not count it.
            hint = (
                '; missing="drop" does not cover it: fill it in, or remove its row, which is right '
                "only if it is like the others"
            )
        raise ValueError(
            f"column {self.count!r} must hold {self.wanted_counts} from 0 on, but it contains "
            f"{shown}{hint}"
        )


def names_of_groups(groups: Any) -> tuple[str, ...]:
    """Return the columns of the groups; none if no groups are asked for."""
    if groups is None:
        return ()
    names = (groups,) if isinstance(groups, str) else arguments.items("groups", groups, "columns")
    if not names:
        raise ValueError(
            "groups must name a column, or several, got none; leave it out for one tally"
        )
    if any(name is None for name in names):
        raise ValueError("groups must name columns of the table, got None; leave None out")
    # A value without a hash is no name; the check of the columns refuses it.
    shown = [repr(name) for name in names]
    if len(set(shown)) < len(shown):
        raise ValueError(f"groups must name each column once, got {', '.join(shown)}")
    return tuple(names)


def collected(frame: Any) -> nw.DataFrame[Any]:
    """Return the computed rows of a lazy frame."""
    if not isinstance(frame, nw.LazyFrame):
        return cast("nw.DataFrame[Any]", frame)
    try:
        return frame.collect()
    except ModuleNotFoundError as error:
        # A package that no extra of ours installs is for the frame's own library to explain.
        if error.name not in EXTRAS:
            raise
        raise missing_extra("this table", error.name) from error


def _groupable(frame: Any) -> Any:
    """Return the frame with half precision widened, and dictionaries and views of Arrow decoded."""
    # pandas cannot group by numbers of half precision.
    half = [name for name, dtype in frame.collect_schema().items() if str(dtype) == "Float16"]
    if half:
        frame = frame.with_columns(nw.col(*half).cast(nw.Float64))
    # Arrow cannot group chunks whose dictionaries differ.
    if not frame.implementation.is_pyarrow():
        return frame
    from pyarrow import types

    table = frame.to_native()
    for place, field in enumerate(table.schema):
        value_type = getattr(field.type, "value_type", None)
        if str(field.type).startswith("dictionary"):
            table = table.set_column(place, field.name, table.column(place).cast(value_type))
        elif types.is_string_view(field.type) and not has_whole_views():
            table = table.set_column(place, field.name, table.column(place).cast("large_string"))
    return nw.from_native(table)


def _holds_lists(frame: Any, dtype: Any, name: str = "report0") -> bool:
    if isinstance(dtype, (nw.List, nw.Array)):
        return True
    if not isinstance(dtype, nw.Object) or isinstance(frame, nw.LazyFrame):
        return False
    # Columns of Python objects have no type; their first value decides.
    first = frame.select(name).drop_nulls().head(1)[name].to_list()
    return bool(first) and isinstance(first[0], (list, tuple, np.ndarray))


def _objects(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    # numpy alone would turn lists of one length into a matrix.
    for index, value in enumerate(values):
        array[index] = value
    return array


def _tuples(
    rows: nw.DataFrame[Any], role: str, width: int
) -> tuple[NDArray[Any] | None, NDArray[np.bool_]]:
    """Return the values of several columns as tuples, and whether a value of each is missing."""
    if not width:
        return None, np.zeros(len(rows), dtype=bool)
    columns = [_values(rows[f"{role}{i}"]) for i in range(width)]
    tuples = _objects(list(zip(*(values.tolist() for values, _ in columns), strict=True)))
    return tuples, np.logical_or.reduce([missing for _, missing in columns])


def _values(column: nw.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a column and whether each is missing, as null or NaN."""
    import pandas as pd

    if column.dtype.is_integer() and not column.null_count():
        return np.asarray(column.to_numpy()), np.zeros(len(column), dtype=bool)
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_list()
    return values, np.asarray(pd.isna(values), dtype=bool)


def _matrix(columns: list[nw.Series[Any]]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return columns side by side as a matrix, and whether a value of each row is missing."""
    # A row is missing if any of its columns is.
    pairs = [_numbers(column) for column in columns]
    missing = np.logical_or.reduce([lost for _, lost in pairs])
    return np.column_stack([values for values, _ in pairs]), missing


def _numbers(column: nw.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if column.null_count() or not (
        column.dtype.is_numeric() or isinstance(column.dtype, nw.Boolean)
    ):
        values, missing = _values(column)
        # Missing rows are dropped later; 0 only keeps the type of the column.
        filled = np.where(missing, 0, values)
        # Integers stay integers although one is missing: they are cells, floats would be degrees.
        return filled.astype(np.int64) if column.dtype.is_signed_integer() else filled, missing
    values = np.asarray(column.to_numpy())
    values = values.astype(np.uint8) if values.dtype == bool else values
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)
    return np.where(missing, 0, values), missing


def _has_missing(row: Any) -> bool:
    return row is None or any(value is None or value != value for value in row)
