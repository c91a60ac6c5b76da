"""Planar noise on a large grid without its matrix: convolutions by Fourier transforms."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import fft

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import gamma, underflow
from ibukit._ground.single_precision import agrees, probe
from ibukit._ground.typing import override
from ibukit.channels import _plane_kernels, offset_masses
from ibukit.channels.base import Channel, Score
from ibukit.channels.fourier import gram
from ibukit.channels.fourier.convolution import Convolutions, Job
from ibukit.channels.fourier.padded_transforms import PaddedGrid
from ibukit.channels.fourier.rounding import Margins
from ibukit.domain.grid import Grid

# Number of entries, 32 MB of doubles, up to which a dense channel is as fast as convolutions; and
# it is exact to the last digit.
MAX_MATRIX_ENTRIES = 2**22
# Number of secrets up to which a matrix is faster than convolutions; and, if there are more
# secrets, number of reports up to which it is.
MAX_DENSE_SECRETS = 700
MAX_DENSE_REPORTS = 500
# Kind of the reports that have a column of their own.
FAR = -1
# Rows whose entries are looked up together, so that their places stay in the cache.
ROWS_AT_A_TIME = 16
# A circular convolution of vectors a and b errs by a few units of rounding times |a|_2 |b|_2 in
# every entry (Higham, Accuracy and Stability of Numerical Algorithms, 24.1); our tests never
# reached 8 units.
CONVOLUTION_ERROR = 8 * np.finfo(float).eps / 2
RELATIVE_ERROR = 1e-10
# Relative error beyond which a report is summed directly near a maximum.
SHARP_ERROR = 1e-11
NO_REPORTS: Ints = np.empty(0, dtype=np.int64)
# Terms that are summed directly at a time, a second of work. If there are more, only the heaviest
# secrets are summed: first FIRST_HEAVIEST of them, then eight times as many.
MAX_DIRECT_TERMS = 2**28
FIRST_HEAVIEST = 2**11
# Reports outside an infinite grid are grouped into bands of probability, NATS_PER_BAND wide; beyond
# MAX_NATS they have columns of their own.
NATS_PER_BAND = 5.0
MAX_NATS = 30.0


@dataclass(frozen=True, eq=False)
class PlaneChannel(Channel):
    r"""Planar noise on a grid, by Fourier transforms.

    .. math::

        M_{xz}=\mathrm{factor}_x\,\mathrm{scale}_z\,
        \mathrm{kernels}[\mathrm{kind}_z]\bigl[|\mathrm{row}_x-\mathrm{row}_z|,
        |\mathrm{col}_x-\mathrm{col}_z|\bigr].

    Each kind of report is a convolution. Noise remapped to the grid has four kinds: reports inside,
    on a southern or northern border (their kernel is a sum over a half-line of offsets), on a
    western or eastern one, and corners.

    **Accuracy.** A Fourier transform errs by about the same amount everywhere, which is a great
    deal for a report that is improbable wherever there is mass. So `forward` takes from the
    transform only probabilities that exceed 1e10 times the bound on the error; it sums the others
    term by term, without cancellation. Relative errors are thus below 1e-10 for every
    :math:`\theta\ge0`. There are few such reports where it matters: :math:`g\le1+\mathrm{gap}`
    implies :math:`p_z\ge q_z\max_x M_{xz}/(1+\mathrm{gap})` for every report seen. By the same
    inequality the weights w = q / p of `adjoint` are at most
    :math:`(1+\mathrm{gap})/\max_x M_{xz}`, so the error of `adjoint` is that of rounding relative
    to :math:`\max g`.

    Parameters
    ----------
    shape : (n_rows, n_cols) of the secrets
    factor : ndarray, shape (k,)
    kernels : ndarray, shape (kinds, largest row offset + 1, largest column offset + 1)
    kinds : ndarray of int, shape (s,)
        FAR for reports that have a column of their own.
    cells : ndarray of int, shape (s, 2)
    scale : ndarray, shape (s,)
    columns : ndarray, shape (k, reports of kind FAR)

    Examples
    --------
    A single row of four cells, and two reports on it:

    >>> import numpy as np
    >>> kernels, cells = np.array([[[1.0, 0.5, 0.25, 0.125]]]), np.array([[0, 0], [0, 2]])
    >>> kinds, no_columns = np.array([0, 0]), np.empty((4, 0))
    >>> channel = PlaneChannel((1, 4), np.ones(4), kernels, kinds, cells, np.ones(2), no_columns)
    >>> channel.rows(np.array([0, 3]))
    array([[1.   , 0.25 ],
           [0.125, 0.5  ]])
    """

    shape: tuple[int, int]
    factor: Floats
    kernels: Floats
    kinds: Ints
    cells: Ints
    scale: Floats
    columns: Floats

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return len(self.factor)

    @property
    @override
    def size(self) -> int:
        return len(self.kinds)

    @override
    def forward(self, theta: Floats) -> Floats:
        p = self.convolve(theta)
        if theta.min() >= 0:
            mass = theta * self.factor
            # Rounding is relative to the norms of mass and kernel, wherever the report is.
            weak = np.flatnonzero(p < self._min_trusted * np.sqrt((mass * mass).sum()))
            if len(weak):
                p[weak] = self._improbable(mass, weak)
        return p

    def _improbable(self, mass: Floats, weak: Ints) -> Floats:
        """Probabilities of the reports `weak`, for which a transform of all mass is not exact.

        They are summed term by term. If these are too many terms, only the heaviest secrets are
        summed and the rest is transformed: the error of the transform is relative to the norm of
        the rest. Reports for which this is exact are done; for the others more secrets are summed.
        """
        p, left, heaviest = np.zeros(len(weak)), np.arange(len(weak)), FIRST_HEAVIEST
        while len(left) * np.count_nonzero(mass) > MAX_DIRECT_TERMS and heaviest < len(mass):
            top = np.argpartition(mass, -heaviest)[-heaviest:]
            light, heavy = mass.copy(), np.zeros_like(mass)
            # Transform the light mass, sum the heavy one; exact if the light mass errs little.
            light[top], heavy[top] = 0, mass[top]
            reports = weak[left]
            total = self._direct_sums(heavy, reports) + self._convolved(light)[reports]
            exact = total >= self._min_trusted[reports] * np.sqrt((light * light).sum())
            p[left[exact]] = total[exact]
            left, heaviest = left[~exact], 8 * heaviest
        if len(left):
            p[left] = self._direct_sums(mass, weak[left])
        return p

    def convolve(self, theta: Floats) -> Floats:
        """Probabilities of the reports with the errors of Fourier transforms.

        It is for inner loops, whose result `forward` checks. Theta may have any sign.
        """
        p = self._convolved(theta * self.factor)
        if self.columns.size:
            p[self.kinds == FAR] = theta @ self.columns
        return p

    def _convolved(self, mass: Floats) -> Floats:
        p = self._convolutions.forward(mass)
        p *= self.scale
        return p

    @override
    def adjoint(self, w: Floats) -> Floats:
        weights = w * self.scale
        back = self._convolutions.adjoint(weights)
        if w.min() >= 0:
            # Each entry is at least the smallest entry of its kind times the weights. If rounding
            # gives less, even zero or a negative number, this bound stands in, so that an error
            # cannot rule out a secret.
            bounds = (
                self._min_entry_of_kinds[kind] * weights[self.kinds == kind].sum()
                for kind in self._seen_kinds
            )
            np.maximum(back, math.fsum(bounds), out=back)
        back *= self.factor
        if self.columns.size:
            back += self.columns @ w[self.kinds == FAR]
        return back

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        if theta.min() < 0:
            return super().score(theta, counts)
        p, g = np.empty(self.size), np.empty(self.k)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.score_into(theta, counts, p, g)
            least = float(p.min())
        return Score(float(counts @ np.log(p)) if least > 0 else -math.inf, g, max(least, 0.0))

    @override
    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return self._bounded_score(theta, counts, self._margins())

    @override
    def sharper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return self._bounded_score(theta, counts, replace(self._margins(), sharp=True))

    def _bounded_score(self, theta: Floats, counts: Floats | Ints, margins: Margins) -> Score:
        # Transforms err by an absolute amount, so no number of roundings bounds them. Off the
        # simplex there is no gap to bound, so the plain score is enough.
        if theta.min() < 0:
            return self.score(theta, counts)
        p, g = np.empty(self.size), np.empty(self.k)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            self.score_into(theta, counts, p, g, margins)
            least = float(p.min())
        log_likelihood = float(counts @ np.log(p)) if least > 0 else -math.inf
        # Columns of their own are summed over all secrets, and then over these reports.
        n_far = self.columns.shape[1]
        score = Score(log_likelihood, g, max(least, 0.0))
        return score.raised(gamma((self.k + n_far if n_far else 0) + 16) + underflow(self.k, least))

    def _margins(self) -> Margins:
        rows, cols = (reach + 1 for reach in self._reach)
        beyond = self.kernels.copy()
        beyond[:, :rows, :cols] = 0.0
        norms = self._min_trusted_of_kinds * (RELATIVE_ERROR / CONVOLUTION_ERROR)
        return Margins(
            self._lengths,
            norms,
            self._min_trusted_of_kinds,
            beyond.max(axis=(1, 2)),
            self.k,
            self._are_distinct,
        )

    @cached_property
    def _are_distinct(self) -> bool:
        """True if no two reports of a kind have the same cell of the padded grid."""
        places = np.ravel_multi_index(
            tuple(self.cells[self.kinds != FAR].T), self._lengths, mode="wrap"
        )
        size = math.prod(self._lengths)
        return all(
            np.bincount(places[self.kinds[self.kinds != FAR] == kind], minlength=size).max() <= 1
            for kind in self._seen_kinds
        )

    def score_into(
        self,
        theta: Floats,
        q: Floats | Ints,
        p: Floats,
        g: Floats,
        margins: Margins | None = None,
    ) -> None:
        r"""Fill p = forward(:math:`\theta`) and g = adjoint(q / p), :math:`\theta \ge 0`.

        Both come from one pass of `Convolutions.forward_adjoint`, which takes half of the time and
        memory of two passes. With `margins`, g is raised by the error of the transforms, and is not
        below its exact value apart from the roundings of a few products.
        """
        grid, factor, g_grid = (values.reshape(self.shape) for values in (theta, self.factor, g))
        mass = np.empty(self.shape)
        # Threads append in any order; math.fsum is exact, so its result does not depend on it.
        squares: list[float] = []
        bounds: list[float] = []

        def mass_of(rows: slice) -> Floats:
            own = np.multiply(grid[rows], factor[rows], out=mass[rows])
            squares.append(float(np.einsum("xy,xy", own, own)))
            return own

        def weigh(job: Job, values: Floats) -> Floats:
            norm = math.sqrt(math.fsum(squares))
            limit = self._min_trusted_of_kinds[job.kind] * norm
            weak = np.flatnonzero(values < limit) if values.min() < limit else NO_REPORTS
            self._scale(values, job.reports)
            if len(weak):
                reports = np.arange(self.size)[job.reports][weak]
                values[weak] = self._improbable(mass.ravel(), reports)
            p[job.reports] = values
            if margins is not None:
                values = self._lowered(margins, job, values, mass, weak, norm)
            weights = np.divide(q[job.reports], values, out=values)
            self._scale(weights, job.reports)
            bounds.append(float(self._min_entry_of_kinds[job.kind] * weights.sum()))
            if margins is not None:
                margins.add(job, weights)
            return weights

        def store(rows: slice, field: Floats) -> None:
            field = np.maximum(field, math.fsum(bounds))
            if margins is not None:
                field += margins.error_of_adjoint()
            np.multiply(field, factor[rows], out=g_grid[rows])

        self._convolutions.forward_adjoint(mass_of, weigh, store)
        if self.columns.size:
            far = self.kinds == FAR
            p[far] = theta @ self.columns
            g += self.columns @ (q[far] / p[far])

    def _lowered(
        self, margins: Margins, job: Job, values: Floats, mass: Floats, weak: Ints, norm: float
    ) -> Floats:
        """Probabilities of a job's reports, lowered by what they may err."""
        scale, n_masses = self._scales_of(job.reports), max(1, int(np.count_nonzero(mass)))
        too_many = bool(len(weak) * n_masses > MAX_DIRECT_TERMS)
        lower = margins.lowered(job, values, norm, scale, weak, too_many)
        if margins.sharp:
            # The least certain reports are summed term by term, as many as there is time for.
            loose = np.flatnonzero(lower < values * (1 - SHARP_ERROR))
            loose = loose[np.argsort(lower[loose])][: MAX_DIRECT_TERMS // n_masses]
            reports = np.arange(self.size)[job.reports][loose]
            sums = self._direct_sums(mass.ravel(), reports)
            lower[loose] = sums * (1 - gamma(n_masses + 8))
        return lower

    def _scales_of(self, reports: Ints | slice) -> Floats | float:
        return 1.0 if self._scales_are_one else self.scale[reports]

    def _scale(self, values: Floats, reports: Ints | slice) -> None:
        """Multiply values of some reports by their scales, in place."""
        # Looking up the scales of a million reports takes as long as multiplying by them.
        if not self._scales_are_one:
            values *= self.scale[reports]

    @cached_property
    def _scales_are_one(self) -> bool:
        return bool((self.scale == 1).all())

    @cached_property
    def _min_entry_of_kinds(self) -> Floats:
        return self.kernels.min(axis=(1, 2))

    @override
    def rows(self, secrets: Ints) -> Floats:
        entries = np.empty((len(secrets), self.size))
        # A report of kind FAR has no cell; its entries are overwritten below.
        far = self.kinds == FAR
        kinds, cells = np.where(far, 0, self.kinds), np.where(far[:, None], 0, self.cells)
        places, flat = np.divmod(secrets, self.shape[1]), self.kernels.ravel()
        _, rows, cols = self.kernels.shape
        first, has_far = kinds * rows * cols, bool(far.any())
        for start in range(0, len(secrets), ROWS_AT_A_TIME):
            some = slice(start, start + ROWS_AT_A_TIME)
            down, along = (
                np.abs(place[some, None] - cell)
                for place, cell in zip(places, cells.T, strict=True)
            )
            if has_far:
                down[:, far] = along[:, far] = 0
            flat.take(first + down * cols + along, out=entries[some])
            entries[some] *= self.scale * self.factor[secrets[some], None]
        if self.columns.size:
            entries[:, far] = self.columns[secrets]
        return entries

    def matrix(self) -> Floats:
        """All entries, shape (k, s)."""
        return self.rows(np.arange(self.k))

    def adjoint_of_squares(self, w: Floats) -> Floats:
        r"""Diagonal of :math:`M\operatorname{diag}(w)\,M^{\top}`, for :math:`w \ge 0`.

        It is the adjoint of the squared entries. Preconditioners need it once a step, so the
        spectra of the squares are not kept.
        """
        squares = self._convolutions.with_kernels(self._tables**2)
        back = squares.adjoint(w * self.scale**2) * self.factor**2
        if self.columns.size:
            back += np.square(self.columns) @ w[self.kinds == FAR]
        return np.maximum(back, 0.0)

    def gram_product(self, w: Floats, x: Floats) -> Floats:
        r""":math:`M\operatorname{diag}(w)\,M^{\top}x`, up to the errors of transforms."""
        weights, back = w * self.scale**2, np.empty(self.shape)
        grid, factor = x.reshape(self.shape), self.factor.reshape(self.shape)

        def store(rows: slice, field: Floats) -> None:
            np.multiply(field, factor[rows], out=back[rows])

        self._convolutions.forward_adjoint(
            lambda rows: grid[rows] * factor[rows],
            lambda job, values: values * weights[job.reports],
            store,
        )
        if self.columns.size:
            far = self.kinds == FAR
            back.ravel()[:] += self.columns @ (w[far] * (x @ self.columns))
        return back.ravel()

    @cached_property
    def gram_single(self) -> gram.Gram:
        r"""Gram matrix in single precision, :math:`M\,\operatorname{diag}(w)\,M^{\top}`.

        If a first product turns out wrong, because the library's transforms in single precision are
        faulty, the matrix is computed in double precision instead.
        """
        own = partial(
            gram.Gram,
            *(self.shape, self.factor, self.kernels, self.kinds, self.cells, self.scale),
            self.columns,
        )
        quick, x = own(), probe(self.k)
        with np.errstate(all="ignore"):
            # These weights cancel the scales, so that all reports count in the comparison.
            w = 1 / self.scale**2
            is_right = agrees(quick.of(w)(x), self.gram_product(w, x))
        return quick if is_right else own(np.float64)

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        """Lengths of the padded grid: no offset within reach wraps around onto another."""
        # If all reports lie in the middle of a large grid, the offsets alone would give less than
        # its size.
        return tuple(
            fft.next_fast_len(max(largest + reach + 1, size), real=True)  # type: ignore[return-value]
            for largest, reach, size in zip(
                self._largest_offsets, self._reach, self.shape, strict=True
            )
        )

    @cached_property
    def _largest_offsets(self) -> tuple[int, int]:
        cells = self.cells[self.kinds != FAR]
        low, high = cells.min(axis=0), cells.max(axis=0)
        return tuple(int(max(high[i], self.shape[i] - 1 - low[i])) for i in (0, 1))  # type: ignore[return-value]

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """Largest offsets at which some kernel exceeds the rounding of its sums."""
        matters = self.kernels > math.exp(-offset_masses.MAX_NATS_AWAY) * self.kernels.max(
            axis=(1, 2), keepdims=True
        )
        return tuple(
            min(int(np.flatnonzero(matters.any(axis=(0, 2 - i)))[-1]), self._largest_offsets[i])  # type: ignore[return-value]
            for i in (0, 1)
        )

    @cached_property
    def _convolutions(self) -> Convolutions:
        return Convolutions.of(
            PaddedGrid(self.shape, self._lengths), self._tables, self.kinds, self.cells
        )

    @property
    def _tables(self) -> Floats:
        """Kernels up to their reach."""
        rows, cols = (reach + 1 for reach in self._reach)
        return self.kernels[:, :rows, :cols]

    @property
    def _seen_kinds(self) -> list[int]:
        return [kind for kind in range(len(self.kernels)) if (self.kinds == kind).any()]

    @cached_property
    def _min_trusted_of_kinds(self) -> Floats:
        """Smallest convolution of mass of norm 1 that is within RELATIVE_ERROR, for each kind.

        The bound on the absolute error is CONVOLUTION_ERROR times both norms. Scales are left out.
        """
        squares = self.kernels**2 * offset_masses.multiplicity(self.kernels.shape[1:])
        return np.sqrt(squares.sum(axis=(1, 2))) * (CONVOLUTION_ERROR / RELATIVE_ERROR)

    @cached_property
    def _min_trusted(self) -> Floats:
        """Smallest convolution that is within RELATIVE_ERROR, for each report."""
        return np.where(self.kinds == FAR, 0, self._min_trusted_of_kinds[self.kinds] * self.scale)

    def _direct_sums(self, mass: Floats, reports: Ints) -> Floats:
        """Probabilities of some reports, summed term by term over the secrets that have mass."""
        nonzero = np.flatnonzero(mass)
        secrets = np.column_stack(np.divmod(nonzero, self.shape[1]))
        kinds, cells = self.kinds[reports], self.cells[reports]
        return (
            _plane_kernels.forward(mass[nonzero], secrets, self.kernels, kinds, cells)
            * self.scale[reports]
        )

    def __getstate__(self) -> dict[str, Any]:
        # Spectra are left out of a pickle and computed again when needed.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def is_fourier_faster(k: int, n_reports: int) -> bool:
    """True if a PlaneChannel is faster than a dense one.

    With few secrets the solvers of a dense matrix are fast, even if the reports are many, and with
    few reports, even if the secrets are many.
    """
    if k <= MAX_DENSE_SECRETS:
        return k * n_reports > 8 * MAX_MATRIX_ENTRIES
    return n_reports > min(MAX_DENSE_REPORTS, MAX_MATRIX_ENTRIES // k)


def remapped(grid: Grid, table: Floats, reports: Ints) -> PlaneChannel:
    """Channel of noise with the masses of a quarter-plane table, remapped to the nearest cell."""
    cells = _positions(grid, reports)
    kernels, kinds = (
        offset_masses.remapped_kernels(grid, table),
        offset_masses.remapped_kind(grid, cells),
    )
    return _make(grid, np.ones(len(grid)), kernels, kinds, cells, np.ones(len(cells)))


def row_normalised(grid: Grid, epsilon: float, reports: Ints) -> PlaneChannel:
    """Channel with entries exp(-eps d(x, z)) / sum_z exp(-eps d(x, z)), the sum over the grid."""
    kernel = np.exp(-epsilon * _distances(grid.cell_shape, grid.n_rows - 1, grid.n_cols - 1))
    # The kernel depends on absolute offsets, so each secret's row sum is a sum along both axes.
    sums = _sums_over_offsets(_sums_over_offsets(kernel).T).T
    cells = _positions(grid, reports)
    return _make(
        grid, 1 / sums.ravel(), kernel[None], np.zeros(len(cells), int), cells, np.ones(len(cells))
    )


def column_scaled(grid: Grid, epsilon: float, reports: Ints, scale: Floats) -> PlaneChannel:
    """Channel with entries exp(-eps d(x, z)) scale_z."""
    kernel = np.exp(-epsilon * _distances(grid.cell_shape, grid.n_rows - 1, grid.n_cols - 1))
    cells = _positions(grid, reports)
    return _make(grid, np.ones(len(grid)), kernel[None], np.zeros(len(cells), int), cells, scale)


def infinite(
    grid: Grid, epsilon: float, largest: float, cells: Ints, beyond: Floats
) -> tuple[PlaneChannel, Ints]:
    """Channel for cells of the infinite grid, and the places of the FAR reports.

    The entry at the distance d is `largest` times exp(-eps d). `beyond` is the distance of each
    cell from the grid. Cells outside the grid are grouped into bands of 5 nats. Each band has the
    kernel restricted to the distances that occur there and scaled to largest entry 1, so that
    improbable reports are as accurate as the others. The farthest cells are FAR, so that the padded
    grid need not stretch to them: the caller fills in their columns.
    """
    nats = epsilon * beyond
    kinds = np.minimum(nats // NATS_PER_BAND, MAX_NATS).astype(np.int64)
    farthest = np.argsort(-nats, kind="stable")[: MAX_MATRIX_ENTRIES // len(grid)]
    kinds[farthest[nats[farthest] > 0]] = FAR
    kinds[nats > MAX_NATS] = FAR
    banded = cells[kinds != FAR]
    offsets = [
        int(max(banded[:, i].max(initial=0), size - 1 - banded[:, i].min(initial=0)))
        for i, size in enumerate((grid.n_rows, grid.n_cols))
    ]
    lengths = epsilon * _distances(grid.cell_shape, *offsets)
    # A cell is no nearer than its band begins, up to the rounding of distances.
    starts = NATS_PER_BAND * np.arange(kinds.max(initial=0) + 1)
    kernels = np.array(
        [np.where(lengths > start - 1e-9, np.exp(start - lengths), 0) for start in starts]
    )
    scale = np.where(kinds == FAR, 1, largest * np.exp(-NATS_PER_BAND * kinds))
    far = np.flatnonzero(kinds == FAR)
    return _make(grid, np.ones(len(grid)), kernels, kinds, cells, scale, len(far)), far


def _positions(grid: Grid, codes: Ints) -> Ints:
    """Rows and columns of cells, counted from the south-west one."""
    return np.column_stack(np.divmod(codes, grid.n_cols))


def _make(
    grid: Grid,
    factor: Floats,
    kernels: Floats,
    kinds: Ints,
    cells: Ints,
    scale: Floats,
    n_far: int = 0,
) -> PlaneChannel:
    shape = (grid.n_rows, grid.n_cols)
    return PlaneChannel(
        shape, factor, kernels, kinds.astype(np.int64), cells, scale, np.empty((len(grid), n_far))
    )


def _distances(cell_shape: tuple[float, float], rows: int, cols: int) -> Floats:
    height, width = cell_shape
    return np.hypot(np.arange(rows + 1)[:, None] * height, np.arange(cols + 1) * width)


def _sums_over_offsets(table: Floats) -> Floats:
    """Sum of table[|x - z|] over the positions z of an axis, for each x."""
    # Sums to the left and right, z = x only once: no term is subtracted, so nothing cancels.
    left = np.cumsum(table, axis=0)
    right = np.cumsum(np.concatenate([np.zeros((1, table.shape[1])), table[1:]]), axis=0)
    return left + right[::-1]
