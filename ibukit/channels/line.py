"""Geometric noise on a line, by two recursive sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.numba_fallback import InterpretUntilWorthCompiling
from ibukit._ground.rounding import UNIT_ROUNDOFF, gamma, underflow
from ibukit._ground.typing import override
from ibukit.channels import _gram_kernels, _line_kernels
from ibukit.channels.base import Channel, Score

# A report whose probability is below e^-460 = 1e-200 under every secret keeps that factor apart, as
# a logarithm: products of two such probabilities would underflow.
MIN_LOG_FACTOR = -460.0


def split_factor(log_factor: Floats) -> tuple[Floats, Floats]:
    """Split exp(log_factor) of each report into a double and the logarithm of the rest.

    The rest is 0 unless the factor is below exp(MIN_LOG_FACTOR).
    """
    rest = np.where(log_factor < MIN_LOG_FACTOR, log_factor, 0.0)
    return np.exp(log_factor - rest), rest


# Positions that plain Python sweeps before the loops are compiled. Each takes about a microsecond;
# all together take a third of the time that importing numba and compiling both sweeps takes.
POSITIONS_BY_PYTHON = 200_000
SWEEPS = InterpretUntilWorthCompiling(_line_kernels, "sweep", POSITIONS_BY_PYTHON)

# Relative error of a term for each step, which is a product and a sum. The last factor allows for
# the rounding of the sum of steps itself and for products of errors.
STEP_ERROR = 2 * UNIT_ROUNDOFF * (1 + 1e-6)


@dataclass(frozen=True, eq=False)
class LineChannel(Channel):
    r"""Geometric noise on a line by two recursive sweeps, O(k + s).

    .. math:: M_{xz}=\mathrm{scale}_z\,\mathrm{decay}^{|x-\mathrm{position}_z|}.

    Parameters
    ----------
    k : int
        Number of secrets, 0..k-1 on the line.
    decay : float
        Ratio of the entries of neighbouring secrets, above 0 and at most 1.
    positions : ndarray of int, shape (s,)
        Position of each report, 0..k-1.
    scale : ndarray, shape (s,)
        A factor for each report.

    Examples
    --------
    >>> import numpy as np
    >>> channel = LineChannel(3, decay=0.5, positions=np.array([0, 2]), scale=np.ones(2))
    >>> channel.rows(np.arange(3))
    array([[1.  , 0.25],
           [0.5 , 0.5 ],
           [0.25, 1.  ]])
    """

    k: int
    decay: float
    positions: Ints
    scale: Floats

    @property
    @override
    def size(self) -> int:
        return len(self.positions)

    @override
    def forward(self, theta: Floats) -> Floats:
        return SWEEPS.for_size(self.k).sweep(theta, self.decay)[self.positions] * self.scale

    @override
    def adjoint(self, w: Floats) -> Floats:
        scattered: Floats = np.bincount(
            self.positions, weights=w * self.scale, minlength=self.k
        ).astype(np.float64)
        return SWEEPS.for_size(self.k).sweep(scattered, self.decay)

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        y, steps = SWEEPS.for_size(self.k).sweep_with_steps(theta, self.decay)

        def back(w: Floats) -> tuple[Floats, Floats]:
            scattered = np.bincount(self.positions, w, self.k).astype(np.float64)
            return SWEEPS.for_size(self.k).sweep_with_steps(scattered, self.decay)

        sums = y[self.positions], steps[self.positions]
        score = upper_score_of_sweeps(sums, self.scale, counts, back, self.k)
        if score is None:
            return self.score(theta, counts)
        return score.raised(gamma(most_at_a_place(self.positions, self.k) + 12))

    @override
    def rows(self, secrets: Ints) -> Floats:
        distances = np.abs(secrets[:, None] - self.positions)
        return (self.decay ** np.arange(self.k))[distances] * self.scale

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        line = np.array([self.decay]), np.array([0, self.size]), self.positions
        # The upper triangle in C order is the lower one in Fortran order.
        _gram_kernels.add_lines(total.T, weights * self.scale**2, *line)

    @override
    def take(self, reports: slice | Ints) -> LineChannel:
        return replace(self, positions=self.positions[reports], scale=self.scale[reports])

    @override
    def unit_columns(self) -> LineChannel:
        return replace(self, scale=np.ones_like(self.scale))

    @override
    def scaled(self, factor: Floats) -> LineChannel:
        return replace(self, scale=self.scale * factor)


def upper_score_of_sweeps(
    sums: tuple[Floats, Floats],
    scale: Floats,
    counts: Floats | Ints,
    back: Callable[[Floats], tuple[Floats, Floats]],
    k: int,
) -> Score | None:
    """Bound the score of reports that are read off sweeps, but for the rounding of sums over them.

    A term may take k steps, but a term of many steps is small, so steps are counted as well: `sums`
    are the sums at the reports, without `scale`, and these sums with each term times its number of
    steps, and `back` carries weights on the reports to both sums at the secrets. None if a report
    has no probability.
    """
    p, error = sums[0] * scale, STEP_ERROR * sums[1] * scale
    least = float(p.min())
    if not least > 0:
        return None
    lower = p * (1 - gamma(8) - underflow(k, least)) - error
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        weights = counts / np.maximum(lower, 0.0) * scale
    g, steps = back(weights)
    return Score(float(counts @ np.log(p)), g + STEP_ERROR * steps, least)


def most_at_a_place(places: Ints, size: int) -> int:
    """Return the number of reports at the place that has the most reports."""
    return int(np.bincount(places, minlength=size).max())
