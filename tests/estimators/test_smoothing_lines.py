"""On a line with geometric noise a step of `smooth` costs O(k),
and its answers are those of the dense matrix.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import LineChannel
from ibukit.estimators import _roughness
from ibukit.estimators._curvature import dense_curvature, line_curvature
from ibukit.estimators._roughness import roughness_on
from ibukit.fisher_information.dense import MAX_SECRETS_INVERTED


def case(k, decay, seed):
    """A channel, a point and weights of every size, with some positions unseen."""
    rng = np.random.default_rng(seed)
    positions = np.sort(rng.choice(k, size=max(1, 2 * k // 3), replace=True))
    channel = LineChannel(k, decay, positions, rng.uniform(0.1, 2.0, len(positions)))
    u = rng.normal(0, 3, k)
    return channel, np.exp(u / 2), rng.exponential(1, len(positions)), u


@pytest.mark.parametrize("k", [1, 2, 3, 40])
@pytest.mark.parametrize("decay", [1e-9, 0.5, 0.999])
def test_the_band_solves_and_measures_as_the_dense_matrix(k, decay):
    channel, root, w, u = case(k, decay, seed=k)
    roughness = roughness_on(ik.Line(0, k - 1))
    # with one position nothing is rough, and the reports alone make the matrix
    dense = dense_curvature(root[:, None] * channel.gram(w) * root + 0.3 * roughness.curvature(u))
    line = line_curvature(channel, root, w, 0.3 * roughness.diagonal(u), -0.3 * roughness.weight)
    assert line.log_det == pytest.approx(dense.log_det, abs=1e-8)
    side = np.random.default_rng(1).standard_normal(k)
    assert line.solve(side) == pytest.approx(
        dense.solve(side), rel=1e-7, abs=1e-9 * np.abs(dense.solve(side)).max()
    )


@pytest.mark.parametrize("epsilon", [0.02, 0.3, 3.0])
def test_a_line_gives_the_answer_of_the_dense_way(epsilon, monkeypatch):
    ages = ik.datasets.load_adult_ages()
    tally = ik.TruncatedGeometric(ages.alphabet, epsilon).simulate(
        ages.counts, np.random.default_rng(3)
    )
    quick = ik.smooth(tally)
    monkeypatch.setattr(_roughness.facts, "as_line", lambda channel: None)
    dense = ik.smooth(tally)
    assert quick.method == dense.method
    assert quick.distribution == pytest.approx(dense.distribution, abs=1e-9)


def test_the_slowest_direction_is_the_second_eigenvalue():
    for alphabet in (ik.Line(0, 6), ik.Grid(3, 5, 0.7), ik.Grid(1, 4, 2.0)):
        roughness = roughness_on(alphabet)
        matrix = np.diag(roughness.degrees)
        matrix[roughness.one, roughness.other] = matrix[
            roughness.other, roughness.one
        ] = -roughness.weight
        assert np.linalg.eigvalsh(matrix)[1] == pytest.approx(roughness.least_eigenvalue, rel=1e-12)


def test_a_line_too_long_for_a_matrix_is_smoothed_and_certified():
    k = MAX_SECRETS_INVERTED + 1
    x = np.arange(k) / k
    curve = np.exp(-(((x - 0.3) / 0.08) ** 2) / 2) + 0.05
    people = np.random.default_rng(1).multinomial(10**5, curve / curve.sum())
    tally = ik.TruncatedGeometric(ik.Line(0, k - 1), 20 / k).simulate(
        people, np.random.default_rng(2)
    )
    found = ik.smooth(tally, 1e7)
    assert found.status is ik.Status.CONVERGED
    truth = curve / curve.sum()
    assert np.abs(np.cumsum(found.distribution - truth)).max() < 0.02
    # without the structure it is refused
    with pytest.raises(ik.errors.TooLarge, match="take a coarser alphabet"):
        ik.smooth(
            ik.RandomizedResponse(ik.Line(0, k - 1), 3.0).simulate(
                people, np.random.default_rng(2)
            ),
            1e7,
        )


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
def test_the_ridge_of_a_singular_matrix_scales_with_it(scale):
    plain, scaled = dense_curvature(np.ones((3, 3))), dense_curvature(np.full((3, 3), scale))
    assert scaled.log_det == pytest.approx(plain.log_det + 3 * np.log(scale), rel=1e-12)
    np.testing.assert_allclose(
        scaled.solve(np.ones(3)), plain.solve(np.ones(3)) / scale, rtol=1e-12
    )
