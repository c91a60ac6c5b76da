r"""Quantiles of a density on the unit interval, by Gauss-Legendre quadrature in the log-odds.

In x = log v - log(1 - v) the density is q = f(v) v (1 - v). Panels are halved until the Legendre
coefficients of q have died out, and the distribution function on a panel is the integral of that
polynomial. Where f is about v^(a - 1) at 0, the mass below a small v is q / a.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.polynomial import legendre
from scipy.special import expit, log_expit

from ibukit._ground.arguments import Floats
from ibukit.errors import TooLarge

# The density beyond the first and the last panel is below e^-42 of the largest.
LOG_NEGLIGIBLE = 42.0
# Log-odds beyond which a probability, or 1 minus it, is not a double.
MAX_LOG_ODDS = 700.0
# Nodes of a panel, and the size of its last coefficients relative to the largest density.
NODES = 16
PANEL_TOLERANCE = 1e-12
FIRST_PANELS = 8
# Panels are halved no further than this; mostly about thirty are enough.
MAX_PANELS = 4096

# Error of a term of a logarithm, relative to the term; and the largest accepted error of the
# density.
EPSILON = 4e-16
MAX_ROUNDING = 1e-6

# Takes v and 1 - v, returns log f up to a constant.
LogDensity = Callable[[Floats, Floats], Floats]

_NODES, _WEIGHTS = legendre.leggauss(NODES)
# Legendre coefficients c_j = (2 j + 1) / 2 sum_i w_i P_j(x_i) q(x_i) of values at the nodes.
_TO_COEFFICIENTS = (
    (np.arange(NODES)[:, None] + 0.5) * legendre.legvander(_NODES, NODES - 1).T * _WEIGHTS
)


class UnitDensity:
    """A density on (0, 1) that gives its quantiles.

    Parameters
    ----------
    log_density : callable
    powers : (float, float)
        Exponents a and b of v^(a - 1) at 0 and (1 - v)^(b - 1) at 1.
    mean, deviation : float
        Approximate values, by which the peak is found.
    rounding : float
        Error of log f by rounding, which no finer panel can resolve.
    """

    def __init__(
        self,
        log_density: LogDensity,
        powers: tuple[float, float],
        mean: float,
        deviation: float,
        rounding: float = 0.0,
    ):
        self._log_density, self._powers = log_density, powers
        low, high = self._range(mean, deviation)
        edges = np.linspace(low, high, FIRST_PANELS + 1)
        left, width = edges[:-1], np.diff(edges)
        found: list[Floats] = []
        tolerance = max(PANEL_TOLERANCE, rounding)
        while len(left) > 0:
            x = left[:, None] + width[:, None] * (_NODES + 1) / 2
            coefficients = np.exp(self._log_q(x) - self._peak) @ _TO_COEFFICIENTS.T
            rough = np.abs(coefficients[:, -2:]).sum(axis=1) > tolerance
            rough &= len(left) < MAX_PANELS
            done = np.column_stack([left, width, coefficients])
            found.append(done[~rough])
            left, width = np.repeat(left[rough], 2), np.repeat(width[rough] / 2, 2)
            left[1::2] += width[1::2]
        panels = np.concatenate(found)
        panels = panels[np.argsort(panels[:, 0])]
        self._left, self._width, self._coefficients = panels[:, 0], panels[:, 1], panels[:, 2:]
        # The mass below the first panel, then below the end of each panel, then the whole mass.
        ends = np.exp(self._log_q(np.array([low, high])) - self._peak) / powers
        self._mass = np.cumsum(np.r_[ends[0], self._width * self._coefficients[:, 0], ends[1]])

    def _log_q(self, x: Floats) -> Floats:
        log_v, log_rest = log_expit(x), log_expit(-x)
        return self._log_density(np.exp(log_v), np.exp(log_rest)) + log_v + log_rest

    def _range(self, mean: float, deviation: float) -> tuple[float, float]:
        """Return log-odds with nearly all the mass between them, and remember the peak."""
        centre = math.log(mean) - math.log1p(-mean)
        step = min(max(deviation / (mean * (1 - mean)), 1e-9), 1.0)
        x = centre + step * np.linspace(-4, 4, 17)
        self._peak = float(self._log_q(x).max())
        ends = []
        for sign in (-1, 1):
            out, stride = centre + sign * 4 * step, 2 * step
            while abs(out) < MAX_LOG_ODDS:
                log_q = float(self._log_q(np.array([out]))[0])
                self._peak = max(self._peak, log_q)
                if log_q < self._peak - LOG_NEGLIGIBLE:
                    break
                out, stride = out + sign * stride, 1.3 * stride
            ends.append(float(np.clip(out, -MAX_LOG_ODDS, MAX_LOG_ODDS)))
        return ends[0], ends[1]

    def quantile(self, probability: float) -> float:
        """Return the v below which the law lies with this probability."""
        wanted = probability * self._mass[-1]
        panel = int(np.searchsorted(self._mass, wanted)) - 1
        if panel < 0:
            # The mass below x is that below the first panel times exp(a (x - left)).
            return float(expit(self._left[0] + math.log(wanted / self._mass[0]) / self._powers[0]))
        if panel == len(self._left):
            last = self._mass[-1] - self._mass[-2]
            beyond = math.log((1 - probability) * self._mass[-1] / last) / self._powers[1]
            return float(expit(self._left[-1] + self._width[-1] - beyond))
        rest = (wanted - self._mass[panel]) / (self._width[panel] / 2)
        integral = legendre.legint(self._coefficients[panel], lbnd=-1)
        # Rounding may leave the integral over the panel just below what is wanted.
        rest = min(rest, float(legendre.legval(1.0, integral)))
        place = scipy.optimize.brentq(
            lambda s: legendre.legval(s, integral) - rest, -1, 1, xtol=1e-15
        )
        return float(expit(self._left[panel] + self._width[panel] * (place + 1) / 2))


def rounding_at(size: float) -> float:
    """Return the rounding error of a log-density whose exponents are of this size."""
    return EPSILON * size * (1 + math.log1p(size))


def check_rounding(size: float) -> None:
    """Raise TooLarge if the rounding error would show in the quantiles."""
    if not rounding_at(size) <= MAX_ROUNDING:
        raise TooLarge(
            "the exact posterior of a sum would be lost in rounding: prior and reports together "
            f"weigh {size:.1e}; take method='gibbs' with an rng"
        )
