"""Private channels by brute force:
extremal columns from all trees, the criteria from J itself, the best by SLSQP.
"""

import itertools

import numpy as np
from scipy.optimize import linprog, minimize

from oracles import naive


def walks(k, eps):
    """All columns on a line that go up or down by the factor e^eps
    at each step, shape (2^(k-1), k).
    """
    columns = []
    for steps in itertools.product((1, -1), repeat=k - 1):
        column = [1.0]
        for step in steps:
            column.append(column[-1] * np.exp(step * eps))
        columns.append(column)
    return np.array(columns)


def extremal_columns(distances, eps):
    """Columns that keep all bounds and attain k - 1 of them that connect all secrets:
    every tree, every orientation.
    """
    k = len(distances)
    found = set()
    for tree in itertools.combinations(itertools.combinations(range(k), 2), k - 1):
        for signs in itertools.product((1, -1), repeat=k - 1):
            logs = {0: 0.0}
            for _ in range(k):
                for (x, y), sign in zip(tree, signs, strict=True):
                    if x in logs and y not in logs:
                        logs[y] = logs[x] + sign * distances[x][y]
                    elif y in logs and x not in logs:
                        logs[x] = logs[y] - sign * distances[x][y]
            if len(logs) == k and all(
                logs[x] - logs[y] <= distances[x][y] + 1e-9
                for x in range(k)
                for y in range(k)
                if x != y
            ):
                found.add(tuple(round(logs[x], 7) + 0.0 for x in range(k)))
    return np.exp(eps * np.array(sorted(found)))


def covariance(matrix, theta):
    """J^-1 - theta theta^T for J = M diag(theta M)^-1 M^T."""
    information = (matrix / (theta @ matrix)) @ matrix.T
    return np.linalg.inv(information) - np.outer(theta, theta)


def criterion(matrix, theta, kind):
    """tr C, or sqrt(2/pi) times the standard deviations of the cumulative sums,
    for a line of unit steps.
    """
    c = covariance(matrix, theta)
    if kind == "mse":
        return np.trace(c)
    sums = np.tril(np.ones(c.shape))[:-1]
    variances = np.diag(sums @ c @ sums.T)
    if variances.min() < 0:  # a channel so near to a singular one that rounding decides
        raise np.linalg.LinAlgError("a variance below 0")
    return np.sqrt(2 / np.pi) * np.sqrt(variances).sum()


def log_criterion(matrix, theta, kind):
    """Logarithm of the criterion, large where nothing identifies theta: what searches go down."""
    try:
        value = criterion(matrix, theta, kind)
    except np.linalg.LinAlgError:
        return 50.0
    return np.log(value) if value > 0 else 50.0


def best_weights(columns, theta, kind):
    """Least criterion over mixtures of given columns, and its channel:
    SLSQP on the weights, a convex problem.
    """
    columns = columns / (columns @ theta)[:, None]
    n = len(columns)
    # weights that belong to a channel, the smallest as large as possible
    start = linprog(
        np.append(np.zeros(n), -1),
        A_ub=np.column_stack([-np.eye(n), np.ones(n)]),
        b_ub=np.zeros(n),
        A_eq=np.column_stack([columns.T, np.zeros(len(theta))]),
        b_eq=np.ones(len(theta)),
    ).x[:-1]
    found = minimize(
        lambda a: log_criterion((columns * a[:, None]).T, theta, kind),
        start,
        bounds=[(1e-10, 1)] * n,
        constraints={"type": "eq", "fun": lambda a: a @ columns - 1, "jac": lambda a: columns.T},
        options={"maxiter": 2000, "ftol": 1e-14},
        method="SLSQP",
    )
    channel = (columns * found.x[:, None]).T
    return criterion(channel, theta, kind), channel


def best_channel(distances, eps, theta, kind, m, rng, enough, starts=6, at_most=60):
    """Least criterion over all private channels with m reports:
    SLSQP on the entries themselves, from many starts.

    Which starts lead to the least differs from machine to machine: the search goes on until one is
    at `enough`.
    """
    k = len(theta)
    pairs = [(x, y) for x in range(k) for y in range(k) if x != y]
    factors = np.array([np.exp(eps * distances[x][y]) for x, y in pairs])
    first, second = np.array(pairs).T

    def slack(entries):
        matrix = entries.reshape(k, m)
        return (factors[:, None] * matrix[second] - matrix[first]).ravel()

    best = np.inf
    for tried in range(at_most):
        if tried >= starts and best <= enough:
            break
        start = np.exp(eps * rng.random((k, m)))
        found = minimize(
            lambda entries: log_criterion(entries.reshape(k, m), theta, kind),
            (start / start.sum(axis=1, keepdims=True)).ravel(),
            bounds=[(1e-6, 1)] * (k * m),
            constraints=[
                {"type": "ineq", "fun": slack},
                {"type": "eq", "fun": lambda entries: entries.reshape(k, m).sum(axis=1) - 1},
            ],
            options={"maxiter": 500, "ftol": 1e-13},
            method="SLSQP",
        )
        if (
            slack(found.x).min() > -1e-9
            and np.abs(found.x.reshape(k, m).sum(axis=1) - 1).max() < 1e-9
        ):
            best = min(best, np.exp(found.fun))
    return best


def random_channel(distances, eps, rng, columns=8):
    """Random columns exp(eps f), |f(x) - f(y)| <= d(x, y), and one more so that rows sum to 1."""
    k = len(distances)
    heights = rng.random((columns, k)) * rng.choice([0.3, 1, 3], (columns, 1)) * distances.max()
    # the largest function below the heights that keeps the bounds; upside down for half of the
    # columns
    f = (heights[:, :, None] + distances).min(axis=1) * rng.choice([1, -1], (columns, 1))
    channel = np.exp(eps * f).T * rng.dirichlet(np.ones(columns))
    total = channel.sum(axis=1)
    # as much of it as leaves a rest that is a private column itself
    most = min(
        (np.exp(eps * distances[x][y]) - 1) / excess
        for x, y in itertools.permutations(range(k), 2)
        if (excess := np.exp(eps * distances[x][y]) * total[y] - total[x]) > 0
    )
    share = most * rng.uniform(0.5, 1)
    channel = np.column_stack([share * channel, 1 - share * total])
    assert naive.epsilon_metric(channel, distances) <= eps * (1 + 1e-9)
    return channel
