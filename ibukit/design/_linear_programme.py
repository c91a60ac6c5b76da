"""Find a vertex of the set of optimal mechanisms by HiGHS, with those guesses that matter.

With two losses the programme is: maximise sum_y v_y subject to

    v_y <= sum_x prior_x A_xy adversary_loss(x, z)   for each report y and guess z,
    sum_xy prior_x A_xy loss(x, y) <= Q,   sum_y A_xy = 1,   A >= 0.

With one loss the maximum is known: it is Q, as long as Q is at most the loss of the best constant
report, and the optimal A of loss Q are those whose report is itself a best guess. So there is
nothing to maximise, and it is enough to find a vertex of

    sum_x prior_x A_xy (loss(x, y) - loss(x, z)) <= 0,   sum_xy prior_x A_xy loss(x, y) = Q,
    sum_y A_xy = 1,   A >= 0,

which is the same set; this takes a tenth of the time.

With all guesses the constraints have k^3 entries. Nearly all guesses are beaten by guesses near y,
whatever A is. So a programme starts with a few guesses for each report, and those that its solution
shows to be missing are added until none is missing.

There are many optima, and rounding would choose among their vertices. So the entries of A have
fixed generic prices, and the cheapest of the optima is taken. With one loss the programme has
nothing else to minimise; with two losses it is solved twice: the second time the price is minimised
while the value found the first time is kept.
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
# Largest number of guesses added for each report at a time, the cheapest ones, so that programmes
# stay small.
MAX_NEW_GUESSES = 4
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
    # Losses are divided by the largest, because HiGHS has absolute tolerances.
    unit = float(loss.max()) or 1.0
    costs = loss / unit
    user_loss = sparse.csr_array((prior[:, None] * costs).T.ravel()[None])
    equalities = sparse.vstack([_row_sums(k, m), user_loss])

    def solve(guesses: Mask) -> tuple[Floats, Floats]:
        # For each report y and guess z: guessing y itself costs no more than guessing z.
        y, z = np.nonzero(guesses)
        solution = _solution(
            prices(k * m),
            A_ub=_report_rows(prior[:, None] * (costs[:, y] - costs[:, z]), y, m),
            b_ub=np.zeros(len(y)),
            A_eq=equalities,
            b_eq=np.append(np.ones(k), bound / unit),
        )
        channel = _channel(solution.x, k, m)
        return channel, prior @ (channel * costs)

    # The guess z = y is no constraint.
    guesses = first_guesses(loss, loss)
    np.fill_diagonal(guesses, False)
    return _solve_with_guesses(solve, guesses, prior, costs)


def two_losses(prior: Floats, loss: Floats, adversary_loss: Floats, bound: float) -> Floats:
    """Return an optimal vertex, shape (k, m).

    The prior, shape (k,), is positive; loss has shape (k, m), adversary_loss (k, guesses).
    """
    k, m = loss.shape
    costs = adversary_loss / (float(adversary_loss.max()) or 1.0)

    def solve(guesses: Mask) -> tuple[Floats, Floats]:
        objective, rows = _two_loss_programme(prior, loss, costs, bound, guesses)
        best = float(objective @ _solution(objective, **rows).x)
        # The second programme takes the cheapest of the optima.
        rows["A_ub"] = sparse.vstack([rows["A_ub"], sparse.csr_array(objective[None])])
        rows["b_ub"] = np.append(rows["b_ub"], best + k * PRICE_SLACK)
        x = _solution(np.append(prices(k * m), np.zeros(m)), **rows).x
        return _channel(x, k, m), x[k * m :] / k

    return _solve_with_guesses(solve, first_guesses(loss, adversary_loss), prior, costs)


def two_losses_bound(prior: Floats, loss: Floats, adversary_loss: Floats, bound: float) -> float:
    """Upper bound on the adversary's loss under any mechanism, from `two_losses`' multipliers.

    By weak duality it is a bound whatever the solver's tolerances are: see `protection_gap`.
    """
    k, m = loss.shape
    adversary_unit, user_unit = float(adversary_loss.max()) or 1.0, float(loss.max()) or 1.0
    costs, upper_bound = adversary_loss / adversary_unit, np.inf

    def solve(guesses: Mask) -> tuple[Floats, Floats]:
        nonlocal upper_bound
        objective, rows = _two_loss_programme(prior, loss, costs, bound, guesses)
        solution = _solution(objective, **rows)
        # Multipliers of <= are not negative; what is below 0 is within the solver's tolerance.
        multipliers = np.maximum(-solution.ineqlin.marginals, 0.0)
        # The multipliers of the guesses after a report y are weights w_y of a mixed guess. If all
        # of them vanish, the first guess gets the weight 1, because any weights that sum to 1 give
        # a bound.
        weights = np.zeros(guesses.shape)
        weights[guesses] = multipliers[:-1]
        weights[np.arange(m), guesses.argmax(axis=1)] += ~weights.any(axis=1)
        weights /= weights.sum(axis=1, keepdims=True)
        # The last multiplier is lambda, the price of the user's loss, times k, because the
        # objective counts everything k times. The bound is lambda Q + sum_x prior_x max_y (...):
        # each secret takes the report that is best for it at these prices.
        price = multipliers[-1] / k
        best = (costs @ weights.T - price * loss / user_unit).max(axis=1)
        upper_bound = min(upper_bound, float(price * bound / user_unit + prior @ best))
        return _channel(solution.x, k, m), solution.x[k * m :] / k

    _solve_with_guesses(solve, first_guesses(loss, adversary_loss), prior, costs)
    return upper_bound * adversary_unit


def _two_loss_programme(
    prior: Floats, loss: Floats, costs: Floats, bound: float, guesses: Mask
) -> tuple[Floats, dict[str, Any]]:
    """Return the objective and the constraints of the programme for two losses.

    The variables are A by columns, then k v_y for each report.
    """
    k, m = loss.shape
    unit = float(loss.max()) or 1.0
    user_loss = np.append((prior[:, None] * loss / unit).T.ravel(), np.zeros(m))
    y, z = np.nonzero(guesses)
    # The variable is k v_y instead of v_y, to be of order 1 like the entries of A.
    values = sparse.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), m))
    guess_rows = sparse.hstack([_report_rows(-prior[:, None] * costs[:, z], y, m), values])
    rows = {
        "A_ub": sparse.vstack([guess_rows, sparse.csr_array(user_loss[None])]),
        "b_ub": np.append(np.zeros(len(y)), bound / unit),
        "A_eq": sparse.hstack([_row_sums(k, m), sparse.csr_array((k, m))]),
        "b_eq": np.ones(k),
    }
    return np.repeat([0.0, -1.0], [k * m, m]), rows


def prices(n: int) -> Floats:
    """Return fixed generic prices of n variables, which make one vertex the only cheapest.

    Without them any vertex would do, and which one the simplex method ends at would depend on how a
    machine rounds.
    """
    # Fractional parts of multiples of the golden ratio are all different, and evenly spread.
    return np.arange(1.0, n + 1) * GOLDEN % 1


def first_guesses(loss: Floats, adversary_loss: Floats) -> Mask:
    """Mark the best guesses for the secret that each report suits best, shape (m, guesses)."""
    secrets = loss.argmin(axis=0)
    # A stable sort picks the same ones among equally good guesses on every machine.
    order = np.argsort(adversary_loss[secrets], axis=1, kind="stable")[:, :FIRST_GUESSES]
    guesses = np.zeros((loss.shape[1], adversary_loss.shape[1]), dtype=bool)
    np.put_along_axis(guesses, order, True, axis=1)
    return guesses


def _solve_with_guesses(
    solve: Callable[[Mask], tuple[Floats, Floats]], guesses: Mask, prior: Floats, costs: Floats
) -> Floats:
    """Return the channel of `solve`, with enough guesses: no further guess would change it.

    `solve` returns a channel and, for each report, its value: the adversary's loss after that
    report.
    """
    # This is constraint generation. A guess that costs the adversary less, after a report, than the
    # value says is a constraint that the programme lacks.
    while True:
        channel, values = solve(guesses)
        expected = (channel.T * prior) @ costs
        missing = expected < (values - MIN_GAIN / len(values))[:, None]
        if not missing.any():
            return channel
        cheapest = np.argsort(expected, axis=1, kind="stable")[:, :MAX_NEW_GUESSES]
        new = np.zeros_like(missing)
        np.put_along_axis(new, cheapest, np.take_along_axis(missing, cheapest, axis=1), axis=1)
        if not (new & ~guesses).any():
            raise Unsolved(
                "the solver HiGHS ignored one of the adversary's guesses, as it may if losses "
                "differ much in size"
            )
        guesses |= new


def _report_rows(weights: Floats, y: NDArray[np.intp], m: int) -> Any:
    """Return n rows: row i weighs A_xy, y = y_i, by k times column i of `weights`, shape (k, n)."""
    # The variables are A by columns: all secrets of report 0, then of report 1, and so on. The
    # factor k makes entries of order 1, as probabilities of secrets are of order 1 / k.
    k, n = weights.shape
    places = (np.repeat(np.arange(n), k), (y[:, None] * k + np.arange(k)).ravel())
    return sparse.csr_array(((k * weights).T.ravel(), places), shape=(n, k * m))


def _row_sums(k: int, m: int) -> Any:
    """Return the k rows that sum the entries of each row of A."""
    return sparse.hstack([sparse.eye_array(k)] * m)


def _solution(c: Floats, A_ub: Any, b_ub: Floats, A_eq: Any, b_eq: Floats) -> Any:
    # The simplex method ends at a vertex by itself, the interior-point method does not.
    rows = {
        "A_ub": sparse.csc_array(A_ub),
        "b_ub": b_ub,
        "A_eq": sparse.csc_array(A_eq),
        "b_eq": b_eq,
    }
    solution: Any = linprog(c, **rows, method="highs-ds", options=OPTIONS)  # type: ignore[call-overload]
    if solution.x is None or solution.status != 0:
        raise Unsolved(f"the solver HiGHS did not solve the linear programme: {solution.message}")
    return solution


def _channel(x: Floats, k: int, m: int) -> Floats:
    """Return the variables as a matrix without small negative entries, its rows summing to 1."""
    channel = np.maximum(x[: k * m].reshape(m, k).T, 0)
    return channel / channel.sum(axis=1, keepdims=True)
