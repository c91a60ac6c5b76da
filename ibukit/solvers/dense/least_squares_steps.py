"""A maximiser of few secrets by Newton's method with non-negative least squares: exact zeros after three or four steps.

With S_xz = M_xz / nu_z the log-likelihood around theta is 1 - 1/2 sum_z q_z (sum_x y_x (S_xz - 2))^2 to second order,
for y on the simplex. Its maximiser there is the direction of the non-negative least squares solution with one more
equation, sum y = 1 (Wang, 2007). Each step of that solution takes in one secret, so the secrets should be few.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ibukit._validate import Floats

# beyond these the interior point is the faster one
FEW_SECRETS = 32
SQUARES_STEPS = 8
FIRST_UPDATES = 6
HALVINGS = 10
# of a mean log-likelihood
MEAN_ROUNDING = 1e-13
# a tolerance from which one step more is taken, for as many digits as there are, and max g - 1 that shows them
EXACT_BELOW = 1e-6
EXACT = 1e-12
LEAST_SEEN = 1e-100
# where a secret without mass is so close to having some, there may be other maximisers, and which one is found here
# would depend on nothing but the order of the secrets
CLEARLY_BELOW = 1 - 1e-6


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def maximise(matrix: Floats, q: Floats, tol: float) -> tuple[Floats, int] | None:
    """The distribution and the steps taken; None where it is not certified to `tol`, or not the only one."""
    k, s = matrix.shape
    if k > FEW_SECRETS or k > s:
        return None
    theta = np.full(k, 1 / k)
    nu = np.dot(theta, matrix)
    g = np.dot(matrix, q / nu)
    for _ in range(FIRST_UPDATES):
        theta *= g
        nu = np.dot(theta, matrix)
        g = np.dot(matrix, q / nu)
    system, right, roots = np.ones((s + 1, k)), np.zeros(s + 1), np.sqrt(q)
    right[-1] = 1
    excess, worst = float(g[g.argmax()]) - 1, np.inf
    likelihood = float(np.dot(q, np.log(nu)))
    goal = min(tol, EXACT) if tol <= EXACT_BELOW else tol
    for step in range(SQUARES_STEPS):
        if excess <= goal or (excess <= tol and excess >= worst):
            only = step > 0 and g[theta == 0].max(initial=0.0) < CLEARLY_BELOW
            return (theta / theta.sum(), step) if only else None
        if not nu[nu.argmin()] > LEAST_SEEN:  # in less time than by `min`, which asks in Python what it is asked
            return None
        np.multiply(matrix / nu - 2, roots, out=system[:-1].T)
        try:
            aim, _ = nnls(system, right)
        except RuntimeError:  # it goes round in circles
            return None
        total = float(np.add.reduce(aim))
        if not total > 0:
            return None
        change = aim / total - theta
        worst = excess
        for _ in range(HALVINGS):
            there = theta + change
            fit = np.dot(there, matrix)
            reached = float(np.dot(q, np.log(fit)))  # what is not positive makes it infinite or no number
            if reached >= likelihood - MEAN_ROUNDING:
                break
            change = change / 2
        else:
            return None
        theta, nu, likelihood = np.maximum(there, 0.0), fit, reached
        g = np.dot(matrix, q / nu)
        excess = float(g[g.argmax()]) - 1
    return None
