"""The `Posterior` result: mean, credible intervals, draws, Monte-Carlo errors."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.extras import missing_extra
from ibukit.bayes._gibbs import Draws
from ibukit.bayes._marginals import Marginals
from ibukit.bayes._randomized_response import RandomizedResponsePosterior
from ibukit.bayes.sums import exact_ends
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.linear_functionals import (
    LinearFunctionals,
    OneFunctional,
    has_two_values,
    parse_functionals,
)
from ibukit.domain.status import Status
from ibukit.errors import TooLarge

if TYPE_CHECKING:
    import xarray as xr

Exact = Marginals | RandomizedResponsePosterior
Law = Exact | Draws


@dataclass(frozen=True, eq=False)
class Posterior(arguments.ReadOnlyArrays):
    r"""The posterior of each secret's probability under a Dirichlet prior.

    It is the law of the probabilities :math:`P_{x}`, or of the frequencies
    :math:`F_{x} = T_{x} / n`.

    Attributes
    ----------
    mean : ndarray, shape (k,)
        :math:`\mathbb E[P_{x}\mid\text{reports}]` or :math:`\mathbb E[F_{x}\mid\text{reports}]`, in
        the alphabet's order; sums to 1.
    standard_deviations : ndarray, shape (k,)
        Standard deviations of the posterior: how uncertain :math:`P_{x}` or :math:`F_{x}` still is.
    of : str
        "distribution" or "frequencies".
    method : str
        "exact", "enumerate" or "gibbs".
    status : Status
        CLOSED_FORM if the posterior is exact; for Gibbs CONVERGED, or MAX_ITER if :math:`\hat R` or
        the effective sample size is not good enough to rely on.
    n_iter : int
        Sweeps of each chain; 0 if the posterior is exact.
    effective_sample_size : ndarray, shape (k,)
        Bulk effective sample size of the draws whose mean is `mean`; inf if the posterior is exact.
    r_hat : ndarray, shape (k,)
        Rank-normalised split :math:`\hat R` of the same draws; 1 if the posterior is exact.
    log_evidence : float
        Log-probability, in nats, of the reports in the order in which they came, under prior and
        mechanism. Adding :math:`\log\bigl(n!/\prod_z\mathrm{counts}_z!\bigr)` gives the
        log-probability of their counts. NaN for Gibbs.
    alphabet : Alphabet

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(2, epsilon=1.0).tally_counts([7, 3])
    >>> posterior = ik.posterior(tally, alpha=0.5)
    >>> posterior.mean.round(4), posterior.standard_deviations.round(4)
    (array([0.784, 0.216]), array([0.2187, 0.2187]))
    """

    mean: Floats
    standard_deviations: Floats
    of: str
    method: str
    status: Status
    n_iter: int
    effective_sample_size: Floats
    r_hat: Floats
    log_evidence: float
    alphabet: Alphabet
    _law: Law = field(repr=False)
    _shrinkage: float = field(repr=False)

    def standard_errors(self) -> Floats:
        """Monte-Carlo standard errors of `mean`, shape (k,); 0 if the posterior is exact.

        They are not to be confused with `standard_deviations`, which more draws do not reduce.

        Returns
        -------
        ndarray, shape (k,)

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(2, epsilon=1.0).tally_counts([7, 3])
        >>> ik.posterior(tally, alpha=0.5).standard_errors()
        array([0., 0.])
        """
        if isinstance(self._law, Draws):
            return self._shrinkage * self._law.standard_errors()
        return np.zeros(len(self.mean))

    @overload
    def interval(self, level: float = ..., of: None = None) -> tuple[Floats, Floats]: ...
    @overload
    def interval(self, level: float = ..., *, of: OneFunctional) -> tuple[float, float]: ...
    @overload
    def interval(self, level: float, of: OneFunctional) -> tuple[float, float]: ...
    @overload
    def interval(
        self, level: float = ..., of: Any = ...
    ) -> tuple[float | Floats, float | Floats]: ...

    def interval(
        self, level: float = 0.95, of: Any = None
    ) -> tuple[float | Floats, float | Floats]:
        """Equal-tailed credible intervals, each holding with probability `level`.

        Each contains :math:`P_{x}` or :math:`F_{x}` with this posterior probability. If the
        posterior is exact, the ends under k-RR are quantiles of any sum of several :math:`P_{x}`,
        by convolution and quadrature to about 1e-11; under other mechanisms they are quantiles of
        the mixture of beta distributions that is the law of :math:`P_{x}`, by root finding to
        1e-14. For :math:`F_{x}` they are discrete quantiles, between which lies a probability of at
        least `level`; these need the recursion over the totals even under k-RR. With Gibbs they are
        quantiles of the draws of :math:`P_{x}` or :math:`F_{x}`; `interval_errors` says how far
        they may be off.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        of : optional
            Linear functionals w . P or w . F, as `Estimate.standard_errors` takes them; every
            probability if not given. An exact posterior takes only those that weigh all secrets but
            one alike; that of the distribution under k-RR takes any with at most two different
            weights.

        Returns
        -------
        (lower, upper) : floats, or ndarrays of shape (k,) or (r,)

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1; or if the posterior is exact and `of` weighs several
            secrets in a way that it does not take.
        AlphabetMismatch
            If `of` is not of this alphabet.
        TooLarge
            If the posterior is exact under k-RR and the recursion would take too many terms, or the
            sum be lost in rounding (from about 100 million reports upwards).

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(2, epsilon=1.0).tally_counts([7, 3])
        >>> posterior = ik.posterior(tally, alpha=0.5)
        >>> lower, upper = posterior.interval(0.9)
        >>> lower.round(3), upper.round(3)
        (array([0.329, 0.002]), array([0.998, 0.671]))
        """
        tail, functionals = (
            (1 - arguments.fraction("level", level, "()")) / 2,
            parse_functionals(of, self.alphabet),
        )
        law = self._law
        if isinstance(law, Draws):
            ends = (
                law.quantiles(self.of, tail, functionals.weights),
                law.quantiles(self.of, 1 - tail, functionals.weights),
            )
        else:
            ends = self._exact_ends(law, functionals, tail)
        # No end lies outside the values that the functional can take on the simplex.
        lower = np.maximum(ends[0], functionals.least)
        return functionals.answer(lower), functionals.answer(np.minimum(ends[1], functionals.most))

    def _exact_ends(
        self, law: Exact, functionals: LinearFunctionals, tail: float
    ) -> tuple[Floats, Floats]:
        # Frequencies are discrete, so their quantiles come from the recursion over the totals.
        if isinstance(law, RandomizedResponsePosterior) and self.of == "distribution":
            with suppress(TooLarge):
                if all(map(has_two_values, functionals.each())):
                    return exact_ends(law.sums, functionals, 1 - 2 * tail)
        return self._of_single_secrets(
            functionals, law.quantiles(self.of, tail), law.quantiles(self.of, 1 - tail)
        )

    def _of_single_secrets(
        self, functionals: LinearFunctionals, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Quantiles of b + c theta_x from those of the probabilities."""
        secrets, base, slope = functionals.of_one_secret()
        if (secrets < 0).any():
            row = int((secrets < 0).argmax())
            raise ValueError(
                "where the posterior is exact, of must give all secrets except one the same "
                f"weight, but question {row} has other weights: draw the posterior with "
                "method='gibbs'"
            )
        # The functional is b + c theta_x, so its quantiles are those of theta_x mapped; c < 0 swaps
        # them.
        ends = base + np.stack([low, high])[:, secrets] * slope
        return ends.min(axis=0), ends.max(axis=0)

    @overload
    def interval_errors(self, level: float = ..., of: None = None) -> tuple[Floats, Floats]: ...
    @overload
    def interval_errors(self, level: float = ..., *, of: OneFunctional) -> tuple[float, float]: ...
    @overload
    def interval_errors(self, level: float, of: OneFunctional) -> tuple[float, float]: ...
    @overload
    def interval_errors(
        self, level: float = ..., of: Any = ...
    ) -> tuple[float | Floats, float | Floats]: ...

    def interval_errors(
        self, level: float = 0.95, of: Any = None
    ) -> tuple[float | Floats, float | Floats]:
        """Monte-Carlo standard errors of the ends of `interval`; 0 if these are exact.

        Parameters
        ----------
        level, of
            As `interval` takes them.

        Returns
        -------
        (lower, upper) : floats, or ndarrays of shape (k,) or (r,)

        References
        ----------
        .. [rhat] Vehtari, Gelman, Simpson, Carpenter and Burkner, "Rank-normalization, folding, and
           localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16,
           2021, Section 4.4.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([60, 30, 10])
        >>> drawn = ik.posterior(tally, alpha=0.5, method="gibbs", rng=np.random.default_rng(1))
        >>> lower, upper = drawn.interval_errors(0.9, of=[0, 1, 2])
        >>> 0 < lower < 0.02, 0 < upper < 0.02
        (True, True)
        """
        tail, functionals = (
            (1 - arguments.fraction("level", level, "()")) / 2,
            parse_functionals(of, self.alphabet),
        )
        none = np.zeros(len(functionals))
        law = self._law
        errors = (
            [law.errors_of_quantiles(share, functionals.weights) for share in (tail, 1 - tail)]
            if isinstance(law, Draws)
            else [none, none]
        )
        return functionals.answer(errors[0]), functionals.answer(errors[1])

    def draws(self) -> Floats:
        """The Gibbs draws of all probabilities together, shape (4000, k).

        Each row is one draw of P, or of F. Neighbouring draws of a chain are correlated;
        `effective_sample_size` allows for this.

        Raises
        ------
        ValueError
            If the posterior was not drawn.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([6, 3, 1])
        >>> drawn = ik.posterior(tally, alpha=0.5, method="gibbs", rng=np.random.default_rng(1))
        >>> draws = drawn.draws()
        >>> draws.shape, float(np.mean(draws[:, 0] > draws[:, 1]).round(1))
        ((4000, 3), 0.8)
        """
        return self._chains().reshape(-1, len(self.mean)).copy()

    def to_xarray(self) -> xr.Dataset:
        """Return the Gibbs draws as an xarray Dataset, which ArviZ takes as it is.

        ``arviz.summary(drawn.to_xarray())`` works with ArviZ 0.x and 1.x. For their groups, pass
        the Dataset to ``arviz.convert_to_inference_data`` or ``arviz.convert_to_datatree``.

        Returns
        -------
        xarray.Dataset
            One variable, named as `of`: "distribution" or "frequencies". Dimensions: chain, draw
            and secret; on a grid chain, draw, row and col. Their coordinates are the labels; a
            label that is neither a number nor text, such as a tuple, is replaced by its text.

        Raises
        ------
        ValueError
            If the posterior was not drawn.
        MissingExtra
            If xarray is not installed.

        Examples
        --------
        >>> import numpy as np, ibukit as ik
        >>> tally = ik.RandomizedResponse(["a", "b", "c"], epsilon=1.0).tally_counts([60, 30, 10])
        >>> drawn = ik.posterior(tally, alpha=0.5, method="gibbs", rng=np.random.default_rng(1))
        >>> draws = drawn.to_xarray()["distribution"]
        >>> dict(draws.sizes)
        {'chain': 4, 'draw': 1000, 'secret': 3}
        >>> float(draws.sel(secret="a").mean().round(1))
        0.9
        """
        chains = self._chains()
        try:
            import xarray as xr
        except ImportError as error:
            raise missing_extra("to_xarray", "xarray") from error
        from importlib.metadata import version

        axes = _axes_of(self.alphabet)
        shape = (*chains.shape[:2], *(len(labels) for labels in axes.values()))
        return xr.Dataset(
            {self.of: (("chain", "draw", *axes), chains.reshape(shape).copy())},
            coords={"chain": range(shape[0]), "draw": range(shape[1]), **axes},
            attrs={"inference_library": "ibukit", "inference_library_version": version("ibukit")},
        )

    def _chains(self) -> Floats:
        """Draws of the chains, shape (chains, draws, k)."""
        if not isinstance(self._law, Draws):
            raise ValueError(
                "posterior must be drawn with method='gibbs' to have draws, got "
                f"method={self.method!r}: "
                "call ik.posterior(tally, prior, method='gibbs', rng=rng)"
            )
        return self._law.values

    def __repr__(self) -> str:
        drawn = (
            f", effective sample size {self.effective_sample_size.min():.0f}, R-hat "
            f"{self.r_hat.max():.3f}"
            if self.method == "gibbs"
            else ""
        )
        kind = f"of the {self.of}, {self.method}: k={len(self.mean)}"
        return f"Posterior({kind}{drawn}, {self.status.name})"


def _axes_of(alphabet: Alphabet) -> dict[str, NDArray[Any]]:
    """Dimensions of the secrets, with their labels: "secret", or "row" and "col" of a grid."""
    labels = alphabet.labels_of(np.arange(len(alphabet)))
    if labels.ndim == 2:
        return {"row": np.unique(labels[:, 0]), "col": np.unique(labels[:, 1])}
    if labels.dtype == object and not all(isinstance(label, str) for label in labels):
        # xarray makes several levels of tuples.
        labels = np.array([str(label) for label in labels])
    # ArviZ 1.x has a dimension "label" of its own.
    return {"secret": labels}
