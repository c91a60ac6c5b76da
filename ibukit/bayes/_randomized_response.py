"""Exact posterior under k-RR for any number of users and secrets, by integrals along one curve.

Report z has the probability l + (d - l) theta_z, so that the likelihood is prod_z (l + (d - l)
theta_z)^s_z. Expand it: t_z of the s_z reports of z tell, and the others are drawn from theta.
Under P ~ Dirichlet(alpha), with A = sum alpha,

    E prod_z P_z^t_z = Gamma(A) / Gamma(A + t) prod_z alpha_z (alpha_z + 1) ... (alpha_z + t_z - 1),
    t = sum_z t_z,

and 1 / Gamma(a) = (1 / 2 pi i) integral of e^u u^-a du, so that each t_z has a factor ((d - l) /
u)^t_z of its own, and the sum over all t is a product. For each u the t_z are then independent,
with the sums B_s, means T_s and variances V_s of `_randomized_response_kernels`; the rest, by
powers of 1 / u, is

    E F_x = int H ((A + n) T_x + alpha_x (n - T)) / (n int H (A + T)),
    H(u)  = e^u u^(-A - 1) prod_z B_(s_z),

where T and V without an index are sums. With K = H / u, a_x = alpha_x + T_x, N = A + T, m_x = E
P_x, r = n - T, S_x the variance of t_x - m_x t, and d_x = T_x - n E F_x + m_x r = a_x - m_x N, the
variances of P_x and F_x are

    int K (S_x + d_x^2 + a_x (1 - m_x)^2 + (N - a_x) m_x^2) / Z,   Z = int K (N (N + 1) + V),
    int K ((A + n) S_x + (A + n + 1) d_x^2 + (1 - 2 m_x) d_x r + m_x (1 - m_x) N r)
        (A + n) / (n^2 Z).

No large terms cancel, except in the integrals themselves. The contour is the parabola u = b (1 + i
w)^2 through the saddle point b, where no factor of |H| is larger than at b, and |e^u| falls as
e^(-b w^2): so the trapezoidal rule needs few points, for parameters below 1 too, whose powers of u
fall too slowly along a straight line.

Sources: for the expansion [optimal]_ of `posterior`, for the parabola Weideman and Trefethen,
"Parabolic and hyperbolic contours for computing the Bromwich integral", Math. Comp. 76, 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import gammaln

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit._ground.threads import one_thread
from ibukit.bayes._count_recursion import posterior_of_totals
from ibukit.bayes._marginals import Marginals, from_frequencies
from ibukit.bayes._randomized_response_kernels import Complexes, report_moments
from ibukit.bayes.sums.response import MIN_OFF_DIAGONAL, ResponseSums
from ibukit.channels import ResponseChannel, facts
from ibukit.errors import TooLarge
from ibukit.tally.tally import Tally

# Two quadrature rules without a common point must agree to this; their mean, which is returned, is
# far nearer to the integral.
TOLERANCE = 1e-9
# Smaller means and deviations are compared as if they were this large: means then agree to 1e-15,
# deviations to 1e-12.
MIN_MEAN, MIN_DEVIATION = 1e-6, 1e-5
# Relative step of a difference quotient.
DIFFERENCE_STEP = 1e-3
# The integrand beyond the last point is below e^-42 of the largest.
LOG_NEGLIGIBLE = 42.0
# Step of the first rule in widths of the Gaussian at the saddle point: the error of the trapezoidal
# rule, e^(-2 pi^2 / step^2), is then about 1e-13.
STEP_PER_WIDTH = 0.8
# Limits of about a minute of recursion steps, and of a quarter of a small machine's memory.
MAX_RECURSION_STEPS = 4 * 10**9
MAX_BYTES = 2**31
MAX_POINTS = 10**5
# Points of the first two rules: the width is at most 1 / (2 sqrt(b)) for any tally.
MIN_POINTS = 2 * math.ceil(2 * math.sqrt(LOG_NEGLIGIBLE) / STEP_PER_WIDTH)
# Where the prior's parameters sum to at least this, Stirling's series has all digits.
MIN_STIRLING = 1e3


@dataclass(frozen=True, eq=False)
class RandomizedResponsePosterior:
    """Means and standard deviations from the integrals; quantiles from the law of the totals.

    The law of the totals is computed when it is first needed, if it is small enough.
    """

    tally: Tally
    alpha: Floats
    frequencies: Floats
    deviations: dict[str, Floats]
    log_evidence: float

    def mean(self, of: str) -> Floats:
        """Mean E[F | reports], or E[P | reports], which follows from it."""
        return (
            self.frequencies
            if of == "frequencies"
            else from_frequencies(self.frequencies, self.alpha, self.tally.n)
        )

    def standard_deviations(self, of: str) -> Floats:
        """Standard deviations of P_x or F_x."""
        return self.deviations[of]

    @cached_property
    def sums(self) -> ResponseSums:
        """Laws of sums of probabilities."""
        channel = facts.as_response(self.tally.operator)
        assert channel is not None, "the tally is of k-RR"
        return ResponseSums.of(channel, self.tally.counts, self.alpha)

    @cached_property
    def _marginals(self) -> Marginals:
        return posterior_of_totals(self.tally, self.alpha)

    def quantiles(self, of: str, level: float) -> Floats:
        """Quantiles by the recursion over the totals; TooLarge if that would take too long."""
        return self._marginals.quantiles(of, level)


def randomized_response_posterior(
    tally: Tally, alpha: Floats
) -> RandomizedResponsePosterior | None:
    """Posterior of a tally of k-RR alone, otherwise None.

    The theorem is about exactly this channel, so its exact type is required.
    """
    channel = facts.as_response(tally.operator)
    if channel is None or channel.off < MIN_OFF_DIAGONAL:
        return None
    counts = np.zeros(tally.k, dtype=np.int64)
    np.add.at(counts, channel.reports, tally.counts)
    # Secrets with the same parameter and count have the same integrals. A complex number holds
    # both, and sorts by parameter, then count, as the kernel requires.
    pairs, place, multiplicity = np.unique(
        alpha + 1j * counts, return_inverse=True, return_counts=True
    )
    with one_thread():
        moments = _Contour.through_saddle_point(
            channel, pairs.real.copy(), pairs.imag.astype(np.int64), multiplicity
        ).integrate()
    return RandomizedResponsePosterior(
        tally,
        alpha,
        moments.frequencies[place],
        {
            "distribution": moments.of_distribution[place],
            "frequencies": moments.of_frequencies[place],
        },
        moments.log_evidence + tally.log_offset,
    )


class _Moments(NamedTuple):
    """Mean of F_x, standard deviations of P_x and F_x for each pair (alpha, s); log-evidence."""

    frequencies: Floats
    of_distribution: Floats
    of_frequencies: Floats
    log_evidence: float

    def difference(self, other: _Moments) -> float:
        """Largest relative difference, divided by 100 for deviations; NaN if anything is NaN."""
        apart = [np.abs(self.log_evidence - other.log_evidence)]
        for i, (least, weight) in enumerate(
            ((MIN_MEAN, 1), (MIN_DEVIATION, 100), (MIN_DEVIATION, 100))
        ):
            mine, theirs = self[i], other[i]
            apart.append(
                np.max(np.abs(mine - theirs) / np.maximum(np.maximum(mine, theirs), least)) / weight
            )
        return float(np.max(apart))


class _Quadrature(NamedTuple):
    """Points w >= 0 of a rule: shares of the step, H du relative to the centre, moments of t."""

    w: Floats
    parts: Floats
    h: Complexes
    t: Complexes
    rest: Complexes
    v: Complexes


@dataclass(frozen=True, eq=False)
class _Contour:
    """Contour u = b (1 + i w)^2 for pairs (alpha, s), each of `multiplicity` secrets."""

    channel: ResponseChannel
    alpha: Floats
    counts: Ints
    multiplicity: Ints
    b: float
    width: float
    log_sums: float

    @classmethod
    def through_saddle_point(
        cls, channel: ResponseChannel, alpha: Floats, counts: Ints, multiplicity: Ints
    ) -> _Contour:
        """Contour through the saddle point: where log-convex H N is least on the axis.

        Its derivative vanishes at u = A + 1 + T + V / N.
        """
        # Finding the saddle point takes a few dozen recursions over all users.
        _check_size(MIN_POINTS, alpha, counts)
        no_points = np.zeros(0, np.complex128)
        contrast, least = channel.diagonal - channel.off, float(multiplicity @ alpha) + 1

        def axis(u: float) -> tuple[Floats, Floats, Floats]:
            return report_moments(alpha, counts, channel.off, contrast / u, no_points)[:3]

        def excess(u: float) -> float:
            _, means, variances = axis(u)
            t = float(multiplicity @ means)
            return u - least - t - float(multiplicity @ variances) / (least - 1 + t)

        # Any b gives the same integral; near the saddle point it takes the fewest points.
        most = (least + float(multiplicity @ counts)) * (1 + 1e-12)
        b = (
            least
            if excess(least) >= 0
            else float(scipy.optimize.brentq(excess, least, most, rtol=1e-5))
        )
        curvature = max(
            1.0, (excess(b * (1 + DIFFERENCE_STEP)) - excess(b)) / (b * DIFFERENCE_STEP)
        )
        return cls(
            channel,
            alpha,
            counts,
            multiplicity,
            b,
            1 / (2 * math.sqrt(b * curvature)),
            float(multiplicity @ axis(b)[0]),
        )

    @property
    def prior(self) -> float:
        """Sum A of the prior's parameters."""
        return float(self.multiplicity @ self.alpha)

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.multiplicity @ self.counts)

    def integrate(self) -> _Moments:
        """Halve the step until the new points alone give the same as all points together."""
        step, end = STEP_PER_WIDTH * self.width, math.sqrt(LOG_NEGLIGIBLE / self.b)
        points, error = self._points(np.arange(0, end + step, step), step), math.nan
        points.parts[0] /= 2
        while True:
            middles = np.arange(step / 2, end + step, step)
            _check_size(len(points.w) + len(middles), self.alpha, self.counts, error)
            between = self._points(middles, step)
            both = [np.concatenate(pair, axis=-1) for pair in zip(points, between, strict=True)]
            points, step = _Quadrature(*both), step / 2
            points = points._replace(parts=points.parts / 2)
            moments = self._moments_of(points)
            error = moments.difference(self._moments_of(between))
            if error <= TOLERANCE:
                return moments

    def _points(self, w: Floats, step: float) -> _Quadrature:
        """H du / (2 i b dw) divided by H(b), and the moments, at points w."""
        z = 1 + 1j * w
        contrast = self.channel.diagonal - self.channel.off
        _, _, _, ratios, t, rest, v = report_moments(
            self.alpha, self.counts, self.channel.off, contrast / self.b, contrast / (self.b * z**2)
        )
        # A ratio that underflows has the logarithm -inf, and the integrand is 0, as it should be.
        with np.errstate(divide="ignore"):
            log_h = self.multiplicity @ np.log(ratios) + _log_prior(w, self.prior + 1, self.b)
        return _Quadrature(w, np.full(len(w), step), z * np.exp(log_h), t, rest, v)

    def _moments_of(self, points: _Quadrature) -> _Moments:
        """Means and deviations from sums over these points; NaN if there are too few points."""
        n, scale, multiplicity = self.n, self.prior + self.n, self.multiplicity
        # a = alpha + t and its sums are divided by A + n, because their squares might overflow.
        a, t, v = (self.alpha[:, None] + points.t) / scale, points.t, points.v
        others, v_others, rest = (
            _sums_over_others(a, multiplicity),
            _sums_over_others(v, multiplicity),
            multiplicity @ points.rest,
        )
        total = multiplicity @ a
        h = points.parts * points.h
        k = h / (1 + 1j * points.w) ** 2
        with np.errstate(all="ignore"):
            norm = float((h * total).real.sum())
            frequencies = (h * (t + (self.alpha / scale)[:, None] * rest)).real.sum(axis=1) / (
                n * norm
            )
            # The sum is 1 up to rounding.
            frequencies /= multiplicity @ frequencies
            mean = self.alpha[:, None] / scale + n * frequencies[:, None] / scale
            complement = _sums_over_others(mean, multiplicity)
            off = t - n * frequencies[:, None] + mean * rest
            # The deviations sum to 0. Rounding would leave few digits of the deviation of a secret
            # that nearly all users have, so it is taken as minus the sum over the others.
            off = np.where(mean > 0.5, -_sums_over_others(off, multiplicity), off)
            spread = complement**2 * v + mean**2 * v_others
            of_p = (spread + off**2) / scale + complement**2 * a + mean**2 * others
            of_f = spread + (1 + 1 / scale) * off**2
            of_f = of_f + ((complement - mean) * off / scale + mean * complement * total) * rest
            z = float(
                (k * (total * (total + 1 / scale) + multiplicity @ v / scale / scale)).real.sum()
            )
            var_p, var_f = ((k * x).real.sum(axis=1) / z for x in (of_p, of_f))
            return _Moments(
                frequencies,
                np.sqrt(np.maximum(var_p, 0) / scale),
                np.sqrt(np.maximum(var_f, 0)) / n,
                self.log_sums
                + _log_centre(self.prior, self.b)
                + float(np.log(2 / math.pi * norm * scale)),
            )


def _check_size(points: int, alpha: Floats, counts: Ints, error: float = math.nan) -> None:
    """Raise TooLarge before a rule that would take too long or too much memory."""
    last = np.r_[alpha[1:] != alpha[:-1], True]
    # Pairs with one parameter are passed on the way to the largest count.
    steps, n_bytes = points * sum(counts[last].tolist()), 160 * points * len(counts)
    if steps > MAX_RECURSION_STEPS or n_bytes > MAX_BYTES or points > MAX_POINTS:
        reached = "" if math.isnan(error) else f", with an error of {error:.1e} so far"
        raise TooLarge(
            f"method='exact' would integrate over {readable(points)} points (at most "
            f"{MAX_POINTS:.0e}) in {readable(steps)} steps (at most {MAX_RECURSION_STEPS:.0e}) and "
            f"{readable(n_bytes)} bytes (at most {MAX_BYTES:.3g}){reached}; take method='gibbs' "
            "with an rng"
        )


def _log_centre(prior: float, b: float) -> float:
    """Value of log Gamma(A) + b - A log b, whose terms may be large although the sum is not."""
    if prior < MIN_STIRLING:
        return float(gammaln(prior)) + b - prior * math.log(b)
    x = (b - prior) / prior
    stirling = (
        math.log(2 * math.pi)
        + 1 / (6 * prior)
        - 1 / (180 * prior) / prior / prior
        - math.log(prior)
    ) / 2
    return stirling + prior * (x - math.log1p(x))


def _log_prior(w: Floats, power: float, b: float) -> Complexes:
    """Exponent u - b - power log(u / b), without the cancelling terms where b is nearly `power`.

    With u = b (1 + i w)^2 the large terms in w are 2i (w - arctan w).
    """
    small = np.minimum(w, 0.1)
    # Taylor series of w - arctan w, because the difference would lose all digits.
    series = small**3 * np.polyval(
        [-1 / 17, 1 / 15, -1 / 13, 1 / 11, -1 / 9, 1 / 7, -1 / 5, 1 / 3], small**2
    )
    prior_exponents = np.where(w < 0.1, series, w - np.arctan(w))
    return power * (2j * prior_exponents - w**2 - np.log1p(w**2)) + (b - power) * (2j * w - w**2)


def _sums_over_others(x: NDArray[Any], multiplicity: Ints) -> NDArray[Any]:
    """Sums over all secrets except one of each row, without subtracting it from the total."""
    sums = multiplicity[:, None] * x
    none = np.zeros((1, x.shape[1]), x.dtype)
    before = np.concatenate([none, np.cumsum(sums[:-1], axis=0)])
    after = np.concatenate([np.cumsum(sums[:0:-1], axis=0)[::-1], none])
    return before + (multiplicity - 1)[:, None] * x + after
