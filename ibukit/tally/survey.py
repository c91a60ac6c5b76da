"""Weights, strata, clusters and replicate weights of a survey, and variances by its design.

The total of values u over the reports, T = sum_i w_i u_i, has by the design the variance

    V = sum_h n_h / (n_h - 1) sum_c (T_hc - m_h) (T_hc - m_h)^T,

with T_hc the sum of w_i u_i over the reports of cluster c in stratum h, n_h the number of clusters
of the stratum, and m_h their mean. Without clusters each report is a cluster of its own; without
strata there is one stratum. The score of a weighted maximum likelihood estimate is such a total
(Binder 1983). Over all reports this score sums to 0 if the estimate is inside the simplex. At the
boundary it need not, so the mean of all clusters is subtracted from m_h: a single stratum is then
centred at 0, as the model assumes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import stdtrit

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.errors import WeightsRefused
from ibukit.files.json_values import storable
from ibukit.tally.table_share import TableShare, units_elsewhere

# Number in the place of a cluster for reports that are units of their own.
NO_CLUSTER = -1
# Replicate weights sum to about what the weights sum to; factors without the weight do not.
MAX_RATIO_OF_SUMS = 2.0
# Sums of squared weights between these have all their digits, whatever their number: squares below
# the doubles are then too small to matter, and the square of the sum of 10^20 weights is a double.
MIN_SUM_OF_SQUARES, MAX_SUM_OF_SQUARES = 1e-280, 1e280


@storable
@dataclass(frozen=True, eq=False)
class Survey(arguments.ReadOnlyArrays):
    """Sums of the weights of reports by distinct report, stratum and cluster.

    Parameters
    ----------
    at : ndarray of int, shape (e,)
        Place of the distinct report of the tally to which an entry belongs.
    stratum, cluster : ndarray of int, shape (e,)
        Places in `strata` and `clusters`; `NO_CLUSTER` if each report is a unit of its own.
    weights, squares, rows : ndarray, shape (e,)
        Sums of the weights and of their squares, and the number of reports.
    replicates : ndarray, shape (R, e)
        Sums of each replicate weight; R is 0 if there are none.
    deviations : ndarray, shape (e,)
        Sums of the squared differences between replicate weights and weights.
    strata, clusters : tuple of str
        Names, by which they are recognised when tallies are added.
    shares : tuple of TableShare
        The tables of which these reports are parts; their other units belong to the strata, too.
    """

    at: Ints
    stratum: Ints
    cluster: Ints
    weights: Floats
    squares: Floats
    rows: Floats
    replicates: Floats
    deviations: Floats
    strata: tuple[str, ...]
    clusters: tuple[str, ...]
    shares: tuple[TableShare, ...] = ()

    def __post_init__(self) -> None:
        """Check the shapes, because the sums may come from a file."""
        e = (len(self.at),)
        vectors = (self.stratum, self.cluster, self.weights, self.squares, self.rows)
        if any(each.shape != e for each in (*vectors, self.deviations)):
            raise ValueError(f"a survey must have vectors of one length, {e[0]}")
        if self.replicates.shape[1:] != e:
            raise ValueError("a survey must have replicates by entry")

    def _refuse_other_content(self) -> None:
        """Raise ValueError for sums that a file may hold, but no weights have."""
        for name, places, least, end in (
            ("at", self.at, 0, None),
            ("stratum", self.stratum, 0, len(self.strata)),
            ("cluster", self.cluster, NO_CLUSTER, len(self.clusters)),
        ):
            beyond = end is not None and (places >= end).any()
            if places.dtype.kind != "i" or (places < least).any() or beyond:
                raise ValueError(f"{name} of a survey must be places in its lists")
        for name in ("weights", "squares", "rows", "deviations", "replicates"):
            sums = getattr(self, name)
            if not np.isfinite(sums).all() or (name != "replicates" and (sums < 0).any()):
                raise ValueError(f"{name} of a survey must be finite and not negative")
        if not all(isinstance(share, TableShare) for share in self.shares):
            raise ValueError("shares of a survey must be those of tables")

    @classmethod
    def of_rows(
        cls,
        at: Ints,
        weights: Floats,
        *,
        squares: Floats | None = None,
        rows: Floats | None = None,
        stratum: Sequence[str] | None = None,
        cluster: Sequence[str] | None = None,
        replicates: Floats | None = None,
        deviations: Floats | None = None,
    ) -> Self:
        """Return the survey of rows, by default of one report each, without strata or clusters."""
        e = len(at)
        strata, strata_of = _names(["" for _ in range(e)] if stratum is None else stratum)
        clusters, clusters_of = _names(cluster or ())
        # Squares may overflow: only what needs them is then refused, by `sum_of_squares`.
        with np.errstate(over="ignore"):
            squares = weights**2 if squares is None else squares
        found = cls(
            at=at,
            stratum=strata_of,
            cluster=np.full(e, NO_CLUSTER) if cluster is None else clusters_of,
            weights=weights,
            squares=squares,
            rows=np.ones(e) if rows is None else rows,
            replicates=np.zeros((0, e)) if replicates is None else replicates,
            deviations=np.zeros(e) if deviations is None else deviations,
            strata=strata,
            clusters=clusters,
        )
        return found._summed()

    @classmethod
    def of_counts(cls, counts: Ints) -> Self:
        """Return the survey of reports that count once each."""
        ones = counts.astype(float)
        return cls.of_rows(np.arange(len(counts)), ones, squares=ones, rows=ones)

    @classmethod
    def joined(cls, surveys: Sequence[Survey], places: Sequence[Ints]) -> Self:
        """Return the survey of all reports; each survey has new places among the distinct reports.

        Strata and clusters of the same name are the same in all of the surveys.
        """
        if len({len(survey.replicates) for survey in surveys}) > 1:
            raise WeightsRefused(
                "weighted tallies can be added only if they have equally many replicate weights, "
                f"or none, got {sorted({len(survey.replicates) for survey in surveys})}: estimate "
                "each alone"
            )
        strata, strata_of = _names([name for each in surveys for name in each.strata])
        clusters, clusters_of = _names([name for each in surveys for name in each.clusters])
        h = c = 0
        stratum, cluster = [], []
        for survey in surveys:
            own, ours = len(survey.strata), len(survey.clusters)
            stratum.append(strata_of[h : h + own][survey.stratum])
            # The last place of the list is that of reports without a cluster.
            named = np.r_[clusters_of[c : c + ours], NO_CLUSTER]
            cluster.append(named[survey.cluster])
            h, c = h + own, c + ours

        def column(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(survey, name) for survey in surveys], axis=-1)

        found = cls(
            at=np.concatenate([new[each.at] for each, new in zip(surveys, places, strict=True)]),
            stratum=np.concatenate(stratum),
            cluster=np.concatenate(cluster),
            weights=column("weights"),
            squares=column("squares"),
            rows=column("rows"),
            replicates=column("replicates"),
            deviations=column("deviations"),
            strata=strata,
            clusters=clusters,
            shares=tuple(chain.from_iterable(survey.shares for survey in surveys)),
        )
        return found._summed()

    def sharing(self, *shares: TableShare) -> Self:
        """Return the survey of reports that are parts of more tables."""
        return replace(self, shares=(*self.shares, *shares))

    def _summed(self) -> Self:
        """Return the survey with one entry for each distinct report, stratum and cluster."""
        order = np.lexsort((self.cluster, self.stratum, self.at))
        keys = np.stack([self.at, self.stratum, self.cluster])[:, order]
        starts = np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
        at, stratum, cluster = keys[:, starts]
        names = ("weights", "squares", "rows", "replicates", "deviations")
        sums = {
            name: np.add.reduceat(getattr(self, name)[..., order], starts, axis=-1)
            for name in names
        }
        new: dict[str, Any] = {
            **vars_of(self),
            "at": at,
            "stratum": stratum,
            "cluster": cluster,
            **sums,
        }
        for value in new.values():
            if isinstance(value, np.ndarray):
                arguments.frozen(value)
        return type(self)(**new)

    # What summaries say.

    @cached_property
    def n_reports(self) -> int:
        """Number of reports of positive weight."""
        return round(float(self.rows.sum()))

    @cached_property
    def effective_n(self) -> float:
        """The effective number of reports, (sum w)^2 / sum w^2."""
        squares = self.sum_of_squares
        return float(self.weights.sum() ** 2 / squares)

    @cached_property
    def sum_of_squares(self) -> float:
        """The sum of the squared weights; WeightsRefused if it is not known to all digits."""
        found = float(self.squares.sum())
        if not MIN_SUM_OF_SQUARES <= found <= MAX_SUM_OF_SQUARES:
            raise WeightsRefused(
                f"weights must have squares whose sum is from {MIN_SUM_OF_SQUARES:g} to "
                f"{MAX_SUM_OF_SQUARES:g}, got {self.weights.max():.3g} as the largest sum of a "
                "report: divide all weights by it, since standard errors depend on their ratios"
            )
        return found

    @cached_property
    def degrees_of_freedom(self) -> int:
        """Number of units minus number of strata, or number of replicates minus 1."""
        if len(self.replicates):
            return len(self.replicates) - 1
        return int((self.units - 1).sum())

    def quantile(self, level: float) -> float:
        """Return the half-width of an interval in standard errors; inf without a degree of freedom.

        It is the quantile of Student's distribution, which assumes units of equal variance.
        """
        if self.degrees_of_freedom < 1:
            return math.inf
        return float(stdtrit(self.degrees_of_freedom, (1 + level) / 2))

    @cached_property
    def n_lonely(self) -> int:
        """Number of strata with a single unit, from which no variance can be estimated."""
        return 0 if len(self.replicates) else int((self.units == 1).sum())

    @cached_property
    def has_clusters(self) -> bool:
        """True if some reports share a cluster."""
        return bool((self.cluster != NO_CLUSTER).any())

    # Variances by the design.

    def refuse_unknown_errors(self) -> None:
        """Raise WeightsRefused if no stratum has two units, or if squares leave the doubles."""
        if self.degrees_of_freedom < 1:
            listed = self.has_clusters
            name, what = ("clusters",) * 2 if listed else ("weights", "reports of weight")
            raise WeightsRefused(
                f"{name} must have at least two {what} in some stratum, or standard errors are not "
                "known, got one in each: merge strata that are alike, pass more of the sample, or "
                "report the estimate without errors"
            )
        # It is refused by itself; an assertion would not be asked under `python -O`.
        _ = self.sum_of_squares

    @cached_property
    def units(self) -> Ints:
        """Number of units of each stratum: clusters, and reports without one, shape (h,)."""
        h = len(self.strata)
        alone = self.cluster == NO_CLUSTER
        here = np.bincount(self.stratum[alone], self.rows[alone], minlength=h)
        here += np.bincount(self._clusters_in_strata[0], minlength=h)
        if self.shares:
            here += self._units_elsewhere()
        return np.rint(here).astype(np.int64)

    @property
    def named_clusters(self) -> set[tuple[str, str]]:
        """Stratum and name of each cluster."""
        listed = self.cluster != NO_CLUSTER
        pairs = zip(self.stratum[listed].tolist(), self.cluster[listed].tolist(), strict=True)
        return {(self.strata[h], self.clusters[c]) for h, c in pairs}

    @property
    def people(self) -> tuple[tuple[str, int], ...]:
        """Strata, and number of people of each who have no cluster."""
        alone = self.cluster == NO_CLUSTER
        found = np.bincount(self.stratum[alone], self.rows[alone], minlength=len(self.strata))
        return tuple(zip(self.strata, np.rint(found).astype(np.int64).tolist(), strict=True))

    def _units_elsewhere(self) -> Ints:
        """Number of units of each stratum that are in the tables, but not among these reports."""
        # Strata without one of these reports have nothing to vary.
        more = units_elsewhere(self.shares, self.named_clusters)
        return np.array([more[name] for name in self.strata], dtype=np.int64)

    @cached_property
    def _clusters_in_strata(self) -> tuple[Ints, Ints]:
        """Return the stratum of each cluster, and the number of the cluster of each entry."""
        listed = self.cluster != NO_CLUSTER
        pairs = np.stack([self.stratum[listed], self.cluster[listed]])
        distinct, numbers = np.unique(pairs, axis=1, return_inverse=True)
        return distinct[0], numbers.ravel()

    def _totals(self, u: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return columns whose squares add up to the variance of the totals of u, (r, s).

        They are totals of clusters and of single reports with their factors, and what is taken off
        for the means of strata: V = T T^T - B B'^T in the last two.
        """
        h = len(self.strata)
        n = self.units.astype(float)
        factor = np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
        values, alone = u[:, self.at], self.cluster == NO_CLUSTER
        singles = values[:, alone] * np.sqrt((factor[self.stratum] * self.squares)[alone])
        of_cluster, numbers = self._clusters_in_strata
        entries = (self.weights[~alone], (numbers, np.arange(len(numbers))))
        adding = csr_array(entries, shape=(len(of_cluster), len(numbers)))
        clusters = (adding @ values[:, ~alone].T).T * np.sqrt(factor[of_cluster])
        adding = csr_array(
            (self.weights, (self.stratum, np.arange(len(self.at)))), shape=(h, len(self.at))
        )
        sums = (adding @ values.T).T
        # Around m = sums / n - mean the squares are  sum T^2 - 2 m sums + n m^2; a stratum of one
        # unit is centred at 0.
        middles = np.where(n > 1, sums / n - sums.sum(axis=1, keepdims=True) / n.sum(), 0.0)
        return np.hstack([singles, clusters]), factor * middles, sums, n * middles

    def covariance(self, u: Floats) -> Floats:
        """Return the covariances by the design of the totals of values u, shapes (r, r), (r, s)."""
        roots, middles, sums, centred = self._totals(u)
        cross = middles @ (sums - centred / 2).T
        return roots @ roots.T - cross - cross.T

    def variances(self, u: Floats) -> Floats:
        """Return the diagonal of `covariance`."""
        roots, middles, sums, centred = self._totals(u)
        found = (roots**2).sum(axis=1) - 2 * (middles * (sums - centred / 2)).sum(axis=1)
        return np.maximum(found, 0.0)

    # Replicate weights.

    @cached_property
    def scale(self) -> float:
        """Return the factor of the squared deviations of replicate estimates.

        For a jackknife of R units it is (R - 1) / R, for balanced repeated replication and the
        bootstrap 1 / R, for Fay's method 1 / (R (1 - rho)^2), for successive differences 4 / R. All
        of these methods give the total of independent values the same variance as the weights do,
        sum w^2. So the factor is sum_i w_i^2 / sum_i sum_r (w_ri - w_i)^2, whatever the method.
        """
        mean = float(self.replicates.sum() / len(self.replicates) / self.weights.sum())
        if not 1 / MAX_RATIO_OF_SUMS <= mean <= MAX_RATIO_OF_SUMS:
            raise WeightsRefused(
                "replicate weights must include the weight itself and so have about its sum, "
                f"got {mean:.3g} times it on average; if they are factors, multiply each by the "
                "weight"
            )
        moved = float(self.deviations.sum())
        if not moved > 0:
            raise WeightsRefused(
                "replicate weights must differ from the weights, or they say nothing about "
                "standard errors: all of them are equal to the weights"
            )
        return self.sum_of_squares / moved

    def replicate_counts(self, size: int) -> Floats:
        """Return the sums of each replicate weight by distinct report, shape (R, size)."""
        found = np.zeros((len(self.replicates), size))
        np.add.at(found.T, self.at, self.replicates.T)
        return found


def vars_of(survey: Survey) -> dict[str, Any]:
    """Return the fields by name."""
    return {name: getattr(survey, name) for name in Survey.__dataclass_fields__}


def same_survey(one: Survey | None, other: Survey | None) -> bool:
    """Return whether two surveys have the same content."""
    if one is None or other is None:
        return one is other
    return all(np.array_equal(value, getattr(other, name)) for name, value in vars_of(one).items())


def _names(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return the distinct names, sorted, and the place of each among them."""
    places = {name: place for place, name in enumerate(sorted(set(names)))}
    return tuple(places), np.array([places[name] for name in names], dtype=np.int64)
