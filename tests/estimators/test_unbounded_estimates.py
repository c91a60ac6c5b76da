"""What is estimated on the part between the reports is the estimate on every larger part,
and its certificate holds.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit import plotting

EPSILONS = (0.1, 0.5, 1.5)


def line_case(seed):
    rng = np.random.default_rng(seed)
    whole = (ik.Line(None, None), ik.Line(0, None), ik.Line(None, 3))[seed % 3]
    mechanism = ik.LinearGeometric(whole, EPSILONS[seed // 3 % 3])
    reports = rng.integers(-6, 7, int(rng.integers(1, 12))) + rng.choice([0, 0, 25])
    return mechanism, reports


def larger_line(part, whole):
    first = part.first - (30 if whole.ends[0] is None else 0)
    last = part.last + (40 if whole.ends[1] is None else 0)
    return ik.Line(min(first, part.first), max(last, part.last))


def plane_case(seed):
    rng = np.random.default_rng(seed)
    mechanism = ik.PlanarGeometric(
        ik.Grid(None, None, (0.5, (0.3, 1.1))[seed % 2]), EPSILONS[seed % 3] + 0.5
    )
    secrets = rng.integers(-3, 4, (int(rng.integers(1, 25)), 2))
    return mechanism, mechanism.randomize(secrets, rng)


def larger_grid(part):
    row, col = part.first
    return ik.Grid(
        part.n_rows + 9, part.n_cols + 7, part.cell_size, part.unit, first=(row - 4, col - 5)
    )


def extended(estimate, alphabet):
    theta = np.zeros(len(alphabet))
    theta[alphabet.codes(estimate.alphabet.values)] = estimate.distribution
    return theta


def check(mechanism, reports, larger):
    """Estimate, certificate and zeros on the part against those on a larger one."""
    estimate = ik.mle(mechanism.tally(reports), tol=1e-10)
    full_tally = type(mechanism)(larger(estimate.alphabet), mechanism.epsilon).tally(reports)
    theta = extended(estimate, full_tally.alphabet)
    assert ik.gap(full_tally, theta) == pytest.approx(estimate.gap, abs=1e-12)
    full = ik.mle(full_tally, tol=1e-10)
    n = len(reports)
    assert estimate.log_likelihood == pytest.approx(
        full.log_likelihood, abs=n * (full.gap + estimate.gap) + 1e-9
    )
    subset = ik.theory.likely_subset(mechanism, reports)
    assert np.delete(full.distribution, full_tally.alphabet.codes(subset)).max(initial=0) <= 1e-9
    assert set(map(str, subset)) <= set(map(str, estimate.alphabet.values))
    return estimate, full


@pytest.mark.ledger("A-T4", "A-P6")
@pytest.mark.parametrize("seed", range(45))
def test_on_a_line(seed):
    mechanism, reports = line_case(seed)
    estimate, _ = check(mechanism, reports, lambda part: larger_line(part, mechanism.alphabet))
    # geometric noise: only reported values, an end standing for what lies beyond it
    held = estimate.alphabet.values[estimate.distribution > 1e-9]
    assert set(held) <= set(ik.theory.likely_subset(mechanism, reports))


@pytest.mark.ledger("A-T4", "A-P7")
@pytest.mark.parametrize("seed", range(40))
def test_in_the_plane(seed):
    mechanism, reports = plane_case(seed)
    check(mechanism, reports, larger_grid)


def test_a_part_that_is_too_small_is_seen():
    # the negative control: without the westernmost report's column the certificate does not carry
    # over
    mechanism = ik.PlanarGeometric(ik.Grid(None, None), 1.0)
    reports = [[0, 0], [0, 0], [3, 4]]
    tally = ik.PlanarGeometric(ik.Grid(4, 4, first=(0, 1)), 1.0).tally(reports)
    small, full = ik.mle(tally), ik.mle(mechanism.tally(reports))
    theta = extended(small, full.alphabet)
    assert small.gap < 1e-9
    assert ik.gap(full.tally, theta) > 0.1


@pytest.mark.parametrize("estimator", [ik.mle, ik.ibu])
def test_tallies_add_over_what_holds_the_reports_of_both(estimator, rng):
    whole = ik.Line(0, None)
    weak, strong = ik.LinearGeometric(whole, 2.0), ik.LinearGeometric(whole, 0.3)
    tallies = [weak.tally([3, 4]), strong.tally([-2, 20]), weak.tally([9])]
    assert [tally.alphabet for tally in tallies] == [ik.Line(3, 4), ik.Line(0, 20), ik.Line(9, 9)]
    together = sum(tallies)
    assert (together.alphabet, together.full_alphabet, together.n) == (ik.Line(0, 20), whole, 5)
    assert len(together.parts) == 2
    assert [part.mechanism.epsilon for part in together.parts] == [2.0, 0.3]
    again = tallies[2] + (tallies[0] + tallies[1])
    # whatever the order, and as with the larger part from the start
    part = ik.Line(0, 20)
    direct = ik.LinearGeometric(part, 2.0).tally([3, 4, 9]) + ik.LinearGeometric(part, 0.3).tally(
        [-2, 20]
    )
    estimate, expected = estimator(together), estimator(direct)
    assert estimate.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-9)
    assert estimator(again).log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-5)
    np.testing.assert_allclose(estimate.distribution, expected.distribution, atol=1e-9)
    assert ik.gibu(tallies).distribution == pytest.approx(ik.ibu(together).distribution)
    reports = [3, 4, 9, -2, 20]
    held = estimate.alphabet.values[ik.mle(together).distribution > 1e-9]
    assert set(held) <= set(np.maximum(reports, 0))


def test_cells_add_too(rng):
    whole = ik.Grid(None, None, cell_size=0.5)
    a, b = ik.PlanarGeometric(whole, 1.0), ik.PlanarGeometric(whole, 2.0)
    first, second = a.tally([[0, 0], [2, 3]]), b.tally([[-1, 5]])
    both = first + second
    assert both.alphabet == ik.Grid(4, 6, 0.5, first=(-1, 0))
    estimate = ik.mle(both)
    larger = larger_grid(both.alphabet)
    full = ik.PlanarGeometric(larger, 1.0).tally([[0, 0], [2, 3]]) + ik.PlanarGeometric(
        larger, 2.0
    ).tally([[-1, 5]])
    assert ik.gap(full, extended(estimate, larger)) <= 1e-9


def test_other_alphabets_do_not_add():
    endless = ik.LinearGeometric(ik.Line(0, None), 1.0).tally([1, 5])
    for other in (
        ik.LinearGeometric(ik.Line(None, None), 1.0).tally([1, 5]),
        ik.LinearGeometric(ik.Line(1, 5), 1.0).tally([1]),
    ):
        with pytest.raises(ik.errors.AlphabetMismatch, match="added only over the same secrets"):
            endless + other


def test_errors_and_identified_are_those_on_the_part(rng):
    mechanism = ik.LinearGeometric(ik.Line(None, None), 1.0)
    tally = mechanism.tally(mechanism.randomize(np.repeat([2, 3, 7], 2000), rng))
    part = ik.LinearGeometric(tally.alphabet, 1.0).tally(
        np.repeat(tally.parts[0].reports, tally.counts)
    )
    ours, theirs = ik.mle(tally), ik.mle(part)
    np.testing.assert_allclose(ours.standard_errors(), theirs.standard_errors(), rtol=1e-6)
    assert ours.identified.all()


def test_a_city_is_solved(rng):
    # fifty thousand users on a map that has no border; the benchmark has a million
    paris = ik.datasets.load_gowalla("paris")
    mechanism = ik.PlanarGeometric(ik.Grid(None, None, cell_size=0.5), epsilon=1.0)
    secrets = paris.alphabet.values[rng.choice(len(paris.alphabet), 50_000, p=paris.distribution)]
    tally = mechanism.tally(mechanism.randomize(secrets, rng))
    estimate = ik.mle(tally, tol=1e-6)
    assert estimate.gap <= 1e-6
    truth = np.zeros(len(estimate.alphabet))
    truth[estimate.alphabet.codes(paris.alphabet.values)] = paris.distribution
    assert ik.emd(estimate.distribution, truth, estimate.alphabet) < 0.5


def test_a_map_is_drawn_where_it_is():
    estimate = ik.mle(ik.PlanarGeometric(ik.Grid(None, None, 0.5), 1.0).tally([[-4, 10], [6, 19]]))
    axes = plotting.heatmap(estimate.alphabet, estimate)
    assert axes.images[0].get_extent() == [5.0, 10.0, -2.0, 3.5]
    # the same places as the region around the reports has
    region = ik.theory.likely_region(estimate.alphabet, [[-4, 10], [6, 19]])
    assert (region.centroid.x, region.centroid.y) == pytest.approx((7.5, 0.75))
