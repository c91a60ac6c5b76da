"""Slow loops written from the papers' formulas, to compare the package with.
This file may not import ibukit.

Conventions: channel matrices have one row for each secret and one column for each report; a grid's
cells are counted row by row from the south-west corner; bit 0 of a unary report is its most
significant one.
"""

import itertools
import math

import numpy as np
from scipy import integrate, optimize

# Distances


def line_distances(k):
    """|x - y| between the integers 0..k-1."""
    return np.array([[float(abs(x - y)) for y in range(k)] for x in range(k)])


def cells(n_rows, n_cols):
    """(row, column) of each cell, row 0 in the south."""
    return [(row, col) for row in range(n_rows) for col in range(n_cols)]


def grid_distances(n_rows, n_cols, height=1.0, width=None):
    """Euclidean distances between the centres of cells."""
    width = height if width is None else width
    places = cells(n_rows, n_cols)
    return np.array(
        [[math.hypot((r - u) * height, (c - v) * width) for u, v in places] for r, c in places]
    )


# Mechanisms for local differential privacy


def k_rr(k, eps):
    """k-RR, eq. (5) of the consistency paper: e^eps and 1, over k - 1 + e^eps."""
    total = k - 1 + math.exp(eps)
    return np.array(
        [[(math.exp(eps) if x == z else 1.0) / total for z in range(k)] for x in range(k)]
    )


def all_bit_rows(k):
    """The 2^k rows of k bits in the order of the binary numbers that they spell."""
    return list(itertools.product((0, 1), repeat=k))


def unary(k, p_one, p_zero, rows=None):
    """Each bit by itself: bit x of secret x is set
    with probability p_one, every other with p_zero.
    """
    rows = all_bit_rows(k) if rows is None else rows
    matrix = np.empty((k, len(rows)))
    for x in range(k):
        for z, bits in enumerate(rows):
            p = 1.0
            for i, bit in enumerate(bits):
                set_to_one = p_one if i == x else p_zero
                p *= set_to_one if bit else 1 - set_to_one
            matrix[x, z] = p
    return matrix


def rappor(k, eps, rows=None):
    """Basic one-time RAPPOR: a bit is kept with probability e^(eps/2) / (1 + e^(eps/2))."""
    keep = math.exp(eps / 2) / (1 + math.exp(eps / 2))
    return unary(k, keep, 1 - keep, rows)


def rappor_closed_form(bits, x, eps):
    """P(b given x) = p^k e^(-(1/2 + S(b)/2 - b_x) eps),
    the lemma of section 4.4 of the consistency paper.
    """
    p = math.exp(eps / 2) / (1 + math.exp(eps / 2))
    return p ** len(bits) * math.exp(-(0.5 + sum(bits) / 2 - bits[x]) * eps)


def oue(k, eps, rows=None):
    """Optimised unary encoding: 1/2 and 1 / (e^eps + 1)."""
    return unary(k, 0.5, 1 / (math.exp(eps) + 1), rows)


# Mechanisms for metric privacy


def geometric(secrets, reports, eps):
    """Linear geometric mechanism on all integers, eq. (6) of the consistency paper."""
    a = math.exp(-eps)
    return np.array([[(1 - a) / (1 + a) * a ** abs(z - x) for z in reports] for x in secrets])


def truncated_geometric(k, eps):
    """Eqs (7)-(11) of the consistency paper on r1 = 0, ..., r2 = k - 1."""
    a = math.exp(-eps)
    matrix = np.empty((k, k))
    for x in range(k):
        for z in range(k):
            c = 1 / (1 + a) if z in (0, k - 1) else (1 - a) / (1 + a)
            matrix[x, z] = c * a ** abs(z - x)
    return matrix


def planar_lambda(height, width, eps, exponent=46.0):
    """1 / sum of exp(-eps d) over the offsets of the infinite grid,
    cut where a term is below e^-exponent.
    """
    north, east = math.ceil(exponent / (eps * height)), math.ceil(exponent / (eps * width))
    terms = (
        math.exp(-eps * math.hypot(i * height, j * width))
        for i in range(-north, north + 1)
        for j in range(-east, east + 1)
    )
    return 1 / math.fsum(terms)


def planar_geometric(secrets, reports, height, width, eps):
    """Planar geometric mechanism:
    lambda exp(-eps d) for (row, column) pairs anywhere on the infinite grid.
    """
    scale = planar_lambda(height, width, eps)
    return np.array(
        [
            [
                scale * math.exp(-eps * math.hypot((u - r) * height, (v - c) * width))
                for u, v in reports
            ]
            for r, c in secrets
        ]
    )


def truncated_planar_geometric(n_rows, n_cols, height, width, eps, exponent=46.0):
    """Every cell of a large window is remapped to the nearest cell of the grid, one by one."""
    scale = planar_lambda(height, width, eps, exponent)
    # wide enough for what a border cell gets from the opposite border, which is small itself
    reach = exponent / eps + math.hypot(n_rows * height, n_cols * width)
    north, east = n_rows + math.ceil(reach / height), n_cols + math.ceil(reach / width)
    places = cells(n_rows, n_cols)
    terms = [[[] for _ in places] for _ in places]
    for x, (r, c) in enumerate(places):
        for i in range(-north, north + 1):
            for j in range(-east, east + 1):
                row, col = min(max(r + i, 0), n_rows - 1), min(max(c + j, 0), n_cols - 1)
                terms[x][row * n_cols + col].append(
                    scale * math.exp(-eps * math.hypot(i * height, j * width))
                )
    return np.array([[math.fsum(entry) for entry in row] for row in terms])


def linear_laplace(k, eps):
    """Laplace density eps/2 e^(-eps |t|), integrated over the reals that round to each report."""

    def density(t):
        return eps / 2 * math.exp(-eps * abs(t))

    matrix = np.empty((k, k))
    for x in range(k):
        for z in range(k):
            low = -math.inf if z == 0 else z - 0.5 - x
            high = math.inf if z == k - 1 else z + 0.5 - x
            pieces = [(low, 0.0), (0.0, high)] if low < 0 < high else [(low, high)]
            matrix[x, z] = sum(
                integrate.quad(density, *piece, epsabs=0, epsrel=1e-12)[0] for piece in pieces
            )
    return matrix


def planar_cell(x, z, n_rows, n_cols, height, width):
    """The box (south, north, west, east), seen from the centre of cell x,
    of the points whose nearest cell is z.
    """
    (r, c), (u, v) = x, z
    south = -math.inf if u == 0 else (u - r - 0.5) * height
    north = math.inf if u == n_rows - 1 else (u - r + 0.5) * height
    west = -math.inf if v == 0 else (v - c - 0.5) * width
    east = math.inf if v == n_cols - 1 else (v - c + 0.5) * width
    return south, north, west, east


def planar_laplace_polar(south, north, west, east, eps):
    """Mass of eps^2/(2 pi) e^(-eps r) on a box:
    the radial integral in closed form, quadrature over the angle.
    """

    def along(angle):
        near, far = 0.0, math.inf
        for direction, low, high in (
            (math.sin(angle), south, north),
            (math.cos(angle), west, east),
        ):
            if abs(direction) < 1e-300:
                if not low < 0 < high:
                    return 0.0
                continue
            ends = sorted((low / direction, high / direction))
            near, far = max(near, ends[0]), min(far, ends[1])
        if near >= far:
            return 0.0
        return (1 + eps * near) * math.exp(-eps * near) - (
            0 if far == math.inf else (1 + eps * far) * math.exp(-eps * far)
        )

    corners = [
        math.atan2(y, x)
        for y in (south, north)
        for x in (west, east)
        if math.isfinite(y) and math.isfinite(x)
    ]
    breaks = sorted({-math.pi, -math.pi / 2, 0.0, math.pi / 2, math.pi, *corners})
    pieces = [
        integrate.quad(along, low, high, epsabs=0, epsrel=1e-12, limit=200)[0]
        for low, high in itertools.pairwise(breaks)
        if along((low + high) / 2) > 0
    ]
    return math.fsum(pieces) / (2 * math.pi)


def planar_laplace_cartesian(south, north, west, east, eps):
    """The same mass by quadrature of the density in both coordinates;
    for boxes that do not hold the origin.
    """

    def density(y, x):
        return eps**2 / (2 * math.pi) * math.exp(-eps * math.hypot(x, y))

    return integrate.dblquad(density, west, east, south, north, epsabs=0, epsrel=1e-11)[0]


def exponential(distances, eps):
    """exp(-eps d / 2) / N_x, section 7.3 of the consistency paper."""
    matrix = np.empty(np.shape(distances))
    for x, row in enumerate(distances):
        weights = [math.exp(-eps * d / 2) for d in row]
        matrix[x] = [w / math.fsum(weights) for w in weights]
    return matrix


def compose(first, second):
    """(M C)_xw = sum_z M_xz C_zw."""
    k, m, width = len(first), len(second), len(second[0])
    return np.array(
        [
            [math.fsum(first[x][z] * second[z][w] for z in range(m)) for w in range(width)]
            for x in range(k)
        ]
    )


# Privacy levels


def epsilon_ldp(matrix):
    """max over x, x', z of log(M_xz / M_x'z)."""
    pairs = itertools.permutations(range(len(matrix)), 2)
    return max(
        math.log(matrix[x][z] / matrix[y][z]) for x, y in pairs for z in range(len(matrix[0]))
    )


def epsilon_metric(matrix, distances):
    """max over x != x', z of log(M_xz / M_x'z) / d(x, x')."""
    pairs = itertools.permutations(range(len(matrix)), 2)
    return max(
        math.log(matrix[x][z] / matrix[y][z]) / distances[x][y]
        for x, y in pairs
        for z in range(len(matrix[0]))
    )


# Estimators


def log_likelihood(matrix, counts, theta):
    """sum_z counts_z log(sum_x theta_x M_xz); a report never seen contributes nothing."""
    k = len(matrix)
    terms = [
        count * math.log(math.fsum(theta[x] * matrix[x][z] for x in range(k)))
        for z, count in enumerate(counts)
        if count > 0
    ]
    return math.fsum(terms)


def ibu_step(matrix, counts, theta):
    """Algorithm 1 of the consistency paper:
    theta'_x = sum_z q_z theta_x M_xz / sum_u theta_u M_uz.
    """
    k, n = len(matrix), sum(counts)
    new = [0.0] * k
    for z, count in enumerate(counts):
        if count == 0:
            continue
        p = math.fsum(theta[u] * matrix[u][z] for u in range(k))
        for x in range(k):
            new[x] += count / n * theta[x] * matrix[x][z] / p
    return np.array(new)


def ibu(matrix, counts, n_iter, start=None):
    """`n_iter` steps from the uniform distribution or from `start`."""
    theta = (
        np.full(len(matrix), 1 / len(matrix)) if start is None else np.asarray(start, dtype=float)
    )
    for _ in range(n_iter):
        theta = ibu_step(matrix, counts, theta)
    return theta


def gap(matrix, counts, theta):
    """log max_x g_x with g_x = sum_z q_z M_xz / (theta M)_z."""
    k, n = len(matrix), sum(counts)
    g = [0.0] * k
    for z, count in enumerate(counts):
        if count == 0:
            continue
        p = math.fsum(theta[u] * matrix[u][z] for u in range(k))
        for x in range(k):
            g[x] += count / n * matrix[x][z] / p
    return math.log(max(g))


def inv(matrix, counts):
    """v with v M = q, for a square channel."""
    q = np.asarray(counts) / sum(counts)
    return np.linalg.solve(np.asarray(matrix).T, q)


def clip_and_normalize(v):
    """INV-N: negative entries to zero, then divide by the sum."""
    clipped = [max(entry, 0.0) for entry in v]
    return np.array([entry / math.fsum(clipped) for entry in clipped])


def project(v):
    """INV-P: max(v - tau, 0) with the tau, found by bisection, that makes the entries sum to 1."""
    low, high = min(v) - 1, max(v)
    for _ in range(200):
        tau = (low + high) / 2
        if math.fsum(max(entry - tau, 0.0) for entry in v) > 1:
            low = tau
        else:
            high = tau
    return np.array([max(entry - low, 0.0) for entry in v])


# Losses


def emd(p, q, distances):
    """Earth mover's distance: the least cost of a transport plan, as a linear programme."""
    k = len(p)
    leaves = np.kron(np.eye(k), np.ones(k))
    arrives = np.kron(np.ones(k), np.eye(k))
    plan = optimize.linprog(
        np.asarray(distances).ravel(),
        A_eq=np.vstack([leaves, arrives]),
        b_eq=np.concatenate([p, q]),
        method="highs",
    )
    assert plan.success, plan.message
    return plan.fun


def total_variation(p, q):
    """Half the sum of |p - q|."""
    return math.fsum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def squared_l2(p, q):
    """Sum of (p - q)^2."""
    return math.fsum((a - b) ** 2 for a, b in zip(p, q, strict=True))


def project_to_simplex(v):
    """argmin ||p - v||^2 over the simplex, by a general solver."""
    found = optimize.minimize(
        lambda p: ((p - v) ** 2).sum(),
        np.full(len(v), 1 / len(v)),
        jac=lambda p: 2 * (p - v),
        method="SLSQP",
        bounds=[(0, None)] * len(v),
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(len(p))},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success, found.message
    return found.x
