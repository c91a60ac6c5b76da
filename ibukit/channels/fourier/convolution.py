"""Convolutions of a field with several kernels at once, each evaluated at the cells of its reports.

A channel on a plane is M_xz = kernels[kind_z][|x - z|]: each report has a cell and one of a few
kernels. `Convolutions.forward` computes sum_x field_x M_xz. The field is transformed once. For each
kind its spectrum is multiplied by the kernel's and transformed back, but only as far as the kind's
cells need: `scattered_cells` for cells anywhere, `few_lines` and `few_cells` for those on a border.

`Convolutions.adjoint` is the transpose: weights are scattered to their cells, multiplied by the
spectra of their kernels, added up, and transformed back once. Kernels are even, so no spectrum need
be conjugated. `forward_adjoint` does both, block by block, without a spectrum being stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import Share, one_thread, team
from ibukit.channels.fourier.few_cells import CellBlock, FewCells
from ibukit.channels.fourier.few_lines import FewColumns, FewRows, LineBlock
from ibukit.channels.fourier.padded_transforms import (
    PaddedGrid,
    Spectrum,
    fft_columns,
    ifft_columns,
)
from ibukit.channels.fourier.scattered_cells import RowBlock, ScatteredCells

Piece = ScatteredCells | FewRows | FewColumns | FewCells
Source = Callable[[slice], NDArray[Any]]
Sink = Callable[[slice, NDArray[Any]], None]
# Cells, or lines with cells, up to which direct sums take less time than transforms.
MAX_FEW = 4


class Job(NamedTuple):
    """Reports that are evaluated together: a block of the piece with this number."""

    number: int
    piece: Piece
    block: RowBlock | LineBlock | CellBlock

    @property
    def kind(self) -> int:
        """The kind of all reports."""
        return self.piece.kind

    @property
    def reports(self) -> Ints | slice:
        """Indices of the reports."""
        return self.block.reports


@dataclass(frozen=True, eq=False)
class Convolutions:
    """Convolutions of fields on a padded grid, with a piece for each kind of report."""

    padded: PaddedGrid
    size: int
    """Number of reports; the value of one that belongs to no piece is 0."""
    pieces: Sequence[Piece]

    @classmethod
    def of(
        cls,
        padded: PaddedGrid,
        tables: Floats,
        kinds: Ints,
        cells: Ints,
        precision: Any = np.float64,
    ) -> Convolutions:
        """Build a piece for each kernel from the kind and cell of each report.

        `tables` are the kernels by absolute offsets; the kernels are 0 beyond them.
        """
        pieces: list[Piece] = []
        for kind, table in enumerate(tables):
            reports = np.flatnonzero(kinds == kind)
            own = cells[reports]
            # A border's kinds have only a few cells, rows or columns, which need fewer transforms.
            rows, columns = (len(np.unique(own[:, axis])) for axis in (0, 1))
            if not len(own):
                continue
            if len(own) <= MAX_FEW:
                pieces.append(FewCells.of(kind, reports, own, table, precision))
                continue
            few_lines = FewRows if rows <= columns else FewColumns
            cls_of_piece = few_lines if min(rows, columns) <= MAX_FEW else ScatteredCells
            pieces.append(cls_of_piece.of(kind, padded, reports, own, table, precision))
        return cls(padded, len(kinds), pieces)

    def with_kernels(self, tables: Floats) -> Convolutions:
        """Replace the kernels."""
        return replace(
            self, pieces=[piece.with_kernel(tables[piece.kind]) for piece in self.pieces]
        )

    def forward(self, field: NDArray[Any]) -> Floats:
        """For each report the convolution of a field, shape (k,), with its kernel at its cell."""
        values, grid = np.zeros(self.size, field.dtype), field.reshape(self.padded.shape)

        def evaluate(job: Job) -> None:
            values[job.reports] = self._gather(job, copy, strips)

        with self._team() as share:
            copy, strips = self._forward_strips(grid.__getitem__, field.dtype, share)
            share(evaluate, self.jobs)
        return values

    def adjoint(self, weights: NDArray[Any]) -> Floats:
        """Weights of the reports, spread from their cells by their kernels, shape (k,)."""
        field: NDArray[Any] = np.empty(self.padded.shape, weights.dtype)
        with self._team() as share:
            scattered = self._scatter(lambda job: weights[job.reports], weights.dtype, share)
            self._adjoint_field(scattered, weights.dtype, field.__setitem__, share)
        return field.ravel()

    def forward_adjoint(
        self,
        source: Source,
        weigh: Callable[[Job, Floats], Floats],
        sink: Sink,
        precision: Any = np.float64,
    ) -> None:
        """Compute `forward`, turn values into weights, and compute `adjoint`, block by block.

        `source(rows)` gives rows of the field, `weigh(job, values)` the weights of a job's reports,
        and `sink(rows, field)` takes rows of the result. Several threads may call a function at a
        time, but all calls of one function are over before the next function is called.
        """
        with self._team() as share:
            grid, strips = self._forward_strips(source, precision, share)
            scattered = self._scatter(
                lambda job: weigh(job, self._gather(job, grid, strips)), precision, share
            )
            # The adjoint needs as much memory again: a gigabyte at a million cells.
            strips.clear()
            self._adjoint_field(scattered, precision, sink, share)

    @cached_property
    def jobs(self) -> list[Job]:
        """Blocks of all pieces, which threads may work on at the same time."""
        return [
            Job(number, piece, block)
            for number, piece in enumerate(self.pieces)
            for block in piece.blocks
        ]

    @contextmanager
    def _team(self) -> Iterator[Share]:
        # A field in a single strip is too small for several threads.
        with one_thread(), team(len(self.padded.strips) > 1) as share:
            yield share

    def _forward_strips(
        self, source: Source, precision: Any, share: Share
    ) -> tuple[NDArray[Any], list[list[Any]]]:
        """The field, if `FewCells` need it, and for each piece its part of each strip."""
        padded = self.padded
        keeps_field = any(isinstance(piece, FewCells) for piece in self.pieces)
        grid: NDArray[Any] = np.empty(padded.shape if keeps_field else (0, 0), precision)
        row_spectra = padded.empty_strips(slice(0, padded.shape[0]), precision)

        def transform_rows(rows: slice) -> None:
            block = source(rows)
            if keeps_field:
                grid[rows] = block
            padded.transform_rows(block, rows, row_spectra)

        def forward_strip(number: int) -> list[Spectrum | None]:
            # `FewRows` read the strip before it is transformed along the columns, in place.
            of_few_rows = [
                piece.forward_strip(number, row_spectra[number])
                if isinstance(piece, FewRows)
                else None
                for piece in self.pieces
            ]
            spectrum = fft_columns(row_spectra[number])
            return [
                piece.forward_strip(number, spectrum)
                if isinstance(piece, ScatteredCells | FewColumns)
                else own
                for piece, own in zip(self.pieces, of_few_rows, strict=True)
            ]

        share(transform_rows, padded.blocks)
        by_strip = share(forward_strip, range(len(row_spectra)))
        return grid, [list(strips) for strips in zip(*by_strip, strict=True)]

    def _gather(self, job: Job, grid: NDArray[Any], strips: list[list[Any]]) -> Floats:
        piece, block = job.piece, job.block
        if isinstance(piece, FewCells):
            return piece.gather(grid)
        return piece.gather(strips[job.number], block)  # type: ignore[arg-type]

    def _scatter(
        self, weights: Callable[[Job], NDArray[Any]], precision: Any, share: Share
    ) -> list[Any]:
        """For each piece its weights at their cells: strips of a spectrum for scattered cells."""
        filled = [
            piece.empty_strips(precision) if isinstance(piece, ScatteredCells) else []
            for piece in self.pieces
        ]

        def scatter(job: Job) -> Any:
            piece, block, own = job.piece, job.block, weights(job)
            if isinstance(piece, ScatteredCells):
                return piece.scatter(own, block, filled[job.number])  # type: ignore[arg-type]
            return own if isinstance(piece, FewCells) else piece.scatter(own, block)  # type: ignore[arg-type]

        numbers = (job.number for job in self.jobs)
        returned = dict(zip(numbers, share(scatter, self.jobs), strict=True))
        return [strips or returned[number] for number, strips in enumerate(filled)]

    def _adjoint_field(
        self, scattered: list[Any], precision: Any, sink: Sink, share: Share
    ) -> None:
        """Add up what all pieces contribute and hand the field to the sink."""
        padded, (rows, columns) = self.padded, self.padded.shape
        pieces = list(zip(self.pieces, scattered, strict=True))

        def adjoint_strip(number: int) -> Spectrum:
            # Kinds that are transformed along both axes are added up as spectra, so that one
            # inverse transform along the first axis serves them all.
            total: Spectrum | None = None
            for piece, own in pieces:
                if isinstance(piece, ScatteredCells | FewColumns):
                    product = piece.adjoint_strip(
                        number, own[number] if isinstance(piece, ScatteredCells) else own
                    )
                    total = product if total is None else np.add(total, product, out=total)
            strip = (
                padded.empty_strips(slice(0, 0), precision)[number][:rows]
                if total is None
                else ifft_columns(total)[:rows]
            )
            # `FewRows` are not transformed along the first axis, so they are added afterwards.
            for piece, own in pieces:
                if isinstance(piece, FewRows):
                    piece.adjoint_strip(number, own, strip)
            return strip

        def inverse_rows(block: slice) -> None:
            # Few cells are added last, to the field itself.
            field = padded.inverse_rows(strips, block)[:, :columns]
            for piece, own in few_cells:
                piece.scatter(own, block, field)
            sink(block, field)

        strips = share(adjoint_strip, range(len(padded.strips)))
        few_cells = [(piece, own) for piece, own in pieces if isinstance(piece, FewCells)]
        # At a million cells, transforming the rows needs the memory of the scattered spectra.
        pieces.clear()
        scattered.clear()
        share(inverse_rows, padded.blocks)
