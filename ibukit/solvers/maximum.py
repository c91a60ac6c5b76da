"""The maximum of a likelihood on any channel: try the solvers that suit, certify, go on."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.channels import Channel
from ibukit.errors import ConvergenceError, ImpossibleReport
from ibukit.solvers import interior_point
from ibukit.solvers.problem import Problem
from ibukit.solvers.table import Solver, candidates

# A gap below this, in nats per report, is the rounding of g, which no other solver can improve. The
# closed form under k-RR is exact and has a gap of 1.3e-14 with a million secrets; certified points
# of other solvers have gaps of up to 6e-15.
ROUNDING_OF_GAP = 1e-13
# The certificate's bound on rounding grows with the terms of its sums, about half an ulp for each.
MAX_ROUNDING_OF_GAP = 1e-11
# Number of secrets of a dense channel up to which the support of another draw's maximiser is tried
# first. With 5 to 10 secrets this support is nearly always right, and then three times faster; with
# 50 it is rarely right. On structured channels the solver itself is faster, and interior points
# that start near the solution take as many steps as those that start at the centre.
MAX_K_SUPPORT_GUESS = 16


class Maximum(NamedTuple):
    """A maximiser of a likelihood, and the solver that found it.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import ResponseChannel
    >>> maximise(ResponseChannel(2, np.arange(2), 0.75, 0.25), [60, 40])
    Maximum(theta=array([0.7, 0.3]), method='closed form by water-filling: k-RR, k = 2')
    """

    theta: Floats
    """The maximiser, shape (k,)."""
    method: str
    """The solver and why it was chosen, in words."""


class SolverResult(NamedTuple):
    """The point of a solver with its certificate, from one pass over all reports."""

    theta: Floats
    solver: Solver
    method: str
    n_iter: int
    log_likelihood: float
    gap: float


def best_found(problem: Problem, tol: float, method: str = "auto") -> SolverResult:
    r"""The first point certified to `tol` by a suitable solver, or the best of all.

    `mle` and `maximise` share this function. It checks nothing and raises nothing.

    Parameters
    ----------
    problem : Problem
        A channel and its counts.
    tol : float
        Tolerance of the certificate :math:`\log\max_x g_x`, in nats per report. No other solver is
        tried once the certificate is below the rounding of g: 1e-13, or an ulp of 1 for each secret
        and report.
    method : str
        "auto", or the name of a solver.

    Returns
    -------
    SolverResult
        `theta`, the `solver`, the `method` and why it was taken, in words, its `n_iter`, and
        `log_likelihood` and `gap` at :math:`\theta`.

    Examples
    --------
    >>> from ibukit.channels import ResponseChannel
    >>> problem = Problem(ResponseChannel(2, np.arange(2), 0.75, 0.25), np.array([60, 40]))
    >>> best = best_found(problem, tol=1e-9)
    >>> best.theta.round(6), best.solver.name, best.gap < 1e-12
    (array([0.7, 0.3]), 'closed-form', True)
    """
    best: SolverResult | None = None
    tol = arguments.positive("tol", tol)
    with one_thread():
        for solver in candidates(problem, method):
            result = _certified(problem, solver, tol)
            if tol < result.gap <= 1.5 * tol:
                # The solver stopped where the gap that it computes met `tol`. The certificate adds
                # a bound on rounding, for which half of `tol` leaves room.
                result = min(result, _certified(problem, solver, tol / 2), key=lambda r: r.gap)
            best = result if best is None or result.gap < best.gap else best
            if best.gap <= max(tol, _rounding_of_gap(problem)):
                break
    assert best is not None
    return best


def _rounding_of_gap(problem: Problem) -> float:
    """A gap, in nats per report, that no other solver can be expected to improve."""
    terms = problem.k + problem.channel.size
    return max(ROUNDING_OF_GAP, min(terms * np.finfo(float).eps, MAX_ROUNDING_OF_GAP))


def _certified(problem: Problem, solver: Solver, tol: float) -> SolverResult:
    """The point of a solver that aims at a gap of `tol`."""
    # The gap is log max g, so max g - 1 may be expm1(tol).
    theta, n_iter, *algorithm = solver.run(problem, math.expm1(min(tol, 1.0)))
    return SolverResult(
        theta,
        solver,
        ", by ".join([solver.why(problem), *algorithm]),
        n_iter,
        *problem.channel.certificate(theta, problem.counts, problem.n),
    )


def maximise_near(problem: Problem, theta: Floats, tol: float = 1e-9) -> Floats:
    """A maximiser, if the maximiser of a very similar problem is known.

    The search starts from that maximiser where this saves time.

    Parameters
    ----------
    problem : Problem
    theta : ndarray, shape (k,)
        The maximiser of the similar problem.
    tol : float
        Tolerance of the certificate, in nats per report.

    Returns
    -------
    ndarray, shape (k,)
        Certified if `best_found` certifies one.

    Examples
    --------
    >>> from ibukit.channels import DenseChannel
    >>> channel = DenseChannel(np.array([[0.9, 0.1], [0.3, 0.7]]))
    >>> maximise_near(Problem(channel, np.array([60, 40])), np.array([0.4, 0.6])).round(6)
    array([0.5, 0.5])
    """
    theta = arguments.weights("theta", theta, problem.k)
    if problem.k <= MAX_K_SUPPORT_GUESS and next(candidates(problem)).name == "dense":
        with one_thread():
            theta_on_support = interior_point.from_support(
                problem.channel.rows(np.arange(problem.k)),
                problem.q,
                theta,
                math.expm1(min(arguments.positive("tol", tol), 1.0)),
            )
        if theta_on_support is not None:
            return theta_on_support
    return best_found(problem, tol).theta


def maximise(
    channel: Channel,
    counts: ArrayLike,
    tol: float = 1e-9,
    method: str = "auto",
    *,
    strict: bool = True,
) -> Maximum:
    r"""Maximise :math:`\sum_z\mathrm{counts}_z\log(\theta M)_z` over the simplex.

    M are the channel's entries. `mle`, the designs and the attacks are built on this function,
    which needs neither tallies nor estimates. The solvers that suit the channel are tried, the best
    suited first, until the certificate :math:`\log\max_x g_x`, :math:`g=M\,(q/\theta M)`, is at
    most `tol`, or 1e-13, which is rounding.

    Parameters
    ----------
    channel : Channel
    counts : array_like, shape (s,)
        How often each report was seen, or any positive weights.
    tol : float
        Tolerance of the certificate, in nats per report.
    method : str
        "auto", or the name of a solver, as `mle` takes it.
    strict : bool
        Whether to raise an error if `tol` is missed. If False, the best point found is returned;
        ``Problem(channel, counts).gap(theta)`` is its gap.

    Returns
    -------
    Maximum
        `theta`, shape (k,), and the `method` used, in words.

    Raises
    ------
    ConvergenceError
        If `strict` is true and `tol` was missed. The error carries the best `Maximum` as
        ``.estimate``.
    ImpossibleReport
        If no secret can produce one of the reports.
    ValueError
        If a count is not above 0, if there is not one count for each report, or if `method` does
        not suit the channel.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import DenseChannel
    >>> theta, method = maximise(DenseChannel(np.array([[0.9, 0.1], [0.3, 0.7]])), [60, 40])
    >>> theta.round(6)
    array([0.5, 0.5])
    >>> method
    'dense matrix: 2 x 2 entries fit in memory, by accelerated updates and Newton steps'
    """
    tol = arguments.positive("tol", tol)
    weights = arguments.vector("counts", counts, channel.size)
    if not (weights > 0).all():
        raise ValueError(
            f"counts must be above 0, got {weights.min()}; take the reports that were seen"
        )
    seen = channel.forward(np.full(channel.k, 1 / channel.k))
    least = seen.min()
    if np.isnan(least):
        raise ValueError(
            f"channel must have finite entries, but report {int(np.isnan(seen).argmax())} has NaN: "
            "enter the probabilities that belong there; leaving the report out biases the estimate"
        )
    if not least > 0:
        raise ImpossibleReport(
            "counts has a report that no secret can produce: is this the channel that made it?"
        )
    problem = Problem(channel, weights)
    best = best_found(problem, tol, method)
    maximum = Maximum(best.theta, best.method)
    if arguments.flag("strict", strict) and best.gap > max(tol, ROUNDING_OF_GAP):
        raise ConvergenceError(
            f"tol={tol:g} was not certified: the best gap is {best.gap:.3g} by {maximum.method}; "
            "take a larger tol, or strict=False for the best point",
            maximum,
        )
    return maximum
