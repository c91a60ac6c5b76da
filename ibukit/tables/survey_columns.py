"""Columns of a survey beside its weights: strata, clusters and replicate weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints

# Names of the columns while they are counted.
STRATUM, CLUSTER, REPLICATE = "stratum", "cluster", "replicate"
ROWS, SQUARE, DEVIATION, PEOPLE = "rows", "square", "deviation", "people"


@dataclass(frozen=True)
class SurveyColumns:
    """Names of the columns that say how people were drawn."""

    strata: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    replicates: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return self.strata + self.clusters + self.replicates

    @property
    def roles(self) -> list[tuple[str, str]]:
        """Pairs of an argument and a name that it was given."""
        named = zip(
            ("strata", "clusters", "replicate_weights"),
            (self.strata, self.clusters, self.replicates),
            strict=True,
        )
        return [(role, name) for role, names in named for name in names]

    @property
    def sums(self) -> list[str]:
        """Internal names of the columns that are added up beside the weights."""
        replicates = [f"{REPLICATE}{i}" for i in range(len(self.replicates))]
        return [ROWS, SQUARE, DEVIATION, PEOPLE, *replicates]

    def named(self) -> list[Any]:
        """Return the columns under internal names."""
        listed = ((STRATUM, self.strata), (CLUSTER, self.clusters), (REPLICATE, self.replicates))
        return [
            nw.col(name).alias(f"{key}{i}") for key, names in listed for i, name in enumerate(names)
        ]

    def with_sums(self, frame: Any, weight: str) -> Any:
        """Return the frame with the columns that are added up, before reports are counted."""
        schema = frame.collect_schema()
        keys = [f"{REPLICATE}{i}" for i in range(len(self.replicates))]
        for key, name in zip(keys, self.replicates, strict=True):
            if not schema[key].is_numeric():
                raise ValueError(
                    f"column {name!r} must hold replicate weights, finite numbers, and is of type "
                    f"{schema[key]}"
                )
        # A missing or negative replicate weight becomes infinite, so that every sum shows it.
        refused = float("inf")
        replicates = [nw.col(key).cast(nw.Float64).fill_null(refused) for key in keys]
        replicates = [
            nw.when(each >= 0).then(each).otherwise(refused).alias(key)
            for each, key in zip(replicates, keys, strict=True)
        ]
        frame = frame.with_columns(*replicates) if keys else frame
        w = nw.col(weight)
        moved = [(nw.col(key) - w) * (nw.col(key) - w) for key in keys]
        deviation = nw.sum_horizontal(*moved) if moved else w * 0
        return frame.with_columns(
            (w > 0).cast(nw.Float64).alias(ROWS),
            (w * w).alias(SQUARE),
            deviation.alias(DEVIATION),
            (w >= 0).cast(nw.Float64).alias(PEOPLE),
        )


NO_SURVEY = SurveyColumns()


@dataclass(frozen=True)
class SurveyRows:
    """Columns of a survey beside the weights, a row for each row of a piece.

    Parameters
    ----------
    strata, clusters : ndarray of str, shape (s,), or None
    sums : ndarray, shape (4 + R, s)
        Number of reports of positive weight, sum of squared weights, sum of squared deviations of
        the replicate weights, number of all rows, and the sum of each replicate weight.
    """

    strata: NDArray[Any] | None
    clusters: NDArray[Any] | None
    sums: Floats

    @classmethod
    def read(cls, strata: Any, clusters: Any, sums: Floats) -> Self:
        """Return the rows of counted columns; raise ValueError for a bad replicate weight."""
        if not np.isfinite(sums[2:]).all():
            raise ValueError(
                "replicate_weights must name columns of finite numbers from 0 on, one has a "
                "missing, negative or infinite value"
            )
        return cls(_texts(strata), _texts(clusters), sums)

    @property
    def unweighted(self) -> SurveyRows | None:
        """The rows among which some have weight 0, or None."""
        some = self.sums[3] > self.sums[0]
        return self.take(some) if some.any() else None

    def take(self, rows: Ints | NDArray[np.bool_] | slice) -> SurveyRows:
        """Return some of the rows."""
        strata, clusters = (
            None if each is None else each[rows] for each in (self.strata, self.clusters)
        )
        return SurveyRows(strata, clusters, self.sums[:, rows])

    @classmethod
    def joined(cls, pieces: Sequence[SurveyRows | None]) -> SurveyRows | None:
        """Return all rows of several pieces of one table."""
        listed = [piece for piece in pieces if piece is not None]
        if not listed:
            return None
        first = listed[0]
        return cls(
            None if first.strata is None else np.concatenate([each.strata for each in listed]),
            None if first.clusters is None else np.concatenate([each.clusters for each in listed]),
            np.concatenate([each.sums for each in listed], axis=1),
        )


def survey_columns(
    weighted: bool, strata: Any, clusters: Any, replicate_weights: Any
) -> SurveyColumns:
    """Return the columns of a survey; raise ValueError if they do not go together."""
    given = {"strata": strata, "clusters": clusters, "replicate_weights": replicate_weights}
    names = {role: _names(role, value) for role, value in given.items()}
    for role, listed in names.items():
        if listed and not weighted:
            raise ValueError(
                f"{role} must be given with weighted=True and count, the column of weights, got "
                f"{given[role]!r} without; if all weigh the same, add a column of ones"
            )
    if names["replicate_weights"] and (names["strata"] or names["clusters"]):
        raise ValueError(
            "replicate_weights must be given without strata and clusters, which they already "
            f"express, got strata={strata!r}, clusters={clusters!r}; leave these out, or "
            "replicate_weights"
        )
    if len(names["replicate_weights"]) == 1:
        raise ValueError(
            "replicate_weights must name at least two columns, got one, "
            f"{names['replicate_weights'][0]!r}"
        )
    return SurveyColumns(*names.values())


def _names(role: str, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else arguments.items(role, value, "columns")
    if not names:
        raise ValueError(f"{role} must name a column, or several, got none; leave it out")
    if any(name is None for name in names):
        raise ValueError(f"{role} must name columns of the table, got None; leave None out")
    shown = [repr(name) for name in names]
    if len(set(shown)) < len(shown):
        raise ValueError(f"{role} must name each column once, got {', '.join(shown)}")
    return tuple(names)


def _texts(names: Any) -> NDArray[Any] | None:
    """Return names of strata or clusters as texts, by which those of other tables are found."""
    if names is None:
        return None
    return np.array([_text(values) for values in names.tolist()], dtype=object)


def _text(values: tuple[Any, ...]) -> str:
    # A column of integers with a missing value is one of floats.
    texts = [
        str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for value in values
    ]
    return texts[0] if len(texts) == 1 else json.dumps(texts)
