"""Which solver suits which tally: one entry a solver, the best suited first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ibukit._validate import Floats
from ibukit.estimators import (
    _active_set,
    _bits,
    _interior_point,
    _line_interior_point,
    _plane_interior_point,
    _water_filling,
)
from ibukit.estimators._pooled import STRUCTURED, Pooled
from ibukit.estimators.iterative import ibu
from ibukit.estimators.stopping import Gap
from ibukit.mechanisms._plane_channel import PlaneChannel
from ibukit.mechanisms.channels import BitChannel, DenseChannel, DiagonalPlusConstantChannel, LineChannel, rows_of
from ibukit.tally import Channel, StackedChannel, Tally

# entries of the dense channel up to which it is worth its memory (2^26 doubles are half a gigabyte)
MOST_DENSE = 2**26
# order of the largest matrix that is factorised at each step (a second of time, a fifth of a gigabyte)
MOST_UNKNOWNS = 5000
# below this a dense matrix beats any structure
FEW_SECRETS = 300


@dataclass(frozen=True)
class Solver:
    """A way to the maximum: for which tallies it can be used, for which it is the best, and why."""

    name: str
    needs: str
    applies: Callable[[Tally], bool]
    suits: Callable[[Tally], bool]
    why: Callable[[Tally], str]
    run: Callable[[Tally, float], tuple[Floats, int]]


def channels(tally: Tally) -> tuple[Channel, ...]:
    """One for each mechanism."""
    return tuple(part.channel for part in tally.parts)


def _only(kind: type) -> Callable[[Tally], bool]:
    return lambda tally: len(tally.parts) == 1 and isinstance(tally.operator, kind)


def _always(tally: Tally) -> bool:
    return True


def _never(tally: Tally) -> bool:
    return False


def _shape(tally: Tally) -> str:
    return f"{tally.k} x {len(tally.counts)}"


def _too_large(tally: Tally) -> str:
    return "" if _dense_applies(tally) else " is too large for a matrix"


def _closed_form(tally: Tally, tol: float) -> tuple[Floats, int]:
    assert isinstance(tally.operator, DiagonalPlusConstantChannel)
    return _water_filling.maximise(tally.operator, tally.counts), 0


def _line(tally: Tally, tol: float) -> tuple[Floats, int]:
    assert isinstance(tally.operator, LineChannel)
    return _line_interior_point.maximise(tally.operator, tally.frequencies, tol)


def _plane(tally: Tally, tol: float) -> tuple[Floats, int]:
    assert isinstance(tally.operator, PlaneChannel)
    return _plane_interior_point.maximise(tally.operator, tally.frequencies, tol)


def _bits_apply(tally: Tally) -> bool:
    kinds = channels(tally)
    some = any(isinstance(channel, BitChannel) for channel in kinds)
    return some and all(isinstance(channel, (BitChannel, *STRUCTURED)) for channel in kinds) and _few_unknowns(tally)


def _few_unknowns(tally: Tally) -> bool:
    return tally.k <= MOST_UNKNOWNS


def _many_rows(tally: Tally) -> bool:
    rows = sum(len(part.counts) for part in tally.parts if isinstance(part.channel, BitChannel))
    return rows > 20 * tally.k or not _dense_applies(tally)


def _bits_run(tally: Tally, tol: float) -> tuple[Floats, int]:
    rows, others, q_others = [], [], []
    for part in tally.parts:
        if isinstance(part.channel, BitChannel):
            rows.append(_bits.Rows(part.channel, part.counts, tally.n))
        else:
            others.append(part.channel)
            q_others.append(part.counts / tally.n)
    return _bits.maximise(rows, Pooled.of(tuple(others), tally.k), np.concatenate([np.empty(0), *q_others]), tol)


def _pooled_applies(tally: Tally) -> bool:
    return _few_unknowns(tally) and all(isinstance(channel, STRUCTURED) for channel in channels(tally))


def _pooled_suits(tally: Tally) -> bool:
    structure = any(not isinstance(channel, DenseChannel) for channel in channels(tally))
    return structure and (tally.k > FEW_SECRETS or not _dense_applies(tally))


def _pooled_run(tally: Tally, tol: float) -> tuple[Floats, int]:
    return _interior_point.maximise_model(Pooled.of(channels(tally), tally.k), tally.frequencies, tol)


def _dense_applies(tally: Tally) -> bool:
    s = len(tally.counts)
    return tally.k * s <= MOST_DENSE and min(tally.k, s) <= MOST_UNKNOWNS


def _dense_run(tally: Tally, tol: float) -> tuple[Floats, int]:
    return _interior_point.maximise(_columns(tally.operator, tally.k), tally.frequencies, tol)


def _columns(channel: Channel, k: int) -> Floats:
    if isinstance(channel, DenseChannel):
        return channel.columns
    if isinstance(channel, StackedChannel):
        return np.concatenate([_columns(part, k) for part in channel.channels], axis=1)
    if isinstance(channel, LineChannel):
        away = np.abs(np.arange(k)[:, None] - channel.positions)
        return np.asarray((channel.decay ** np.arange(k))[away] * channel.scale)
    return rows_of(channel, np.arange(k), k)


def _active_run(tally: Tally, tol: float) -> tuple[Floats, int]:
    return _active_set.maximise(tally.operator, tally.frequencies, tol, tally.k)


def _ibu_run(tally: Tally, tol: float) -> tuple[Floats, int]:
    found = ibu(tally, stop=Gap(float(np.log1p(tol))), accelerate=True)
    return found.distribution, found.n_iter


SOLVERS = (
    Solver(
        "closed form",
        "reports of one k-RR mechanism",
        _only(DiagonalPlusConstantChannel),
        _always,
        lambda tally: f"closed form by water-filling: k-RR, k = {tally.k}",
        _closed_form,
    ),
    Solver(
        "line",
        "reports of one geometric mechanism on a line",
        _only(LineChannel),
        _always,
        lambda tally: f"interior point in O(k) a step: geometric noise on a line of {tally.k}",
        _line,
    ),
    Solver(
        "plane",
        "reports of one planar mechanism on a large grid",
        _only(PlaneChannel),
        _always,
        lambda tally: f"interior point with Fourier transforms: noise on a grid of {tally.k} cells",
        _plane,
    ),
    Solver(
        "bits",
        f"unary encodings, alone or pooled with k-RR, geometric or dense channels, and k <= {MOST_UNKNOWNS}",
        _bits_apply,
        _many_rows,
        lambda tally: f"parabola of the packed bits, exact gradient: {_shape(tally)} with many rows of bits",
        _bits_run,
    ),
    Solver(
        "pooled",
        f"k-RR, geometric or dense channels, and k <= {MOST_UNKNOWNS}",
        _pooled_applies,
        _pooled_suits,
        lambda tally: (
            f"interior point with structured normal equations: {_shape(tally)}, mechanisms: {len(tally.parts)}"
        ),
        _pooled_run,
    ),
    Solver(
        "dense",
        f"at most {MOST_DENSE} entries k x s of the channel, and one of its sides <= {MOST_UNKNOWNS}",
        _dense_applies,
        _always,
        lambda tally: f"dense interior point: {_shape(tally)} entries fit in memory",
        _dense_run,
    ),
    Solver(
        "active set",
        "any channel",
        _always,
        _always,
        lambda tally: f"active set through forward and adjoint: {_shape(tally)}{_too_large(tally)}",
        _active_run,
    ),
    Solver(
        "ibu",
        "any channel",
        _always,
        _always,
        lambda tally: f"accelerated ibu through forward and adjoint: {_shape(tally)}{_too_large(tally)}",
        _ibu_run,
    ),
)
