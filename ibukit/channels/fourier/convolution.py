"""Convolutions of a field with several kernels at once, each read, or dropped, at the cells of its own reports."""

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
from ibukit.channels.fourier.few_cells import All, FewCells
from ibukit.channels.fourier.few_lines import Cells, FewColumns, FewRows
from ibukit.channels.fourier.padded_transforms import PaddedGrid, Spectrum, down, up
from ibukit.channels.fourier.scattered_cells import Block, ScatteredCells

Piece = ScatteredCells | FewRows | FewColumns | FewCells
Source = Callable[[slice], NDArray[Any]]
Sink = Callable[[slice, NDArray[Any]], None]
# cells, and lines of cells, that are a few
MAX_A_FEW = 4


class Job(NamedTuple):
    """Reports that are read together: a block of a piece of this number."""

    number: int
    piece: Piece
    block: Block | Cells | All

    @property
    def kind(self) -> int:
        """The kind of all of them."""
        return self.piece.kind

    @property
    def reports(self) -> Ints | slice:
        """Their places."""
        return self.block.reports


@dataclass(frozen=True, eq=False)
class Convolutions:
    """Of fields with the shape of a padded grid; a piece for each kind of report."""

    padded: PaddedGrid
    size: int
    """Number of reports; those of no piece are 0."""
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
        """Of the kernels' tables of absolute offsets, beyond which they are 0, and each report's kind and cell."""
        pieces: list[Piece] = []
        for kind, table in enumerate(tables):
            reports = np.flatnonzero(kinds == kind)
            own = cells[reports]
            rows, columns = (len(np.unique(own[:, axis])) for axis in (0, 1))
            if not len(own):
                continue
            if len(own) <= MAX_A_FEW:
                pieces.append(FewCells.of(kind, reports, own, table, precision))
                continue
            few = FewRows if rows <= columns else FewColumns
            made = few if min(rows, columns) <= MAX_A_FEW else ScatteredCells
            pieces.append(made.of(kind, padded, reports, own, table, precision))
        return cls(padded, len(kinds), pieces)

    def with_kernels(self, tables: Floats) -> Convolutions:
        """The same reports with other kernels."""
        return replace(
            self, pieces=[piece.with_kernel(tables[piece.kind]) for piece in self.pieces]
        )

    def read(self, field: NDArray[Any]) -> Floats:
        """For each report the convolution of a field, shape (k,), with its kernel, at its cell."""
        values, given = np.zeros(self.size, field.dtype), field.reshape(self.padded.shape)

        def keep(job: Job) -> None:
            values[job.reports] = self._values(job, grid, strips)

        with self._team() as share:
            grid, strips = self._passed_on(given.__getitem__, field.dtype, share)
            share(keep, self.jobs)
        return values

    def drop(self, weights: NDArray[Any]) -> Floats:
        """The transpose, shape (k,): weights at the cells of their reports, spread by their kernels."""
        field: NDArray[Any] = np.empty(self.padded.shape, weights.dtype)
        with self._team() as share:
            dropped = self._dropped(lambda job: weights[job.reports], weights.dtype, share)
            self._spread(dropped, weights.dtype, field.__setitem__, share)
        return field.ravel()

    def through(
        self,
        source: Source,
        weigh: Callable[[Job, Floats], Floats],
        sink: Sink,
        precision: Any = np.float64,
    ) -> None:
        """Both, a few rows at a time: source(rows) of the field, weigh(job, values), sink(rows, rows of the result).

        Each may be called by several threads at a time, but all calls of one are over before the
        next is called.
        """
        with self._team() as share:
            grid, strips = self._passed_on(source, precision, share)
            dropped = self._dropped(
                lambda job: weigh(job, self._values(job, grid, strips)), precision, share
            )
            strips.clear()  # on a million cells it is memory
            self._spread(dropped, precision, sink, share)

    @cached_property
    def jobs(self) -> list[Job]:
        """What can be read, or dropped, at the same time."""
        return [
            Job(number, piece, block)
            for number, piece in enumerate(self.pieces)
            for block in piece.blocks
        ]

    @contextmanager
    def _team(self) -> Iterator[Share]:
        # products with a few waves are too small to share
        with one_thread(), team(len(self.padded.strips) > 1) as share:
            yield share

    def _passed_on(
        self, source: Source, precision: Any, share: Share
    ) -> tuple[NDArray[Any], list[list[Any]]]:
        """The field, if cells are read in it; and for each piece what it takes of each strip."""
        padded = self.padded
        cells = any(isinstance(piece, FewCells) for piece in self.pieces)
        grid: NDArray[Any] = np.empty(padded.shape if cells else (0, 0), precision)
        lines = padded.blank(slice(0, padded.shape[0]), precision)

        def begin(rows: slice) -> None:
            block = source(rows)
            if cells:
                grid[rows] = block
            padded.transform_rows(block, rows, lines)

        def through(number: int) -> list[Spectrum | None]:
            taken = [
                piece.take(number, lines[number]) if isinstance(piece, FewRows) else None
                for piece in self.pieces
            ]
            waves = down(lines[number])
            return [
                piece.pass_on(number, waves)
                if isinstance(piece, ScatteredCells | FewColumns)
                else own
                for piece, own in zip(self.pieces, taken, strict=True)
            ]

        share(begin, padded.blocks)
        by_strip = share(through, range(len(lines)))
        return grid, [list(strips) for strips in zip(*by_strip, strict=True)]

    def _values(self, job: Job, grid: NDArray[Any], strips: list[list[Any]]) -> Floats:
        piece, block = job.piece, job.block
        if isinstance(piece, FewCells):
            return piece.read(grid)
        return piece.read(strips[job.number], block)  # type: ignore[arg-type]

    def _dropped(
        self, weights: Callable[[Job], NDArray[Any]], precision: Any, share: Share
    ) -> list[Any]:
        """For each piece its weights, dropped at their cells: in strips if these are everywhere."""
        filled = [
            piece.blank(precision) if isinstance(piece, ScatteredCells) else []
            for piece in self.pieces
        ]

        def drop(job: Job) -> Any:
            piece, block, own = job.piece, job.block, weights(job)
            if isinstance(piece, ScatteredCells):
                return piece.drop(own, block, filled[job.number])  # type: ignore[arg-type]
            return own if isinstance(piece, FewCells) else piece.drop(own, block)  # type: ignore[arg-type]

        found = dict(zip((job.number for job in self.jobs), share(drop, self.jobs), strict=True))
        return [strips or found[number] for number, strips in enumerate(filled)]

    def _spread(self, dropped: list[Any], precision: Any, sink: Sink, share: Share) -> None:
        """The field that all of it makes, to the sink."""
        padded, (rows, columns) = self.padded, self.padded.shape
        pieces = list(zip(self.pieces, dropped, strict=True))

        def back(number: int) -> Spectrum:
            total: Spectrum | None = None
            for piece, own in pieces:
                if isinstance(piece, ScatteredCells | FewColumns):
                    spread = piece.pass_back(
                        number, own[number] if isinstance(piece, ScatteredCells) else own
                    )
                    total = spread if total is None else np.add(total, spread, out=total)
            lines = (
                padded.blank(slice(0, 0), precision)[number][:rows]
                if total is None
                else up(total)[:rows]
            )
            for piece, own in pieces:
                if isinstance(piece, FewRows):
                    piece.give(number, own, lines)
            return lines

        def end(lines: slice) -> None:
            field = padded.rows_of(strips, lines)[:, :columns]
            for piece, own in cells:
                piece.add(own, lines, field)
            sink(lines, field)

        strips = share(back, range(len(padded.strips)))
        cells = [(piece, own) for piece, own in pieces if isinstance(piece, FewCells)]
        pieces.clear()
        dropped.clear()
        share(end, padded.blocks)
