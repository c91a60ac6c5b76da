"""The posterior of a Dirichlet prior by quadrature, by listing all secrets,
and by simulation. May not import ibukit.

Channel matrices have one row for each secret; `counts` are those of the reports, one for each
column.
"""

import itertools
import math

import numpy as np
from scipy import special


def simplex_rule(alpha, points):
    """Nodes and weights of a Gauss rule for Dirichlet(alpha): P_x = V_x (1 - P_0 - ...
    - P_(x-1)), the V_x beta.

    Exact for polynomials of degree up to 2 points - 1 in p, because a polynomial in p of that
    degree is one in each V.
    """
    alpha = np.asarray(alpha, dtype=float)
    nodes, weights, rest = np.zeros((1, 0)), np.ones(1), np.ones(1)
    for x in range(len(alpha) - 1):
        others = alpha[x + 1 :].sum()
        # the roots are those for (1 - u)^(others - 1) (1 + u)^(alpha_x - 1) on [-1, 1]
        u, w = special.roots_jacobi(points, others - 1, alpha[x] - 1)
        v, w = (1 + u) / 2, w / w.sum()
        own = np.multiply.outer(rest, v)
        nodes = np.concatenate([np.repeat(nodes, points, axis=0), own.reshape(-1, 1)], axis=1)
        weights = np.multiply.outer(weights, w).ravel()
        rest = np.multiply.outer(rest, 1 - v).ravel()
    return np.concatenate([nodes, rest[:, None]], axis=1), weights


def by_quadrature(matrix, counts, alpha):
    """Evidence, E[P], E[P^2], E[F] and E[F^2] given the reports, from integrals over p alone."""
    n = sum(counts)
    p, weights = simplex_rule(alpha, n // 2 + 3)
    reports = p @ matrix
    density = weights * np.prod(reports ** np.asarray(counts), axis=1)
    evidence = density.sum()
    density = density / evidence
    # of the users who reported z a share psi has secret x, each for himself
    psi = p[:, :, None] * matrix[None] / reports[:, None, :]
    mean = (psi * np.asarray(counts)).sum(axis=2)
    variance = (psi * (1 - psi) * np.asarray(counts)).sum(axis=2)
    return {
        "evidence": evidence,
        "distribution": density @ p,
        "distribution squared": density @ p**2,
        "frequencies": density @ mean / n,
        "frequencies squared": density @ (variance + mean**2) / n**2,
    }


def of_two_secrets(matrix, counts, alpha, step=0.00125):
    """As `by_quadrature` for two secrets and any number of reports:
    the trapezoidal rule for the logarithm of the odds.

    It needs a posterior that is wider than the step. Its tails are those of the prior, e^(-alpha
    |v|).
    """
    reach = 50 + 40 / np.min(alpha)
    v = np.linspace(-reach, reach, 2 * round(reach / step) + 1)
    p = np.stack([special.expit(v), special.expit(-v)])
    reports = matrix.T @ p
    log_density = np.asarray(alpha) @ special.log_expit([v, -v]) + np.asarray(counts) @ np.log(
        reports
    )
    highest = log_density.max()
    density = np.exp(log_density - highest)
    total = density.sum()
    density /= total
    psi = p[:, None] * matrix[:, :, None] / reports
    mean = np.einsum("xzv,z->xv", psi, counts)
    variance = np.einsum("xzv,z->xv", psi * (1 - psi), counts)
    n, centre = sum(counts), mean @ density
    log_norm = special.gammaln(np.sum(alpha)) - special.gammaln(alpha).sum() + np.log(v[1] - v[0])
    return {
        "log evidence": highest + np.log(total) + log_norm,
        "distribution": p @ density,
        "distribution variance": (p - (p @ density)[:, None]) ** 2 @ density,
        "frequencies": centre / n,
        "frequencies variance": (variance + (mean - centre[:, None]) ** 2) @ density / n**2,
    }


def by_listing(matrix, counts, alpha):
    """The law of the totals from all k^n lists of secrets, {totals:
    probability}, and the evidence.
    """
    k = len(matrix)
    reports = [z for z, count in enumerate(counts) for _ in range(count)]
    found = {}
    for secrets in itertools.product(range(k), repeat=len(reports)):
        totals = tuple(secrets.count(x) for x in range(k))
        probability = math.prod(matrix[x][z] for x, z in zip(secrets, reports, strict=True))
        found[totals] = found.get(totals, 0.0) + probability * dirichlet_moment(alpha, totals)
    evidence = sum(found.values())
    return {totals: value / evidence for totals, value in found.items()}, evidence


def dirichlet_moment(alpha, powers):
    """E[prod_x P_x^powers_x], by the urn: a product of ratios."""
    total, value, drawn = sum(alpha), 1.0, 0
    for a, power in zip(alpha, powers, strict=True):
        for i in range(power):
            value *= (a + i) / (total + drawn)
            drawn += 1
    return value


def report_counts(n, reports):
    """All ways in which n reports can fall on so many kinds."""
    if reports == 1:
        return [(n,)]
    return [
        (first, *rest) for first in range(n + 1) for rest in report_counts(n - first, reports - 1)
    ]


def orders(counts):
    """In how many orders these counts can come: n! / prod counts!."""
    return math.factorial(sum(counts)) // math.prod(math.factorial(count) for count in counts)


def one_world(matrix, alpha, n, rng):
    """A distribution, the frequencies of n secrets from it, and the counts of their reports."""
    p = rng.dirichlet(alpha)
    secrets = rng.multinomial(n, p)
    counts = sum(rng.multinomial(total, row) for total, row in zip(secrets, matrix, strict=True))
    return p, secrets / n, counts
