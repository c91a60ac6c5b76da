"""Planar kernels on a large grid without their matrix: convolutions by Fourier transform, on the reports seen."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy import fft

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import _plane_kernels, offset_masses
from ibukit.channels.base import Channel, Score
from ibukit.channels.fourier import gram
from ibukit.channels.fourier.convolution import Convolutions, Job
from ibukit.channels.fourier.padded_transforms import PaddedGrid
from ibukit.domain.grid import Grid

DENSE_ENTRIES = 2**22  # 32 MB: up to here a dense channel is as fast, and exact to the last digit
FAR = -1
# A circular convolution of vectors a and b errs by a few units of rounding times |a|_2 |b|_2,
# wherever one looks (Higham, Accuracy and Stability of Numerical Algorithms, 24.1); 8 units were
# never reached in our tests.
CONVOLUTION_ERROR = 8 * np.finfo(float).eps / 2
RELATIVE_ERROR = 1e-10
# terms that are added up one by one rather than transform once more, and from how many of the
# secrets to begin with
MAX_ADDED_UP, HEAVIEST = 2**28, 2**11
NATS_PER_BAND = 5.0
MAX_NATS = 30.0


@dataclass(frozen=True, eq=False)
class PlaneChannel(Channel):
    r"""Planar noise on a grid, by Fourier transforms.

    .. math::

        M_{xz}=\mathrm{factor}_x\,\mathrm{scale}_z\,
        \mathrm{kernels}[\mathrm{kind}_z]\bigl[|\mathrm{row}_x-\mathrm{row}_z|,
        |\mathrm{col}_x-\mathrm{col}_z|\bigr].

    Each kind of report is a convolution. Noise remapped to the grid has four: reports inside, on a
    southern or northern border (their kernel is a sum over a half-line of offsets), on a western or
    eastern one, and corners.

    **Accuracy.** A Fourier transform errs by about the same amount everywhere, which is much for a report that is
    improbable everywhere near the mass. So `forward` takes from it only probabilities that exceed the bound on the
    error 1e10 times; the others it sums term by term, without cancellation. Relative errors are thus below 1e-10 for
    every theta >= 0. There are few such reports where it matters: g <= 1 + gap implies
    p_z >= q_z max_x M_xz / (1 + gap) for every report seen. By the same inequality the weights w = q / p of `adjoint`
    are at most (1 + gap) / max_x M_xz, so that its error is that of rounding against max g.

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
    >>> kernels, cells, nothing = np.array([[[1.0, 0.5, 0.25, 0.125]]]), np.array([[0, 0], [0, 2]]), np.empty((4, 0))
    >>> channel = PlaneChannel((1, 4), np.ones(4), kernels, np.array([0, 0]), cells, np.ones(2), nothing)
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
            weak = np.flatnonzero(p < self._trusted * np.sqrt((mass * mass).sum()))
            if len(weak):
                p[weak] = self._improbable(mass, weak)
        return p

    def _improbable(self, mass: Floats, weak: Ints) -> Floats:
        """Probabilities of reports for which a transform of all the mass would not be exact.

        Term by term; where that is too much, only for the heaviest secrets, because the error of a
        transform goes by the norm of the rest.
        """
        p, left, heaviest = np.zeros(len(weak)), np.arange(len(weak)), HEAVIEST
        while len(left) * np.count_nonzero(mass) > MAX_ADDED_UP and heaviest < len(mass):
            top = np.argpartition(mass, -heaviest)[-heaviest:]
            light, heavy = mass.copy(), np.zeros_like(mass)
            light[top], heavy[top] = 0, mass[top]
            reports = weak[left]
            total = self._sum(heavy, reports) + self._convolved(light)[reports]
            exact = total >= self._trusted[reports] * np.sqrt((light * light).sum())
            p[left[exact]] = total[exact]
            left, heaviest = left[~exact], 8 * heaviest
        if len(left):
            p[left] = self._sum(mass, weak[left])
        return p

    def convolve(self, theta: Floats) -> Floats:
        """Theta C with the errors of Fourier transforms.

        It is for inner loops whose result is checked by `forward`.
        """
        p = self._convolved(theta * self.factor)
        if self.columns.size:
            p[self.kinds == FAR] = theta @ self.columns
        return p

    def _convolved(self, mass: Floats) -> Floats:
        p = self._convolutions.read(mass)
        p *= self.scale
        return p

    @override
    def adjoint(self, w: Floats) -> Floats:
        weights = w * self.scale
        back = self._convolutions.drop(weights)
        if w.min() >= 0:
            # a true lower bound where rounding says zero or less, so that no secret is ruled out by
            # an error
            least = (
                self._least_of_kinds[kind] * weights[self.kinds == kind].sum()
                for kind in self._seen_kinds
            )
            np.maximum(back, math.fsum(least), out=back)
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
            self.fit(theta, counts, p, g)
            least = float(p.min())
        return Score(float(counts @ np.log(p)) if least > 0 else -math.inf, g, max(least, 0.0))

    def fit(self, theta: Floats, q: Floats | Ints, p: Floats, g: Floats) -> None:
        r"""Fill p = forward(:math:`\theta`) and g = adjoint(q / p), :math:`\theta \ge 0`."""
        given, factor, filled = (values.reshape(self.shape) for values in (theta, self.factor, g))
        mass = np.empty(self.shape)
        squares: list[float] = []  # added up exactly, whoever comes first
        least: list[float] = []

        def begin(rows: slice) -> Floats:
            own = np.multiply(given[rows], factor[rows], out=mass[rows])
            squares.append(float(np.einsum("xy,xy", own, own)))
            return own

        def weigh(job: Job, seen: Floats) -> Floats:
            limit = self._trusted_of_kinds[job.kind] * math.sqrt(math.fsum(squares))
            weak = np.flatnonzero(seen < limit) if seen.min() < limit else ()
            self._scale(seen, job.reports)
            if len(weak):
                seen[weak] = self._improbable(mass.ravel(), np.arange(self.size)[job.reports][weak])
            p[job.reports] = seen
            weights = np.divide(q[job.reports], seen, out=seen)
            self._scale(weights, job.reports)
            least.append(float(self._least_of_kinds[job.kind] * weights.sum()))
            return weights

        def keep(rows: slice, field: Floats) -> None:
            np.multiply(np.maximum(field, math.fsum(least)), factor[rows], out=filled[rows])

        self._convolutions.through(begin, weigh, keep)
        if self.columns.size:
            far = self.kinds == FAR
            p[far] = theta @ self.columns
            g += self.columns @ (q[far] / p[far])

    def _scale(self, values: Floats, reports: Ints | slice) -> None:
        """In place; to look for the scales of a million reports takes as long as to multiply by them."""
        if not self._all_alike:
            values *= self.scale[reports]

    @cached_property
    def _all_alike(self) -> bool:
        return bool((self.scale == 1).all())

    @cached_property
    def _least_of_kinds(self) -> Floats:
        return np.asarray(self.kernels.min(axis=(1, 2)))

    @override
    def rows(self, secrets: Ints) -> Floats:
        return np.array([self._row(int(secret)) for secret in secrets]).reshape(
            len(secrets), self.size
        )

    def _row(self, secret: int) -> Floats:
        offsets = np.abs(self.cells - np.divmod(secret, self.shape[1]))
        offsets[self.kinds == FAR] = 0
        entries = self.kernels[self.kinds, offsets[:, 0], offsets[:, 1]] * (
            self.scale * self.factor[secret]
        )
        if self.columns.size:
            entries[self.kinds == FAR] = self.columns[secret]
        return np.asarray(entries)

    def matrix(self) -> Floats:
        """All entries, shape (k, s)."""
        columns = np.empty((len(self.factor), len(self.kinds)))
        for z, (kind, cell) in enumerate(zip(self.kinds, self.cells, strict=True)):
            if kind != FAR:
                row, col = (
                    np.abs(np.arange(size) - at) for size, at in zip(self.shape, cell, strict=True)
                )
                columns[:, z] = (
                    self.kernels[kind][row][:, col].ravel() * self.factor * self.scale[z]
                )
        columns[:, self.kinds == FAR] = self.columns
        return columns

    def adjoint_of_squares(self, w: Floats) -> Floats:
        r"""Diagonal of :math:`M\operatorname{diag}(w)\,M^{\top}`, for :math:`w \ge 0`.

        It is for preconditioners, asked for once a step, and keeps nothing.
        """
        squares = self._convolutions.with_kernels(self._tables**2)
        back = squares.drop(w * self.scale**2) * self.factor**2
        if self.columns.size:
            back += np.square(self.columns) @ w[self.kinds == FAR]
        return np.maximum(back, 0.0)

    def gram_product(self, w: Floats, x: Floats) -> Floats:
        r""":math:`M\operatorname{diag}(w)\,M^{\top}x`, with the errors of Fourier transforms."""
        weights, back = w * self.scale**2, np.empty(self.shape)
        given, factor = x.reshape(self.shape), self.factor.reshape(self.shape)

        def keep(rows: slice, field: Floats) -> None:
            np.multiply(field, factor[rows], out=back[rows])

        self._convolutions.through(
            lambda rows: given[rows] * factor[rows],
            lambda job, seen: seen * weights[job.reports],
            keep,
        )
        if self.columns.size:
            far = self.kinds == FAR
            back.ravel()[:] += self.columns @ (w[far] * (x @ self.columns))
        return back.ravel()

    @cached_property
    def gram_single(self) -> gram.Gram:
        r"""Gram matrix in single precision, without the reports written out.

        It is :math:`M\,\operatorname{diag}(w)\,M^{\top}`.
        """
        return gram.Gram(self.shape, self.factor, self.kernels, self.kinds, self.cells, self.scale)

    @cached_property
    def _lengths(self) -> tuple[int, int]:
        """The padded grid: long enough that no offset within the kernels' reach meets another by going round."""
        # where all reports lie in the middle of a large grid, that would be shorter than the grid
        # itself
        return tuple(
            fft.next_fast_len(max(largest + reach + 1, size), real=True)  # type: ignore[return-value]
            for largest, reach, size in zip(
                self._largest_offsets, self._reach, self.shape, strict=True
            )
        )

    @cached_property
    def _largest_offsets(self) -> tuple[int, int]:
        near = self.cells[self.kinds != FAR]
        low, high = near.min(axis=0), near.max(axis=0)
        return tuple(int(max(high[i], self.shape[i] - 1 - low[i])) for i in (0, 1))  # type: ignore[return-value]

    @cached_property
    def _reach(self) -> tuple[int, int]:
        """The largest offsets at which some kernel is not below the rounding of its sums."""
        seen = self.kernels > math.exp(-offset_masses.MAX_NATS_AWAY) * self.kernels.max(
            axis=(1, 2), keepdims=True
        )
        return tuple(
            min(int(np.flatnonzero(seen.any(axis=(0, 2 - i)))[-1]), self._largest_offsets[i])  # type: ignore[return-value]
            for i in (0, 1)
        )

    @cached_property
    def _convolutions(self) -> Convolutions:
        return Convolutions.of(
            PaddedGrid(self.shape, self._lengths), self._tables, self.kinds, self.cells
        )

    @property
    def _tables(self) -> Floats:
        """The kernels as far as they reach."""
        rows, cols = (reach + 1 for reach in self._reach)
        return self.kernels[:, :rows, :cols]

    @property
    def _seen_kinds(self) -> list[int]:
        return [kind for kind in range(len(self.kernels)) if (self.kinds == kind).any()]

    @cached_property
    def _trusted_of_kinds(self) -> Floats:
        """From where on a convolution of mass of norm 1 is within the relative error, for each kind, but for scale."""
        squares = self.kernels**2 * offset_masses.multiplicity(self.kernels.shape[1:])
        return np.asarray(np.sqrt(squares.sum(axis=(1, 2))) * (CONVOLUTION_ERROR / RELATIVE_ERROR))

    @cached_property
    def _trusted(self) -> Floats:
        """The same for each report."""
        return np.where(self.kinds == FAR, 0, self._trusted_of_kinds[self.kinds] * self.scale)

    def _sum(self, mass: Floats, reports: Ints) -> Floats:
        held = np.flatnonzero(mass)
        secrets = np.column_stack(np.divmod(held, self.shape[1]))
        kinds, cells = self.kinds[reports], self.cells[reports]
        return (
            _plane_kernels.forward(mass[held], secrets, self.kernels, kinds, cells)
            * self.scale[reports]
        )

    def __getstate__(self) -> dict[str, Any]:
        # spectra are computed again where they are needed
        return {field.name: getattr(self, field.name) for field in fields(self)}


def worthwhile(k: int, n_reports: int) -> bool:
    """Whether a PlaneChannel beats a dense one; with few secrets a dense one may have many reports."""
    return k * n_reports > (DENSE_ENTRIES if k > 1024 else 8 * DENSE_ENTRIES)


def remapped(grid: Grid, table: Floats, reports: Ints) -> PlaneChannel:
    """Noise with the masses of a quarter-plane table, remapped to the nearest cell of the grid."""
    cells = _positions(grid, reports)
    kernels, kinds = (
        offset_masses.remapped_kernels(grid, table),
        offset_masses.remapped_kind(grid, cells),
    )
    return _make(grid, np.ones(len(grid)), kernels, kinds, cells, np.ones(len(cells)))


def row_normalised(grid: Grid, epsilon: float, reports: Ints) -> PlaneChannel:
    """exp(-eps d) / sum over the grid of exp(-eps d)."""
    kernel = np.exp(-epsilon * _distances(grid.cell_shape, grid.n_rows - 1, grid.n_cols - 1))
    sums = _sums_over_offsets(_sums_over_offsets(kernel).T).T
    cells = _positions(grid, reports)
    return _make(
        grid, 1 / sums.ravel(), kernel[None], np.zeros(len(cells), int), cells, np.ones(len(cells))
    )


def column_scaled(grid: Grid, epsilon: float, reports: Ints, scale: Floats) -> PlaneChannel:
    """Entries exp(-eps d(x, z)) scale_z."""
    kernel = np.exp(-epsilon * _distances(grid.cell_shape, grid.n_rows - 1, grid.n_cols - 1))
    cells = _positions(grid, reports)
    return _make(grid, np.ones(len(grid)), kernel[None], np.zeros(len(cells), int), cells, scale)


def infinite(
    grid: Grid, epsilon: float, largest: float, cells: Ints, beyond: Floats
) -> tuple[PlaneChannel, Ints]:
    """Entries largest exp(-eps d) for cells of the infinite grid, `beyond` away from the grid; and which are FAR.

    The cells outside go by bands of 5 nats, each with the kernel restricted to the distances that
    occur there and scaled to largest entry 1, so that the improbable are as accurate as the others.
    The farthest are left out (their columns are to be filled in by the caller), so that the window
    need not stretch to them.
    """
    nats = epsilon * beyond
    kinds = np.minimum(nats // NATS_PER_BAND, MAX_NATS).astype(np.int64)
    farthest = np.argsort(-nats, kind="stable")[: DENSE_ENTRIES // len(grid)]
    kinds[farthest[nats[farthest] > 0]] = FAR
    kinds[nats > MAX_NATS] = FAR
    near = cells[kinds != FAR]
    offsets = [
        int(max(near[:, i].max(initial=0), size - 1 - near[:, i].min(initial=0)))
        for i, size in enumerate((grid.n_rows, grid.n_cols))
    ]
    lengths = epsilon * _distances(grid.cell_shape, *offsets)
    starts = NATS_PER_BAND * np.arange(kinds.max(initial=0) + 1)
    kernels = np.array(
        [np.where(lengths > start - 1e-9, np.exp(start - lengths), 0) for start in starts]
    )
    scale = np.where(kinds == FAR, 1, largest * np.exp(-NATS_PER_BAND * kinds))
    far = np.flatnonzero(kinds == FAR)
    return _make(grid, np.ones(len(grid)), kernels, kinds, cells, scale, len(far)), far


def _positions(grid: Grid, codes: Ints) -> Ints:
    """Rows and columns of cells, counted from the south-west one whatever the grid calls it."""
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
    return np.asarray(np.hypot(np.arange(rows + 1)[:, None] * height, np.arange(cols + 1) * width))


def _sums_over_offsets(table: Floats) -> Floats:
    """Sum of table[|x - z|] over the positions z of an axis, for each x: no term is subtracted."""
    to_one_side = np.cumsum(table, axis=0)
    to_the_other = np.cumsum(np.concatenate([np.zeros((1, table.shape[1])), table[1:]]), axis=0)
    return np.asarray(to_one_side + to_the_other[::-1])
