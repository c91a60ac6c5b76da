"""The table of solvers: when each can be used, when it is the best, and why; the best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit._ground.limits import max_dense_entries, max_factorised_order
from ibukit.channels import (
    BitChannel,
    BitPoolChannel,
    Channel,
    DenseChannel,
    HadamardChannel,
    LineChannel,
    ResponseChannel,
    StackedChannel,
)
from ibukit.channels.base import AugmentedChannel
from ibukit.channels.partitioned import PartitionedChannel
from ibukit.channels.plane import PlaneChannel
from ibukit.solvers import active_set, anderson, bits, interior_point, line, plane
from ibukit.solvers.pooled import STRUCTURED, PooledModel
from ibukit.solvers.problem import Problem
from ibukit.solvers.responses import response_pool, water_filling

# Channels that may have as many reports as there are users.
ROW_CHANNELS = (BitChannel, BitPoolChannel, PartitionedChannel)
# Rows of a sketch up to which its normal equations are cheap: one look-up for each row and pair of
# secrets.
MAX_SKETCH_ROWS = 64
# Reports for each secret from which the quadratic model of `bits` is faster than a dense matrix.
MIN_REPORTS_PER_SECRET_FOR_BITS = 12
# The passes over the rows of one mechanism take at least as long as this number of multiplications
# of a dense solver.
MIN_WORK_OF_BITS = 500_000
# Reports for each secret, and entries of a matrix for each mechanism, from which the structure of
# pooled mechanisms is faster.
MIN_REPORTS_PER_SECRET_POOLED = 0.5
MIN_ENTRIES_PER_MECHANISM = 12_000


@dataclass(frozen=True)
class Solver:
    r"""A solver, when it can be used, and when it is the best.

    Parameters
    ----------
    name : str
        The name by which `maximise` and `mle` take it.
    needs : str
        What `applies` requires, in words.
    applies : callable
        Whether the solver can be used on a problem.
    suits : callable
        Whether the solver is the one to take among those that apply.
    why : callable
        For a problem, which solver it is and why it was taken, in words.
    run : callable
        Function from a problem and a tolerance to a point, shape (k,), the number of steps and, if
        the solver has several algorithms, the one it used, in words. The tolerance is on
        :math:`\max g - 1`.

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
    run: Callable[[Problem, float], tuple[Floats, int] | tuple[Floats, int, str]]


def _is_instance(kind: type) -> Callable[[Problem], bool]:
    return lambda problem: isinstance(problem.channel, kind)


def _always(problem: Problem) -> bool:
    return True


def _size_text(problem: Problem) -> str:
    return f"{problem.k} x {problem.channel.size}"


def _too_large_text(problem: Problem) -> str:
    return "" if _dense_applies(problem) else " is too large for a matrix"


def _closed_form(problem: Problem, tol: float) -> tuple[Floats, int]:
    assert isinstance(problem.channel, ResponseChannel)
    return water_filling.maximise(problem.channel, problem.counts, problem.n), 0


def _line(problem: Problem, tol: float) -> tuple[Floats, int]:
    assert isinstance(problem.channel, LineChannel)
    return line.maximise(problem.channel, problem.q, tol)


def _plane(problem: Problem, tol: float) -> tuple[Floats, int, str]:
    assert isinstance(problem.channel, PlaneChannel)
    return plane.maximise_and_tell(problem.channel, problem.q, tol)


def _is_structured(channel: Channel) -> bool:
    """True if M diag(w) M^T costs less than reading all reports for each pair of secrets."""
    sketch = isinstance(channel, HadamardChannel) and len(channel.places) > MAX_SKETCH_ROWS
    return isinstance(channel, STRUCTURED) and not sketch


def _has_many_reports(problem: Problem, channel: Channel) -> bool:
    """True if an unstructured channel has too many reports for a dense matrix at each step."""
    return (
        not _is_structured(channel) and channel.size > MIN_REPORTS_PER_SECRET_FOR_BITS * problem.k
    )


def _bits_apply(problem: Problem) -> bool:
    has_rows = [
        isinstance(channel, ROW_CHANNELS) or _has_many_reports(problem, channel)
        for channel, _ in problem.parts
    ]
    if not any(has_rows) or not _can_be_factorised(problem):
        return False
    others = [
        channel for (channel, _), rows in zip(problem.parts, has_rows, strict=True) if not rows
    ]
    return (
        problem.k * sum(channel.size for channel in others if not _is_structured(channel))
        <= max_dense_entries()
    )


def _can_be_factorised(problem: Problem) -> bool:
    return problem.k <= max_factorised_order()


def _bits_suit(problem: Problem) -> bool:
    partitioned = any(isinstance(channel, PartitionedChannel) for channel, _ in problem.parts)
    sizes = [channel.size for channel, _ in problem.parts if not _is_structured(channel)]
    rows, k = sum(sizes), problem.k
    are_many = rows > MIN_REPORTS_PER_SECRET_FOR_BITS * k
    # A secret that is added, as adversaries are, explains one report only: no parabola is close to
    # such a likelihood.
    added = any(isinstance(channel, AugmentedChannel) for channel, _ in problem.parts)
    return (
        partitioned
        or (are_many and not added and rows * k**2 > MIN_WORK_OF_BITS * len(sizes))
        or not _dense_applies(problem)
    )


def _bits_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    rows: list[bits.Reports] = []
    others, q_others = [], []
    for channel, counts in problem.parts:
        if isinstance(channel, ROW_CHANNELS) or _has_many_reports(problem, channel):
            rows.append(bits.as_reports(channel, counts, problem.n))
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


def _are_all_bits(problem: Problem) -> bool:
    return not any(
        _has_many_reports(problem, channel)
        for channel, _ in problem.parts
        if not isinstance(channel, ROW_CHANNELS)
    )


def _pooled_applies(problem: Problem) -> bool:
    return _are_responses(problem) or (
        _can_be_factorised(problem)
        and all(isinstance(channel, STRUCTURED) for channel, _ in problem.parts)
    )


def _are_responses(problem: Problem) -> bool:
    return response_pool.applies([channel for channel, _ in problem.parts])


def _pooled_suits(problem: Problem) -> bool:
    if _are_responses(problem):
        return True
    structured = any(not isinstance(channel, DenseChannel) for channel, _ in problem.parts)
    return structured and (_has_cheap_structure(problem) or not _dense_applies(problem))


def _has_cheap_structure(problem: Problem) -> bool:
    """True if the systems in the secrets, and the calls for each mechanism, cost less than rows."""
    k, s = problem.k, problem.channel.size
    return s > MIN_REPORTS_PER_SECRET_POOLED * k and (
        k * s > MIN_ENTRIES_PER_MECHANISM * sum(_n_mechanisms(each) for each, _ in problem.parts)
    )


def _n_mechanisms(channel: Channel) -> int:
    """Return the number of rows of a sketch, each of which is a mechanism; 1 for others."""
    return len(channel.places) if isinstance(channel, HadamardChannel) else 1


def _pooled_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    channels: Any = tuple(channel for channel, _ in problem.parts)
    if _are_responses(problem):
        return response_pool.maximise(channels, problem.q, tol)
    return interior_point.maximise_model(PooledModel.of(channels, problem.k), problem.q, tol)


def _dense_applies(problem: Problem) -> bool:
    s = problem.channel.size
    return problem.k * s <= max_dense_entries() and min(problem.k, s) <= max_factorised_order()


def _dense_run(problem: Problem, tol: float) -> tuple[Floats, int, str]:
    channel = problem.channel
    # A dense channel's columns need no copy.
    matrix = (
        channel.columns if type(channel) is DenseChannel else channel.rows(np.arange(problem.k))
    )
    return interior_point.maximise_and_tell(matrix, problem.q, tol)


def _active_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    return active_set.maximise(problem.channel, problem.q, tol, problem.k)


def _ibu_run(problem: Problem, tol: float) -> tuple[Floats, int]:
    return anderson.maximise(problem.channel, problem.q, tol, problem.k)


def _pooled_text(problem: Problem) -> str:
    how = (
        "Newton steps secret by secret: k-RR"
        if _are_responses(problem)
        else "interior point with structured normal equations"
    )
    channel = problem.channel
    n_mechanisms = len(channel.channels) if isinstance(channel, StackedChannel) else 1
    return f"{how}: {_size_text(problem)}, mechanisms: {n_mechanisms}"


SOLVERS = (
    Solver(
        "closed-form",
        "reports of one k-RR mechanism",
        _is_instance(ResponseChannel),
        _always,
        lambda problem: f"closed form by water-filling: k-RR, k = {problem.k}",
        _closed_form,
    ),
    Solver(
        "line",
        "reports of one geometric mechanism on a line",
        _is_instance(LineChannel),
        _always,
        lambda problem: f"interior point in O(k) a step: geometric noise on a line of {problem.k}",
        _line,
    ),
    Solver(
        "plane",
        "reports of one planar mechanism on a large grid",
        _is_instance(PlaneChannel),
        _always,
        lambda problem: f"noise on a grid: {problem.k} cells",
        _plane,
    ),
    Solver(
        "bits",
        "rows of bits or many reports of another kind, also pooled with other mechanisms, "
        f"and k <= {max_factorised_order()} (or what ibukit.solvers.limits allows)",
        _bits_apply,
        _bits_suit,
        lambda problem: (
            f"parabola of {'the packed bits' if _are_all_bits(problem) else 'many reports'}, exact "
            f"gradient: {_size_text(problem)} with many "
            f"rows{' of bits' if _are_all_bits(problem) else ''}"
        ),
        _bits_run,
    ),
    Solver(
        "pooled",
        f"k-RR, geometric, Hadamard or dense channels, and k <= {max_factorised_order()} "
        "(or what ibukit.solvers.limits allows)",
        _pooled_applies,
        _pooled_suits,
        _pooled_text,
        _pooled_run,
    ),
    Solver(
        "dense",
        f"at most {max_dense_entries()} entries k x s of the channel, and one of its sides "
        f"<= {max_factorised_order()} (or what ibukit.solvers.limits allows)",
        _dense_applies,
        _always,
        lambda problem: f"dense matrix: {_size_text(problem)} entries fit in memory",
        _dense_run,
    ),
    Solver(
        "active-set",
        "any channel",
        _always,
        _always,
        lambda problem: (
            "active set through forward and adjoint: "
            f"{_size_text(problem)}{_too_large_text(problem)}"
        ),
        _active_run,
    ),
    Solver(
        "ibu",
        "any channel",
        _always,
        _always,
        lambda problem: (
            "accelerated ibu through forward and adjoint: "
            f"{_size_text(problem)}{_too_large_text(problem)}"
        ),
        _ibu_run,
    ),
)

# Bound on max g - 1 of a maximiser at costs.
TOLERANCE_AT_COSTS = 1e-12


def maximiser_at_costs(problem: Problem) -> Callable[[Floats], Floats] | None:
    """Return a function from costs to the maximiser over {theta >= 0 : cost . theta = 1}, or None.

    It exists for channels whose structure allows O(k) operations.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import ResponseChannel
    >>> channel = ResponseChannel(2, np.arange(2), 0.75, 0.25)
    >>> solve = maximiser_at_costs(Problem(channel, np.array([60, 40])))
    >>> solve(np.array([1.0, 1.0])).round(6), solve(np.array([1.0, 0.5])).round(6)
    (array([0.7, 0.3]), array([0., 2.]))
    """
    channel, q = problem.channel, problem.q
    if isinstance(channel, ResponseChannel):
        return lambda cost: water_filling.maximise_at(channel, q, cost)
    if isinstance(channel, LineChannel):
        return lambda cost: line.maximise(
            channel, q, TOLERANCE_AT_COSTS, None if (cost == 1).all() else cost
        )[0]
    return None


METHODS = ("auto", *(solver.name for solver in SOLVERS))


def candidates(problem: Problem, method: str = "auto") -> Iterator[Solver]:
    """The solvers to try on a problem, the best suited first.

    Parameters
    ----------
    problem : Problem
    method : str
        "auto" for all solvers that suit the problem, or the name of one.

    Returns
    -------
    iterator of Solver

    Raises
    ------
    ValueError
        If `method` is not known, or if it cannot be used on this channel.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import ResponseChannel
    >>> problem = Problem(ResponseChannel(2, np.arange(2), 0.75, 0.25), np.array([60, 40]))
    >>> [solver.name for solver in candidates(problem)]
    ['closed-form', 'dense', 'active-set', 'ibu']
    """
    # An array would be compared element by element.
    wanted = str(method)
    if wanted == "auto":
        # A generator: mostly the first solver is enough, and `applies` is not free.
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
