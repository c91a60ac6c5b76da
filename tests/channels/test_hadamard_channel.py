"""Hadamard signs and tables of levels as channels:
the transform against the matrix, and the solvers that take them.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import hadamard

from ibukit.channels import DenseChannel, HadamardChannel, LookupChannel
from ibukit.channels.lookup import pack_levels
from ibukit.channels.signs._sign_kernels import transform
from ibukit.solvers.maximum import best_found
from ibukit.solvers.problem import Problem
from ibukit.testing import check_channel

RNG = np.random.default_rng(7)


def signs(k, groups, blocks, order, s, rng=RNG, low=0.1, high=0.7):
    """A channel with all drawn at random."""
    length = blocks * order
    return HadamardChannel(
        rng.integers(0, length, (groups, k)).astype(np.int32),
        length,
        order,
        rng.integers(0, groups, s),
        rng.integers(0, length, s),
        rng.random(s) < 0.5,
        low,
        high,
        rng.random(s) + 0.5,
    )


def levels(k, s, rng=RNG):
    table = np.array([1e-3, 0.2, 0.5, 1.0, 3.0])
    return LookupChannel(
        k, pack_levels(rng.integers(0, len(table), (s, k)), len(table)), table, rng.random(s) + 0.5
    )


def written_out(channel):
    """The matrix by its definition, with scipy's signs."""
    h, order = hadamard(channel.order), channel.order
    matrix = np.empty((channel.k, channel.size))
    for z, (group, column, minus) in enumerate(
        zip(channel.group, channel.column, channel.minus, strict=True)
    ):
        for x, place in enumerate(channel.places[group]):
            same_block = place // order == column // order
            agrees = same_block and h[place % order, column % order] == (-1 if minus else 1)
            matrix[x, z] = (channel.high if agrees else channel.low) * channel.scale[z]
    return matrix


SHAPES = [
    (2, 1, 1, 4, 3),
    (7, 1, 1, 8, 16),
    (9, 1, 4, 4, 30),
    (5, 3, 1, 16, 40),
    (6, 4, 2, 8, 9),
    (3, 2, 2, 1, 5),
    (6, 2, 1, 8, 90),
    (6, 2, 2, 8, 90),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_transform_is_the_matrix(shape):
    channel = signs(*shape)
    parameters = dict(vars(channel))
    check_channel(channel)
    np.testing.assert_allclose(channel.rows(np.arange(channel.k)), written_out(channel), rtol=1e-14)
    with pytest.raises(AssertionError, match="rows are not what forward says"):
        check_channel(Flipped(**parameters))


class Flipped(HadamardChannel):
    """Rows of the other sign."""

    def rows(self, secrets):
        return HadamardChannel.rows(replace(self, minus=~self.minus), secrets)


@pytest.mark.parametrize("many", [1, 2, 3, 5, 16, 17, 256])
@pytest.mark.parametrize("shape", [(2, 3), (11, 40), (30, 3000)])
def test_levels_are_the_matrix(shape, many, rng):
    k, s = shape
    table, raw, scale = rng.random(many), rng.integers(0, many, (s, k)), rng.random(s) + 0.5
    channel = LookupChannel(k, pack_levels(raw, many), table, scale)
    if channel.size < 100:
        check_channel(channel)
    matrix = table[raw].T * scale
    theta, w = rng.random(channel.k), rng.random(channel.size)
    np.testing.assert_allclose(channel.forward(theta), theta @ matrix, rtol=1e-12)
    np.testing.assert_allclose(channel.adjoint(w), matrix @ w, rtol=1e-12)
    np.testing.assert_allclose(channel.gram(w), (matrix * w) @ matrix.T, rtol=1e-12)


def test_nothing_cancels_where_no_secret_has_the_sign():
    """The columns of which only `low` is left:
    P - (P + N) / 2 would leave rounding errors in its place.
    """
    channel = replace(signs(40, 1, 1, 64, 500), low=1e-16, high=1.0, scale=np.ones(500))
    matrix = channel.rows(np.arange(40))
    theta = RNG.dirichlet(np.full(40, 0.01))
    np.testing.assert_allclose(channel.forward(theta), theta @ matrix, rtol=1e-12)
    naive = (
        1e-16 * theta.sum()
        + (theta @ hadamard(64)[channel.places[0] % 64][:, channel.column % 64] + 1) / 2
    )
    assert not np.allclose(
        naive[~channel.minus], (theta @ matrix)[~channel.minus], rtol=1e-12, atol=0
    )


def test_the_sums_of_both_signs():
    plus, minus = RNG.random(32), np.zeros(32)
    start = plus.copy()
    transform(plus, minus, 32)
    np.testing.assert_allclose(plus - minus, hadamard(32) @ start, atol=1e-12)
    np.testing.assert_allclose(plus + minus, start.sum(), rtol=1e-13)


@pytest.mark.parametrize(
    "channel", [signs(40, 1, 2, 32, 64), signs(30, 5, 1, 16, 160), levels(20, 400)]
)
def test_every_solver_takes_them(channel):
    q = channel.forward(RNG.dirichlet(np.ones(channel.k) / 5))
    counts = RNG.poisson(3000 * q / q.sum()) + 1
    written = DenseChannel(channel.rows(np.arange(channel.k)))
    best = best_found(Problem(written, counts), 1e-9)
    for method in ("auto", "dense", "active-set", "ibu"):
        found = best_found(Problem(channel, counts), 1e-9, method)
        assert found.gap <= 1e-9
        assert abs(found.log_likelihood - best.log_likelihood) <= 2e-9 * counts.sum()


def test_many_secrets_take_the_structured_normal_equations():
    channel = signs(400, 1, 1, 512, 512)
    counts = RNG.poisson(1e4 * channel.forward(RNG.dirichlet(np.ones(400)))) + 1
    problem = Problem(channel, counts)
    found, written = best_found(problem, 1e-9), best_found(problem, 1e-9, "dense")
    assert (found.solver.name, written.solver.name) == ("pooled", "dense")
    assert max(found.gap, written.gap) <= 1e-9
    assert abs(found.log_likelihood - written.log_likelihood) <= 2e-9 * counts.sum()
