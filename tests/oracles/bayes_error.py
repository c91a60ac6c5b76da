"""Mean squared errors and entropies under a Dirichlet prior, over all report counts.
This file may not import ibukit.

Integrals over the simplex by breaking a stick, each piece with its own Gauss rule: exact for the
polynomials that the likelihoods are, whatever the prior's parameter.
"""

import itertools
import math

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln, roots_jacobi, xlogy


def beta_nodes(a, b, order):
    """Points and weights of the mean under Beta(a, b),
    exact for polynomials below degree 2 order.
    """
    x, w = roots_jacobi(order, b - 1, a - 1)
    return (1 + x) / 2, w / w.sum()


def dirichlet_nodes(alpha, order):
    """Points (N, k) and weights (N,) of the mean under Dirichlet(alpha)."""
    if len(alpha) == 1:
        return np.ones((1, 1)), np.ones(1)
    first, w = beta_nodes(alpha[0], sum(alpha[1:]), order)
    rest, v = dirichlet_nodes(alpha[1:], order)
    points = [np.r_[p, (1 - p) * q] for p in first for q in rest]
    return np.array(points), np.outer(w, v).ravel()


def all_counts(m, n):
    """Every way in which n reports fall on m values."""
    for bars in itertools.combinations(range(n + m - 1), m - 1):
        yield np.diff([-1, *bars, n + m - 1]) - 1


def multinomial(counts):
    """Number of orders in which the counts can arise."""
    return math.factorial(sum(counts)) // math.prod(math.factorial(count) for count in counts)


def least_errors(matrix, alpha, n):
    """Mean squared errors of E[P | reports] and E[F | reports]: nobody has smaller ones."""
    points, weights = dirichlet_nodes(alpha, n // 2 + 2)
    p_reports = points @ matrix
    psi = points[:, :, None] * matrix / p_reports[:, None, :]  # of the secret, given P and a report
    distribution = frequencies = total = 0.0
    for s in all_counts(matrix.shape[1], n):
        joint = weights * multinomial(s) * (p_reports**s).prod(axis=1)
        seen = joint.sum()
        post = joint / seen
        mean = post @ points
        distribution += seen * (post @ (points**2).sum(axis=1) - mean @ mean)
        # given P and the reports the users are independent
        t = psi @ s
        squares = (t + (psi**2) @ (s * (s - 1)) + t**2 - (psi**2) @ (s * s)).sum(axis=1)
        of_t = post @ t
        frequencies += seen * (post @ squares - of_t @ of_t) / n**2
        total += seen
    assert abs(total - 1) < 1e-10
    return distribution, frequencies


def log_density(points, alpha):
    """Of Dirichlet(alpha) in k - 1 coordinates."""
    alpha = np.asarray(alpha, dtype=float)
    return xlogy(alpha - 1, points).sum(axis=1) + gammaln(alpha.sum()) - gammaln(alpha).sum()


def posterior_entropy(matrix, alpha, n, order):
    """h(P | reports) in k - 1 coordinates, and the mean of exp(2 h / (k-1)) over the reports."""
    points, weights = dirichlet_nodes(alpha, order)
    prior, log_reports = log_density(points, alpha), np.log(points @ matrix)
    entropy = powers = 0.0
    for s in all_counts(matrix.shape[1], n):
        log_like = log_reports @ s
        top = log_like.max()
        likes = weights * np.exp(log_like - top)
        seen = likes.sum()
        p_seen = math.exp(math.log(multinomial(s)) + top) * seen
        h = -(likes / seen) @ (log_like - top + prior) + math.log(seen)
        entropy += p_seen * h
        powers += p_seen * math.exp(2 * h / (len(alpha) - 1))
    return entropy, powers


def binary_response_entropies(eps, alpha, n, order):
    """h(P | reports) of one coordinate and H(F | reports)
    for two secrets under randomised response, any n.
    """
    rho = math.exp(eps) / (math.exp(eps) + 1)
    p, weights = beta_nodes(*alpha, order)
    prior = log_density(np.c_[p, 1 - p], alpha)
    q = (1 - rho) + (2 * rho - 1) * p
    s = np.arange(n + 1)[:, None]
    log_like = s * np.log(q) + (n - s) * np.log1p(-q)
    top = log_like.max(axis=1, keepdims=True)
    likes = weights * np.exp(log_like - top)
    seen = likes.sum(axis=1)
    log_choose = gammaln(n + 1) - gammaln(s[:, 0] + 1) - gammaln(n - s[:, 0] + 1)
    p_seen = np.exp(log_choose + top[:, 0]) * seen
    h = -(likes * (log_like - top + prior)).sum(axis=1) / seen + np.log(seen)
    mean = (likes @ p) / seen
    variance = (likes @ p**2) / seen - mean**2
    joint = binary_response_joint(eps, alpha, n)
    p_t = joint.sum(axis=1)
    big_h = -(xlogy(joint, joint).sum() - xlogy(p_t, p_t).sum())
    f, possible = np.arange(n + 1) / n, p_t > 0
    joint, p_t = joint[possible], p_t[possible]
    frequencies = 2 * (joint @ f**2 - (joint @ f) ** 2 / p_t).sum()
    return {
        "h": p_seen @ h,
        "H": big_h,
        "distribution": 2 * p_seen @ variance,
        "frequencies": frequencies,
    }


def binary_response_joint(eps, alpha, n):
    """P(S = s, T = t): how many report the first of two secrets,
    and how many have it, shape (n + 1, n + 1).
    """
    rho = math.exp(eps) / (math.exp(eps) + 1)
    joint = np.empty((n + 1, n + 1))
    for t in range(n + 1):
        log_choose = gammaln(n + 1) - gammaln(t + 1) - gammaln(n - t + 1)
        p_t = math.exp(log_choose + betaln(alpha[0] + t, alpha[1] + n - t) - betaln(*alpha))
        honest = stats.binom.pmf(np.arange(t + 1), t, rho)
        lies = stats.binom.pmf(np.arange(n - t + 1), n - t, 1 - rho)
        joint[:, t] = p_t * np.convolve(honest, lies)
    return joint


def binary_inversion_errors(eps, alpha, n):
    """Mean squared errors of the debiased count of two secrets, over all counts,
    from the joint law of S, T and P.
    """
    joint = binary_response_joint(eps, alpha, n)
    s, t = np.arange(n + 1)[:, None], np.arange(n + 1)[None, :]
    v = ((math.exp(eps) + 1) * s / n - 1) / (math.exp(eps) - 1)
    a0 = sum(alpha)
    mean = (alpha[0] + t) / (a0 + n)  # of P given T
    variance = mean * (1 - mean) / (a0 + n + 1)
    return 2 * (joint * ((v - mean) ** 2 + variance)).sum(), 2 * (joint * (v - t / n) ** 2).sum()


def k1_k2_at(matrix, p):
    """-1/2 log det J and 1/2 [log det N - log det J - sum log p],
    letter by letter from (36)-(40).
    """
    k, m = matrix.shape
    j, n = np.zeros((k - 1, k - 1)), np.zeros((k - 1, k - 1))
    for y in range(m):
        p_y = p @ matrix[:, y]
        d = matrix[:-1, y] - matrix[-1, y]
        j += np.outer(d, d) / p_y
        psi = matrix[:-1, y] * p[:-1] / p_y
        n += p_y * (np.diag(psi) - np.outer(psi, psi))
    log_j = np.linalg.slogdet(j)[1]
    return -log_j / 2, (np.linalg.slogdet(n)[1] - log_j - np.log(p).sum()) / 2
