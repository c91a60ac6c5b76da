"""Find a vertex of the set of optimal mechanisms by HiGHS, with those guesses that matter.

With two losses the programme is: maximise sum_y v_y subject to

    v_y <= sum_x prior_x A_xy adversary_loss(x, z)   for each report y and guess z,
    sum_xy prior_x A_xy loss(x, y) <= Q,   sum_y A_xy = 1,   A >= 0.

With one loss its maximum is known to be Q, up to the loss of a constant report, and the optimal A
of loss Q are those whose report is itself a best guess. So there is nothing to maximise: the
programme is to find a vertex of

    sum_x prior_x A_xy (loss(x, y) - loss(x, z)) <= 0,   sum_xy prior_x A_xy loss(x, y) = Q,
    sum_y A_xy = 1,   A >= 0,

which is the same set and takes a tenth of the time.

All the guesses are k^3 entries. Nearly all of them are beaten by guesses near y whatever A is, so a
programme starts with a few for each report, and goes on with those that its solution shows to be
missing until none is.

Optima are many, and rounding would choose among their vertices. So the entries of A have fixed
generic prices, and of the optima the cheapest is taken: with one loss the programme has nothing
else to minimise; with two it is solved twice, the second time for the price, with its value kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from ibukit._ground.arguments import Floats

Mask = NDArray[np.bool_]

# A guess that gains less than this share of the largest loss, summed over the reports, is not
# added: the programme is solved without it.
MIN_GAIN = 1e-9
# Number of first guesses for each report: itself and the eight neighbours of a cell.
FIRST_GUESSES = 9
MAX_NEW = 4
# Share of the largest loss by which a solution may miss the optimum when its price is minimised.
PRICE_SLACK = 5e-10
GOLDEN = (5**0.5 - 1) / 2
# The smallest tolerances that HiGHS accepts.
OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Unsolved(Exception):
    """The solver gave up on a programme that has a solution; the message is the solver's."""


def one_loss(prior: Floats, loss: Floats, bound: float) -> Floats:
    """Return a vertex of the optima whose loss is `bound`, shape (k, m).

    The prior, shape (k,), is positive; the loss has shape (k, m). `bound` is between the smallest
    loss and that of the best constant report.
    """
    k, m = loss.shape
    unit = float(loss.max()) or 1.0
    costs = loss / unit
    spent = sparse.csr_array((prior[:, None] * costs).T.ravel()[None])
    both = sparse.vstack([_rows_that_sum(k, m), spent])

    def solve(guesses: Mask) -> tuple[Floats, Floats]:
        y, z = np.nonzero(guesses)
        found = _solved(
            prices(k * m),
            A_ub=_on_report(prior[:, None] * (costs[:, y] - costs[:, z]), y, m),
            b_ub=np.zeros(len(y)),
            A_eq=both,
            b_eq=np.append(np.ones(k), bound / unit),
        )
        channel = _channel(found.x, k, m)
        return channel, prior @ (channel * costs)

    guesses = first_guesses(loss, loss)
    np.fill_diagonal(guesses, False)
    return _all_that_matter(solve, guesses, prior, costs)


def two_losses(prior: Floats, loss: Floats, adversary_loss: Floats, bound: float) -> Floats:
    """Return an optimal vertex, shape (k, m).

    The prior, shape (k,), is positive; loss has shape (k, m), adversary_loss (k, guesses).
    """
    k, m = loss.shape
    costs = adversary_loss / (float(adversary_loss.max()) or 1.0)

    def solve(guesses: Mask) -> tuple[Floats, Floats]:
        goal, rows = _against_guesses(prior, loss, costs, bound, guesses)
        best = float(goal @ _solved(goal, **rows).x)
        # The second programme takes the cheapest of the optima.
        rows["A_ub"] = sparse.vstack([rows["A_ub"], sparse.csr_array(goal[None])])
        rows["b_ub"] = np.append(rows["b_ub"], best + k * PRICE_SLACK)
        found = _solved(np.append(prices(k * m), np.zeros(m)), **rows).x
        return _channel(found, k, m), found[k * m :] / k

    return _all_that_matter(solve, first_guesses(loss, adversary_loss), prior, costs)


def most_of_two_losses(prior: Floats, loss: Floats, adversary_loss: Floats, bound: float) -> float:
    """Upper bound on the adversary's loss under any mechanism, from `two_losses`' multipliers.

    By weak duality it is a bound whatever the solver's tolerances are: see `protection_gap`.
    """
    k, m = loss.shape
    unit, most = float(adversary_loss.max()) or 1.0, float(loss.max()) or 1.0
    costs, least = adversary_loss / unit, np.inf

    def solve(guesses: Mask) -> tuple[Floats, Floats]:
        nonlocal least
        goal, rows = _against_guesses(prior, loss, costs, bound, guesses)
        found = _solved(goal, **rows)
        multipliers = np.maximum(-found.ineqlin.marginals, 0.0)
        weights = np.zeros(guesses.shape)
        weights[guesses] = multipliers[:-1]
        weights[np.arange(m), guesses.argmax(axis=1)] += ~weights.any(axis=1)
        weights /= weights.sum(axis=1, keepdims=True)
        # The first programme counts everything k times.
        worth = multipliers[-1] / k
        gained = (costs @ weights.T - worth * loss / most).max(axis=1)
        least = min(least, float(worth * bound / most + prior @ gained))
        return _channel(found.x, k, m), found.x[k * m :] / k

    _all_that_matter(solve, first_guesses(loss, adversary_loss), prior, costs)
    return least * unit


def _against_guesses(
    prior: Floats, loss: Floats, costs: Floats, bound: float, guesses: Mask
) -> tuple[Floats, dict[str, Any]]:
    """Return goal and rows of the programme for two losses.

    The variables are A by columns, then k v_y for each report.
    """
    k, m = loss.shape
    most = float(loss.max()) or 1.0
    spent = sparse.csr_array(np.append((prior[:, None] * loss / most).T.ravel(), np.zeros(m))[None])
    y, z = np.nonzero(guesses)
    # The variable is k v_y instead of v_y, to be of order 1 like the entries of A.
    value = sparse.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), m))
    beaten = sparse.hstack([_on_report(-prior[:, None] * costs[:, z], y, m), value])
    rows = {
        "A_ub": sparse.vstack([beaten, spent]),
        "b_ub": np.append(np.zeros(len(y)), bound / most),
        "A_eq": sparse.hstack([_rows_that_sum(k, m), sparse.csr_array((k, m))]),
        "b_eq": np.ones(k),
    }
    return np.repeat([0.0, -1.0], [k * m, m]), rows


def prices(n: int) -> Floats:
    """Fixed generic prices of n variables, which make one vertex the only cheapest.

    Without them any vertex would do, and which one the simplex method ends at would depend on how a
    machine rounds.
    """
    return np.asarray(np.arange(1.0, n + 1) * GOLDEN % 1)


def first_guesses(loss: Floats, adversary_loss: Floats) -> Mask:
    """Best guesses if the secret is the one that the report suits best, shape (m, guesses)."""
    suits = loss.argmin(axis=0)
    order = np.argsort(adversary_loss[suits], axis=1, kind="stable")[:, :FIRST_GUESSES]
    guesses = np.zeros((loss.shape[1], adversary_loss.shape[1]), dtype=bool)
    np.put_along_axis(guesses, order, True, axis=1)
    return guesses


def _all_that_matter(
    solve: Callable[[Mask], tuple[Floats, Floats]], guesses: Mask, prior: Floats, costs: Floats
) -> Floats:
    """Add guesses until none costs less, after a report y, than the solution's value for y."""
    while True:
        channel, values = solve(guesses)
        expected = (channel.T * prior) @ costs
        missing = expected < (values - MIN_GAIN / len(values))[:, None]
        if not missing.any():
            return channel
        cheapest = np.argsort(expected, axis=1, kind="stable")[:, :MAX_NEW]
        new = np.zeros_like(missing)
        np.put_along_axis(new, cheapest, np.take_along_axis(missing, cheapest, axis=1), axis=1)
        if not (new & ~guesses).any():
            raise Unsolved(
                "HiGHS left a guess out that it was given; losses that differ less in size may help"
            )
        guesses |= new


def _on_report(weights: Floats, y: NDArray[np.intp], m: int) -> Any:
    """Row i weighs the secrets of report y_i by k times column i of `weights` (k, rows)."""
    # The variables are A by columns: all secrets of report 0, then of report 1, and so on.
    k, n = weights.shape
    places = (np.repeat(np.arange(n), k), (y[:, None] * k + np.arange(k)).ravel())
    return sparse.csr_array(((k * weights).T.ravel(), places), shape=(n, k * m))


def _rows_that_sum(k: int, m: int) -> Any:
    return sparse.hstack([sparse.eye_array(k)] * m)


def _solved(c: Floats, A_ub: Any, b_ub: Floats, A_eq: Any, b_eq: Floats) -> Any:
    # The simplex method ends at a vertex by itself, the interior point does not.
    rows = {
        "A_ub": sparse.csc_array(A_ub),
        "b_ub": b_ub,
        "A_eq": sparse.csc_array(A_eq),
        "b_eq": b_eq,
    }
    found: Any = linprog(c, **rows, method="highs-ds", options=OPTIONS)  # type: ignore[call-overload]
    if found.x is None or found.status != 0:
        raise Unsolved(f"HiGHS did not solve the linear programme: {found.message}")
    return found


def _channel(x: Floats, k: int, m: int) -> Floats:
    """Return the variables as a matrix without small negative entries, its rows summing to 1."""
    channel = np.maximum(x[: k * m].reshape(m, k).T, 0)
    return np.asarray(channel / channel.sum(axis=1, keepdims=True))
