"""The optimal mechanism as a vertex of its linear programme, by HiGHS, with only those guesses that matter.

With a_xy = A_xy, the programme is: maximise sum_y v_y subject to

    v_y <= sum_x prior_x A_xy adversary_loss(x, z)   for each report y and guess z,
    sum_xy prior_x A_xy loss(x, y) <= Q,   sum_y A_xy = 1,   A >= 0.

All its guesses are k^3 entries. Nearly all of them are beaten by guesses near y whatever A is, so the programme starts
with a few for each report, and goes on with those that its solution shows to be missing until none is.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from ibukit._validate import Floats

Mask = NDArray[np.bool_]
Method = Literal["highs-ds", "highs-ipm"]

# the user's and the adversary's loss are right within this share of the largest loss
TOLERANCE = 1e-9
# guesses to begin with for each report: itself and a cell's eight neighbours
FIRST_GUESSES = 9
MOST_NEW = 4


def solve(prior: Floats, loss: Floats, adversary_loss: Floats, bound: float, method: Method = "highs-ds") -> Floats:
    """An optimal channel, shape (k, m), for a positive prior (k,), loss (k, m), adversary_loss (k, guesses)."""
    unit = max(float(loss.max()), float(adversary_loss.max())) or 1.0
    costs, quality = adversary_loss / unit, loss / unit
    guesses = first_guesses(quality, costs)
    while True:
        channel, value = _optimum(prior, quality, costs, bound / unit, guesses, method)
        expected = (channel.T * prior) @ costs
        missing = expected.min(axis=1) < value - TOLERANCE / len(value)
        if not missing.any():
            return channel
        order = np.argsort(expected, axis=1, kind="stable")[:, :MOST_NEW]
        before = guesses.sum()
        for y in np.flatnonzero(missing):
            guesses[y, order[y]] = True
        if guesses.sum() == before:
            raise RuntimeError("the linear programme was not solved accurately; choice='least information' needs none")


def first_guesses(loss: Floats, adversary_loss: Floats) -> Mask:
    """For each report the guesses that are best if the secret is the one that it suits best, shape (m, guesses)."""
    suits = loss.argmin(axis=0)
    order = np.argsort(adversary_loss[suits], axis=1, kind="stable")[:, :FIRST_GUESSES]
    guesses = np.zeros((loss.shape[1], adversary_loss.shape[1]), dtype=bool)
    np.put_along_axis(guesses, order, True, axis=1)
    return guesses


def _optimum(
    prior: Floats, loss: Floats, costs: Floats, bound: float, guesses: Mask, method: Method
) -> tuple[Floats, Floats]:
    """The channel and the v_y of the programme with the given guesses only."""
    k, m = loss.shape
    y, z = np.nonzero(guesses)
    # variables: A by columns (all secrets of report 0, then of report 1, ...), then v; rows times k, to be of order 1
    entries = (-k * prior * costs[:, z].T).ravel()
    places = (np.repeat(np.arange(len(y)), k), (y[:, None] * k + np.arange(k)).ravel())
    expected = sparse.csr_array((entries, places), shape=(len(y), k * m))
    values = sparse.csr_array((np.full(len(y), float(k)), (np.arange(len(y)), y)), shape=(len(y), m))
    spent = sparse.csr_array(np.append((prior[:, None] * loss).T.ravel(), np.zeros(m))[None])
    sums = sparse.hstack([sparse.eye_array(k)] * m + [sparse.csr_array((k, m))])
    found = linprog(  # type: ignore[call-overload]  # the published types know no sparse constraints
        np.repeat([0.0, -1.0], [k * m, m]),
        A_ub=sparse.csc_array(sparse.vstack([sparse.hstack([expected, values]), spent])),
        b_ub=np.append(np.zeros(len(y)), bound),
        A_eq=sparse.csc_array(sums),
        b_eq=np.ones(k),
        method=method,
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None or found.status != 0:
        raise RuntimeError(f"HiGHS did not solve the linear programme: {found.message}")
    channel = np.maximum(found.x[: k * m].reshape(m, k).T, 0)
    return channel / channel.sum(axis=1, keepdims=True), found.x[k * m :]
