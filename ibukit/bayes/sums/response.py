r"""Exact posterior quantiles of sums of probabilities under k-RR.

Under k-RR report z has the probability l + c theta_z, and with the prior Dirichlet(alpha) the
posterior is the law of independent variables theta_z with the densities proportional to

    exp(-b theta_z) (l + c theta_z)^s_z theta_z^(alpha_z - 1),

given that they sum to 1; b > 0 is free. Expand the power: theta_z is a gamma variable of shape
alpha_z + t_z and rate b, where t_z, the number of the s_z reports that tell, has the weights

    C(s_z, t) alpha_z (alpha_z + 1) ... (alpha_z + t - 1) (c / b)^t l^(s_z - t).

For a set S of secrets, the sum of theta_z is therefore gamma of shape sum alpha_z + t, t = sum t_z,
whose law is a convolution; call its density h_S. The posterior density of the sum is

    f(v) = h_S(v) h_R(1 - v) / const, with R all other secrets.

If b is such that the variables sum to 1 on average, errors that are small beside the largest h_S
and h_R are small in f, so that convolutions by Fourier transforms are exact enough. The number of
reports n enters by the width of the law of t alone, which is O(sqrt(n)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln

from ibukit._ground.arguments import Floats, Ints, readable
from ibukit._ground.threads import one_thread
from ibukit.bayes.sums._mixture_kernels import mixture_sums
from ibukit.bayes.sums.unit_density import UnitDensity, check_rounding, rounding_at
from ibukit.channels import ResponseChannel
from ibukit.errors import TooLarge

# Least off-diagonal probability accepted: its square must be a double. No k-RR has a smaller one.
MIN_OFF_DIAGONAL = 1e-150
# Numbers t of reports that tell are left out if their log-weights lie further than this below the
# largest.
LOG_NEGLIGIBLE = 45.0
# Rounding errors of a law from its Fourier transform, relative to its Euclidean norm.
ROUNDING = 4e-16
# Tolerance of the rate b, in standard deviations of the sum of all theta_z; every b is correct.
RATE_TOLERANCE = 0.05
MAX_RATE_STEPS = 100
# First length of the convolutions, in standard deviations.
DEVIATIONS = 24
# Bytes of the Fourier transforms of all secrets; more are refused.
MAX_BYTES = 2**28


class _Weights(NamedTuple):
    """Laws of t_z of several (alpha, s), one after the other."""

    t: Floats
    weights: Floats
    starts: Ints
    sizes: Ints
    means: Floats
    variances: Floats


class SumOfGammas(NamedTuple):
    """h_S: a mixture of gamma densities of rate b, with the shapes alpha + first + i."""

    alpha: float
    rate: float
    first: int
    shares: Floats

    def log_density(self, v: Floats) -> Floats:
        """Return log h_S at v, up to a constant that is the same for all v."""
        x = self.rate * v.ravel()
        # The largest density at x is that of the shape in (x, x + 1].
        tops = np.clip(np.floor(x - self.alpha) + 1 - self.first, 0, len(self.shares) - 1)
        sums = mixture_sums(x, self.alpha, self.first, self.shares, tops.astype(np.int64))
        shape = self.alpha + self.first + tops
        with np.errstate(divide="ignore"):
            found = np.log(sums) + (shape - 1) * np.log(x) - gammaln(shape) - x
        return found.reshape(v.shape)


@dataclass(frozen=True, eq=False)
class ResponseSums:
    """Sums of probabilities under k-RR: the channel's l and c, alpha and s of each secret."""

    off: float
    contrast: float
    alpha: Floats
    counts: Ints

    @classmethod
    def of(cls, channel: ResponseChannel, counts: Ints, alpha: Floats) -> ResponseSums:
        """Return the laws for counts of the channel's reports."""
        of_all = np.zeros(channel.k, dtype=np.int64)
        np.add.at(of_all, channel.reports, counts)
        return cls(channel.off, channel.diagonal - channel.off, alpha, of_all)

    def quantiles(self, inside: NDArray[np.bool_], probabilities: Sequence[float]) -> Floats:
        """Return quantiles of the sum of the marked probabilities, which must not be all or none.

        It raises TooLarge if the transforms of all secrets would take too much memory, or if
        reports and prior weigh so much that rounding would show.
        """
        check_rounding(float(self.alpha.sum()))
        with one_thread():
            check_rounding(self._rate)
            within, beyond = self._of(inside), self._of(~inside)
            rate, laws = self._rate, self._laws_of_each
            a, both = self.alpha, []
            for chosen in (inside, ~inside):
                shape = float((a + laws.means[self._place])[chosen].sum())
                both.append((shape, shape + float(laws.variances[self._place][chosen].sum())))
            (m, s), (m_rest, s_rest) = both
            mean = m / rate + s / (s + s_rest) * (1 - (m + m_rest) / rate)
            mean = min(max(mean, 1e-300), 1 - 1e-16)
            density = UnitDensity(
                lambda v, rest: within(v) + beyond(rest),
                (float(a[inside].sum()), float(a[~inside].sum())),
                mean,
                math.sqrt(s * s_rest / (s + s_rest)) / rate,
                rounding_at(rate),
            )
            return np.array([density.quantile(p) for p in probabilities])

    @cached_property
    def _distinct(self) -> tuple[Floats, Ints, Ints]:
        """Different pairs of alpha and s, and the pair of each secret."""
        pairs, place = np.unique(self.alpha + 1j * self.counts, return_inverse=True)
        return pairs.real.copy(), pairs.imag.astype(np.int64), place.ravel()

    @property
    def _place(self) -> Ints:
        return self._distinct[2]

    def _laws(self, rate: float) -> _Weights:
        """Return the laws of t of each pair at this rate, within windows that hold their mass."""
        alpha, s, _ = self._distinct
        log_odds = math.log(self.contrast) - math.log(self.off) - math.log(rate)
        first, last = _windows(alpha, s, math.exp(log_odds))
        sizes = last - first + 1
        _check_bytes(8 * int(sizes.sum()))
        starts = np.cumsum(sizes) - sizes
        own = np.repeat(np.arange(len(s)), sizes)
        t = np.arange(int(sizes.sum())) - np.repeat(starts - first, sizes) * 1.0
        rest, shape = s[own] - t, alpha[own] + t
        log_weights = t * log_odds + gammaln(shape) - gammaln(t + 1) - gammaln(rest + 1)
        log_weights -= np.repeat(np.maximum.reduceat(log_weights, starts), sizes)
        weights = np.exp(log_weights)
        weights /= np.repeat(np.add.reduceat(weights, starts), sizes)
        means = np.add.reduceat(weights * t, starts)
        variances = np.add.reduceat(weights * (t - means[own]) ** 2, starts)
        return _Weights(t, weights, starts, sizes, means, variances)

    @cached_property
    def _rate(self) -> float:
        """The b at which all theta_z sum to about 1 on average: b = sum alpha + T(b).

        T falls as b grows, so that the root is unique.
        """
        _, _, place = self._distinct
        prior = float(self.alpha.sum())
        low, high = prior, prior + float(self.counts.sum())
        b = self._first_rate(high)
        for _ in range(MAX_RATE_STEPS):
            laws = self._laws(b)
            total, variance = (float(x[place].sum()) for x in (laws.means, laws.variances))
            excess = b - prior - total
            low, high = (low, b) if excess > 0 else (b, high)
            if abs(excess) <= RATE_TOLERANCE * math.sqrt(b + variance):
                break
            # Newton's step; d T / d b is - V / b.
            b -= excess / (1 + variance / b)
            if not low < b < high:
                b = (low + high) / 2
        return b

    def _first_rate(self, most: float) -> float:
        """Guess b from the linear estimate: report z tells with c theta_z / (l + c theta_z)."""
        shares = self.counts / max(self.counts.sum(), 1) - self.off
        theta = np.maximum(shares / self.contrast, 0) + 1 / most
        p = self.contrast * theta / theta.sum()
        return float(self.alpha.sum() + self.counts @ (p / (self.off + p)))

    @cached_property
    def _laws_of_each(self) -> _Weights:
        return self._laws(self._rate)

    @cached_property
    def _transforms(self) -> tuple[NDArray[np.complexfloating], int, Ints]:
        """Fourier transforms of the laws of t of each pair, their length and first t's.

        The length is enough if the sum over all secrets leaves a gap of an eighth of it.
        """
        laws, place = self._laws_of_each, self._place
        pieces = np.split(laws.weights, laws.starts[1:])
        firsts = laws.t[laws.starts].astype(np.int64)
        multiplicity = np.bincount(place)
        spread = math.sqrt(float(multiplicity @ laws.variances))
        widest = max(map(len, pieces))
        total = int(multiplicity @ [len(piece) - 1 for piece in pieces]) + 1
        length = min(total, max(widest, math.ceil(DEVIATIONS * spread)))
        while True:
            length = next_fast_len(length, real=True)
            _check_bytes(8 * (len(pieces) + 2) * length)
            transforms = np.array([rfft(piece, length) for piece in pieces])
            law = _inverse(transforms, multiplicity, length)
            middle = int(multiplicity @ (laws.means - firsts)) % length
            gap = np.roll(law, length // 2 - middle)[: length // 16]
            if length >= total or gap.max(initial=0.0) <= _rounding(law):
                return transforms, length, firsts
            length *= 2

    @cached_property
    def _products_of_others(self) -> NDArray[np.complexfloating]:
        """For each pair the product of the transforms of all secrets with another pair."""
        transforms, _, firsts = self._transforms
        powers = transforms ** np.bincount(self._place, minlength=len(firsts))[:, None]
        none = np.ones((1, powers.shape[1]), powers.dtype)
        before = np.concatenate([none, np.cumprod(powers[:-1], axis=0)])
        return before * np.concatenate([np.cumprod(powers[:0:-1], axis=0)[::-1], none])

    def _of(self, chosen: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        """Return log h_S of the chosen secrets."""
        if chosen.sum() == 1:
            (x,) = np.flatnonzero(chosen)
            alpha, s, rate = float(self.alpha[x]), int(self.counts[x]), self._rate
            steepness = self.contrast / self.off
            return lambda v: s * np.log1p(steepness * v) + (alpha - 1) * np.log(v) - rate * v
        transforms, length, firsts = self._transforms
        multiplicity = np.bincount(self._place[chosen], minlength=len(firsts))
        if chosen.sum() == len(chosen) - 1:
            left_out = int(self._place[np.flatnonzero(~chosen)[0]])
            own = transforms[left_out] ** multiplicity[left_out]
            law = irfft(own * self._products_of_others[left_out], length)
        else:
            law = _inverse(transforms, multiplicity, length)
        # The transform's law begins at the sum of the first t's, and wraps around if it is long:
        # the place of t is t - offset modulo the length, for t around the mean.
        offset = int(multiplicity @ firsts)
        mean = float(multiplicity @ self._laws_of_each.means)
        top = int(multiplicity @ (firsts + self._laws_of_each.sizes - 1))
        first = max(min(int(mean) - length // 2, top + 1 - length), offset)
        shares = np.roll(law, offset - first)
        kept = np.flatnonzero(shares > _rounding(law))
        first, shares = first + int(kept[0]), shares[kept[0] : kept[-1] + 1]
        return SumOfGammas(
            float(self.alpha[chosen].sum()), self._rate, first, np.maximum(shares, 0.0)
        ).log_density


def _windows(alpha: Floats, s: Ints, odds: float) -> tuple[Ints, Ints]:
    """Return the first and the last t that count, of each pair.

    The weight of t + 1 is (s - t) / (t + 1) (alpha + t) odds times that of t. With alpha >= 1 the
    logarithm is concave, with a curvature of at least 1 / s, so that e^-45 is reached within
    sqrt(90 s) of the mode. With alpha < 1 the weights are those of alpha = 1 times a factor that
    falls from 1 to no less than alpha / (t + 1).
    """
    a = np.maximum(alpha, 1.0)
    # The mode is where the ratio passes 1: odds (s - t) (a + t) = t + 1.
    half = (s - a - 1 / odds) / 2
    mode = np.clip(half + np.sqrt(np.maximum(half**2 + s * a - 1 / odds, 0.0)), 0, s)
    extra = np.where(alpha < 1, np.log(s + 1.0) - np.log(np.minimum(alpha, 1.0)), 0.0)
    reach = np.sqrt(2 * (LOG_NEGLIGIBLE + extra) * s) + 10
    first = np.maximum(np.floor(mode - reach), 0).astype(np.int64)
    return first, np.minimum(np.ceil(mode + reach), s).astype(np.int64)


def _inverse(transforms: NDArray[np.complexfloating], multiplicity: Ints, length: int) -> Floats:
    """Return the law of the sum of `multiplicity` variables of each transform."""
    some = np.flatnonzero(multiplicity)
    several = multiplicity[some, None]
    powers = transforms[some]
    if (several > 1).any():
        powers = powers**several
    return np.asarray(irfft(powers.prod(axis=0), length))


def _rounding(law: Floats) -> float:
    return ROUNDING * float(np.linalg.norm(law))


def _check_bytes(n_bytes: int) -> None:
    if n_bytes > MAX_BYTES:
        raise TooLarge(
            f"the exact posterior of a sum would take {readable(n_bytes)} bytes (at most "
            f"{MAX_BYTES:.3g}): take method='gibbs' with an rng"
        )
