"""A-priori bounds on the rounding of convolutions by Fourier transforms.

A transform of length N is a product of passes, one for each prime factor r of N: twiddle factors,
and sums of r terms. Each pass errs, relative to the norm of what it returns, by at most the units
of rounding in PASS_ERROR: a product of complex numbers by sqrt(5) u (Brent, Percival and
Zimmermann, Error bounds on complex floating-point multiplication, 2007), a twiddle factor by 8.5 u,
and each sum and constant by u. For scipy's transforms (pocketfft, `sincos_2pibyn`) a factor is the
product of two from tables, whose angles, at most pi / 4, err by pi / 2 u, and their sines and
cosines by no more than u: 2 (pi / 2 + 1) + sqrt(5) < 8.5. The same units bound the error of each
term of an output in a pass, relative to that term. Passes of 4 and 8 count as two and three passes
of 2, and err less.

A convolution of mass with a kernel is three transforms. The errors of the first two are bounded in
the 2-norm of their spectra, so by Cauchy and Schwarz each entry of the result errs by the sum of
their units times |mass|_2 |kernel|_2. The third adds up products of the spectra, whose moduli add
up to at most |mass|_2 |kernel|_2, and errs by its units times that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import UNIT_ROUNDOFF, gamma
from ibukit.channels.fourier.convolution import Job
from ibukit.channels.fourier.few_cells import FewCells
from ibukit.channels.fourier.scattered_cells import ScatteredCells

# Error of a pass of the transform in units of rounding, by the prime factor of the pass.
PASS_ERROR = {2: 11.8, 3: 17.0, 5: 24.7}
# The same for products of the spectra, twiddles of few columns, the sum over kinds, and the mass.
OTHER_ERRORS = 32.0
# First-order bounds are raised by this share for the products of errors.
SECOND_ORDER = 1.001


def transform_units(length: int) -> float:
    """Units of rounding of a transform; inf if the length has another prime factor than 2, 3 or 5.

    Examples
    --------
    >>> round(transform_units(2000), 1), transform_units(7)
    (121.3, inf)
    """
    units = 0.0
    for prime, each in PASS_ERROR.items():
        while length % prime == 0:
            length //= prime
            units += each
    return units if length == 1 else math.inf


def convolution_errors(lengths: tuple[int, int]) -> tuple[float, float]:
    """Absolute error for mass and kernel of norm 1: at scattered cells, and at few rows or columns.

    Across few lines a plain sum over the lines, or over the frequencies, stands in for a transform.

    Examples
    --------
    >>> scattered, few = convolution_errors((64, 64))
    >>> scattered < few < 1e-13
    True
    """
    units = 3 * sum(transform_units(length) for length in lengths) + OTHER_ERRORS
    return tuple(  # type: ignore[return-value]
        SECOND_ORDER * UNIT_ROUNDOFF * each for each in (units, units + max(lengths))
    )


@dataclass
class Margins:
    """Bounds for a pass from masses to p and on to g: p is lowered and g raised by them.

    Parameters
    ----------
    lengths : (int, int)
        Lengths of the padded grid.
    norms : ndarray, shape (kinds,)
        2-norm of each kernel, over all offsets.
    min_trusted : ndarray, shape (kinds,)
        Smallest convolution of mass of norm 1 that is not summed directly.
    tails : ndarray, shape (kinds,)
        Largest entry of each kernel beyond its reach, where transforms take it for 0.
    k : int
        Number of secrets.
    distinct : bool
        Whether all reports of a kind have cells of their own.
    sharp : bool
        Whether reports whose error is large relative to their probability are summed directly.
    """

    lengths: tuple[int, int]
    norms: Floats
    min_trusted: Floats
    tails: Floats
    k: int
    distinct: bool
    sharp: bool = False
    # What the jobs added to the errors of g, from threads in any order: math.fsum is exact.
    _squares: dict[int, list[float]] = field(default_factory=dict, init=False)
    _sums: dict[int, list[float]] = field(default_factory=dict, init=False)
    _unit_errors: dict[int, float] = field(default_factory=dict, init=False)

    def lowered(
        self,
        job: Job,
        values: Floats,
        mass_norm: float,
        scale: Floats | float,
        weak: Ints,
        too_many: bool,
    ) -> Floats:
        """Return values not above the exact ones.

        `weak` are the values that were summed directly, over the heavy mass alone if they are
        `too_many`.
        """
        relative = gamma(4)
        if isinstance(job.piece, FewCells):
            relative, absolute = gamma(self.k + 4), 0.0
        else:
            absolute = self._unit_error(job) * mass_norm
        lower = values * (1 - relative) - absolute * scale
        if len(weak):
            # The light mass may be transformed there, if its error is relatively no larger.
            light = self._unit_error(job) / float(self.min_trusted[job.kind]) if too_many else 0.0
            lower[weak] = values[weak] * (1 - gamma(self.k + 8) - light)
        # A bound that is void must not become a negative weight; dividing by 0 certifies nothing.
        return np.maximum(lower, 0.0)

    def add(self, job: Job, weights: Floats) -> None:
        """Note the weights of a job's reports, with their scales."""
        self._unit_errors[job.kind] = self._unit_error(job)
        self._squares.setdefault(job.kind, []).append(float(weights @ weights))
        self._sums.setdefault(job.kind, []).append(float(weights.sum()))

    def error_of_adjoint(self) -> float:
        """Absolute error of each entry of the adjoint, before its factor."""
        total = 0.0
        for kind, unit in self._unit_errors.items():
            sum_ = math.fsum(self._sums[kind])
            norm = math.sqrt(math.fsum(self._squares[kind])) if self.distinct else sum_
            total += unit * norm + float(self.tails[kind]) * sum_
        return total * (1 + 1e-9)

    def _unit_error(self, job: Job) -> float:
        if isinstance(job.piece, FewCells):
            return 0.0
        scattered, few = convolution_errors(self.lengths)
        own = scattered if isinstance(job.piece, ScatteredCells) else few
        return own * float(self.norms[job.kind])
