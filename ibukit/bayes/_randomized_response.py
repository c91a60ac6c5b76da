"""The exact posterior under k-RR, for any number of users and secrets: integrals along one line.

Report z has the probability l + (d - l) theta_z, so that the likelihood is prod_z (l + (d - l)
theta_z)^s_z. Expand it: t_z of the s_z reports of z tell, and the others are drawn from theta.
Under P ~ Dirichlet(alpha), with A = sum alpha,

    E prod_z P_z^t_z = Gamma(A) / Gamma(A + t) prod_z alpha_z (alpha_z + 1) ... (alpha_z + t_z - 1),
    t = sum_z t_z,

and 1 / Gamma(a) = (1 / 2 pi i) integral of e^u u^-a du, so that each t_z has a factor ((d - l) /
u)^t_z of its own, and the sum over all t is a product. For each u the t_z are then independent,
with the sums B_s, means T_s and variances V_s of `_response_kernels`; the rest, by powers of 1 / u,
is

    E F_x   = int H ((A + n) T_x + alpha_x (n - T)) / (n int H (A + T)),   H(u) = e^u u^(-A - 1) prod_z B_(s_z),

where T and V without an index are sums. With K = H / u, a_x = alpha_x + T_x, N = A + T, m_x = E
P_x, r = n - T, S_x the variance of t_x - m_x t, and d_x = T_x - n E F_x + m_x r = a_x - m_x N, the
variances of P_x and F_x are

    int K (S_x + d_x^2 + a_x (1 - m_x)^2 + (N - a_x) m_x^2) / Z,   Z = int K (N (N + 1) + V),
    int K ((A + n) S_x + (A + n + 1) d_x^2 + (1 - 2 m_x) d_x r + m_x (1 - m_x) N r) (A + n) / (n^2 Z).

No large terms cancel, but in the integrals themselves. The line is the parabola u = b (1 + i w)^2
through the saddle point b, where no factor of |H| is larger than at b, and |e^u| falls as e^(-b
w^2): so the trapezoidal rule needs few points, for parameters below 1 too, whose powers of u fall
too slowly along a straight line.

Sources: for the expansion [optimal]_ of `posterior`, for the parabola Weideman and Trefethen,
"Parabolic and hyperbolic contours for computing the Bromwich integral", Math. Comp. 76, 2007.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit._ground.threads import one_thread
from ibukit.bayes._count_recursion import posterior_of_totals
from ibukit.bayes._marginals import Marginals, from_frequencies
from ibukit.bayes._randomized_response_kernels import Complexes, told
from ibukit.channels import ResponseChannel, facts
from ibukit.errors import TooLarge
from ibukit.tally.tally import Tally

# two rules without a common point agree to this; their mean, which is returned, is far nearer to
# the integral
TOLERANCE = 1e-9
# what is smaller is compared as if it were as large: means then to 1e-15, deviations to 1e-12
MIN_MEAN, MIN_DEVIATION = 1e-6, 1e-5
# its square is a double; no k-RR has less
MIN_LIE = 1e-150
# relative step of a difference quotient
NEAR = 1e-3
# of the largest: what is left out beyond the last point
LOG_NOTHING = 42.0
# points per width of the Gauss function at the saddle point: then e^(-2 pi^2 / STEP^2) is some
# 1e-13
STEP = 0.8
# a minute or so, and a quarter of a small machine's memory
MAX_STEPS_OF_LINE = 4 * 10**9
MAX_BYTES = 2**31
MAX_POINTS = 10**5
# of the first two rules: the width is at most 1 / (2 sqrt(b)), whatever the tally
MIN_POINTS = 2 * math.ceil(2 * math.sqrt(LOG_NOTHING) / STEP)
# sum of the prior's parameters from which on Stirling's series has all digits
LARGE = 1e3


@dataclass(frozen=True, eq=False)
class ResponsePosterior:
    """Means and standard deviations from the integrals; quantiles from the law of the totals, where that is small."""

    tally: Tally
    alpha: Floats
    frequencies: Floats
    deviations: dict[str, Floats]
    log_evidence: float

    def mean(self, of: str) -> Floats:
        """E[F | reports], or E[P | reports], which follows from it."""
        return (
            self.frequencies
            if of == "frequencies"
            else from_frequencies(self.frequencies, self.alpha, self.tally.n)
        )

    def standard_deviations(self, of: str) -> Floats:
        """Of P_x or F_x."""
        return self.deviations[of]

    @cached_property
    def _marginals(self) -> Marginals:
        return posterior_of_totals(self.tally, self.alpha)

    def quantiles(self, of: str, level: float) -> Floats:
        """By the recursion over the totals; TooLarge where that would take too long."""
        return self._marginals.quantiles(of, level)


def posterior_under_response(tally: Tally, alpha: Floats) -> ResponsePosterior | None:
    """The posterior, if the tally is of k-RR alone; else None: the theorem asks for the exact type of channel."""
    channel = facts.as_response(tally.operator)
    if channel is None or channel.off < MIN_LIE:
        return None
    counts = np.zeros(tally.k, dtype=np.int64)
    np.add.at(counts, channel.reports, tally.counts)
    pairs, place, many = np.unique(alpha + 1j * counts, return_inverse=True, return_counts=True)
    with one_thread():
        found = _Line.through_saddle(
            channel, pairs.real.copy(), pairs.imag.astype(np.int64), many
        ).integrate()
    return ResponsePosterior(
        tally,
        alpha,
        found.frequencies[place],
        {"distribution": found.of_distribution[place], "frequencies": found.of_frequencies[place]},
        found.log_evidence + tally.log_offset,
    )


class _Found(NamedTuple):
    """Of each pair (alpha, s): the mean of F_x, the standard deviations of P_x and F_x; and the log-evidence."""

    frequencies: Floats
    of_distribution: Floats
    of_frequencies: Floats
    log_evidence: float

    def off(self, other: _Found) -> float:
        """The largest difference, relative to the larger; of deviations a hundredth of it. NaN if anything is."""
        apart = [np.abs(self.log_evidence - other.log_evidence)]
        for i, (least, weight) in enumerate(
            ((MIN_MEAN, 1), (MIN_DEVIATION, 100), (MIN_DEVIATION, 100))
        ):
            mine, theirs = self[i], other[i]
            apart.append(
                np.max(np.abs(mine - theirs) / np.maximum(np.maximum(mine, theirs), least)) / weight
            )
        return float(np.max(apart))


class _Points(NamedTuple):
    """Some of the points w >= 0: the step's part of each, H du relative to the centre, and the moments of t."""

    w: Floats
    parts: Floats
    h: Complexes
    t: Complexes
    rest: Complexes
    v: Complexes


@dataclass(frozen=True, eq=False)
class _Line:
    """The parabola u = b (1 + i w)^2, for pairs (alpha, s) of which each belongs to `many` secrets."""

    channel: ResponseChannel
    alpha: Floats
    counts: Ints
    many: Ints
    b: float
    width: float
    log_sums: float

    @classmethod
    def through_saddle(
        cls, channel: ResponseChannel, alpha: Floats, counts: Ints, many: Ints
    ) -> _Line:
        """Where H N, which is convex in log, is least on the axis: at u = A + 1 + T + V / N."""
        # the saddle point alone takes some tens of walks over all users
        _check_size(MIN_POINTS, alpha, counts)
        nowhere = np.zeros(0, np.complex128)
        contrast, least = channel.diagonal - channel.off, float(many @ alpha) + 1

        def axis(u: float) -> tuple[Floats, Floats, Floats]:
            return told(alpha, counts, channel.off, contrast / u, nowhere)[:3]

        def excess(u: float) -> float:
            _, means, variances = axis(u)
            t = float(many @ means)
            return u - least - t - float(many @ variances) / (least - 1 + t)

        # any b will do: the better it is, the fewer points
        most = (least + float(many @ counts)) * (1 + 1e-12)
        b = least if excess(least) >= 0 else float(brentq(excess, least, most, rtol=1e-5))
        curvature = max(1.0, (excess(b * (1 + NEAR)) - excess(b)) / (b * NEAR))
        return cls(
            channel,
            alpha,
            counts,
            many,
            b,
            1 / (2 * math.sqrt(b * curvature)),
            float(many @ axis(b)[0]),
        )

    @property
    def prior(self) -> float:
        """A, the sum of the prior's parameters."""
        return float(self.many @ self.alpha)

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.many @ self.counts)

    def integrate(self) -> _Found:
        """Halve the step until the points between those before say the same as all together."""
        step, end = STEP * self.width, math.sqrt(LOG_NOTHING / self.b)
        points, off = self._points(np.arange(0, end + step, step), step), math.nan
        points.parts[0] /= 2
        while True:
            middles = np.arange(step / 2, end + step, step)
            _check_size(len(points.w) + len(middles), self.alpha, self.counts, off)
            between = self._points(middles, step)
            both = [np.concatenate(pair, axis=-1) for pair in zip(points, between, strict=True)]
            points, step = _Points(*both), step / 2
            points = points._replace(parts=points.parts / 2)
            found = self._found(points)
            off = found.off(self._found(between))
            if off <= TOLERANCE:
                return found

    def _points(self, w: Floats, step: float) -> _Points:
        """H du / (2 i b dw) divided by H(b), and the moments."""
        z = 1 + 1j * w
        contrast = self.channel.diagonal - self.channel.off
        _, _, _, ratios, t, rest, v = told(
            self.alpha, self.counts, self.channel.off, contrast / self.b, contrast / (self.b * z**2)
        )
        with np.errstate(divide="ignore"):  # what underflows is nothing
            log_h = self.many @ np.log(ratios) + _log_prior(w, self.prior + 1, self.b)
        return _Points(w, np.full(len(w), step), z * np.exp(log_h), t, rest, v)

    def _found(self, points: _Points) -> _Found:
        """All that is asked for, from the sums over these points; NaN where they are too few or rounding is all."""
        n, scale, many = self.n, self.prior + self.n, self.many
        # a = alpha + t and its sums are divided by A + n, which may be too large for a square
        a, t, v = (self.alpha[:, None] + points.t) / scale, points.t, points.v
        others, v_others, rest = _others(a, many), _others(v, many), many @ points.rest
        total = many @ a
        h = points.parts * points.h
        k = h / (1 + 1j * points.w) ** 2
        with np.errstate(all="ignore"):
            norm = float((h * total).real.sum())
            frequencies = (h * (t + (self.alpha / scale)[:, None] * rest)).real.sum(axis=1) / (
                n * norm
            )
            frequencies /= many @ frequencies  # 1 but for rounding
            mean = self.alpha[:, None] / scale + n * frequencies[:, None] / scale
            complement = _others(mean, many)
            off = t - n * frequencies[:, None] + mean * rest
            # all of them sum to 0, and of a secret with nearly all users little would be left
            off = np.where(mean > 0.5, -_others(off, many), off)
            spread = complement**2 * v + mean**2 * v_others
            of_p = (spread + off**2) / scale + complement**2 * a + mean**2 * others
            of_f = spread + (1 + 1 / scale) * off**2
            of_f = of_f + ((complement - mean) * off / scale + mean * complement * total) * rest
            z = float((k * (total * (total + 1 / scale) + many @ v / scale / scale)).real.sum())
            var_p, var_f = ((k * x).real.sum(axis=1) / z for x in (of_p, of_f))
            return _Found(
                frequencies,
                np.sqrt(np.maximum(var_p, 0) / scale),
                np.sqrt(np.maximum(var_f, 0)) / n,
                self.log_sums
                + _log_centre(self.prior, self.b)
                + float(np.log(2 / math.pi * norm * scale)),
            )


def _check_size(points: int, alpha: Floats, counts: Ints, off: float = math.nan) -> None:
    """Refuse what would take too long, or too much memory, before it is begun."""
    last = np.r_[alpha[1:] != alpha[:-1], True]
    # pairs with one parameter are passed on the way to the largest count
    steps, n_bytes = points * sum(counts[last].tolist()), 160 * points * len(counts)
    if steps > MAX_STEPS_OF_LINE or n_bytes > MAX_BYTES or points > MAX_POINTS:
        reached = "" if math.isnan(off) else f", with an error of {off:.1e} so far"
        raise TooLarge(
            f"method='exact' would integrate over {readable(points)} points (at most {MAX_POINTS:.0e}) in "
            f"{readable(steps)} steps (at most {MAX_STEPS_OF_LINE:.0e}) and {readable(n_bytes)} bytes (at most "
            f"{MAX_BYTES:.3g}){reached}; take method='gibbs' with an rng"
        )


def _log_centre(prior: float, b: float) -> float:
    """The sum log Gamma(A) + b - A log b, whose terms may be large where their sum is not."""
    if prior < LARGE:
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
    """The exponent u - b - power log(u / b), without the two large terms in w that cancel where b is nearly `power`."""
    small = np.minimum(w, 0.1)
    # w - arctan w, of which a difference would leave little
    series = small**3 * np.polyval(
        [-1 / 17, 1 / 15, -1 / 13, 1 / 11, -1 / 9, 1 / 7, -1 / 5, 1 / 3], small**2
    )
    bend = np.where(w < 0.1, series, w - np.arctan(w))
    return np.asarray(power * (2j * bend - w**2 - np.log1p(w**2)) + (b - power) * (2j * w - w**2))


def _others(x: NDArray[Any], many: Ints) -> NDArray[Any]:
    """For each row the sum over all secrets but one of this row, without subtracting that one from a sum."""
    sums = many[:, None] * x
    none = np.zeros((1, x.shape[1]), x.dtype)
    before = np.concatenate([none, np.cumsum(sums[:-1], axis=0)])
    after = np.concatenate([np.cumsum(sums[:0:-1], axis=0)[::-1], none])
    return np.asarray(before + (many - 1)[:, None] * x + after)
