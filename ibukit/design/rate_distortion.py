"""The rate-distortion curve: least information of a report at a given average distance."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ibukit import privacy
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import one_thread
from ibukit.design import least_information
from ibukit.domain.alphabet import AlphabetLike, as_alphabet
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import ConvergenceError, Infeasible
from ibukit.mechanisms import MatrixMechanism


@dataclass(frozen=True)
class RateDistortion(arguments.ReadOnlyArrays):
    r"""A point of the rate-distortion curve, and the channel that attains it.

    .. math:: R(D)=\min_{\mathbb E\,d(x,y)\le D}I(x;y).

    Attributes
    ----------
    mechanism : MatrixMechanism
        Shape k x k.
    rate : float
        I(x; y) in nats per report.
    distortion : float
        E d(x, y), in the unit of the distances.
    beta : float
        The curve's slope there, -dR/dD, in nats per unit of distance; if `distortion` was
        given, 0 where the reports tell nothing, inf where they are the truth.
    gap : float
        In nats, at least 0: by a dual bound, the rate is at most this far above R at this
        distortion.
    output : ndarray of float, shape (k,)
        The distribution of the reports.

    Examples
    --------
    >>> import ibukit as ik
    >>> point = ik.rate_distortion([0.6, 0.3, 0.1], 3, beta=1.0)
    >>> point.support, round(point.rate, 4), round(point.distortion, 4)
    (array([0, 1]), 0.0908, 0.3689)
    """

    mechanism: MatrixMechanism
    rate: float
    distortion: float
    beta: float
    gap: float
    output: Floats

    @property
    def support(self) -> Ints:
        """Codes of the reports of positive probability, shape (at most k,)."""
        return np.flatnonzero(self.output)

    def __repr__(self) -> str:
        support = f"{len(self.support)} of {len(self.output)} reports"
        return (
            f"RateDistortion(beta={self.beta:.4g}, rate={self.rate:.4g} nats, "
            f"distortion={self.distortion:.4g}, {support}, gap={self.gap:.2g})"
        )


def rate_distortion(
    prior: VectorLike,
    alphabet: AlphabetLike,
    beta: float | None = None,
    distortion: float | None = None,
    *,
    tol: float = 1e-9,
    strict: bool = True,
) -> RateDistortion:
    r"""The channel that tells least at a given distortion or trade-off.

    Minimise :math:`I(x;y)+\beta\,\mathbb E\,d(x,y)` over all channels, or I(x; y) over those with
    :math:`E\,d(x, y) \le D`. The two are one problem: for each D below the distortion of the best
    constant report there is a :math:`\beta`, the slope of R(D). It is found by a root-finder on
    :math:`\log \beta`, for which the solver of `mle` computes and certifies the optimum at each
    :math:`\beta`.

    Parameters
    ----------
    prior : array_like or labelled, shape (k,)
        How the secrets are distributed.
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also the reports.
    beta : float
        Nats per unit of the alphabet's distances, above 0. Give either this or `distortion`.
    distortion : float
        D, in the unit of the distances, at least 0. At 0 the report is the truth; once D reaches
        the distortion of the best constant report, the report tells nothing.
    tol : float
        The rate is certified to be within `tol` nats of the least; mostly it is within 1e-12 nats.
    strict : bool
        Raise if `tol` is missed. False returns the point with the gap that it has.

    Returns
    -------
    RateDistortion
        The point with its mechanism, and the proof of how good it is. If d are the distances of a
        grid, the channel is unique wherever the prior is positive.

    Raises
    ------
    ConvergenceError
        If `strict` and `tol` was missed; carries the point as ``.estimate``.
    ValueError
        If not exactly one of `beta` and `distortion` is given, if it is not a finite number, or if
        `beta` is not above 0.
    Infeasible
        If `distortion` is negative.
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` is not made for the alphabet.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Definition 2.9 (without the constraint).
    .. [csiszar] I. Csiszar, "On the computation of rate-distortion functions", IEEE Trans. Inf.
       Theory 20, 1974.

    Examples
    --------
    The check-ins of Paris, reported 1.5 cells away on average: distortion, beta per cell, and rate:

    >>> import ibukit as ik
    >>> paris = ik.datasets.load_gowalla("privic_paris")
    >>> point = ik.rate_distortion(paris.distribution, paris.alphabet, distortion=1.5)
    >>> round(point.distortion, 9), round(point.beta, 3), round(point.rate, 3)
    (1.5, 0.985, 1.393)
    """
    secrets = as_alphabet(alphabet)
    # The loss is the distance between secret and report, which are of one alphabet.
    problem = least_information.RateDistortionProblem(
        distribution_over("prior", prior, secrets), secrets.distances()
    )
    if (beta is None) == (distortion is None):
        raise ValueError(
            f"give either beta or distortion, got beta={beta!r} and distortion={distortion!r}"
        )
    tol = arguments.positive("tol", tol)
    with one_thread():
        if beta is not None:
            beta = least_information.valid_beta(beta)
            channel = least_information.solve_at_beta(problem, beta)
            optimum = least_information.Optimum(channel, beta)
        else:
            wanted = _valid_distortion(distortion)
            optimum = least_information.solve_at_distortion(problem, wanted)
        # The proof starts from the matrix that is returned: rate, distortion and the bound are
        # computed from it anew, whatever the solver did.
        mechanism = MatrixMechanism(optimum.channel, secrets)
        rate = privacy.mutual_information(mechanism, problem.prior)
        attained = privacy.quality_loss(mechanism, problem.prior)
        output = problem.prior @ mechanism.matrix()
        bound = least_information.rate_lower_bound(problem, output, optimum.beta, attained)
    point = RateDistortion(
        mechanism, rate, attained, optimum.beta, max(0.0, rate - bound), arguments.frozen(output)
    )
    # A gap that is NaN misses every tolerance.
    if arguments.flag("strict", strict) and not point.gap <= tol:
        raise ConvergenceError(
            f"tol={tol:g} was missed, the rate is certified within {point.gap:.3g} nats; take a "
            "larger tol, or strict=False for the point with its gap",
            point,
        )
    return point


def _valid_distortion(value: Any) -> float:
    # A negative distortion is a valid number, but no channel attains it.
    if not isinstance(value, bool) and isinstance(value, Real) and value < 0:
        raise Infeasible(
            f"distortion must be at least 0, where every report is the truth, got {value}"
        )
    return arguments.from_zero("distortion", value)
