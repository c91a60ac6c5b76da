"""The maximum of a likelihood on any channel, by whatever solver suits it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._deprecated import hyphenated
from ibukit._threads import one_thread
from ibukit._validate import Floats
from ibukit.channels import Channel
from ibukit.errors import ConvergenceError, ImpossibleReport
from ibukit.solvers.problem import Problem
from ibukit.solvers.table import METHODS, candidates

# nats per report: below this a certificate says nothing but how it was rounded
ROUNDING = 1e-15


class Maximum(NamedTuple):
    """A maximiser of a likelihood, and how it was found.

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


def maximise(
    channel: Channel, counts: ArrayLike, tol: float = 1e-9, method: str = "auto", *, strict: bool = True
) -> Maximum:
    """Maximise sum_z counts_z log (theta M)_z over the simplex.

    M are the channel's entries. `mle`, the designs and the attacks are built on this; it knows neither tallies nor
    estimates. The solvers that suit the channel are tried, the best suited first, until the certificate
    log max_x g_x, g = M (q / theta M), is at most `tol`, or 1e-15, below which it is rounding.

    Parameters
    ----------
    channel : Channel
    counts : array_like, shape (s,)
        How often each report was seen, or any positive weights.
    tol : float
        Nats per report.
    method : str
        "auto", or the name of a solver, as `mle` takes it.
    strict : bool
        Raise where `tol` is missed. False returns the best point found: ask ``Problem(channel, counts).gap(theta)``.

    Returns
    -------
    Maximum
        `theta`, shape (k,), and the `method` used, in words.

    Raises
    ------
    ConvergenceError
        If `strict` and `tol` was missed; carries the best `Maximum` as ``.estimate``.
    ImpossibleReport
        If no secret can produce one of the reports.
    ValueError
        If a count is not above 0, there is not one for each report, or `method` does not suit the channel.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import DenseChannel
    >>> theta, method = maximise(DenseChannel(np.array([[0.9, 0.1], [0.3, 0.7]])), [60, 40])
    >>> theta.round(6), method
    (array([0.5, 0.5]), 'dense interior point: 2 x 2 entries fit in memory')
    """
    tol = _validate.positive("tol", tol)
    weights = _validate.vector("counts", counts, channel.size)
    if not (weights > 0).all():
        raise ValueError(f"counts must be above 0, got {weights.min()}; take the reports that were seen")
    if not channel.forward(np.full(channel.k, 1 / channel.k)).min() > 0:
        raise ImpossibleReport("counts has a report that no secret can produce: is this the channel that made it?")
    problem = Problem(channel, weights)
    best, found = math.inf, None
    with one_thread():
        for solver in candidates(problem, hyphenated("method", method, METHODS)):
            theta, _ = solver.run(problem, float(np.expm1(min(tol, 1.0))))
            gap = problem.gap(theta)
            if found is None or gap < best:
                best, found = gap, Maximum(theta, solver.why(problem))
            if best <= max(tol, ROUNDING):
                return found
    assert found is not None
    if strict:
        raise ConvergenceError(
            f"tol={tol:g} was not certified, the best gap is {best:.3g} by {found.method}; take a larger tol, or "
            "strict=False for the best point",
            found,
        )
    return found
