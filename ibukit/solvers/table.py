"""Which solver suits which channel: one entry a solver, the best suited first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.channels import (
    BitChannel,
    Channel,
    DenseChannel,
    HadamardChannel,
    LineChannel,
    ResponseChannel,
)
from ibukit.channels.hadamard import MIN_REPORTS_FOR_TRANSFORM
from ibukit.channels.partitioned import PartitionedChannel
from ibukit.channels.plane import PlaneChannel
from ibukit.solvers import active_set, anderson, bits, interior_point, line, plane, water_filling
from ibukit.solvers.pooled import STRUCTURED, PooledModel
from ibukit.solvers.problem import Problem

# of these there may be as many reports as users
ROW_CHANNELS = (BitChannel, PartitionedChannel)
# entries of the dense channel up to which it is worth its memory (2^26 doubles are half a gigabyte)
MAX_DENSE = 2**26
# order of the largest matrix that is factorised at each step (a second of time, a fifth of a
# gigabyte)
MAX_UNKNOWNS = 5000
# rows of a sketch up to which its normal equations, a look-up for each row and pair of secrets, are
# cheap
MAX_GROUPS = 64
# reports for each secret from which a parabola of some of them beats a matrix of all
MANY_A_SECRET = 20
# below this a dense matrix beats any structure
MAX_SECRETS_DENSE_ANYWAY = 300
# but not that of a sketch, from so many entries on and where each of its rows has many reports: a
# quarter of the time
MIN_ENTRIES_OF_SKETCH = 2**20


@dataclass(frozen=True)
class Solver:
    r"""A way to the maximum, when it can be used, and when it is the best.

    Parameters
    ----------
    name : str
        As `maximise` and `mle` take it.
    needs : str
        What `applies` asks for, in words.
    applies : callable
        Whether the solver can be used on a problem.
    suits : callable
        Whether it is the one to take, among those that apply.
    why : callable
        Which solver it is and why it was taken, in words, for a problem.
    run : callable
        From a problem and a tolerance to a point, shape (k,), and the number of steps. The
        tolerance is on :math:`\max g - 1`.

    Examples
    --------
    >>> from ibukit.solvers import SOLVERS
    >>> [solver.name for solver in SOLVERS if solver.needs == "any channel"]
    ['active-set', 'ibu']
    """

    name: str
    needs: str
    applies: Callable[[Problem], bool]
    suits: Callable[[Problem], bool]
    why: Callable[[Problem], str]
    run: Callable[[Problem, float], tuple[Floats, int]]


def _only(kind: type) -> Callable[[Problem], bool]:
    return lambda problem: isinstance(problem.channel, kind)


def _always(problem: Problem) -> bool:
    return True


def _shape(problem: Problem) -> str:
    return f"{problem.k} x {problem.channel.size}"


def _too_large(problem: Problem) -> str:
    return "" if _dense_applies(problem) else " is too large for a matrix"


def _closed_form(problem: Problem, tol: float) -> tuple[Floats, int]:
    assert isinstance(problem.channel, ResponseChannel)
    return water_filling.maximise(problem.channel, problem.counts, problem.n), 0


def _line(problem: Problem, tol: float) -> tuple[Floats, int]:
    assert isinstance(problem.channel, LineChannel)
    return line.maximise(problem.channel, problem.q, tol)


def _plane(problem: Problem, tol: float) -> tuple[Floats, int]:
    assert isinstance(problem.channel, PlaneChannel)
    return plane.maximise(problem.channel, problem.q, tol)


def _is_structured(channel: Channel) -> bool:
    """Whether its normal equations cost less than reading all reports for each pair of secrets."""
    sketch = isinstance(channel, HadamardChannel) and len(channel.places) > MAX_GROUPS
    return isinstance(channel, STRUCTURED) and not sketch


def _is_many(problem: Problem, channel: Channel) -> bool:
    """Whether a channel without structure has too many reports to be written out and read at each step."""
    return not _is_structured(channel) and channel.size > MANY_A_SECRET * problem.k


def _bits_apply(problem: Problem) -> bool:
    many = [
        isinstance(channel, ROW_CHANNELS) or _is_many(problem, channel)
        for channel, _ in problem.parts
    ]
    if not any(many) or not _few_unknowns(problem):
        return False
    rest = [
        channel for (channel, _), of_many in zip(problem.parts, many, strict=True) if not of_many
    ]
    return (
        problem.k * sum(channel.size for channel in rest if not _is_structured(channel))
        <= MAX_DENSE
    )


def _few_unknowns(problem: Problem) -> bool:
    return problem.k <= MAX_UNKNOWNS


def _many_rows(problem: Problem) -> bool:
    elsewhere = any(isinstance(channel, PartitionedChannel) for channel, _ in problem.parts)
    rows = sum(channel.size for channel, _ in problem.parts if not _is_structured(channel))
    return elsewhere or rows > MANY_A_SECRET * problem.k or not _dense_applies(problem)


def _bits_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    rows: list[bits.Reports] = []
    others, q_others = [], []
    for channel, counts in problem.parts:
        if isinstance(channel, ROW_CHANNELS) or _is_many(problem, channel):
            rows.append(bits.many(channel, counts, problem.n))
        else:
            others.append(
                channel
                if _is_structured(channel)
                else DenseChannel(channel.rows(np.arange(problem.k)))
            )
            q_others.append(counts / problem.n)
    return bits.maximise(
        rows,
        PooledModel.of(tuple(others), problem.k),
        np.concatenate([np.empty(0), *q_others]),
        tol,
    )


def _only_bits(problem: Problem) -> bool:
    return not any(
        _is_many(problem, channel)
        for channel, _ in problem.parts
        if not isinstance(channel, ROW_CHANNELS)
    )


def _pooled_applies(problem: Problem) -> bool:
    return _few_unknowns(problem) and all(
        isinstance(channel, STRUCTURED) for channel, _ in problem.parts
    )


def _pooled_suits(problem: Problem) -> bool:
    structure = any(not isinstance(channel, DenseChannel) for channel, _ in problem.parts)
    large = problem.k > MAX_SECRETS_DENSE_ANYWAY or not _dense_applies(problem)
    return structure and (large or any(_is_large_sketch(channel) for channel, _ in problem.parts))


def _is_large_sketch(channel: Channel) -> bool:
    if not isinstance(channel, HadamardChannel) or channel.k * channel.size < MIN_ENTRIES_OF_SKETCH:
        return False
    return channel.size >= MIN_REPORTS_FOR_TRANSFORM * len(channel.places)


def _pooled_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    return interior_point.maximise_model(
        PooledModel.of(tuple(channel for channel, _ in problem.parts), problem.k), problem.q, tol
    )


def _dense_applies(problem: Problem) -> bool:
    s = problem.channel.size
    return problem.k * s <= MAX_DENSE and min(problem.k, s) <= MAX_UNKNOWNS


def _dense_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    channel = problem.channel
    matrix = (
        channel.columns if type(channel) is DenseChannel else channel.rows(np.arange(problem.k))
    )  # no copy
    return interior_point.maximise(matrix, problem.q, tol)


def _active_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    return active_set.maximise(problem.channel, problem.q, tol, problem.k)


def _ibu_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    return anderson.maximise(problem.channel, problem.q, tol, problem.k)


SOLVERS = (
    Solver(
        "closed-form",
        "reports of one k-RR mechanism",
        _only(ResponseChannel),
        _always,
        lambda problem: f"closed form by water-filling: k-RR, k = {problem.k}",
        _closed_form,
    ),
    Solver(
        "line",
        "reports of one geometric mechanism on a line",
        _only(LineChannel),
        _always,
        lambda problem: f"interior point in O(k) a step: geometric noise on a line of {problem.k}",
        _line,
    ),
    Solver(
        "plane",
        "reports of one planar mechanism on a large grid",
        _only(PlaneChannel),
        _always,
        lambda problem: (
            f"interior point with Fourier transforms: noise on a grid of {problem.k} cells"
        ),
        _plane,
    ),
    Solver(
        "bits",
        f"rows of bits or many reports of another kind, also pooled with other mechanisms, and k <= {MAX_UNKNOWNS}",
        _bits_apply,
        _many_rows,
        lambda problem: (
            f"parabola of {'the packed bits' if _only_bits(problem) else 'many reports'}, exact gradient: "
            f"{_shape(problem)} with many rows{' of bits' if _only_bits(problem) else ''}"
        ),
        _bits_run,
    ),
    Solver(
        "pooled",
        f"k-RR, geometric, Hadamard or dense channels, and k <= {MAX_UNKNOWNS}",
        _pooled_applies,
        _pooled_suits,
        lambda problem: (
            f"interior point with structured normal equations: {_shape(problem)}, mechanisms: {len(problem.parts)}"
        ),
        _pooled_run,
    ),
    Solver(
        "dense",
        f"at most {MAX_DENSE} entries k x s of the channel, and one of its sides <= {MAX_UNKNOWNS}",
        _dense_applies,
        _always,
        lambda problem: f"dense interior point: {_shape(problem)} entries fit in memory",
        _dense_run,
    ),
    Solver(
        "active-set",
        "any channel",
        _always,
        _always,
        lambda problem: (
            f"active set through forward and adjoint: {_shape(problem)}{_too_large(problem)}"
        ),
        _active_run,
    ),
    Solver(
        "ibu",
        "any channel",
        _always,
        _always,
        lambda problem: (
            f"accelerated ibu through forward and adjoint: {_shape(problem)}{_too_large(problem)}"
        ),
        _ibu_run,
    ),
)

# max g - 1 of what is found at costs
ACCURATE_AT_COST = 1e-12


def with_costs(problem: Problem) -> Callable[[Floats], Floats] | None:
    """What finds the maximiser over {theta >= 0 : cost . theta = 1} in O(k), if the channel's structure allows it.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import ResponseChannel
    >>> solve = with_costs(Problem(ResponseChannel(2, np.arange(2), 0.75, 0.25), np.array([60, 40])))
    >>> solve(np.array([1.0, 1.0])).round(6), solve(np.array([1.0, 0.5])).round(6)
    (array([0.7, 0.3]), array([0., 2.]))
    """
    channel, q = problem.channel, problem.q
    if isinstance(channel, ResponseChannel):
        return lambda cost: water_filling.maximise_at(channel, q, cost)
    if isinstance(channel, LineChannel):
        return lambda cost: line.maximise(
            channel, q, ACCURATE_AT_COST, None if (cost == 1).all() else cost
        )[0]
    return None


METHODS = ("auto", *(solver.name for solver in SOLVERS))


def candidates(problem: Problem, method: str = "auto") -> Iterator[Solver]:
    """The solvers to try on a problem, the best suited first.

    Parameters
    ----------
    problem : Problem
    method : str
        "auto" for all that suit the problem, or the name of one.

    Returns
    -------
    iterator of Solver

    Raises
    ------
    ValueError
        If `method` is not known, or not for this channel.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import ResponseChannel
    >>> problem = Problem(ResponseChannel(2, np.arange(2), 0.75, 0.25), np.array([60, 40]))
    >>> [solver.name for solver in candidates(problem)]
    ['closed-form', 'dense', 'active-set', 'ibu']
    """
    wanted = str(method)  # an array would be compared number by number
    if wanted == "auto":
        # one after the other: mostly the first is all that is asked for
        return (solver for solver in SOLVERS if solver.applies(problem) and solver.suits(problem))
    applicable = [solver for solver in SOLVERS if solver.applies(problem)]
    chosen = [solver for solver in applicable if solver.name == wanted]
    if not chosen:
        names = ", ".join(repr(solver.name) for solver in applicable)
        needs = next(
            (f" needs {solver.needs}" for solver in SOLVERS if solver.name == wanted),
            " is not known",
        )
        raise ValueError(f"method={method!r}{needs}; for this tally there are 'auto', {names}")
    return iter(chosen)
