"""Smooth estimates of all secrets where reports get lost, beside a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import ibukit as ik


def blurred(k=12, m=15, lost=(0.9, 0.2)):
    places = np.linspace(-1, k, m)
    rows = norm.pdf(places - np.arange(k)[:, None], scale=1.3)
    return rows / rows.sum(axis=1, keepdims=True) * np.linspace(*lost, k)[:, None]


def objective(matrix, counts, penalty, pairs):
    """What is to be as small as possible, of the square roots of any multiple of theta."""

    def minus(root):
        theta = root**2 / (root @ root)
        p = theta @ matrix
        rough = sum((np.sqrt(theta[i]) - np.sqrt(theta[j])) ** 2 * w for i, j, w in pairs)
        return -(counts @ np.log(p / p.sum())) + penalty * rough

    return minus


def by_bfgs(minus, k):
    root = minimize(minus, np.ones(k), method="BFGS", options={"gtol": 1e-8, "maxiter": 5000}).x
    return root**2 / (root @ root), root


def pairs_of_line(k):
    return [(x, x + 1, 1.0) for x in range(k - 1)]


@pytest.mark.parametrize("penalty", [0.5, 20.0, 400.0])
@pytest.mark.parametrize("lost", [(0.9, 0.2), (0.05, 1.0), (0.6, 0.6)])
def test_it_is_the_maximum_that_bfgs_finds(penalty, lost):
    matrix, k = blurred(lost=lost), 12
    truth = norm.pdf(np.arange(k), 7, 2)
    counts = np.random.default_rng(3).multinomial(800, truth @ matrix / (truth @ matrix).sum())
    tally = ik.MatrixMechanism(matrix, ik.Line(0, k - 1), efficiency=True).tally_counts(counts)
    found = ik.smooth(tally, penalty=penalty)
    minus = objective(matrix, counts, penalty, pairs_of_line(k))
    right, root = by_bfgs(minus, k)
    assert minus(np.sqrt(found.distribution)) <= minus(root) + 1e-6
    np.testing.assert_allclose(found.distribution, right, rtol=0, atol=2e-4)
    assert found.status is ik.Status.CONVERGED
    # The gap is of the likelihood, as everywhere: it bounds what the maximum has more.
    best = ik.mle(tally)
    lacking = (best.log_likelihood - found.log_likelihood) / tally.n
    assert 0 <= lacking <= found.gap + 1e-12


def test_it_is_the_maximum_on_a_grid():
    grid = ik.Grid(3, 4, cell_size=(1.0, 2.0))
    rng = np.random.default_rng(1)
    matrix = rng.dirichlet(np.ones(9), 12) * rng.uniform(0.3, 1, 12)[:, None]
    counts = rng.integers(5, 60, 9)
    (height, width) = grid.cell_shape
    pairs = [(4 * r + c, 4 * r + c + 4, height**-2) for r in range(2) for c in range(4)]
    pairs += [(4 * r + c, 4 * r + c + 1, width**-2) for r in range(3) for c in range(3)]
    found = ik.smooth(ik.MatrixMechanism(matrix, grid, 9, True).tally_counts(counts), penalty=30)
    minus = objective(matrix, counts, 30, pairs)
    right, root = by_bfgs(minus, 12)
    assert minus(np.sqrt(found.distribution)) <= minus(root) + 1e-6
    np.testing.assert_allclose(found.distribution, right, rtol=0, atol=2e-4)


def test_equal_losses_change_nothing():
    matrix = blurred(lost=(1.0, 1.0))
    counts = np.random.default_rng(2).integers(10, 90, 15)
    whole, lossy = (
        ik.MatrixMechanism(scale * matrix, ik.Line(0, 11), efficiency=True).tally_counts(counts)
        for scale in (1.0, 0.3)
    )
    assert whole.efficiency is None
    assert lossy.efficiency is not None
    for penalty in (5.0, None):
        np.testing.assert_allclose(
            ik.smooth(lossy, penalty).distribution,
            ik.smooth(whole, penalty).distribution,
            rtol=0,
            atol=1e-7,
        )
    assert ik.choose_penalty(lossy) == pytest.approx(ik.choose_penalty(whole), rel=0.02)


def test_an_unfolding_is_smoothed_through_its_tally():
    k, rng = 20, np.random.default_rng(5)
    matrix = blurred(k, 22, (0.9, 0.3))
    truth = norm.pdf(np.arange(k), 9, 3)
    truth /= truth.sum()
    rough, curve = [], []
    for _ in range(20):
        unfolded = ik.unfold(rng.poisson(2000 * truth @ matrix), matrix)
        rough.append(abs(unfolded.distribution - truth).sum())
        curve.append(abs(ik.smooth(unfolded.tally).distribution - truth).sum())
    # The smooth one is several times as near, with its penalty from the counts alone.
    assert np.mean(curve) < 0.4 * np.mean(rough)


def test_losses_of_many_orders():
    matrix = blurred()
    matrix[:6] *= 1e-9
    counts = np.full(15, 40)
    tally = ik.MatrixMechanism(matrix, ik.Line(0, 11), efficiency=True).tally_counts(counts)
    found = ik.smooth(tally, penalty=50.0)
    minus, start = objective(matrix, counts, 50.0, pairs_of_line(12)), np.sqrt(found.distribution)
    for move in np.random.default_rng(1).normal(size=(200, 12)):
        for size in (1e-3, 1e-2, 0.1, 1.0):
            assert minus(start) <= minus(start * np.exp(size * move)) + 1e-6


def test_the_frequencies_of_those_not_seen_are_refused():
    tally = ik.unfold([30, 20], [[0.6, 0.2], [0.1, 0.3]]).tally
    with pytest.raises(ValueError, match="of must be 'distribution' where reports may be lost"):
        ik.smooth(tally, of="frequencies")


def test_where_secrets_have_no_neighbours_is_said():
    tally = ik.MatrixMechanism([[0.6, 0.2], [0.1, 0.3]], ["a", "b"], efficiency=True).tally(["a"])
    with pytest.raises(ik.errors.AlphabetMismatch, match="tally must be over a Line or a Grid"):
        ik.smooth(tally)


@pytest.mark.parametrize(("penalty", "first"), [(20, 0.001174), (40, 0.001223), (67, 0.4946)])
def test_the_better_of_two_maxima_is_found(penalty, first):
    """One secret is seen a thousand times as often: on a fine mesh there are two maxima."""
    matrix, counts = np.array([[0.9, 0.1], [0.0002, 0.0008]]), np.array([80, 60])
    tally = ik.MatrixMechanism(matrix, ik.Line(0, 1), efficiency=True).tally_counts(counts)
    minus = objective(matrix, counts, penalty, [(0, 1, 1.0)])
    mesh = 1 / (1 + np.exp(np.linspace(-12, 12, 4001)))
    values = np.array([minus(np.sqrt([p, 1 - p])) for p in mesh])
    inner = values[1:-1]
    assert ((inner < values[2:]) & (inner < values[:-2])).sum() == 2
    found = ik.smooth(tally, penalty).distribution
    assert found[0] == pytest.approx(first, rel=1e-3)
    assert minus(np.sqrt(found)) <= values.min() + 1e-9


@pytest.mark.filterwarnings("error")
def test_a_common_factor_of_all_efficiencies_matters_to_no_estimate():
    matrix, counts = [[0.3, 0.3, 0.4], [0.2, 0.5, 0.3]], [100, 250, 220]
    usual, tiny = (
        ik.MatrixMechanism(matrix, efficiency=[factor] * 2).tally_counts(counts)
        for factor in (1.0, 1e-300)
    )
    found = ik.smooth(tiny, 3.0)
    assert found.distribution == pytest.approx(ik.smooth(usual, 3.0).distribution, rel=1e-6)
