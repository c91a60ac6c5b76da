"""What the planar solver does in single precision and on few nodes,
and that neither is felt in the answer.
"""

from dataclasses import replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import plane
from ibukit.channels.fourier import gram
from ibukit.solvers import plane as plane_solver
from ibukit.solvers._plane_preconditioner import MAX_DECAY, Nodes, Preconditioner, _decay


def channels(rng):
    """One of each kind: four kernels, factors, scales, and reports with columns of their own."""
    grid = ik.Grid(23, 31, cell_size=(1.0, 0.7))
    some = np.sort(rng.choice(713, 600, replace=False))
    yield ik.TruncatedPlanarGeometric(grid, 0.4)
    yield plane.row_normalised(grid, 0.4, some)
    yield plane.column_scaled(grid, 0.4, some, rng.random(600))
    # a scale of 1 for some reports alone
    yield plane.column_scaled(
        grid, 0.4, some, np.where(rng.random(600) < 0.5, 1.0, 3 * rng.random(600))
    )
    noise = ik.PlanarGeometric(grid, 0.4)
    (part,) = noise.simulate(np.full(713, 20), rng).parts
    yield part.channel


def of(kind, rng):
    made = list(channels(rng))[kind]
    if isinstance(made, plane.PlaneChannel):
        return made
    return plane.remapped(made.alphabet, made._table, np.arange(713))


@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4])
def test_products_in_single_precision_err_by_single_precision(kind, rng):
    channel = of(kind, rng)
    w, x = (
        rng.random(channel.size) ** 3,
        rng.normal(size=channel.k) * 1e-40,
    )  # in units of their own
    matrix = channel.matrix()
    exact = matrix @ (w * (x @ matrix))
    single = channel.gram_single.of(w)(x)
    assert 1e-9 < np.abs(single - exact).max() / np.abs(exact).max() < 3e-6
    assert np.abs(channel.gram_product(w, x) - exact).max() / np.abs(exact).max() < 1e-13


def test_reports_seen_twice_are_added_up(rng):
    cells = np.concatenate([np.arange(713), np.arange(0, 713, 2)])
    channel = plane.row_normalised(ik.Grid(23, 31), 0.4, cells)
    w = rng.random(channel.size)
    np.testing.assert_allclose(channel.adjoint(w), channel.matrix() @ w, rtol=1e-12)


def test_the_product_of_nothing_is_nothing():
    channel = plane.row_normalised(ik.Grid(23, 31), 0.4, np.arange(713))
    assert (channel.gram_single.of(np.ones(713))(np.zeros(713)) == 0).all()
    assert np.isnan(channel.gram_single.of(np.ones(713))(np.full(713, np.inf))).all()


@pytest.mark.parametrize("corner", [0, 1])
def test_products_with_reports_from_one_corner_alone(corner, rng):
    cells = np.add.outer(31 * np.arange(3), np.arange(4)).ravel()
    channel = plane.row_normalised(ik.Grid(23, 31), 0.1, np.sort(712 - cells) if corner else cells)
    w, x, matrix = rng.random(12), rng.random(713), channel.matrix()
    exact = matrix @ (w * (x @ matrix))
    assert np.abs(channel.gram_single.of(w)(x) - exact).max() < 3e-6 * exact.max()


@pytest.mark.parametrize("scale", [0.0, 2.0**-400, 2.0**400])
def test_the_preconditioner_works_in_units_of_what_it_is_given(scale, rng):
    preconditioner = Preconditioner(plane.row_normalised(ik.Grid(24, 30), 0.2, np.arange(720)))
    assert preconditioner.factor(10 ** rng.uniform(-5, 1, 720), rng.random(720) + 0.5)
    x = rng.normal(size=720)
    plain, scaled = preconditioner.solve(x), preconditioner.solve(scale * x)
    assert np.abs(scaled - scale * plain).max() <= 1e-6 * scale * np.abs(plain).max()


def test_what_single_precision_gets_wrong_is_put_right(monkeypatch, rng):
    channel = plane.row_normalised(ik.Grid(30, 30), 0.3, np.arange(900))
    q = rng.multinomial(10**6, channel.forward(rng.dirichlet(np.full(900, 0.1)))) / 10**6
    channel, q = plane.row_normalised(ik.Grid(30, 30), 0.3, np.flatnonzero(q)), q[q > 0]
    right, product = plane_solver.maximise(channel, q, 1e-9)[0], gram.Gram.of
    asked = []

    def wrong(self, w):
        asked.append(1)
        right = product(self, w)
        return lambda x: 1.1 * right(x)  # as if single precision had one digit

    monkeypatch.setattr(gram.Gram, "of", wrong)
    found, steps = plane_solver.maximise(channel, q, 1e-9)
    assert asked
    assert steps <= 30
    for theta in (right, found):
        assert channel.adjoint(q / channel.forward(theta)).max() - 1 <= 1e-9


@pytest.mark.parametrize("step", [1, 2, 3])
def test_what_is_cubic_between_nodes_is_known_exactly(step):
    nodes = Nodes(20, step)
    at = np.arange(nodes.matrix.shape[1]) * step - (step if step > 1 else 0.0)
    for power in range(4):
        np.testing.assert_allclose(
            nodes.matrix @ (at / 20) ** power, (np.arange(20) / 20) ** power, atol=1e-6
        )


def test_between_nodes_the_preconditioner_is_the_inverse_that_its_formula_says(rng):
    channel = plane.row_normalised(ik.Grid(24, 30), 0.2, np.arange(720))
    preconditioner = Preconditioner(channel)
    (strip,) = preconditioner._strips
    assert strip.nodes.step == 2
    d, h = 10 ** rng.uniform(-5, 1, 720), rng.random(720) + 0.5
    assert preconditioner.factor(d, h)
    across, along = strip.nodes.matrix.toarray(), preconditioner._along.matrix.toarray()
    nodes = across.shape[1] * along.shape[1]
    operator = np.zeros((nodes, nodes))
    for offset, values in strip.operator:
        first = np.arange(nodes - offset)
        operator[first + offset, first] = operator[first, first + offset] = values
    spread = np.einsum("xi,yj->xyji", across, along).reshape(720, nodes)
    c = spread @ np.linalg.inv(operator) @ spread.T + preconditioner._delta * np.eye(720)
    root = np.sqrt(h)
    whole = np.diag(d) + root[:, None] * c * root
    x = rng.normal(size=720)
    exact = np.linalg.solve(whole, x)
    assert np.abs(preconditioner.solve(x) - exact).max() <= 1e-4 * np.abs(exact).max()
    # and the formula is about what it stands for
    assert 0.5 < np.median(np.diag(c)) < 1.5


@pytest.mark.parametrize("scaled", [False, True])
def test_improbable_reports_are_exact_without_adding_up_all_terms(scaled, monkeypatch, rng):
    grid = ik.Grid(60, 60)
    channel = plane.row_normalised(grid, 0.9, np.arange(3600))
    if scaled:
        channel = replace(channel, scale=10.0 ** rng.uniform(-4, 4, 3600))
    theta = 1e-13 * rng.random(3600)
    theta[:40] = rng.random(40)
    theta[1200:1230] = 1e-8
    exact, added = theta @ channel.matrix(), []
    one_by_one = plane.PlaneChannel._direct_sums
    monkeypatch.setattr(
        plane.PlaneChannel,
        "_direct_sums",
        lambda self, m, z: added.append((m > 0).sum() * len(z)) or one_by_one(self, m, z),
    )
    np.testing.assert_allclose(channel.forward(theta), exact, rtol=1e-10)
    all_terms = sum(added)
    assert (
        np.abs(channel.convolve(theta) / exact - 1).max() > 1e-6
    )  # a transform alone would not do
    monkeypatch.setattr(plane, "MAX_DIRECT_TERMS", 1000)
    monkeypatch.setattr(plane, "FIRST_HEAVIEST", 64)
    added.clear()
    np.testing.assert_allclose(channel.forward(theta), exact, rtol=1e-10)
    assert 0 < sum(added) < all_terms / 2


@pytest.mark.parametrize(("n", "known"), [(1, False), (2, True), (3, True), (9, True)])
def test_the_fall_of_a_kernel_is_known_from_two_cells_on(n, known):
    assert _decay(np.exp(-0.3 * np.arange(n))) == pytest.approx(0.3 if known else MAX_DECAY)
