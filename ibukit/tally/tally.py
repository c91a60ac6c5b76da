"""Tallies: counts of the distinct reports seen, with their likelihood as a linear operator."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.arrow_stream import arrow_stream
from ibukit.channels import Channel, StackedChannel
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.efficiency import efficiency_of, refuse_other_efficiencies
from ibukit.domain.labels import aligned_counts
from ibukit.domain.matrices import alphabet_of
from ibukit.domain.vectors import VectorLike, vector_over
from ibukit.errors import AlphabetMismatch, TooLarge, WeightsRefused
from ibukit.files.json_values import from_json, to_json
from ibukit.files.storage import load, save
from ibukit.tally import restored_parts
from ibukit.tally.counted_reports import as_html, counted_reports
from ibukit.tally.dropped_reports import counted, none_left, refuse_other_dropped, sum_dropped
from ibukit.tally.likelihood_rows import LikelihoodRows
from ibukit.tally.part import TallyPart as TallyPart
from ibukit.tally.part import make_tally_part as make_tally_part
from ibukit.tally.part import merge_parts, on_alphabet
from ibukit.tally.survey import Survey
from ibukit.tally.survey_rows import with_rows, within_table
from ibukit.tally.table_groups import tally_groups
from ibukit.tally.tally_groups import TallyGroups

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Tally(arguments.ReadOnlyArrays):
    r"""Counts of the distinct reports seen, with their likelihood.

    It has the forward and the adjoint map on just these reports. The log-likelihood of a
    distribution :math:`\theta` of the secrets is :math:`\sum_z c_z \log (\theta M)_z` up to a
    constant, with c the counts and M the matrix of the mechanism. Tallies are made by mechanisms
    (``mechanism.tally(reports)``, ``.simulate(...)``, ``.tally_counts(...)``) and can be added:
    ``t1 + t2`` pools reports of the same or of different mechanisms over the same secrets.

    Parameters
    ----------
    parts : tuple of TallyPart
        One part for each different mechanism.
    full_alphabet : Alphabet, optional
        The alphabet of the secrets, if it is unbounded. `alphabet` is then the part of it between
        the reports: on a line it reaches from the least to the largest report, and in the plane it
        is their bounding box. Any secret outside makes every report less probable than the nearest
        secret inside does, whatever the mechanism. So a maximum likelihood estimate is
        0 outside, and :math:`g_x = \sum_z q_z M_{xz} / (\theta M)_z` of the certificate is largest
        inside. Hence estimates and gaps over `alphabet` are those over the full alphabet.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(3, epsilon=1.0)
    >>> morning, evening = mechanism.tally([0, 0, 2]), mechanism.tally([1, 0])
    >>> day = morning + evening
    >>> day.n, day.counts, day.frequencies
    (5, array([3, 1, 1]), array([0.6, 0.2, 0.2]))
    """

    parts: tuple[TallyPart, ...]
    full_alphabet: Alphabet | None = None
    _dropped: ClassVar[tuple[tuple[str, int], ...]] = ()

    def __getattr__(self, name: str) -> Any:
        # The parts of a sum are made when they are first asked for, see `_sum`.
        if name != "parts" or "_kept_runs" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        runs = vars(self)["_kept_runs"]
        # Since the parts were asked for, another thread may have made them and set the runs free.
        if runs:
            self._keep(parts=pool(runs).parts)
            self._keep(_kept_runs=())
        return vars(self)["parts"]

    @property
    def _runs(self) -> tuple[Tally, ...]:
        """The tallies whose sum this one is; only itself once it has parts."""
        return vars(self).get("_kept_runs") or (self,)

    @property
    def _later_rows(self) -> int:
        """Number of distinct reports in the runs after the first."""
        return vars(self)["_kept_rows"] if len(self._runs) > 1 else 0

    @property
    def _span(self) -> NDArray[Any]:
        """Reports of an unbounded alphabet, or only the least and the largest of each number."""
        if len(self._runs) > 1:
            return vars(self)["_kept_span"]
        return np.concatenate([part.reports for part in self.parts])

    @property
    def alphabet(self) -> Alphabet:
        """The alphabet of the secrets; if it is unbounded, the part of it that is in use.

        Estimates are confined to that part.
        """
        return self.parts[0].mechanism.alphabet

    @property
    def k(self) -> int:
        """Number of secrets."""
        return len(self.alphabet)

    @cached_property
    def n(self) -> int:
        """Number of reports; where they are weighted, the sum of their weights, a float."""
        return sum(part.n for part in self.parts)

    @cached_property
    def counts(self) -> Ints:
        """Counts of the distinct reports, shape (s,), one part after the other."""
        return self._join([part.counts for part in self.parts])

    @cached_property
    def frequencies(self) -> Floats:
        """The empirical distribution q = counts / n of the reports seen, shape (s,)."""
        return arguments.frozen(self.counts / self.n)

    @property
    def efficiency(self) -> Floats | None:
        """The probability that each secret is seen at all, shape (k,).

        None if no report gets lost. See `MatrixMechanism`.
        """
        return efficiency_of(self.parts[0].mechanism)

    @property
    def among_seen(self) -> Tally:
        """Tally of these reports over the secrets of the people whose report was seen.

        Where reports get lost, its estimates are those of another distribution: not that of all
        secrets, but that of the secrets which made a report.
        """
        if self.efficiency is None:
            return self
        # Every mechanism with an efficiency has its counterpart among the secrets seen.
        mechanisms: list[Any] = [part.mechanism for part in self.parts]
        parts = tuple(
            part.with_mechanism(mechanism.among_seen)
            for mechanism, part in zip(mechanisms, self.parts, strict=True)
        )
        return Tally(parts, self.full_alphabet)._after_dropping(self.dropped)

    @cached_property
    def log_scale(self) -> Floats:
        r"""Terms that make log(forward(theta)) the log-probability, shape (s,).

        They are 0, except for reports that are so improbable under every secret that a double could
        not hold the probability.
        """
        return self._join([part.log_scale for part in self.parts])

    @cached_property
    def log_offset(self) -> float:
        """The sum of counts times `log_scale`, to be added to a channel's log-likelihood."""
        return sum(part.log_offset for part in self.parts)

    @property
    def weighted(self) -> bool:
        """True if reports are weighted, so that counts are sums of weights."""
        return self.counts.dtype.kind == "f"

    @cached_property
    def survey(self) -> Survey | None:
        """The weights behind the sums, with strata and clusters, or None."""
        surveys = [part.survey for part in self.parts]
        known = [survey for survey in surveys if survey is not None]
        if len(known) < len(surveys):
            return None
        places = np.split(np.arange(len(self.counts)), self._starts)
        return known[0] if len(known) == 1 else Survey.joined(known, places)

    @cached_property
    def effective_n(self) -> float | None:
        r"""The effective number of reports, :math:`(\sum w)^{2} / \sum w^{2}`.

        This is the number of reports of equal weight that would tell as much about a total (Kish).
        It is `n` if reports are not weighted, and None if only sums of weights are known.

        Raises
        ------
        WeightsRefused
            If the squares of the weights leave the doubles.

        Examples
        --------
        >>> import ibukit as ik, pandas as pd
        >>> table = pd.DataFrame({"report": ["a", "b", "a"], "w": [1.0, 1.0, 4.0]})
        >>> mechanism = ik.RandomizedResponse(["a", "b"], epsilon=1.0)
        >>> ik.Tally.from_table(table, mechanism, count="w", weighted=True).effective_n
        2.0
        """
        if not self.weighted:
            return float(self.n)
        return None if self.survey is None else self.survey.effective_n

    @property
    def dropped(self) -> Mapping[str, int]:
        """Numbers of reports of a table that were left out by request.

        They are given by reason, which is "missing" or "unknown". If reports are weighted, they are
        sums of weights.
        """
        return MappingProxyType(dict(self._dropped))

    @overload
    @staticmethod
    def from_table(
        table: Any,
        mechanism: Any,
        report: str | Sequence[str] = ...,
        count: str | None = ...,
        epsilon: str | None = ...,
        by: str | Sequence[str] | None = ...,
        unknown: Literal["raise", "nearest", "keep", "drop"] = ...,
        missing: Literal["raise", "drop"] = ...,
        weighted: bool = ...,
        groups: None = ...,
        strata: str | Sequence[str] | None = ...,
        clusters: str | Sequence[str] | None = ...,
        replicate_weights: str | Sequence[str] | None = ...,
    ) -> Tally: ...

    @overload
    @staticmethod
    def from_table(
        table: Any,
        mechanism: Any,
        report: str | Sequence[str] = ...,
        count: str | None = ...,
        epsilon: str | None = ...,
        by: str | Sequence[str] | None = ...,
        unknown: Literal["raise", "nearest", "keep", "drop"] = ...,
        missing: Literal["raise", "drop"] = ...,
        weighted: bool = ...,
        *,
        groups: str | Sequence[str],
        strata: str | Sequence[str] | None = ...,
        clusters: str | Sequence[str] | None = ...,
        replicate_weights: str | Sequence[str] | None = ...,
    ) -> TallyGroups: ...

    @staticmethod
    def from_table(
        table: Any,
        mechanism: Any,
        report: str | Sequence[str] = "report",
        count: str | None = None,
        epsilon: str | None = None,
        by: str | Sequence[str] | None = None,
        unknown: Literal["raise", "nearest", "keep", "drop"] = "raise",
        missing: Literal["raise", "drop"] = "raise",
        weighted: bool = False,
        groups: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        clusters: str | Sequence[str] | None = None,
        replicate_weights: str | Sequence[str] | None = None,
    ) -> Tally | TallyGroups:
        r"""Count the reports of a table, where the table lives.

        The table's engine counts equal reports, and hands over only the distinct ones. Reports of
        different mechanisms make one pooled tally, whose parts are in the order of the epsilons, or
        of the keys of a mapping.

        Parameters
        ----------
        table : frame, dataset, or path
            A table of pandas, Polars (eager or lazy), Arrow (a table, a dataset, a reader), DuckDB,
            Dask or Spark. Or a path of Parquet or CSV files: a file, a folder, a pattern such as
            ``"reports/*.parquet"``, or a list of these, all of one format. In a folder, files and
            folders whose names begin with ``_`` or ``.`` are not data, and folders such as
            ``version=1`` are columns (hive partitions), unless the files have a column of that
            name. Labels in CSV are text, and each stands for the label of the alphabet that is
            written in the same way.
        mechanism : Mechanism, function or mapping
            The mechanism of all reports. Together with `by`, a mapping to mechanisms from the
            values of a column, or from tuples of the values of several columns; or a function of
            these values, as they stand in the table (in CSV as text). Together with `epsilon`, a
            function of an epsilon, which is a number. With both, a function of the values and of
            the epsilon, or a mapping from the values to functions of the epsilon. Functions may
            return None for unknown values.
        report : str or sequence of str
            Column of the reports. Rows of bits are a column of strings such as "0101", or "0x05" in
            hexadecimal digits, or a column of lists, or they have a column for each bit; a number
            before the bits has a column of its own. On a grid the names of two columns, in any
            order, say what the numbers are: lat and lon (also latitude, longitude, lng) are
            degrees; x and y (or x_km and y_km) are lengths in the grid's unit from its south-west
            corner; row and col are cells. In columns with other names, integers are (row, column)
            and floats are (latitude, longitude), but mechanisms whose reports are points, such as
            ``mechanism.of_points``, refuse such columns. A column of points of a GeoDataFrame with
            a CRS stands for degrees.
        count : str, optional
            Column that says how often each report was seen, in whole numbers from 0. With
            `weighted` it is the column of weights, which are finite numbers from 0.
        epsilon : str, optional
            Column of the epsilon with which each report was made. Where it is not a number above
            0, the report is unknown.
        by : str or sequence of str, optional
            Column, or several columns, that say which mechanism each report came through.
        unknown : {"raise", "nearest", "keep", "drop"}
            What to do with reports that the mechanism cannot make, cells and points outside the
            grid among them, and with values of `by` or `epsilon` without a mechanism. "nearest"
            moves what is outside the grid to the nearest cell, which is where mechanisms such as
            `PlanarLaplace` put noise that leaves the grid. "drop" leaves such reports out: the
            estimate is then right only if these reports are like the others, which reports outside
            a grid are not. If the mechanism reports points, or cells of a grid without end, a
            report outside the grid is valid, and "keep" counts it as it stands.
        missing : {"raise", "drop"}
            What to do where the report, the epsilon or the value of `by`, `groups`, `strata` or
            `clusters` is null or NaN; `dropped` counts unknown and missing reports. What is
            estimated after "drop" is right only if the reports that were left out are like the
            others. A missing count or weight is always refused: nobody knows how many reports or
            people its row stands for, so `dropped` could not count it. A cluster all of whose
            reports were left out does not count among the clusters of its stratum.
        weighted : bool
            Whether `count` holds weights, as surveys have them: each row is one report, and its
            weight says how many people it stands for; integers are then weights as well. `n` and
            `dropped` are sums of weights. The sums of their squares are kept, so that standard
            errors and intervals are those of the design, see `Estimate.standard_errors`;
            `effective_n` is the effective number of reports. A row of weight 0 makes no report, but
            its person and cluster count among those of the sample: the estimate is that of the
            others, with the standard errors of a group of the sample, as `groups` gives them. The
            number of times that a report was seen is not a weight: for such numbers leave
            `weighted` out.
        groups : str or sequence of str, optional
            Columns that name groups of people, such as ``["country", "day"]``. The result is then a
            `TallyGroups`, a mapping from each group (a value, or a tuple of values) to its `Tally`,
            made in one pass at any number of groups.
        strata, clusters : str or sequence of str, optional
            For weighted reports, columns that name the stratum and the cluster in which a person
            was drawn. Clusters (villages or households, or people who report several times) are
            drawn independently of each other; the same name in two strata stands for two clusters.
            If there were several stages of sampling, only the first counts. In tallies that are
            added, strata and clusters of the same name are the same; people of two tables are
            different people, and people of two groups of one table are those of one sample.
        replicate_weights : str or sequence of str, optional
            Columns of replicate weights (jackknife, balanced repeated replication, Fay, bootstrap,
            successive differences), each already multiplied by the weight in `count`. The variance
            is :math:`c \sum_r (\hat\theta_r - \hat\theta)^{2}` of the maximum likelihood estimates;
            c is found from the weights, :math:`\sum_i w_i^{2} / \sum_{i,r} (w_{ri} - w_i)^{2}`,
            which is (R - 1) / R for the jackknife and about 1 / R for the bootstrap.

        Raises
        ------
        AlphabetMismatch
            If a report is unknown.
        ValueError
            If a column or a value is missing, a count or an epsilon is refused, or no report is
            left.
        TypeError
            If `table` is not a table, or `mechanism` does not suit `epsilon` and `by`.

        Examples
        --------
        >>> import ibukit as ik, pandas as pd
        >>> columns = {"report": ["car", "bus", "?", "car"], "eps": [1.0, 1.0, 2.0, 2.0]}
        >>> of_epsilon = lambda eps: ik.RandomizedResponse(["bus", "car"], eps)
        >>> table = pd.DataFrame(columns)
        >>> tally = ik.Tally.from_table(table, of_epsilon, epsilon="eps", unknown="drop")
        >>> tally.n, tally.counts, dict(tally.dropped)
        (3, array([1, 1, 1]), {'unknown': 1})
        """
        # Libraries that read tables are loaded only if there is one.
        from ibukit.tables import TableReports, survey_columns

        survey = survey_columns(weighted, strata, clusters, replicate_weights)
        rows = TableReports(
            table, mechanism, report, count, epsilon, by, unknown, missing, weighted, groups, survey
        )
        # Mechanisms of other packages need not have the argument `weighted`.
        more = {"weighted": True} if weighted else {}
        if groups is not None:
            return tally_groups(rows, more, pool)
        # Engines of several threads read in any order, so the parts are sorted.
        tallies = {
            (rows.order(group.mechanism), index): with_rows(
                group.mechanism.tally(
                    group.reports, counts=group.counts, codes=group.codes, **more
                ),
                group,
            )
            for index, group in enumerate(rows.groups())
        }
        if not tallies:
            raise none_left(rows.dropped)
        whole = pool([tallies[key] for key in sorted(tallies)])
        if rows.unweighted is not None:
            whole = within_table({None: whole}, rows.unweighted)[None]
        return whole._after_dropping(rows.dropped)

    @staticmethod
    def from_likelihoods(
        L: Any, counts: Any = None, alphabet: Any = None, *, weighted: bool = False
    ) -> Tally:
        r"""Make a tally of observations with known likelihoods, but without a mechanism.

        Row z holds :math:`L_{zx} \propto P(z\mid x)`, the probability of what was observed given
        each secret x, up to a factor that is the same for all secrets. Such rows come from interval
        censoring (1 where the secret may lie), equivalence classes, densities of a mixture's
        components, and classifiers whose scores are divided by the shares of the classes in the
        data on which they were trained. The log-likelihood of a distribution :math:`\theta` of the
        secrets is :math:`\sum_z c_z \log \sum_x L_{zx}\,\theta_x`, up to the factors.

        Everything that rests on this likelihood alone works as for other tallies: `mle`, `ibu`,
        `gibu`, `ems`, `smooth`, `gap`, Wald, profile and guaranteed intervals, posteriors,
        `theory.mle_set` and `theory.strictly_concave`. The rows do not say what else might have
        been observed, so whatever depends on this (`inv`, `Discrepancy`, the bootstrap, calibrated
        intervals, guaranteed ones by boxes or betting, `to_frame`) raises `MechanismUnknown`.

        Parameters
        ----------
        L : array_like, DataFrame or scipy sparse matrix, shape (s, k)
            Entries are finite and not negative, with a row for each observation and a column for
            each secret. The columns of a DataFrame are the labels of the secrets, unless they
            merely number the columns. Each row may have a scale of its own: for log-likelihoods
            take ``exp(l - l.max(axis=1, keepdims=True))``.
        counts : array_like, dict or Series, shape (s,), optional
            How often each row was observed; by default once. Labels of the counts are those of the
            DataFrame's rows.
        alphabet : Alphabet, sequence or int, optional
            The k secrets; by default the labels of a DataFrame's columns, or Line(0, k - 1).
            Columns with labels are aligned with it.
        weighted : bool
            Whether `counts` may be weights, as for `FiniteMechanism.tally_counts`.

        Returns
        -------
        Tally
            It can be added to other tallies over the same secrets. The `log_likelihood` of its
            estimates is that of the rows as they were given.

        Raises
        ------
        InvalidDistribution
            If an entry is negative, NaN or infinite, or `L` is not a matrix of numbers.
        ImpossibleReport
            If no secret explains an observation, because its row has only zeros.
        AlphabetMismatch
            If `alphabet` does not have as many secrets as there are columns, if labels disagree, or
            if there is not one count for each row.

        References
        ----------
        .. [turnbull] Turnbull, "The empirical distribution function with arbitrarily grouped,
           censored and truncated data", J. R. Statist. Soc. B 38, 1976.
        .. [lindsay] Lindsay, "The geometry of mixture likelihoods", Annals of Statistics 11, 1983.

        Examples
        --------
        One failure at 2, five at 3, and five somewhere in (1, 3], which add nothing to what is
        known of the shares 1/6 and 5/6:

        >>> import ibukit as ik
        >>> rows = [[1, 0], [0, 1], [1, 1]]
        >>> tally = ik.Tally.from_likelihoods(rows, [1, 5, 5], alphabet=[2, 3])
        >>> ik.mle(tally).distribution.round(12)
        array([0.16666667, 0.83333333])
        """
        rows, labels = LikelihoodRows.read(L, alphabet)
        s = len(rows.log_factors)
        if counts is None and arguments.flag("weighted", weighted):
            raise ValueError("counts must be given where weighted is True, got None")
        aligned = None
        if counts is not None:
            # Labels of rows have to be distinct only where counts are aligned by them.
            observations: Alphabet = Line(0, s - 1)
            if labels is not None and arguments.labelled("counts", counts) is not None:
                observations = alphabet_of("L has a row", labels)
            aligned = aligned_counts("counts", counts, observations, weighted)
        return Tally((make_tally_part(rows, np.arange(s), aligned),))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replace a file with the tally, all at once or not at all.

        The file is plain: a line with its version and SHA-256, a line of JSON, then arrays as numpy
        writes them.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        TypeError
            If a mechanism is not ibukit's own, if its labels are not strings, numbers or tuples of
            them, or if the reports lie in partitions.
        ForeignFile
            If there is a folder, a pipe or a device at `path`.
        DataChanged
            If another process is writing the file now.

        Examples
        --------
        >>> import tempfile, ibukit as ik
        >>> tally = ik.RandomizedResponse(["yes", "no"], epsilon=1.0).tally_counts([60, 40])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tally.save(f"{folder}/answers")
        ...     ik.Tally.load(f"{folder}/answers")
        Tally(n=100, k=2, 2 distinct reports of RandomizedResponse)
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the tally that `save` wrote.

        A file can only name mechanisms: nothing in it is executed.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        ForeignFile
            If it is not such a file, or is of another version.
        DataChanged
            If it was changed or cut short.
        """
        return load(path, cls)[0]

    def _stored(self) -> dict[str, Any]:
        """Return what a file can hold of the tally; raise TypeError if that is not all of it."""
        for part in self.parts:
            if type(part) is not TallyPart:
                raise TypeError(
                    "tally must be in memory to be written to a file, but its reports are not: "
                    f"{part.mechanism!r}; mechanism.tally(rows) makes a tally of those that fit"
                )
            arrays: dict[str, NDArray[Any]] = {}
            if from_json(to_json(part.mechanism, arrays), arrays) != part.mechanism:
                raise TypeError(
                    f"mechanism must come back from a file as it was, {part.mechanism!r} does not"
                )
        return {
            "parts": tuple((part.mechanism, part.reports, part.counts) for part in self.parts),
            "full_alphabet": self.full_alphabet,
            "dropped": self._dropped,
            # The files of tallies without weights lack this field, so that releases from before
            # weights had squares can read them.
            **({"surveys": tuple(part.survey for part in self.parts)} if self.weighted else {}),
        }

    @classmethod
    def _restored(
        cls,
        parts: Sequence[tuple[Any, NDArray[Any], Ints]],
        full_alphabet: Alphabet | None,
        dropped: Sequence[tuple[str, int]],
        surveys: Sequence[Survey | None] = (),
    ) -> Tally:
        """Return the tally of which a file holds these parts."""
        listed = tuple(restored_parts.restored_part(*part) for part in parts)
        restored_parts.refuse_other_secrets(listed, full_alphabet)
        refuse_other_dropped(dropped)
        if surveys:
            restored_parts.refuse_other_surveys(listed, surveys)
            listed = tuple(
                part.with_survey(survey) for part, survey in zip(listed, surveys, strict=True)
            )
        return cls(listed, full_alphabet)._after_dropping(dict(dropped))

    def _after_dropping(self, dropped: Mapping[str, int]) -> Tally:
        # This is not a field, because dropped reports are not part of the likelihood.
        self._keep(_dropped=tuple(sorted(dropped.items())))
        return self

    def forward(self, theta: VectorLike) -> Floats:
        """Probability of each seen report, shape (s,).

        The secrets are distributed as `theta`. With several mechanisms the probability is that
        under the mechanism through which the report came. If reports get lost, it is the
        probability that a report is seen and is this one.

        Parameters
        ----------
        theta : array_like or labelled, shape (k,)

        Examples
        --------
        >>> import ibukit as ik
        >>> ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally([0, 1, 1]).forward([0.5, 0.5])
        array([0.6, 0.4])
        """
        # The operator works on the secrets among those seen. With the efficiencies it gives the
        # probability that a report is seen and is this one.
        weights = vector_over("theta", theta, self.alphabet)
        return self.operator.forward(
            weights if self.efficiency is None else weights * self.efficiency
        )

    def adjoint(self, w: ArrayLike) -> Floats:
        r"""Carry weights on the seen reports back to the secrets, shape (k,).

        The result is :math:`\sum_z M_{xz} w_z`.

        Parameters
        ----------
        w : array_like, shape (s,)

        Examples
        --------
        >>> import ibukit as ik
        >>> ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally([0, 1, 1]).adjoint([1.0, 0.0])
        array([0.9, 0.3])
        """
        back = self.operator.adjoint(arguments.vector("w", w, len(self.counts)))
        return back if self.efficiency is None else back * self.efficiency

    @cached_property
    def operator(self) -> Channel:
        """Forward and adjoint without the checks, for inner loops.

        If reports get lost, they act on the distribution of the secrets that are seen.
        """
        # The channel of one part is used directly; several are stacked.
        channels = tuple(part.channel for part in self.parts)
        return channels[0] if len(channels) == 1 else StackedChannel(channels, self.k, self._starts)

    @property
    def _starts(self) -> tuple[int, ...]:
        return tuple(np.cumsum([len(part.counts) for part in self.parts])[:-1].tolist())

    def split(self, w: Floats) -> Iterator[tuple[TallyPart, Floats]]:
        """Each part with its stretch of a vector over all seen reports."""
        return zip(self.parts, np.split(w, self._starts), strict=True)

    def matrix(self) -> Floats:
        """The channel on the seen reports as a dense array, shape (k, s).

        It is for small cases and for tests.
        """
        limits.require_channel("the matrix of the reports seen", self.k, len(self.counts))
        rows = np.empty((self.k, len(self.counts)))
        for code in range(self.k):
            rows[code] = self.forward(np.arange(self.k) == code)
        return rows

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        return _sum(self, other)

    def __radd__(self, other: Any) -> Tally:
        # sum() starts from the number 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __getstate__(self) -> dict[str, Any]:
        # As for a part, cached values (the operator, joined counts) are left out and recomputed.
        return {"parts": self.parts, "full_alphabet": self.full_alphabet, "_dropped": self._dropped}

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each distinct report: the report and its count.

        Reports that are single labels stand in the column report, and so do rows of bits, as
        strings of 0 and 1. Points fill the columns x and y, cells the columns row and col, other
        reports of several numbers the columns report_0, report_1, ... A tally of several mechanisms
        has one more column, mechanism; where a report lacks a column that others have, the frame
        holds pandas.NA. With ``count="count"``, `from_table` can read the frame of a single
        mechanism.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        MechanismUnknown
            If the tally holds likelihoods (`from_likelihoods`), which have no reports.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=1.0)
        >>> tally = mechanism.tally(["yes", "no", "yes"])
        >>> tally.to_frame().to_dict("list")
        {'report': ['no', 'yes'], 'count': [1, 2]}
        >>> again = ik.Tally.from_table(tally.to_frame(), mechanism, count="count")
        >>> again.counts
        array([1, 2])
        """
        return counted_reports(self.parts)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows of `to_frame` as an Arrow stream, for pyarrow, Polars, DuckDB."""
        return arrow_stream(self.to_frame(), requested_schema)

    def _repr_html_(self) -> str:
        return as_html(repr(self), self.to_frame())

    def __repr__(self) -> str:
        # Even a tally of thousands of parts has a short representation.
        names = ", ".join(type(part.mechanism).__name__ for part in self.parts[:3])
        more = ", ..." if len(self.parts) > 3 else ""
        where = "" if self.full_alphabet is None else f" of {self.full_alphabet!r}"
        lost = f"; dropped {counted(self.dropped)}" if self._dropped else ""
        reports = f"{len(self.counts)} distinct reports of {names}{more}"
        return f"Tally(n={self.n}, k={self.k}{where}, {reports}{lost})"

    @staticmethod
    def _join(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        return arrays[0] if len(arrays) == 1 else arguments.frozen(np.concatenate(arrays))


def pool(tallies: Sequence[Tally]) -> Tally:
    """Return the sum of one or more tallies, in time linear in their number."""
    # sum() of thousands of tallies would copy the growing total each time.
    _refuse_other_secrets(tallies)
    first = tallies[0]
    parts = [part for tally in tallies for part in tally.parts]
    # Over an unbounded alphabet all parts get the same window, which spans the reports of all.
    if first.full_alphabet is not None and len(tallies) > 1:
        window = first.full_alphabet.window(np.concatenate([part.reports for part in parts]))
        parts = [part.with_mechanism(on_alphabet(part.mechanism, window)) for part in parts]
    # Estimates among the secrets seen need one distribution for all parts.
    refuse_other_efficiencies([part.mechanism for part in parts])
    # Parts of equal mechanisms are joined. A part that cannot be joined gets a key of its own.
    groups: dict[Any, list[TallyPart]] = {}
    for part in parts:
        groups.setdefault(part.mechanism if part.mergeable else object(), []).append(part)
    dropped = sum_dropped(tally.dropped for tally in tallies)
    return Tally(
        tuple(merge_parts(same) for same in groups.values()), first.full_alphabet
    )._after_dropping(dropped)


def _sum(left: Tally, right: Tally) -> Tally:
    """Return the sum of two tallies, which pools them later: a sum of many takes linear time.

    The runs after the first are pooled with it once they have as many distinct reports as it, or
    once the sum is asked for its parts. So each report of a later run is pooled once, together with
    at most one report of the first run; and the runs take at most twice the memory of the sum.
    """
    runs, others = left._runs, right._runs
    _refuse_other_secrets((runs[0], others[0]))
    refuse_other_efficiencies([run.parts[0].mechanism for run in (runs[0], others[0])])
    # Each addition rounds weights, so they are added in the order in which the sum was written.
    if len(others) > 1 and others[0].weighted:
        others = (pool(others),)
    full_alphabet, span = runs[0].full_alphabet, None
    if full_alphabet is not None:
        span = np.concatenate([left._span, right._span])
        span = np.stack([span.min(axis=0), span.max(axis=0)])
        # Reports too far apart are refused at once.
        full_alphabet.window(span)
    rows = left._later_rows + sum(len(run.counts) for run in others)
    runs += others
    if rows >= len(runs[0].counts):
        return pool(runs)
    total = object.__new__(Tally)
    total._keep(_kept_runs=runs, _kept_rows=rows, _kept_span=span, full_alphabet=full_alphabet)
    return total._after_dropping(sum_dropped([left.dropped, right.dropped]))


def _refuse_other_secrets(tallies: Sequence[Tally]) -> None:
    """Raise AlphabetMismatch unless all tallies have the same secrets."""
    first = tallies[0]
    for tally in tallies:
        if _secrets(tally) != _secrets(first):
            raise AlphabetMismatch(
                f"tallies can be added only over the same secrets, got {_secrets(first)!r} and "
                f"{_secrets(tally)!r}"
            )


def _secrets(tally: Tally) -> Alphabet:
    """Return the alphabet of the secrets, the unbounded one if there is one."""
    return tally.alphabet if tally.full_alphabet is None else tally.full_alphabet


def check_bounded(tally: Tally, why: str, *, lossy: bool = False, weighted: bool = False) -> Tally:
    """Return the tally; raise TooLarge if its alphabet is unbounded.

    `why` says in the message what depends on all secrets; the other arguments are as for
    `check_tally`.
    """
    if check_tally(tally, lossy=lossy, weighted=weighted).full_alphabet is not None:
        raise TooLarge(
            f"tally must be over a bounded alphabet, because {why}; {tally.full_alphabet!r} has no "
            "end: make the mechanism on the part of it that you mean"
        )
    return tally


def check_tally(tally: Any, *, lossy: bool = False, weighted: bool = False) -> Tally:
    """Return the tally; raise TypeError for anything else, which says how to make one.

    A tally with lost reports is accepted only with `lossy`: the caller then divides its result by
    the efficiencies. Weights are accepted only with `weighted`: the caller's result then does not
    depend on the number of people.
    """
    if not isinstance(tally, Tally):
        hint = (
            "; from counts and a matrix: unfold(counts, matrix), or "
            "MatrixMechanism(matrix).tally_counts(counts)"
        )
        none = "; an estimate over a background has no tally" if tally is None else ""
        raise TypeError(
            "tally must be a Tally, as mechanism.tally(reports) makes it, got "
            f"{type(tally).__name__}" + (hint if hasattr(tally, "__len__") else none)
        )
    if not lossy and tally.efficiency is not None:
        raise ValueError(
            "tally must be of reports that do not get lost, got one with efficiencies; mle, ibu, "
            "gibu and gap take it, and tally.among_seen is the tally of the secrets among those "
            "seen"
        )
    if not weighted and tally.weighted:
        raise WeightsRefused(
            "tally must hold whole counts, got weights; mle, gap, and ibu with a rule other than "
            "Discrepancy take weights"
        )
    return tally


def single_part(tally: Tally, instead: str = "use mle, ibu or gibu") -> TallyPart:
    """Return the one part of a tally whose reports came through one mechanism.

    Pools are refused, and `instead` says what to do with them.
    """
    if len(check_tally(tally).parts) != 1:
        raise ValueError(
            f"tally must hold reports of one mechanism, but it pools {len(tally.parts)}; {instead}"
        )
    return tally.parts[0]
