"""All maximum likelihood estimates, and smoothed steps, where reports get lost."""

import numpy as np
from scipy.optimize import linprog

import ibukit as ik

# The second secret makes the reports of a mixture of the others, and is seen more rarely.
ROWS = np.array([[0.7, 0.2, 0.1], [0.4, 0.4, 0.2], [0.1, 0.6, 0.3]])
EFFICIENCY = np.array([0.9, 0.3, 0.05])


def test_the_set_is_that_of_linear_fractional_programmes():
    tally = ik.MatrixMechanism(EFFICIENCY[:, None] * ROWS, efficiency=True).tally_counts(
        [300, 400, 200]
    )
    found = ik.theory.mle_set(tally)
    assert not found.unique
    assert found.dimension == 1
    # Charnes and Cooper's programme over phi = y / sum y with the fit of the estimate.
    p = found.estimate.distribution * EFFICIENCY @ ROWS
    p /= p.sum()
    for w in np.vstack([np.eye(3), [[1, 1, 0], [0.5, -2, 3]]]):
        ends = []
        for sign in (1, -1):
            solution = linprog(
                sign * w / EFFICIENCY,
                A_eq=np.vstack([(ROWS - p).T, 1 / EFFICIENCY]),
                b_eq=[0, 0, 0, 1],
            )
            ends.append(sign * solution.fun)
        np.testing.assert_allclose(found.bounds(w), ends, atol=1e-7)
    for point in found.points:
        seen = point * EFFICIENCY @ ROWS
        np.testing.assert_allclose(seen / seen.sum(), p, atol=1e-9)
        assert found.distance(point) <= 1e-9
    np.testing.assert_array_equal(found.identified, found.estimate.identified)


def test_a_set_of_one_is_the_estimate():
    tally = ik.MatrixMechanism(EFFICIENCY[:, None] * np.eye(3), efficiency=True).tally_counts(
        [30, 40, 0]
    )
    found = ik.theory.mle_set(tally)
    assert found.unique
    numbers = np.array([30, 40, 0]) / EFFICIENCY
    np.testing.assert_allclose(found.lower, numbers / numbers.sum(), atol=1e-12)


def test_steps_with_smoothing_average_all_secrets():
    line = ik.Line(0, 3)
    rows = ik.TruncatedGeometric(line, 1.0).matrix()
    efficiency = np.array([0.9, 0.2, 0.5, 0.7])
    counts = np.array([50, 60, 90, 30])
    lossy = ik.MatrixMechanism(efficiency[:, None] * rows, line, efficiency=True)
    got = ik.ems(lossy.tally_counts(counts), ik.Steps(3)).distribution
    theta = np.full(4, 0.25)
    matrix = efficiency[:, None] * rows
    average = np.array([[2, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 1], [0, 0, 1, 2]])
    average = average / np.array([3, 4, 4, 3])[:, None]
    for _ in range(3):
        theta = theta * (matrix @ (counts / (theta @ matrix))) / efficiency
        theta = average @ theta
        theta /= theta.sum()
    np.testing.assert_allclose(got, theta, atol=1e-12)
    plain = ik.MatrixMechanism(rows, line).tally_counts(counts)
    alike = ik.MatrixMechanism(0.5 * rows, line, efficiency=True).tally_counts(counts)
    np.testing.assert_allclose(ik.ems(alike).distribution, ik.ems(plain).distribution, atol=1e-12)
