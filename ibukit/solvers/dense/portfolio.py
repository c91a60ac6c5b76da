"""The methods that maximise over a matrix, from the cheapest to the central path.

Which one is best depends on how many secrets have mass, which nobody knows beforehand. So each
method has a budget of its own and soon shows whether it converges. Its result is proved by the
certificate; if that fails, the next method is tried.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ibukit._ground.arguments import Floats
from ibukit.solvers._normal_equations import DenseModel
from ibukit.solvers.dense import interior_steps, least_squares_steps, quasi_newton_steps
from ibukit.solvers.dense.least_squares_steps import ROUNDING

# Where a maximiser may not be the only one, it is sought among the secrets that may have mass, if
# these are at most the first share of all; every maximiser has less mass on the others than the
# second share, see `least_squares_steps`. With fewer entries the path among all takes a few
# milliseconds, and divides mass between equal rows more evenly.
MAX_CANDIDATES = 0.25
MAX_MASS_ELSEWHERE = 1e-6
MIN_ENTRIES_TO_CHOOSE_FROM = 20_000

# Function of a model, its frequencies, the tolerance, and whether to try again more cautiously.
Path = Callable[[DenseModel, Floats, float, bool], tuple[Floats, int]]


def maximise(
    model: DenseModel, q: Floats, tol: float, by_the_path: Path
) -> tuple[Floats, int, str]:
    """The distribution, the steps taken, and the algorithm in words."""
    k, s = model.matrix.shape
    start = None
    if interior_steps.come_first(k, s, tol):
        start = interior_steps.first_updates(model, q, tol)

    def on_few() -> tuple[Floats, int, str] | None:
        theta = None if start is None else start.theta
        found = least_squares_steps.maximise(model.matrix, q, tol, theta)
        if found is None:
            return None
        if found.is_unique:
            return found.theta, found.steps, "constrained Newton steps"
        return _among_candidates(model, q, tol, found.theta, by_the_path)

    def on_some() -> tuple[Floats, int, str] | None:
        if not quasi_newton_steps.applies(k, s, tol):
            return None
        found = quasi_newton_steps.maximise(model, q, tol)
        return None if found is None else (*found, "quasi-Newton and Newton steps")

    def on_all() -> tuple[Floats, int, str] | None:
        found = interior_steps.maximise(model, q, tol, start)
        return None if found is None else (*found, "accelerated updates and Newton steps")

    all_first = start is not None and (start.converges or s <= interior_steps.MAX_REPORTS)
    for method in (on_all, on_few, on_some) if all_first else (on_few, on_some, on_all):
        found = method()
        if found is not None:
            return found
    return *by_the_path(model, q, tol, True), "an interior point"


def _among_candidates(
    model: DenseModel, q: Floats, tol: float, theta: Floats, by_the_path: Path
) -> tuple[Floats, int, str] | None:
    """Maximise among the secrets of which some maximiser may have mass, if they are few.

    Unlike `theta`, the fitted probabilities of all maximisers are the same, and so are g and the
    candidates.
    """
    if model.matrix.size < MIN_ENTRIES_TO_CHOOSE_FROM:
        return None
    g = model.adjoint(q / model.forward(theta))
    slack = max(float(g.max()) - 1, ROUNDING) / MAX_MASS_ELSEWHERE
    at = np.flatnonzero(g >= 1 - slack)
    rows = model.matrix[at]
    largest = rows.max(axis=0)
    if len(at) > MAX_CANDIDATES * model.k or not largest.min() > 0:
        return None
    few = DenseModel(rows / largest)
    found, steps = interior_steps.maximise(few, q, tol) or by_the_path(few, q, tol, False)
    whole = np.zeros(model.k)
    whole[at] = found
    if not model.excess(q, whole) <= tol:
        return None
    return whole, steps, "an interior point of the secrets that may have mass"
