"""`Unfolded`: an estimate that also gives the numbers of secrets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.labels import index_of
from ibukit.domain.linear_functionals import LinearFunctionals, OneFunctional, parse_functionals
from ibukit.errors import NotCertified
from ibukit.estimate import Estimate
from ibukit.estimate.secrets_of_reports import secrets_of_reports
from ibukit.estimators.unfolding.inputs import tally_of
from ibukit.estimators.unfolding.interval_methods import PoissonIntervals
from ibukit.fisher_information import (
    covariance_of_all,
    delta_method_covariance,
    delta_method_variances,
)
from ibukit.identification.maximisers import determined_probabilities
from ibukit.intervals import IntervalRequest
from ibukit.intervals.poisson.model import PoissonModel
from ibukit.intervals.request import Ends
from ibukit.mechanisms import MatrixMechanism, Mechanism
from ibukit.mechanisms.base import require_mechanism
from ibukit.tally.tally import Tally

if TYPE_CHECKING:
    import pandas as pd

# Secrets up to which tables over a background have profile intervals, a few seconds.
MAX_SECRETS_PROFILED_BY_DEFAULT = 100


@dataclass(frozen=True, eq=False, repr=False)
class Unfolded(Estimate):
    """The result of `unfold`: an estimate that also gives the numbers of secrets.

    Attributes
    ----------
    total : float
        How many secrets there were, seen or not, without the background.
    mechanism : MatrixMechanism
        The response matrix, with its efficiencies.
    observed : ndarray, shape (m,)
        The counts that were unfolded.
    background : ndarray, shape (m,), or None
        How many of these counts are expected from elsewhere.

    Examples
    --------
    >>> import ibukit as ik
    >>> unfolded = ik.unfold([70, 50], [[0.6, 0.2], [0.1, 0.3]])
    >>> unfolded.counts.round(6), unfolded.count_errors().round(1)
    (array([100., 100.]), array([16.3, 28.5]))
    """

    total: float = field(kw_only=True)
    mechanism: MatrixMechanism = field(kw_only=True)
    observed: Floats = field(kw_only=True)
    background: Floats | None = field(default=None, kw_only=True)
    unit: float = field(default=1.0, kw_only=True)
    """The matrix is that of the mechanism times this number: 1 unless its rows exceed 1."""

    @property
    def counts(self) -> Floats:
        """Estimated number of each secret, seen or not, shape (k,)."""
        return self.total * self.distribution

    @property
    def expected(self) -> Floats:
        """Expected counts of the reports, nu = lambda M + background, shape (m,)."""
        signal = self.mechanism.forward(self.unit * self.counts)
        return signal if self.background is None else signal + self.background

    @override
    def covariance(self) -> Floats:
        """Asymptotic covariances of the probabilities, shape (k, k).

        They are the inverse of the observed information on the directions that keep the sum. With a
        background they allow for the fact that its share of the counts is not known exactly. They
        are inf for probabilities that are not determined.
        """
        # Without a background the number of events carries no information about the distribution.
        if self.background is None:
            assert self.tally is not None
            return covariance_of_all(self.tally, self.distribution)
        if not self.total:
            # Without a signal no distribution is determined, unless there is a single secret.
            k = len(self.distribution)
            return np.full((k, k), np.inf) if k > 1 else np.zeros((1, 1))
        return delta_method_covariance(self._information, self._derivatives)

    @override
    def _variances_of(self, functionals: LinearFunctionals) -> Floats:
        if self.background is None:
            return super()._variances_of(functionals)
        weights = functionals.weights
        weights = np.eye(len(self.distribution)) if weights is None else weights
        if not self.total:
            # Only sums whose terms all have the same weight are determined.
            return np.where(np.ptp(weights, axis=1) == 0, 0.0, np.inf)
        return delta_method_variances(self._information, self._derivatives, weights)

    @property
    @override
    def _n(self) -> float:
        n = float(self.observed.sum())
        return int(n) if n.is_integer() else n

    def count_errors(self) -> Floats:
        r"""Asymptotic standard errors of `counts`, shape (k,).

        They are the square roots of the diagonal of the inverse of the observed information
        :math:`\sum_{z} n_{z}\,M_{xz}\,M_{yz} / \nu_{z}^{2}` of the Poisson likelihood, and inf
        where the counts do not determine a number. They treat weights as numbers of events.
        """
        every_count = np.eye(len(self.distribution))
        return np.sqrt(np.diag(delta_method_covariance(self._information, every_count)))

    @overload
    def count_intervals(
        self, level: float = ..., of: None = None, method: str = ..., **options: Any
    ) -> tuple[Floats, Floats]: ...
    @overload
    def count_intervals(
        self, level: float, of: OneFunctional, method: str = ..., **options: Any
    ) -> tuple[float, float]: ...
    @overload
    def count_intervals(
        self, level: float = ..., *, of: OneFunctional, method: str = ..., **options: Any
    ) -> tuple[float, float]: ...
    @overload
    def count_intervals(
        self, level: float = ..., of: Any = ..., method: str = ..., **options: Any
    ) -> tuple[float | Floats, float | Floats]: ...

    def count_intervals(
        self,
        level: float = 0.95,
        of: Any = None,
        method: str = "auto",
        **options: Any,
    ) -> tuple[float | Floats, float | Floats]:
        r"""Intervals of the numbers of secrets, or of weighted sums of them.

        They are intervals of :math:`\lambda_x`, the expected number of each secret, seen or not,
        without the background.

        - ``"auto"``, the default: "profile" where the counts are whole and there are at most 100
          secrets and at most 100 numbers asked for; otherwise "wald", which accepts weights and is
          quick.
        - ``"profile"``: the range of :math:`w \cdot \lambda` over
          :math:`\{\lambda \ge 0 : l(\lambda) \ge \max l - z^2 / 2\}`, with the Poisson likelihood
          :math:`l = \sum_z n_z \log\nu_z - \nu_z` and z the normal quantile. The ends are proven
          bounds of this range, from outside. In the limit the interval covers with probability
          about `level`.
        - ``"wald"``: the numbers -+ z `count_errors`, cut at 0.
        - ``"guaranteed"``: covers with probability at least `level` at any number of counts, for
          all numbers at once. It is the range over all :math:`\lambda` for which each :math:`\nu_z`
          is in its Garwood interval.
        - ``"bootstrap"``: quantiles of the most likely numbers behind drawn counts. It covers too
          rarely where numbers are 0.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        of : optional
            Weights of sums, as `standard_errors` takes them: ``[1, 1, 0]`` or a list of labels asks
            for the number of two secrets together.
        method : {"auto", "profile", "wald", "guaranteed", "bootstrap"}
        **options
            Options of "bootstrap": draws=1000, seed=0.

        Returns
        -------
        (lower, upper) : floats, or ndarrays of shape (k,) or (r,)

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or if the method is not known; if counts are weights
            and the method is not "wald"; or, with "guaranteed", if matrix and background would make
            such counts with probability at most 1e-6.
        TooLarge
            If there are more than 1,000 secrets and the method is "profile".

        References
        ----------
        .. [garwood] Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28, 1936.

        Examples
        --------
        >>> import ibukit as ik
        >>> unfolded = ik.unfold([80, 80], [[0.6, 0.2], [0.1, 0.3]], background=[10, 30])
        >>> lower, upper = unfolded.count_intervals()
        >>> lower.round(1), upper.round(1)
        (array([67.3, 34.7]), array([136.8, 173.6]))
        >>> lower, upper = unfolded.count_intervals(of=[1, 1])
        >>> round(lower, 1), round(upper, 1)
        (147.9, 259.8)
        """
        level = arguments.fraction("level", level, "()")
        functionals = parse_functionals(of, self.alphabet)
        method = self._method_of(method, functionals)
        lower, upper = self._intervals.of_numbers(functionals, level, method, options)
        return functionals.answer(lower), functionals.answer(upper)

    @override
    def given(self, reports: Any, mechanism: Mechanism | None = None) -> pd.DataFrame:
        r"""Return the probabilities of the secret behind each report.

        Without a background they are those of `Estimate.given`. Over a background b they are

        .. math:: P(x\mid z)=\frac{\lambda_x\,M_{xz}}{\sum_y\lambda_y\,M_{yz} + b_z},

        with :math:`\lambda` the `counts`, and what rows lack of 1 is the probability that the
        report is of the background.

        Parameters
        ----------
        reports : sequence, n reports
        mechanism : Mechanism, optional
            As for `Estimate.given`; over a background it can only be `mechanism`.

        Returns
        -------
        pandas.DataFrame, shape (n, k)

        Raises
        ------
        ValueError
            If there is a background and `mechanism` is not its own.
        AlphabetMismatch, ImpossibleReport, TooLarge
            As for `Estimate.given`.

        Examples
        --------
        >>> import ibukit as ik
        >>> unfolded = ik.unfold([80, 80], [[0.6, 0.2], [0.1, 0.3]], background=[10, 30])
        >>> print(unfolded.given([0, 1]).round(3))
        label     0      1
        0      0.75  0.125
        1      0.25  0.375
        """
        if self.background is None:
            return super().given(reports, mechanism)
        if mechanism is not None and require_mechanism(mechanism) != self.mechanism:
            raise ValueError(
                "mechanism must be left out over a background, which is known for the reports of "
                f"{self.mechanism} only, got {mechanism}"
            )
        numbers = self.unit * self.counts
        return secrets_of_reports(
            reports, self.mechanism, None, numbers, self.alphabet, index_of, self.background
        )

    @override
    def certificate(self) -> dict[str, Any]:
        """Return the certificate of the gap; `Estimate.certificate` says what it holds.

        Raises
        ------
        NotCertified
            If there is a background, or as for `Estimate.certificate`.
        """
        if self.background is not None:
            raise NotCertified(
                "the certificate needs a tally, and an estimate over a background has no tally: "
                "its `gap` bounds the likelihood of the Poisson counts"
            )
        return super().certificate()

    @override
    def _known_tally(self, why: str) -> Tally:
        if self.background is not None:
            raise ValueError(
                f"estimate has no tally: {why}, and which of the counts are background is not "
                "known; compare `observed` with `expected`, or ask for errors and intervals of the "
                "distribution, which allow for the background"
            )
        return super()._known_tally(why)

    @override
    def _ends_by(self, request: IntervalRequest, method: str, options: dict[str, Any]) -> Ends:
        if self.background is None:
            return super()._ends_by(request, method, options)
        method = self._method_of(method, request.functionals)
        if not arguments.is_one_of(request.target, ("distribution",)):
            raise ValueError(
                "target must be 'distribution' over a background, got "
                f"{request.target!r}: it is not known which counts are part of it"
            )
        if arguments.is_one_of(method, ("wald",)):
            return super()._ends_by(request, method, options)
        return self._intervals.of_shares(request.functionals, request.level, method, options)

    @override
    def _default_ends(self, request: IntervalRequest) -> tuple[Ends, NDArray[Any]]:
        if self.background is None:
            return super()._default_ends(request)
        method, rows = self._method_of("auto", request.functionals), len(request.functionals)
        return self._ends_by(request, method, {}), np.full(rows, method, dtype=object)

    def _method_of(self, method: str, functionals: LinearFunctionals) -> str:
        """Return the method; for "auto", "profile" of few secrets' whole counts, else "wald"."""
        if not arguments.is_one_of(method, ("auto",)):
            return method
        small = len(self.distribution) <= MAX_SECRETS_PROFILED_BY_DEFAULT
        small &= len(functionals) <= MAX_SECRETS_PROFILED_BY_DEFAULT
        whole = bool((self.observed == np.rint(self.observed)).all())
        return "profile" if small and whole else "wald"

    @property
    def _intervals(self) -> PoissonIntervals:
        """Intervals of the Poisson likelihood, in which the number of counts is random."""
        background = np.zeros(len(self.observed)) if self.background is None else self.background
        model = PoissonModel(self.unit * self.mechanism.matrix(), self.observed, background)
        return PoissonIntervals(model, self.counts, self._count_errors_of)

    def _count_errors_of(self, functionals: LinearFunctionals) -> Floats:
        every_count = np.eye(len(self.distribution))
        weights = every_count if functionals.weights is None else functionals.weights
        return np.sqrt(delta_method_variances(self._information, every_count, weights))

    @cached_property
    @override
    def identified(self) -> NDArray[np.bool_]:
        """True if the counts determine each secret's probability, shape (k,).

        This means the same as for every estimate.
        """
        if self.background is None:
            assert self.tally is not None
            return determined_probabilities(self.tally, self.distribution)
        if not self.total:
            return np.full(len(self.distribution), len(self.distribution) == 1)
        # All maximisers share the expected counts, and so the expected number of signal events.
        # Given that number, each event has come from the background with a known probability: a
        # mechanism whose rows are mixed with the background.
        seen = self.expected.sum() - self.background.sum()
        response = self.mechanism.among_seen.matrix()
        mixed = (seen * response + self.background) / (seen + self.background.sum())
        mechanism = MatrixMechanism(mixed, self.alphabet, efficiency=self.mechanism.efficiency)
        return determined_probabilities(tally_of(mechanism, self.observed), self.distribution)

    @property
    def _information(self) -> Floats:
        """Observed information of the Poisson likelihood about the numbers of secrets, (k, k)."""
        # Each column M_z sqrt(n_z) / nu_z contributes its outer product.
        seen = self.observed > 0
        columns = self.mechanism.matrix()[:, seen] * (
            self.unit * np.sqrt(self.observed[seen]) / self.expected[seen]
        )
        return columns @ columns.T

    @property
    def _derivatives(self) -> Floats:
        """Derivatives of the probabilities by the numbers of secrets, shape (k, k)."""
        return (np.eye(len(self.distribution)) - self.distribution[:, None]) / self.total

    def __repr__(self) -> str:
        return f"{super().__repr__().removesuffix(')')}, total={self.total:.6g})".replace(
            "Estimate(", "Unfolded(", 1
        )
