"""`Estimate`: what every estimator returns, with the intervals, tables and files made from it.

The class is built on the subpackages for intervals, identification, plotting and files. Its methods
read their arguments, call one of these subpackages, and put labels on the answer.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from ibukit import intervals, model_checks
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, ReadOnlyArrays
from ibukit._ground.arrow_stream import arrow_stream
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.grid import Grid
from ibukit.domain.labels import index_of, name_of_alphabet
from ibukit.domain.linear_functionals import (
    LinearFunctionals,
    OneFunctional,
    names_of_questions,
    parse_functionals,
)
from ibukit.domain.status import Status
from ibukit.errors import AlphabetMismatch, LikelihoodUnknown, WeightsRefused
from ibukit.estimate import exports
from ibukit.estimate.certificates import certificate_of
from ibukit.estimate.largest_shares import codes_of_largest, table_of_largest
from ibukit.estimate.secrets_of_reports import secrets_of_reports
from ibukit.estimate.summary import Summary, summarise
from ibukit.files.storage import load, save
from ibukit.fisher_information import (
    asymptotic_covariance,
    asymptotic_variances,
    asymptotic_variances_of_sums,
)
from ibukit.identification.maximisers import determined_probabilities
from ibukit.intervals import IntervalRequest
from ibukit.intervals.request import Ends
from ibukit.mechanisms import Mechanism
from ibukit.model_checks import ModelCheck
from ibukit.tally.part import has_likelihood
from ibukit.tally.survey import same_survey
from ibukit.tally.tally import Tally

if TYPE_CHECKING:
    import pandas as pd
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Estimate(ReadOnlyArrays):
    r"""An estimate of the distribution of the secrets.

    It answers in labels: ``estimate[label]`` is a probability, `to_series` and `to_frame` have the
    labels as their index, and `plot` draws them. `distribution` is in the alphabet's order, and an
    estimate may be given wherever a distribution is asked for. Two estimates are equal if
    everything that is printed of them is equal, and so are their distributions and reports.

    Attributes
    ----------
    distribution : ndarray, shape (k,)
        Probabilities in the alphabet's order. On the simplex unless `status` is OFF_SIMPLEX (raw
        matrix inversion).
    log_likelihood : float
        :math:`L = \sum_{z} \mathrm{counts}_{z}\,\log P(z)`, in nats, total over all reports; -inf
        where a seen report has probability 0.
    gap : float
        In nats per report: no distribution has a mean log-likelihood above that of this one by more
        than `gap`. It bounds the likelihood, not the distance to the truth, and is inf off the
        simplex. It includes a bound on its own rounding, see `ibukit.gap`; `certificate` makes it a
        proof.
    status : Status
    n_iter : int
        Steps taken; 0 for closed forms.
    method : str
        Estimator and stopping rule.
    alphabet : Alphabet
        The secrets that the probabilities belong to. If the mechanism's own alphabet
        (``tally.full_alphabet``) is unbounded, this is a part of it outside which every maximum
        likelihood estimate is exactly 0; `gap` holds for the whole.
    tally : Tally, optional
        The reports from which it was computed; standard errors and `identified` need it.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([50, 30, 20])
    >>> estimate = ik.ibu(tally)
    >>> estimate.gap <= 1e-6
    True
    >>> answers = ik.RandomizedResponse(["yes", "no"], epsilon=2.0).tally_counts([600, 400])
    >>> round(ik.mle(answers)["no"], 3)
    0.369
    """

    distribution: Floats
    log_likelihood: float
    gap: float
    status: Status
    n_iter: int
    method: str
    alphabet: Alphabet
    tally: Tally | None = field(default=None, repr=False)

    # Labels and probabilities.

    def __getitem__(self, label: Any) -> float:
        """Return the probability of one label; on a grid that of one (row, column) pair."""
        full = None if self.tally is None else self.tally.full_alphabet
        code = exports.code_of(label, self.alphabet, full)
        # Outside the part of an unbounded alphabet that is in use the probability is exactly 0.
        return 0.0 if code is None else float(self.distribution[code])

    def __len__(self) -> int:
        return len(self.distribution)

    # Iteration is ambiguous (labels or probabilities?). None also disables the iteration by
    # `estimate[0]`, `estimate[1]`, ... that Python falls back on.
    __iter__ = None

    # An estimate has labels and an array does not, so it must not be an operand of arrays: they
    # would align it by position. `distribution` is the array, in the alphabet's order.
    __array_ufunc__ = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows of `to_series` as an Arrow stream, for pyarrow, Polars, DuckDB."""
        return arrow_stream(self.to_series().reset_index(), requested_schema)

    def to_series(self) -> pd.Series[float]:
        """Return the probabilities as a pandas Series, with the labels as its index.

        On a grid the index has the levels row and col.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(["yes", "no"], epsilon=2.0).tally_counts([600, 400])
        >>> ik.mle(tally).to_series().round(3).to_dict()
        {'yes': 0.631, 'no': 0.369}
        """
        import pandas as pd

        return pd.Series(
            self.distribution.copy(), index=index_of(self.alphabet), name="probability"
        )

    def to_frame(self, level: float | None = 0.95, method: str | None = None) -> pd.DataFrame:
        """Return a row for each label: its probability, and perhaps an interval.

        Parameters
        ----------
        level : float, optional
            Level of the intervals, strictly between 0 and 1. None leaves out the intervals, and all
            else that needs the reports.
        method : str, optional
            As `interval` takes it. By default it is "auto" for at most 300 secrets, if that
            applies, and else "wald". Rows whose Wald interval would be void then get "profile", if
            the number of such rows times that of the secrets is at most 2^18.

        Returns
        -------
        pandas.DataFrame
            Columns ``probability``, ``lower``, ``upper`` (see `interval`) and ``identified``; if
            `level` is None, ``probability`` alone. A column ``method`` is added if rows have
            intervals by different methods, or void intervals, which say no more than what is
            possible. The index holds the labels (on a grid, ``row`` and ``col``).

        Raises
        ------
        ValueError, TooLarge
            As `interval` and `identified`, unless `level` is None.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(["yes", "no"], epsilon=2.0).tally_counts([600, 400])
        >>> print(ik.mle(tally).to_frame(level=0.9).round(3))
               probability  lower  upper  identified
        label
        yes          0.631  0.597  0.665        True
        no           0.369  0.335  0.403        True
        """
        import pandas as pd

        columns = {"probability": self.distribution} | self._interval_columns(level, method)
        return pd.DataFrame(columns, index=index_of(self.alphabet))

    def to_geodataframe(
        self, level: float | None = None, method: str | None = None
    ) -> GeoDataFrame:
        """Return a row for each cell of a grid, with its rectangle.

        Parameters
        ----------
        level : float, optional
            Adds the columns ``lower``, ``upper`` and ``identified``, as `to_frame` has them.
        method : str, optional
            As `interval` takes it. By default it is "auto" for at most 300 secrets, if that
            applies, and else "wald". Rows whose Wald interval would be void then get "profile", if
            the number of such rows times that of the secrets is at most 2^18.

        Returns
        -------
        geopandas.GeoDataFrame
            Columns ``row``, ``col``, ``probability`` and ``geometry`` (see `Grid.to_geodataframe`);
            with a level also those of `to_frame`.

        Raises
        ------
        AlphabetMismatch
            If the alphabet is not a Grid.
        ValueError, TooLarge
            As `to_frame`, if a level is given.

        Examples
        --------
        >>> import ibukit as ik
        >>> grid = ik.Grid(1, 2, cell_size=0.5)
        >>> tally = ik.RandomizedResponse(grid, epsilon=2.0).tally_counts([600, 400])
        >>> list(ik.mle(tally).to_geodataframe(level=0.95))
        ['row', 'col', 'probability', 'lower', 'upper', 'identified', 'geometry']
        """
        if not isinstance(self.alphabet, Grid):
            raise AlphabetMismatch(
                f"alphabet must be a Grid to be a map, got {name_of_alphabet(self.alphabet)}; "
                "to_frame() makes a table"
            )
        frame = self.alphabet.to_geodataframe(self.distribution, name="probability")
        for name, values in self._interval_columns(level, method).items():
            # The geometry stays the last column.
            frame.insert(frame.shape[1] - 1, name, values)
        return frame

    def to_json(self, level: float | None = None, method: str | None = None) -> str:
        """Return a JSON object with the labels, the probabilities and what is printed.

        Its names are labels, probabilities, gap, status, n_iter, method, log_likelihood, n, the
        number of reports (null without a tally), and dropped, the numbers of reports that were left
        out, by reason. JSON knows neither infinite numbers nor dates. The numbers become the
        strings "inf" and "-inf", as Python's `float` reads them, and labels such as dates become
        strings too.

        Parameters
        ----------
        level : float, optional
            Adds the lists lower, upper and identified, as `to_frame` has them, and its column
            method, if it has one, as interval_method.
        method : str, optional
            As `interval` takes it. By default it is "auto" for at most 300 secrets, if that
            applies, and else "wald". Rows whose Wald interval would be void then get "profile", if
            the number of such rows times that of the secrets is at most 2^18.

        Raises
        ------
        ValueError, TooLarge
            As `to_frame`, if a level is given.

        Examples
        --------
        >>> import ibukit as ik, json
        >>> estimate = ik.mle(ik.RandomizedResponse(2, epsilon=2.0).tally_counts([600, 400]))
        >>> again = json.loads(estimate.to_json())
        >>> again["labels"], again["status"]
        ([0, 1], 'CLOSED_FORM')
        >>> again["probabilities"] == estimate.distribution.tolist()
        True
        """
        known = self._interval_columns(level, method)
        return exports.as_json(
            labels=exports.plain_labels(self.alphabet),
            probabilities=self.distribution.tolist(),
            # The estimate's own method has the name of the column.
            **{
                f"interval_{name}" if name == "method" else name: values.tolist()
                for name, values in known.items()
            },
            gap=exports.finite(self.gap),
            status=self.status.name,
            n_iter=self.n_iter,
            method=self.method,
            log_likelihood=exports.finite(self.log_likelihood),
            n=None if self.tally is None else self.tally.n,
            dropped={} if self.tally is None else dict(self.tally.dropped),
        )

    def certificate(self) -> dict[str, Any]:
        r"""Return the proof of `gap` as a mapping that `json.dumps` takes.

        Whoever has it can check, in exact arithmetic and without this package, that no distribution
        has a mean log-likelihood above that of this one by more than the gap: a page of the book
        prints the thirty lines that do so (*Certificates that others can check*). The certificate
        holds the reports, so treat it as you treat the reports.

        Its names are format, claim, gap, n, distribution_of ("secrets", or "secrets of reports
        seen" where reports get lost), labels, distribution, and parts: for each mechanism its call
        in words, the counts of the distinct reports, and the probabilities :math:`M_{xz}` of report
        z given secret x, up to a factor for each report, on which the claim does not depend. By
        kind:

        - "own or other": `own` if x is reports[z], else `other`;
        - "line": scale[z] times decay to the power of the distance between x and reports[z];
        - "bits": scale[z] times `one` if bit x of reports[z] is 1, else `zero`;
        - "plane": factor[x] times scale[z] times the entry of kernels[kinds[z]] at the distances
          of the rows and the columns of cell x and cell reports[z];
        - "matrix": columns[z][x].

        All numbers are the doubles of the computation, and the claim is about these. It is for the
        reader to check that these numbers are the mechanism's, which is to say the results of its
        formula, rounded to doubles, and that the reports are those that were sent.

        Returns
        -------
        dict

        Raises
        ------
        NotCertified
            If the estimate has no tally or is off the simplex, or a report seen has probability 0.
        TooLarge
            If a matrix or rows of bits with more than 2^20 entries would be written out.

        Examples
        --------
        >>> import ibukit as ik, json
        >>> estimate = ik.mle(ik.RandomizedResponse(3, epsilon=1.0).tally_counts([60, 30, 10]))
        >>> certificate = estimate.certificate()
        >>> certificate["gap"] == estimate.gap, certificate["parts"][0]["counts"]
        (True, [60, 30, 10])
        >>> json.loads(json.dumps(certificate)) == certificate
        True
        """
        return certificate_of(self.distribution, self.tally, self.status)

    def plot(
        self, level: float | None = None, ax: Axes | None = None, method: str | None = None
    ) -> Axes:
        """Draw the estimate: bars for labels, steps on a line, a map on a grid.

        Parameters
        ----------
        level : float, optional
            Adds the intervals of `interval`: whiskers, or a band. On a map, cells whose interval
            reaches down to 0 are crossed out, and the title gives the number of cells with a void
            interval.
        ax : matplotlib Axes, optional
        method : str, optional
            As `interval` takes it. By default it is "auto" for at most 300 secrets, if that
            applies, and else "wald". Rows whose Wald interval would be void then get "profile", if
            the number of such rows times that of the secrets is at most 2^18.

        Returns
        -------
        matplotlib Axes
            If there are many labels, only the most probable are drawn, and the axis says what
            probability the others have together.

        Raises
        ------
        ValueError, TooLarge
            As `interval`, if a level is given.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(["yes", "no"], epsilon=2.0).tally_counts([600, 400])
        >>> [text.get_text() for text in ik.mle(tally).plot(level=0.95).get_yticklabels()]
        ['yes', 'no']
        """
        # Imported here because it loads matplotlib.
        from ibukit.plotting.estimates import draw

        if level is None:
            return draw(self.distribution, self.alphabet, self.method, None, ax)
        ends, methods = self._ends(level, None, method)
        return draw(
            self.distribution, self.alphabet, self.method, ends, ax, methods == intervals.VOID
        )

    def _interval_columns(self, level: float | None, method: str | None) -> dict[str, NDArray[Any]]:
        """Return the columns that tables have besides the probabilities; none without a level."""
        if level is None:
            return {}
        (lower, upper), methods = self._ends(level, None, method)
        columns: dict[str, NDArray[Any]] = {"lower": lower, "upper": upper}
        columns["identified"] = self.identified
        # A single method is not named; but rows of other methods, and void rows, say what they are.
        one = len({*methods}) == 1 and methods[0] in intervals.INTERVALS
        return columns if one else columns | {"method": methods}

    def _ends(self, level: float, of: Any, method: str | None) -> tuple[Ends, NDArray[Any]]:
        """Return the ends of intervals, by default quick ones, and the method of each."""
        level = arguments.fraction("level", level, "()")
        request = self._request(parse_functionals(of, self.alphabet), level, "distribution")
        method = "wald" if method is None and self._of_sums else method
        if method is None:
            return self._default_ends(request)
        ends = self._ends_by(request, method, {})
        name = intervals.name_in_tables(method, self.tally)
        return ends, np.full(len(request.functionals), name, dtype=object)

    def _repr_html_(self) -> str:
        return exports.as_html(repr(self), self.alphabet, self.distribution)

    # Standard errors and identification.

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """True if the reports determine each secret's probability, shape (k,).

        They do if all MLEs agree on that probability (to 1e-7). This is a property of the reports,
        the same for every estimate made from them, and it is computed when first asked for. Where
        it is False, `theory.mle_set` gives the range. True does not mean that the probability is
        estimated precisely: see `standard_errors`, which are inf where the likelihood is flat
        around the estimate, although the boundary of the simplex may still single the estimate out.

        Raises
        ------
        ValueError
            If the estimate does not know its tally.

        Examples
        --------
        >>> import ibukit as ik
        >>> merged = ik.compose(ik.RandomizedResponse(3, epsilon=1.0), [[1, 0], [0, 1], [0, 1]])
        >>> ik.ibu(merged.tally_counts([50, 50])).identified
        array([ True, False, False])
        """
        tally = self._known_tally("what is identified depends on the reports")
        # Finite standard errors prove that the columns of the reports seen span all directions, so
        # that L is strictly concave and has one maximiser.
        if np.isfinite(vars(self).get("_variances", np.inf)).all():
            return np.ones(len(self), dtype=bool)
        return determined_probabilities(tally, self.distribution)

    @overload
    def standard_errors(self, of: None = None, target: str = ...) -> Floats: ...
    @overload
    def standard_errors(self, of: OneFunctional, target: str = ...) -> float: ...
    @overload
    def standard_errors(self, of: Sequence[Sequence[float]], target: str = ...) -> Floats: ...
    @overload
    def standard_errors(self, of: Any, target: str = ...) -> float | Floats: ...

    def standard_errors(self, of: Any = None, target: str = "distribution") -> float | Floats:
        r"""Asymptotic standard errors, of each probability or of weighted sums.

        They are the square roots of the diagonal of the inverse observed information. The
        information is
        :math:`J_{xy} = \sum_{z} \mathrm{counts}_{z}\,M_{xz}\,M_{yz} / (\theta\,M)_{z}^{2}` on the
        directions that keep the sum at 1: the errors of an efficient estimator of an interior
        distribution. They ignore that probabilities are not negative, so they are too large where
        many probabilities are estimated as 0; and they do not include the bias of stopping early.
        Where the reports seen do not determine a secret's probability at all, its standard error is
        inf.

        Parameters
        ----------
        of : array_like of shape (k,) or (r, k), mapping, label or list of labels, optional
            Weights of the sum :math:`w \cdot \theta`: those of one functional, or of one in each
            row; truth values count as 0 and 1. A mapping has the weights of some labels; labels
            that are strings, as in ``["bike", "bus"]``, stand for the sum of their probabilities;
            labels of other types go into a mapping, as in ``{20: 1, 21: 1}``. A DataFrame has a
            column for each of some labels and a row for each sum. A GeoDataFrame of districts
            weighs the cells of a grid by the share of their area, a row for each district. The
            index of either names the rows of tables: ``districts.set_index("name")``. None, the
            default, asks for every probability; these are computed only once.
        target : {"distribution", "frequencies"}
            Whether to give the errors of an estimate of the distribution that people come from, or
            of these people's own frequencies F. The latter are smaller: their square is
            :math:`w V w - (\sum_x w_x^2\,\theta_x - (w \cdot \theta)^2) / n`, because who was
            asked, out of all people, is then not random.

        Returns
        -------
        float, or ndarray of shape (k,) or (r,)

        Raises
        ------
        ValueError
            If the estimate does not know its tally, is off the simplex, or gives probability 0 to a
            report that was seen; if `of` does not have k finite weights; if reports may be lost or
            are weighted and the target is the frequencies; or if reports are weighted and no
            stratum has two units, or the squares of their weights leave the doubles (the subclass
            `WeightsRefused`).
        AlphabetMismatch
            If `of` has a label that is not in the alphabet.
        TooLarge
            If they would take a (k, k) matrix with k above 10,000, or above 5,000 where the reports
            leave something undetermined. Under k-RR, also pooled, and under geometric noise on a
            line there are closed forms, which take O(k) time and memory. All cells of a larger
            plane are solved for without the matrix, each variance to within a hundredth, if every
            report was seen and the noise is narrow compared with the plane: 256 x 256 cells take
            half a minute.

        References
        ----------
        .. [louis] Louis, "Finding the observed information matrix when using the EM algorithm",
           JRSS B 44, 1982.
        .. [binder] Binder, "On the variances of asymptotically normal estimators from complex
           surveys", International Statistical Review 51, 1983.
        .. [horvitz] Horvitz and Thompson, "A generalization of sampling without replacement from a
           finite universe", JASA 47, 1952.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([5000, 3000, 2000])
        >>> ik.mle(tally).standard_errors().round(4)
        array([0.0137, 0.0125, 0.0115])
        >>> round(ik.mle(tally).standard_errors(of=[0, 1, 1]), 4)  # of the last two together
        0.0137
        """
        # Variances of single probabilities are cached, those of other functionals are not.
        functionals = parse_functionals(of, self.alphabet)
        return functionals.answer(self._errors(functionals, target))

    def covariance(self) -> Floats:
        r"""Asymptotic covariances of the probabilities, shape (k, k).

        This is the inverse observed information on the directions that keep the sum, of which
        `standard_errors` takes only the diagonal. Each row sums to 0. The variance of
        :math:`\sum_{x} w_{x}\,\theta_x` is ``w @ covariance @ w``.

        Returns
        -------
        ndarray, shape (k, k)
            inf in the rows and columns of secrets whose probability the reports do not determine.

        Raises
        ------
        ValueError
            As `standard_errors`.
        TooLarge
            If there are more than 10,000 secrets, and as `standard_errors`.

        Examples
        --------
        >>> import ibukit as ik
        >>> estimate = ik.mle(ik.RandomizedResponse(2, epsilon=2.0).tally_counts([600, 400]))
        >>> estimate.covariance().round(6)
        array([[ 0.000414, -0.000414],
               [-0.000414,  0.000414]])
        """
        if self._of_sums:
            return self._covariance_of_sums()
        return asymptotic_covariance(self._tally_of_errors(), self.distribution)

    # `Unfolded` overrides `_variances_of`, because a background changes the information.

    @cached_property
    def _variances(self) -> Floats:
        if self._of_sums:
            return np.diag(self._covariance_of_sums()).copy()
        return asymptotic_variances(self._tally_of_errors(), self.distribution)

    def _variances_of(self, functionals: LinearFunctionals) -> Floats:
        if functionals.weights is None:
            return self._variances
        if self._of_sums:
            weights = functionals.weights
            return np.einsum("rx,xy,ry->r", weights, self._covariance_of_sums(), weights)
        return asymptotic_variances_of_sums(
            self._tally_of_errors(), self.distribution, functionals.weights
        )

    def _errors(self, functionals: LinearFunctionals, target: str) -> Floats:
        if not arguments.is_one_of(target, ("distribution", "frequencies")):
            raise ValueError(f"target must be 'distribution' or 'frequencies', got {target!r}")
        variances = self._variances_of(functionals)
        if target == "distribution":
            return np.sqrt(variances)
        tally = self._known_tally("whose frequencies are meant is said by the reports")
        if tally.efficiency is not None:
            raise ValueError(
                "target must be 'distribution' where reports may be lost: "
                "it is not known whose reports are missing"
            )
        if tally.weighted:
            raise WeightsRefused(
                "target must be 'distribution' where reports are weighted, got 'frequencies': "
                "weighted people stand for others who were not asked"
            )
        # The frequencies themselves vary around theta with the covariance (diag(theta) - theta
        # theta') / n, which is no part of their error. Where the mechanism hides nothing, the
        # difference is 0, and rounding may make it negative.
        of_sampling = functionals.variances(self.distribution) / tally.n
        return np.sqrt(np.maximum(variances - of_sampling, 0.0))

    def _tally_of_errors(self) -> Tally:
        tally = self._known_tally("standard errors need the reports")
        self._refuse_off_simplex()
        return tally

    # `Unfolded` overrides `_n`: with a background there is no tally that could know it.

    @property
    def _n(self) -> float:
        return self._known_tally("the number of reports is that of the tally").n

    def _known_tally(self, why: str) -> Tally:
        if self.tally is None:
            raise ValueError(f"estimate has no tally: {why} it was computed from")
        return self.tally

    @property
    def _of_sums(self) -> bool:
        """True if only sums of bits are known, so that errors are those of raw inversion."""
        return self.tally is not None and not all(
            has_likelihood(part.mechanism) for part in self.tally.parts
        )

    def _covariance_of_sums(self) -> Floats:
        # This is the covariance of the unbiased estimate, without the repairs of inversion.
        parts = self._known_tally("standard errors need the sums").parts
        if len(parts) > 1:
            raise LikelihoodUnknown(
                "tally must hold sums of one mechanism for errors, but it pools "
                f"{len(parts)}: take inv and the errors of each alone"
            )
        mechanism: Any = parts[0].mechanism
        return mechanism.covariance(parts[0].reports, parts[0].counts)

    def _refuse_off_simplex(self) -> None:
        if self._of_sums:
            return
        if self.status is Status.OFF_SIMPLEX:
            raise ValueError(
                "estimate is off the simplex: project it (post='project') before asking for errors"
            )

    # Intervals.

    @overload
    def interval(
        self,
        level: float = ...,
        of: None = None,
        method: str = ...,
        target: str = ...,
        **options: Any,
    ) -> tuple[Floats, Floats]: ...
    @overload
    def interval(
        self,
        level: float,
        of: OneFunctional,
        method: str = ...,
        target: str = ...,
        **options: Any,
    ) -> tuple[float, float]: ...
    @overload
    def interval(
        self,
        level: float = ...,
        *,
        of: OneFunctional,
        method: str = ...,
        target: str = ...,
        **options: Any,
    ) -> tuple[float, float]: ...
    @overload
    def interval(
        self,
        level: float = ...,
        *,
        of: Sequence[Sequence[float]],
        method: str = ...,
        target: str = ...,
        **options: Any,
    ) -> tuple[Floats, Floats]: ...
    @overload
    def interval(
        self,
        level: float = ...,
        of: Any = ...,
        method: str = ...,
        target: str = ...,
        **options: Any,
    ) -> tuple[float | Floats, float | Floats]: ...

    def interval(
        self,
        level: float = 0.95,
        of: Any = None,
        method: str = "auto",
        target: str = "distribution",
        **options: Any,
    ) -> tuple[float | Floats, float | Floats]:
        r"""Intervals of the probabilities, or of weighted sums.

        - ``"auto"``, the default: as "profile" (below), but for each end the threshold
          :math:`z^{2}` is replaced by a quantile, found by simulation, of the likelihood ratio in
          the Gaussian problem that approximates it near the boundary of the simplex. It is wider
          than "profile" where probabilities are 0 or nearly so, and the same in the interior. For
          two secrets with two kinds of reports the possible tallies are enumerated, as for
          "calibrated". It is "profile" itself for weighted reports, where reports get lost, and
          where the drawing would take longer than ten to fifty seconds: that is the case if the
          number of questions times the cube of the number of secrets exceeds :math:`2^{24}`, its
          value for one question about 256 secrets, or for all 64 shares of 64 secrets. For a
          measured matrix and over a background it is "profile" where this applies, else "wald".
          `summary` says which.
        - ``"wald"``: :math:`w \cdot \theta` -+ z standard errors, which cover with probability
          about `level` at distributions without zeros. The interval is cut off at the least and the
          largest value that any distribution can have (0 and 1 for a probability), and is void
          where both ends are cut off.
        - ``"profile"``: the range of :math:`w \cdot \theta` over
          :math:`\{\theta : L(\theta) \ge \max L - z^2 / 2\}`, z the normal quantile. Each end has
          a bound by duality, and the range that is returned is proved to contain that of the set.
          Rounding hides the set of more than :math:`10^{14}` reports; that of :math:`10^{14}`,
          which contains it, is taken instead.
          It covers with probability about `level` in the limit, but with a higher or a lower one
          where many probabilities are 0: with .34 instead of .95 under geometric noise if everybody
          has the same one of 100 values (chapter *How many people does it take?*), and with .55
          under k-RR (*How sure can we be?*).
        - ``"calibrated"``: the answers v whose likelihood ratio is at most the quantile of the
          ratios of `draws` tallies simulated from the most likely distribution with the answer v.
          It covers with probability about `level` even at the boundary. If there are at most 64
          secrets and the reports can be listed, an end is the outermost accepted answer of a scan
          from outside. At most 4,096 possible tallies are enumerated instead of simulated. For two
          secrets with two kinds of reports this is always done: the ends are then exact, and cover
          with probability at least `level`.
        - ``"guaranteed"``: covers with probability at least `level` at any number of reports, for
          any mechanism, without conditions. `by` says how. "binomial" is Clopper and Pearson's
          interval from the number of reports in a set whose probability depends on
          :math:`w \cdot \theta` alone. It exists for shares and sums of several shares under k-RR,
          and for single shares under unary encodings and subset selection, and is the default for
          these. Under k-RR of 25 and 100 values, epsilon 1, with 100,000 reports and no share of 0,
          it was 1.03 times as wide as the profile's interval in the median of 120 cases, and at
          most 1.5 times as wide. "region", the default for other questions and for `band` and
          `largest`, holds for all questions at once. It is "boxes" where reports can be listed, and
          else "cross-fitted". "boxes" is the range over all :math:`\theta` whose reports (under
          unary encodings and subset selection, their bits) are as probable as their Clopper-Pearson
          intervals say. "cross-fitted", "split" and "averaged" are likelihood ratios (universal
          inference): an estimate from some of the reports is judged by the others, with two halves
          that change places, with one split, or by the mean of several splits. "betting" bets
          against each end, with bets designed from a tenth of the reports. Boxes are wide for sums:
          under k-RR of 25 values, epsilon 1 and 100,000 reports, those for the sum of half the
          shares are, with no share near 0, 5 to 7 times as wide as the profile's, and those by
          betting about twice as wide.
        - ``"credible"``: contains w . theta with probability `level` under the posterior of the
          prior Dirichlet(`alpha`); exact for shares and sums of several shares under k-RR and for
          two secrets, and otherwise mostly found by draws. Do not rely on it where the prior gives
          little weight to the region of the truth and reports are few: with 20 secrets under k-RR,
          epsilon 1, and 1,000 people who all have one secret, the interval of its share contained
          the truth, 1, in 0 of 400 draws; if half of the people have it and the others all values
          alike, it did so in 47 of 400 (in 262 of 400 with alpha=0.5).
        - ``"bootstrap"``: quantiles of the estimates of `draws` tallies, simulated from this
          estimate or, with kind="reports", drawn from the reports. It covers too rarely at the
          boundary. With ``estimator=...`` that function of a tally makes the estimates, instead of
          maximum likelihood. It then shows the spread of that estimator, for instance a stopped or
          smoothed one, around what it tends to: it is **no interval for the truth**, because it
          does not know the estimator's bias.

        If reports get lost, intervals are for the distribution of all secrets, given the number of
        reports that were seen; "calibrated", and "guaranteed" by anything but boxes, then do not
        apply. Over a background (`unfold`) there are "profile", "wald", "guaranteed" by boxes and
        "bootstrap".

        All but Wald's and the parametric bootstrap's depend on the reports alone, not on this
        estimate.

        The level holds for a question that was chosen before the reports were seen. The interval of
        a share that was chosen after a look (the largest, all above a limit, a difference that was
        found by looking) does not have this level: with 100 equal shares under k-RR, epsilon 1 and
        2,000 reports, the profile interval of level 0.95 of the largest estimate covers in about
        91 % of the tallies. `largest`, `band` and ``method="guaranteed", by="region"`` hold for
        whatever is chosen among all probabilities. "wald", "profile", "calibrated", "guaranteed"
        and "credible" notice where reports leave directions open. All methods take the mechanism
        for exactly known, unless its matrix was measured and it was made by
        `MatrixMechanism.from_trials`, which says what then applies.

        For weighted reports there are "wald", with the standard errors of the design, and
        "profile", with :math:`z^{2}` times the design effect, which is the variance by the design
        divided by that of as many reports as the weights sum to [rao]_; z is then a quantile of
        Student's distribution, whose degrees of freedom are the numbers of clusters minus strata,
        or of replicates minus 1. Where only sums of weights are known (``weighted=True`` in
        `tally_counts`), there is "wald" alone, without the design. The other methods need whole
        counts of independent reports.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        of : optional
            Weights of linear functionals, as `standard_errors` takes them.
        method : {"auto", "profile", "wald", "calibrated", "guaranteed", "credible", "bootstrap"}
        target : {"distribution", "frequencies"}
            What is to be covered, as `standard_errors` takes it. For the frequencies there are
            "wald", "credible", "bootstrap", and "guaranteed" by "binomial", "boxes" or "betting".
        **options
            Options of the method. "auto": draws=None (20 / (1 - level), at most 2,000), seed=0.
            "calibrated": draws=400, seed=0. "guaranteed": by=None, seed=0, and share=0.1 (the
            pilot, "betting"), share=0.5 ("split") or splits=10 ("averaged"). "credible": alpha=1.0,
            seed=0. "bootstrap": draws=1000, seed=0, kind="parametric", n_jobs=1, estimator=None (a
            function from a tally to an estimate over its secrets).

        Returns
        -------
        (lower, upper) : floats, or ndarrays of shape (k,) or (r,)

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1; if the method is not known or not for this target;
            with "guaranteed", if the mechanism would make such reports with a probability of at
            most 1e-6; if the method does not take weights (the subclass `WeightsRefused`); and
            where `standard_errors` raises it.
        TooLarge
            If the method would take a matrix that is too large, or would take hours.
        MatrixUncertain
            If the matrix was measured, and the method does not know its trials.

        References
        ----------
        .. [clopper] Clopper and Pearson, "The use of confidence or fiducial limits illustrated in
           the case of the binomial", Biometrika 26, 1934.
        .. [feldman] Feldman and Cousins, "Unified approach to the classical statistical analysis of
           small signals", Phys. Rev. D 57, 1998 (calibrated).
        .. [rao] Rao and Scott, "On chi-squared tests for multiway contingency tables with cell
           proportions estimated from survey data", Annals of Statistics 12, 1984 (weights).
        .. [universal] Wasserman, Ramdas and Balakrishnan, "Universal inference", PNAS 117, 2020.
        .. [betting] Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
           betting", J. R. Statist. Soc. B 86, 2024.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0)
        >>> estimate = ik.mle(mechanism.tally_counts([100, 60, 40]))
        >>> lower, upper = estimate.interval(0.95)
        >>> lower.round(3), upper.round(3)
        (array([0.477, 0.195, 0.062]), array([0.68 , 0.381, 0.224]))
        >>> for method in ("wald", "profile", "guaranteed", "credible"):
        ...     lower, upper = estimate.interval(0.95, of={"b": 1, "c": 1}, method=method)
        ...     print(f"{lower:.3f} to {upper:.3f}")
        0.320 to 0.524
        0.320 to 0.523
        0.317 to 0.527
        0.325 to 0.526
        """
        functionals = parse_functionals(of, self.alphabet)
        request = self._request(functionals, arguments.fraction("level", level, "()"), target)
        lower, upper = self._ends_by(request, method, options)
        return functionals.answer(lower), functionals.answer(upper)

    # `Unfolded` overrides these two, because a background changes the likelihood.

    def _ends_by(self, request: IntervalRequest, method: str, options: dict[str, Any]) -> Ends:
        return intervals.interval(request, method, options)

    def _default_ends(self, request: IntervalRequest) -> tuple[Ends, NDArray[Any]]:
        return intervals.default_ends(request)

    def _request(
        self, functionals: LinearFunctionals, level: float, target: str
    ) -> IntervalRequest:
        self._refuse_off_simplex()
        # Standard errors are computed only if the method, Wald's, asks for them.
        errors = partial(self._errors, functionals, target)
        return IntervalRequest(self.tally, self.distribution, functionals, level, target, errors)

    def band(
        self,
        level: float = 0.95,
        method: str = "auto",
        target: str = "distribution",
        **options: Any,
    ) -> tuple[Floats, Floats]:
        """Intervals of all probabilities that hold together.

        With probability `level` (about or at least, as for `method` in `interval`) all k contain
        what they are for. With the method "guaranteed" the option `by` is "region" unless another
        is given; intervals from a region hold together as they are. With other methods each
        interval has the level 1 - (1 - level) / k, so that the chances that one of them fails add
        up to at most 1 - level (Bonferroni).

        Parameters
        ----------
        level : float
            Level of the band, strictly between 0 and 1.
        method, target, **options
            As `interval` takes them.

        Returns
        -------
        (lower, upper) : ndarrays, shape (k,)

        Raises
        ------
        ValueError, TooLarge
            As `interval`.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0)
        >>> estimate = ik.mle(mechanism.tally_counts([500, 300, 200]))
        >>> lower, upper = estimate.band(0.95)
        >>> lower.round(3), upper.round(3)
        (array([0.523, 0.235, 0.095]), array([0.634, 0.336, 0.184]))
        """
        level = arguments.fraction("level", level, "()")
        # Bonferroni, unless the method's intervals hold together as they are.
        each, options = intervals.for_all_together(level, len(self), method, options)
        return self.interval(each, None, method, target, **options)

    def largest(
        self, m: int, level: float = 0.95, method: str = "auto", **options: Any
    ) -> pd.DataFrame:
        """Return the m largest estimated shares, with intervals that hold together.

        An interval of a share that was chosen because it is large does not reach its level, because
        the largest of many estimates is usually too large. These intervals are those of `band`:
        with probability `level` (about or at least, as for `method` in `interval`) all contain the
        truth, whichever labels are chosen.

        Parameters
        ----------
        m : int
            Number of labels, from 1 to k.
        level : float
            Level of all m intervals together, strictly between 0 and 1.
        method, **options
            As `interval` takes them.

        Returns
        -------
        pandas.DataFrame
            A row for each label, the largest first, with the columns ``probability``, ``lower`` and
            ``upper``. The index holds the labels (on a grid, ``row`` and ``col``).

        Raises
        ------
        ValueError, TooLarge
            As `interval`, and if there are fewer than m labels.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["a", "b", "c", "d"], epsilon=2.0)
        >>> print(ik.mle(mechanism.tally_counts([200, 300, 100, 400])).largest(2).round(3))
               probability  lower  upper
        label
        d            0.494  0.432  0.557
        b            0.331  0.274  0.391
        """
        m = arguments.whole("m", m, 1, len(self))
        level = arguments.fraction("level", level, "()")
        codes = codes_of_largest(self.distribution, m)
        # Only these are computed, at the level that all k together need.
        each, options = intervals.for_all_together(level, len(self), method, options)
        of = np.zeros((m, len(self)))
        of[np.arange(m), codes] = 1
        lower, upper = self.interval(each, of=of, method=method, **options)
        ends = np.atleast_1d(lower), np.atleast_1d(upper)
        return table_of_largest(index_of(self.alphabet), codes, self.distribution, ends)

    def summary(self, level: float = 0.95, of: Any = None, method: str | None = None) -> Summary:
        """Return a table to be read: estimates, intervals, and warnings in words.

        Each row has an interval of its own. The intervals of rows that are picked out of the table,
        such as the largest, do not have this level: `largest` and `band` hold for them.

        Parameters
        ----------
        level : float
            Level of the intervals, strictly between 0 and 1.
        of : optional
            Weights of linear functionals, as `standard_errors` takes them; a row for each.
        method : str, optional
            As `to_frame` takes it.

        Returns
        -------
        Summary
            With the attributes `table`, a DataFrame, and `warnings`; prints both.

        Raises
        ------
        ValueError, TooLarge
            As `interval`.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["a", "b", "c", "d", "e"], epsilon=2.0)
        >>> estimate = ik.mle(mechanism.tally_counts([430, 310, 160, 140, 75]))
        >>> print(estimate.summary())  # doctest: +NORMALIZE_WHITESPACE
        1,115 reports; mle, closed form by water-filling: k-RR, k = 5;
        intervals of level 0.95 by method "auto"
               estimate   lower   upper
        label
        a        0.5158  0.4675  0.5648
        b        0.3282  0.2838  0.3742
        c       0.09365 0.05929   0.131
        d       0.06238 0.03012 0.09755
        e             0       0 0.01077
        """
        ends, methods = self._ends(level, of, method)
        functionals = parse_functionals(of, self.alphabet)
        request = self._request(functionals, level, "distribution")
        # Sums of probabilities have no labels; whether they are determined is not examined.
        every = functionals.weights is None
        return summarise(
            request,
            ends,
            interval_methods=methods,
            estimator=self.method,
            n=self._n,
            gap=self.gap,
            labels=index_of(self.alphabet) if every else names_of_questions(of, len(functionals)),
            identified=self.identified if every else None,
        )

    # The secrets behind reports, and checks of the model.

    def given(self, reports: Any, mechanism: Mechanism | None = None) -> pd.DataFrame:
        r"""Return the probabilities of the secret behind each report.

        .. math:: P(x\mid z)=\frac{\theta_x\,M_{xz}}{\sum_y\theta_y\,M_{yz}},

        with this estimate for :math:`\theta`. One step of `ibu` adds up these probabilities. They
        are what anybody who sees the report and knows the population can conclude about the person
        who sent it.

        Parameters
        ----------
        reports : sequence, n reports
            As `Mechanism.tally` reads them; for a tally of likelihoods, the numbers of its rows.
        mechanism : Mechanism, optional
            The mechanism that made the reports, with the secrets of the estimate. By default it is
            that of the tally, which must have only one.

        Returns
        -------
        pandas.DataFrame, shape (n, k)
            A row for each report, with the index of `reports` if they are a Series; a column for
            each secret. Rows sum to 1. Where reports may get lost, the probabilities are those for
            a report that was seen.

        Raises
        ------
        AlphabetMismatch
            If `mechanism` has other secrets, or a report is not one of its reports.
        ImpossibleReport
            If the estimate gives a report probability 0.
        TooLarge
            If the table would not fit in memory.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.RandomizedResponse(["yes", "no"], epsilon=2.0)
        >>> print(ik.mle(mechanism.tally_counts([600, 400])).given(["yes", "no"]).round(3))
        label    yes     no
        0      0.927  0.073
        1      0.188  0.812
        """
        self._refuse_off_simplex()
        return secrets_of_reports(
            reports, mechanism, self.tally, self.distribution, self.alphabet, index_of
        )

    def fit_test(self, draws: int = 999, seed: int = 0) -> ModelCheck:
        r"""Test whether the mechanism made the reports.

        The statistic is the deviance :math:`2\sum_z c_z\log\frac{c_z/n}{(\theta M)_z}` at the
        maximum likelihood estimate, which is twice what the free multinomial gains on it. For a
        pool it is the sum over its mechanisms, each with an estimate of its own (`pool_test`
        compares these). Its p-value is found by drawing tallies of people whose distribution is the
        estimate; the deviance of each is that of the best fit on the same face of the simplex. If
        at least five of each report are expected and a chi-square bound is below 0.001, this bound
        is given instead.

        Parameters
        ----------
        draws : int
            Tallies that are drawn at most; fewer are drawn if the p-value is large. With 0 there is
            only the bound.
        seed : int
            Seed of the draws.

        Returns
        -------
        ModelCheck
            `p_value`, `statistic`, `reason` in words, and the deviance of each mechanism in
            `parts`. A large p-value does not show that the mechanism is right: a wrong level of
            privacy is noticed only if no distribution explains the reports.

        Raises
        ------
        ValueError
            If the estimate has no tally, or the tally has weights, sums of bits or likelihoods,
            which do not say what else might have been observed.
        TooLarge
            If the reports lie in partitions that do not say how probable each is.

        References
        ----------
        .. [susko] Susko, "Likelihood ratio tests with boundary constraints using data-dependent
           degrees of freedom", Biometrika 100, 2013.
        .. [besag] Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991.

        Examples
        --------
        A test of specificity .95 makes a hundred of 2,000 healthy people positive; twenty positives
        were seen:

        >>> import ibukit as ik
        >>> test = ik.MatrixMechanism([[0.95, 0.05], [0.1, 0.9]], ["well", "ill"], ["-", "+"])
        >>> estimate = ik.mle(test.tally_counts([1980, 20]))
        >>> estimate["ill"], estimate.fit_test().p_value < 1e-9
        (0.0, True)
        """
        return model_checks.fit_test(self._known_tally("the test is of the reports"), draws, seed)

    def pool_test(self, draws: int = 999, seed: int = 0) -> ModelCheck:
        r"""Test whether the mechanisms of a pool agree on one distribution.

        They do not if people chose their mechanism, or its level of privacy, according to their
        secret: a common estimate is then biased. The statistic is
        :math:`2\,(\sum_A\max_\theta L_A(\theta)-\max_\theta\sum_A L_A(\theta))`, with :math:`L_A`
        the log-likelihood of the reports of A. In a pool of up to eight mechanisms each of them is
        an A; in a larger pool A is one of eight groups of neighbours in the order of their levels.
        The p-value is found by drawing, with the common estimate as everybody's distribution, or
        bounded as in `fit_test`.

        Parameters
        ----------
        draws, seed
            As for `fit_test`.

        Returns
        -------
        ModelCheck
            `p_value`, `statistic`, `reason` in words, and, in `parts`, what each group gains.

        Raises
        ------
        ValueError
            If the tally has only one mechanism, and as `fit_test`.
        TooLarge
            As for `fit_test`.

        See Also
        --------
        combine_results : Its weights, the numbers of people, need no common distribution.

        Examples
        --------
        >>> import ibukit as ik
        >>> careful, careless = (ik.RandomizedResponse(3, epsilon=e) for e in (1.0, 3.0))
        >>> chosen = careful.tally_counts([250, 300, 500]) + careless.tally_counts([700, 200, 100])
        >>> ik.mle(chosen).pool_test().p_value < 0.001
        True
        """
        return model_checks.pool_test(self._known_tally("the test is of the reports"), draws, seed)

    # Files and Python's protocols.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replace a file with the estimate and its tally, all at once or not at all.

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
        >>> mechanism = ik.RandomizedResponse(["yes", "no"], epsilon=1.0)
        >>> estimate = ik.mle(mechanism.tally_counts([60, 40]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     estimate.save(f"{folder}/answers")
        ...     ik.Estimate.load(f"{folder}/answers") == estimate
        True
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the estimate as `save` wrote it.

        A file can only name classes of ibukit: nothing in it is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Estimate
            Or an object of the class that inherits from it, if that was written.

        Raises
        ------
        ForeignFile
            If it is not such a file, or is of another version.
        DataChanged
            If it was changed or cut short.
        """
        return load(path, cls)[0]

    def _refuse_other_content(self) -> None:
        """Raise an error for content that a file may hold, but no estimate."""
        # A file may hold anything in the place of a field.
        own: Any = self
        theta = own.distribution
        if not isinstance(own.alphabet, Alphabet) or not isinstance(own.status, Status):
            raise ValueError("an estimate must have an alphabet and a status")
        if not isinstance(theta, np.ndarray) or theta.dtype != np.float64:
            raise ValueError("distribution must be an array of doubles")
        if own.status is Status.OFF_SIMPLEX:
            arguments.vector("distribution", theta, len(own.alphabet))
        else:
            arguments.distribution("distribution", theta, len(own.alphabet))
        for name in ("log_likelihood", "gap"):
            if type(getattr(own, name)) not in (int, float):
                raise ValueError(f"{name} must be a number, got {getattr(own, name)!r}")
        if own.tally is not None and (
            not isinstance(own.tally, Tally) or own.tally.alphabet != own.alphabet
        ):
            raise ValueError("tally must be of the secrets of the estimate")
        # The likelihood of sums of bits is not known, and so their gap is not known either.
        known = own.tally is None or all(has_likelihood(p.mechanism) for p in own.tally.parts)
        if known and not own.gap >= 0:
            raise ValueError(f"gap must not be negative, got {own.gap}")
        arguments.whole("n_iter", own.n_iter, 0)
        arguments.text("method", own.method)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Estimate):
            return NotImplemented
        return (
            type(self) is type(other)
            and self._printed == other._printed
            and self.alphabet == other.alphabet
            and _have_same_reports(self.tally, other.tally)
            # The distribution, and the fields that a subclass adds.
            and all(
                np.array_equal(getattr(self, each.name), getattr(other, each.name))
                for each in fields(self)
                if each.name not in ("alphabet", "tally")
            )
        )

    def __hash__(self) -> int:
        return hash(self._printed)

    @property
    def _printed(self) -> tuple[Any, ...]:
        return self.method, self.status.name, self.n_iter, self.gap, self.log_likelihood

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are left out: they can be computed again.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        full = None if self.tally is None else self.tally.full_alphabet
        where = "" if full is None else f" on {self.alphabet!r}, 0 elsewhere on {full!r}"
        return (
            f"Estimate({self.method}: k={len(self)}{where}, n_iter={self.n_iter}, "
            f"gap={self.gap:.3g} nats/report, log_likelihood={self.log_likelihood:.6g}, "
            f"{self.status.name})"
        )


def _have_same_reports(one: Tally | None, other: Tally | None) -> bool:
    if one is None or other is None:
        return one is other
    # Parts may come in any order: they are compared mechanism by mechanism.
    parts = {part.mechanism: part for part in other.parts}
    return (
        len(one.parts) == len(parts)
        and one.full_alphabet == other.full_alphabet
        and all(
            (same := parts.get(part.mechanism)) is not None
            and np.array_equal(part.reports, same.reports)
            and np.array_equal(part.counts, same.counts)
            and (part.counts.dtype.kind == "i" or same_survey(part.survey, same.survey))
            for part in one.parts
        )
    )
