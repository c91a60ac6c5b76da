"""Lines beyond 2^53, where doubles do not tell neighbours apart, and the ends of 64 bits."""

import numpy as np
import pytest
from scipy.stats import norm

import ibukit as ik
from ibukit.mechanisms.saturation import differences, refuse_saturated

TOP = 2**63 - 1
FAR = ik.Line(2**60, 2**60 + 6)
NEAR = ik.Line(0, 6)


def columns(mechanism, reports):
    tally = mechanism.tally(reports)
    scale = mechanism.log_scale(tally.parts[0].reports)
    return tally.matrix(), 0 if scale is None else scale


@pytest.mark.parametrize("offset", [-3, 0, 2, 6, 9, 40, 10**9])
@pytest.mark.parametrize(
    "make",
    [lambda line: ik.DiscreteGaussian(line, 2.0), lambda line: ik.LinearGeometric(line, 0.7)],
    ids=["Gaussian", "geometric"],
)
def test_noise_on_a_far_line_has_the_law_of_a_near_one(make, offset):
    near, near_scale = columns(make(NEAR), [offset])
    far, far_scale = columns(make(FAR), [2**60 + offset])
    assert far == pytest.approx(near, rel=1e-12)
    assert far_scale == pytest.approx(near_scale, rel=1e-12)


def test_a_discrete_gaussian_beyond_doubles_is_not_uniform():
    matrix, _ = columns(ik.DiscreteGaussian(FAR, 2.0), [2**60 + 2])
    x = np.arange(7)
    right = np.exp(-((x - 2.0) ** 2) / 8)
    assert matrix[:, 0] / matrix.sum() == pytest.approx(right / right.sum(), rel=1e-12)


@pytest.mark.parametrize("k", [7, 3])
def test_codes_of_a_far_line_are_drawn_as_those_of_a_near_one(k):
    for kind in (ik.LinearLaplace, ik.TruncatedGeometric, ik.Exponential, ik.TightConstraints):
        far = kind(ik.Line(2**60, 2**60 + k - 1), 0.8)
        near = kind(ik.Line(0, k - 1), 0.8)
        assert np.array_equal(far.matrix(), near.matrix())
        a, b = (m.draw(np.arange(k).repeat(50), np.random.default_rng(5)) for m in (far, near))
        assert np.array_equal(a, b)
    assert np.array_equal(FAR.distances(), NEAR.distances())


@pytest.mark.parametrize(
    "make",
    [
        lambda line: ik.LinearGaussian(line, 2.0),
        lambda line: ik.Staircase(line, 1.0),
        lambda line: ik.Piecewise(line, 1.0),
        lambda line: ik.Duchi(line, 1.0),
        lambda line: ik.LinearLaplace(line, 1.0).of_points,
    ],
    ids=["LinearGaussian", "Staircase", "Piecewise", "Duchi", "points"],
)
def test_real_numbers_beyond_doubles_are_refused_by_name(make):
    with pytest.raises(ValueError, match=r"alphabet must end at 2\^53 at most"):
        make(FAR)
    make(ik.Line(2**53 - 6, 2**53))


def test_real_noise_up_to_2_to_the_53_is_exact():
    start = 2**53 - 6
    matrix, _ = columns(ik.LinearGaussian(ik.Line(start, 2**53), 2.0), [start + 2.0])
    right = norm.pdf(np.arange(7), 2.0, 2.0)
    assert matrix[:, 0] / matrix.sum() == pytest.approx(right / right.sum(), rel=1e-12)


@pytest.mark.parametrize("report", [TOP, -TOP - 1])
def test_a_report_that_may_be_saturated_is_refused_by_name(report):
    with pytest.raises(ik.errors.AlphabetMismatch, match="an end of the numbers of 64 bits"):
        ik.DiscreteGaussian(ik.Line(TOP - 6, TOP), 2.0).tally([TOP - 5, report])
    with pytest.raises(ik.errors.AlphabetMismatch, match="an end of the numbers of 64 bits"):
        ik.PlanarGeometric(ik.Grid(2, 3), 1.0).tally([[0, 0], [report, 1]])
    refuse_saturated(np.array([TOP - 1, -TOP]))


def test_a_far_report_on_a_plane_is_nearest_to_the_nearest_cell():
    grid = ik.Grid(2, 3, first=(5, 5))
    for far in (-TOP, TOP - 1):
        tally = ik.PlanarGeometric(grid, 1.0).tally([[far, 5]])
        best = tally.matrix()[:, 0].reshape(2, 3)
        row = 0 if far < 0 else 1
        # At this distance the column does not matter, and doubles do not tell the rows apart.
        assert best.max() == pytest.approx(best[row, 0])


def test_differences_are_exact():
    values = np.array([2**60 + 1, TOP, -TOP - 1, 3])
    others = np.array([2**60, -TOP - 1, TOP, 5])
    assert differences(values, others).tolist() == [1.0, 2.0**64, -(2.0**64), -2.0]


def test_a_line_ends_where_64_bits_end():
    assert ik.Line(TOP - 1, TOP).codes([TOP]).tolist() == [1]
    with pytest.raises(ValueError, match="last must be at most 9223372036854775807"):
        ik.Line(TOP - 1, TOP + 1)
