"""`EstimateGroups`: the estimates of many groups as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.dask_tasks import check_client, run_on
from ibukit._ground.typing import override
from ibukit.domain.labels import index_of
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.estimate.estimate import Estimate
from ibukit.fisher_information.many_tallies import variances_of_many
from ibukit.intervals import VOID, name_in_tables
from ibukit.tally.group_blocks import blocks
from ibukit.tally.tally_groups import TallyGroups
from ibukit.tally.trials import has_trials

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

# Arguments and result of the intervals of one group; both begin with the group's place.
Task = tuple[int, Estimate, float, str]
Found = tuple[int, Floats, Floats, str]


class EstimateGroups(Mapping[Any, Estimate]):
    """A mapping from groups to their estimates, with one table of all of them.

    ``mle(groups)``, ``smooth(groups)``, ``ibu(groups)`` and ``inv(groups)`` return it.

    Parameters
    ----------
    groups : TallyGroups
    distribution : ndarray, shape (t, k)
        A row of probabilities for each group.
    gaps : ndarray, shape (t,)
        The certificate of each group, in nats per report.
    make : callable
        A function that returns the `Estimate` of the group at a place.

    Examples
    --------
    >>> import ibukit as ik, pandas as pd
    >>> table = pd.DataFrame({"report": [*"aab", *"abb"], "country": ["DE"] * 3 + ["NL"] * 3})
    >>> mechanism = ik.RandomizedResponse(["a", "b"], epsilon=3.0)
    >>> estimates = ik.mle(ik.Tally.from_table(table, mechanism, groups="country"))
    >>> print(estimates.to_frame(level=None).round(3))
                   probability
    country label
    DE      a            0.684
            b            0.316
    NL      a            0.316
            b            0.684
    """

    def __init__(
        self,
        groups: TallyGroups,
        distribution: Floats,
        gaps: Floats,
        make: Callable[[int], Estimate],
    ) -> None:
        self.groups = groups
        self.distribution = arguments.frozen(distribution)
        self.gaps = arguments.frozen(gaps)
        self._make = make
        self._places = {group: place for place, group in enumerate(groups)}

    @override
    def __getitem__(self, group: Any) -> Estimate:
        # If there is no such group, the tallies raise the error.
        _ = self.groups[group]
        return self._make(self._places[group])

    @override
    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    @override
    def __len__(self) -> int:
        return len(self.groups)

    @override
    def __repr__(self) -> str:
        return (
            f"EstimateGroups({len(self)} groups of {', '.join(self.groups.names)}, "
            f"k={self.distribution.shape[1]}, largest gap={self.gaps.max():.3g} nats/report)"
        )

    @cached_property
    def _variances(self) -> Floats:
        """The asymptotic variances, shape (t, k); NaN where a single estimate must find them."""
        variances = np.full(self.distribution.shape, np.nan)
        for block in blocks(self.groups) or ():
            variances[block.groups] = variances_of_many(
                block.matrix, block.counts, self.distribution[block.groups]
            )
        return variances

    @cached_property
    def _alone(self) -> NDArray[np.bool_]:
        """True for the groups whose intervals a single estimate must find, shape (t,)."""
        whole = [tally.counts.dtype.kind != "f" for tally in self.groups.values()]
        # A single estimate refuses a distribution off the simplex, as after raw inversion.
        on_simplex = (self.distribution >= 0).all(axis=1)
        # The variances of many tallies take every matrix for exactly known, also a measured one.
        measured = [has_trials(tally) for tally in self.groups.values()]
        some = np.isnan(self._variances).any(axis=1)
        return some | ~np.array(whole) | ~on_simplex | np.array(measured)

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """True where the reports of a group determine a probability, shape (t, k)."""
        determined = np.ones(self.distribution.shape, dtype=bool)
        for place in np.flatnonzero(self._alone):
            determined[place] = self._make(int(place)).identified
        return determined

    def intervals(
        self,
        level: float = 0.95,
        method: str = "wald",
        n_jobs: int = 1,
        client: Client | None = None,
    ) -> tuple[Floats, Floats]:
        """Return intervals of all probabilities of all groups.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        method : str
            "wald", which is computed for all groups together, or another method of
            `Estimate.interval`, which is applied to one group after the other and takes
            correspondingly longer. Where the standard errors of a probability are infinite although
            the reports determine it, Wald's interval would be void, so the group gets intervals by
            "profile", and `to_frame` says so.
        n_jobs : int
            Number of processes that find what is not computed for all groups together; -1 stands
            for one on each core. The intervals do not depend on it.
        client : dask.distributed.Client, optional
            Its workers find these intervals instead, as for groups that were counted by them.

        Returns
        -------
        (lower, upper) : ndarrays, shape (t, k)

        Raises
        ------
        ValueError, TooLarge
            As `Estimate.interval`.
        """
        lower, upper, _ = self._ends(level, method, n_jobs, client)
        return lower, upper

    def _ends(
        self, level: float, method: str, n_jobs: int, client: Client | None
    ) -> tuple[Floats, Floats, NDArray[Any]]:
        """Return both ends, and the method of each group."""
        level = arguments.fraction("level", level, "()")
        lower, upper = np.zeros_like(self.distribution), np.ones_like(self.distribution)
        methods = np.full(len(self), method, dtype=object)
        alone = np.ones(len(self), dtype=bool)
        if arguments.is_one_of(method, ("wald",)):
            alone = self._alone
            margin = normal_quantile(level) * np.sqrt(np.where(alone[:, None], 0, self._variances))
            lower = np.maximum(self.distribution - margin, 0.0)
            upper = np.minimum(self.distribution + margin, 1.0)
            # With few reports Wald's interval may say nothing where another method says something.
            methods[((upper - lower >= 1) & ~alone[:, None]).any(axis=1)] = VOID
        places = np.flatnonzero(alone).tolist()
        tasks = ((place, self._make(place), level, method) for place in places)
        found = _each(tasks, n_jobs, client)
        for place, *of_one in tqdm(
            found, "intervals of groups", len(places), disable=None, leave=False
        ):
            lower[place], upper[place], methods[place] = of_one
        return lower, upper, methods

    def to_frame(
        self,
        level: float | None = 0.95,
        method: str = "wald",
        n_jobs: int = 1,
        client: Client | None = None,
    ) -> pd.DataFrame:
        """Return one table with a row for each group and label.

        Parameters
        ----------
        level : float, optional
            Level of the intervals, strictly between 0 and 1. None leaves them out.
        method, n_jobs, client
            As `intervals` takes them.

        Returns
        -------
        pandas.DataFrame
            Columns ``probability``, ``lower``, ``upper`` and ``identified``, as `Estimate.to_frame`
            has them; if `level` is None, ``probability`` alone. A column ``method`` is added if
            some group's intervals are by a method other than the one asked for, or if a Wald
            interval is all of [0, 1]. The index holds the columns of the groups, then ``label`` (on
            a grid, ``row`` and ``col``).

        Raises
        ------
        ValueError, TooLarge
            As `Estimate.interval`.
        """
        import pandas as pd

        labels = index_of(next(iter(self.groups.values())).alphabet)
        width, k = len(self.groups.names), len(labels)
        groups = [group if width > 1 else (group,) for group in self.groups]
        columns: dict[str, Any] = {"probability": self.distribution.ravel()}
        if level is not None:
            lower, upper, methods = self._ends(level, method, n_jobs, client)
            columns |= {
                "lower": lower.ravel(),
                "upper": upper.ravel(),
                "identified": self.identified.ravel(),
            }
            if (methods != method).any():
                columns["method"] = np.repeat(methods, k)
        # Levels are repeated by place, so that tuples among the labels stay labels.
        levels = [
            pd.Index([group[i] for group in groups], tupleize_cols=False).repeat(k)
            for i in range(width)
        ]
        places = np.tile(np.arange(k), len(self))
        levels += [labels.get_level_values(i).take(places) for i in range(labels.nlevels)]
        names = [*self.groups.names, *labels.names]
        return pd.DataFrame(columns, index=pd.MultiIndex.from_arrays(levels, names=names))


def _each(tasks: Iterable[Task], n_jobs: int, client: Client | None) -> Iterable[Found]:
    """Yield the intervals of each group with its place, in any order."""
    if arguments.processes("n_jobs", n_jobs) == 1 and client is None:
        return (_of_one(*task) for task in tasks)
    if client is not None:
        if n_jobs != 1:
            raise ValueError(
                f"n_jobs must be 1 with a client, whose workers are used; got {n_jobs}"
            )
        return run_on(check_client(client), _of_one, tasks)
    # joblib takes a while to load.
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        found: Iterable[Found] = Parallel(return_as="generator")(
            delayed(_of_one)(*task) for task in tasks
        )
        return found


def _of_one(place: int, estimate: Estimate, level: float, method: str) -> Found:
    if method == "wald" and _is_void(estimate):
        method = "profile"
    lower, upper = estimate.interval(level, method=method)
    return place, lower, upper, name_in_tables(method, estimate.tally)


def _is_void(estimate: Estimate) -> bool:
    """Return whether errors are infinite for a probability that the reports determine."""
    if estimate.tally is None or (estimate.tally.weighted and estimate.tally.survey is None):
        return False
    if estimate.tally.efficiency is not None or has_trials(estimate.tally):
        return False
    return bool((np.isinf(estimate.standard_errors()) & estimate.identified).any())
