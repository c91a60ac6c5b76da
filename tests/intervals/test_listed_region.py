"""Simulated tests of likelihood ratios, against all tallies enumerated.

Their ratios are computed on grids of distributions, and their probabilities by the multinomial law.
"""

import math

import numpy as np
import pytest
from scipy.special import gammaln, xlogy

import ibukit as ik
from ibukit.intervals.calibrated import RATIO_TOLERANCE, constrained
from ibukit.intervals.listed._ratio_kernels import least_slope
from ibukit.intervals.listed.fixed_answer import FixedAnswer, most_likely
from ibukit.intervals.listed.law import ListedLaw
from ibukit.intervals.listed.region import ListedRegion
from ibukit.intervals.tilted_likelihood import likelihood_of_tally

# Standard errors of a simulated share.
SIGMAS = 3.5
TWO_SECRETS = np.array([[0.7, 0.25, 0.05], [0.2, 0.2, 0.6]])
THREE_SECRETS = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.05, 0.05, 0.1, 0.8]])


def all_tallies(n, m):
    """Return all vectors of m counts that sum to n."""
    if m == 1:
        return np.array([[n]])
    return np.vstack(
        [
            np.insert(rest, 0, first, axis=1)
            for first in range(n + 1)
            for rest in [all_tallies(n - first, m - 1)]
        ]
    )


def log_chances(tallies, p):
    n = tallies[0].sum()
    return gammaln(n + 1) - gammaln(tallies + 1).sum(axis=1) + xlogy(tallies, p).sum(axis=1)


def simplex(k, step):
    """Return the distributions over two or three secrets on a grid."""
    a = np.arange(0, 1 + step / 2, step)
    if k == 2:
        return np.column_stack([a, 1 - a])
    first, second = (x.ravel() for x in np.meshgrid(a, a))
    keep = first + second <= 1 + step / 4
    return np.column_stack([first, second, np.maximum(1 - first - second, 0)])[keep]


class Enumeration:
    """P-values of the probability of secret 0 for all tallies, on grids of distributions."""

    def __init__(self, matrix, n):
        self.matrix, self.tallies = matrix, all_tallies(n, matrix.shape[1])
        self.best = self.fits(simplex(len(matrix), 0.002 if len(matrix) == 2 else 0.01)).max(axis=1)

    def fits(self, thetas):
        return xlogy(self.tallies[:, None], thetas @ self.matrix).sum(axis=2)

    def ratios(self, v):
        k = len(self.matrix)
        others = simplex(k - 1, 0.01) * (1 - v) if k > 2 else np.array([[1 - v]])
        thetas = np.column_stack([np.full(len(others), v), others])
        fits = self.fits(thetas)
        # The grids miss some of both fits.
        best = np.maximum(self.best, fits.max(axis=1))
        return 2 * (best - fits.max(axis=1)), thetas[fits.argmax(axis=1)]

    def p_value(self, seen, v, tie=1e-6):
        ratios, thetas = self.ratios(v)
        chances = np.exp(log_chances(self.tallies, thetas[seen] @ self.matrix))
        return chances[ratios >= ratios[seen] - tie].sum()


TWO, THREE = (Enumeration(TWO_SECRETS, 50), Enumeration(THREE_SECRETS, 10))


def tally_of(law, seen):
    return ik.MatrixMechanism(law.matrix).tally_counts(law.tallies[seen])


@pytest.mark.parametrize("weighed", [True, False], ids=["all tallies", "draws"])
@pytest.mark.parametrize("law", [TWO, THREE], ids=["two secrets", "three secrets"])
@pytest.mark.parametrize("i", range(5))
def test_nothing_outside_the_ends_is_accepted_and_the_ends_nearly_are(law, i, weighed, monkeypatch):
    draws, level = 1000, 0.9
    if not weighed:
        monkeypatch.setattr("ibukit.intervals.listed.law.MAX_TALLIES", 0)
    seen = int(np.random.default_rng(i).integers(len(law.tallies)))
    w = np.eye(len(law.matrix))[0]
    lower, upper = ik.mle(tally_of(law, seen)).interval(
        level, of=w, method="calibrated", draws=draws
    )
    # The grids of three secrets move the distribution with the answer a little.
    margin = 0.005 if law is THREE else 1e-9
    margin += 0 if weighed else SIGMAS * math.sqrt(level * (1 - level) / draws)
    grid = np.linspace(0, 1, 101 if law is TWO else 26)
    outside = grid[(grid < lower) | (grid > upper)]
    # Ratios that differ by less than this may be taken for ties, or not.
    tie = 0.02
    assert all(law.p_value(seen, v, -tie) <= 1 - level + margin for v in outside)
    for end in {lower, upper} - {0.0, 1.0}:
        near = end + np.linspace(-0.01, 0.01, 5)
        assert max(law.p_value(seen, v, tie) for v in near) >= 1 - level - margin
        assert min(law.p_value(seen, v, -tie) for v in near) <= 1 - level + margin


@pytest.mark.parametrize(
    ("matrix", "n", "least", "of_profile"),
    [
        (TWO_SECRETS, 10, 0.95, 0.93),
        # Most answers belong to many distributions, and only the most likely one is tested.
        (ik.RandomizedResponse(3, math.log(2)).matrix(), 12, 0.949, 0.946),
    ],
    ids=["two secrets", "three secrets"],
)
def test_coverage_is_the_level_where_that_of_the_profile_is_not(matrix, n, least, of_profile):
    """Exact coverage of the probability of secret 0, by all tallies."""
    mechanism, k = ik.MatrixMechanism(matrix), len(matrix)
    truths = simplex(k, 0.02 if k == 2 else 0.1)
    tallies = all_tallies(n, matrix.shape[1])
    chances = np.exp([log_chances(tallies, truth @ matrix) for truth in truths])
    likely = np.flatnonzero(chances.max(axis=0) > 1e-7)

    def coverage(method, **options):
        ends = np.array(
            [
                ik.mle(mechanism.tally_counts(tallies[i])).interval(
                    0.95, of=np.eye(k)[0], method=method, **options
                )
                for i in likely
            ]
        )
        holds = (ends[:, 0] - 1e-9 <= truths[:, [0]]) & (truths[:, [0]] <= ends[:, 1] + 1e-9)
        return (chances[:, likely] * holds).sum(axis=1)

    # All tallies are weighed, and draws that nobody looks at are as few as may be.
    covered = coverage("calibrated", draws=19)
    assert covered.min() >= least - 1e-5
    # At vertices one distribution has the answer 1.
    assert covered[truths[:, 0] == 1].min() >= 0.95 - 1e-5
    assert coverage("profile").min() < of_profile


@pytest.mark.parametrize("law", [TWO, THREE], ids=["two secrets", "three secrets"])
def test_ratios_are_those_of_a_grid(law):
    w = np.eye(len(law.matrix))[0]
    for seen in np.random.default_rng(0).integers(len(law.tallies), size=8):
        likelihood = likelihood_of_tally(tally_of(law, seen))
        n = law.tallies[seen].sum()
        for v in (0.0, 0.03, 0.4, 0.97, 1.0):
            right = law.ratios(v)[0][seen]
            found = constrained(likelihood, n, w, v)
            assert found.theta[0] == pytest.approx(v, abs=1e-9)
            # The grids miss some of both fits.
            assert found.ratio == pytest.approx(right, abs=0.05 + RATIO_TOLERANCE)


def test_a_report_that_nobody_made_has_the_ratio_of_the_binomial_law():
    """0 of 50 without noise: the ratio of v is -100 log(1 - v), where no tilt below 1 leads."""
    likelihood = likelihood_of_tally(ik.MatrixMechanism(np.eye(2)).tally_counts([0, 50]))
    for v in (0.01, 0.1, 0.6):
        found = constrained(likelihood, 50, np.array([1.0, 0.0]), v)
        assert found.ratio == pytest.approx(-100 * math.log1p(-v), abs=RATIO_TOLERANCE)
        assert found.theta == pytest.approx([v, 1 - v], abs=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_fits_are_proved_and_attained_whatever_was_not_seen(seed):
    rng = np.random.default_rng(seed)
    k, m = rng.integers(2, 6, 2)
    matrix = rng.dirichlet(np.full(m, 0.3), k)
    matrix[matrix < rng.choice([0, 0.1])] = 0
    matrix[:, 0] += 1e-9
    matrix /= matrix.sum(axis=1, keepdims=True)
    n = int(rng.choice([5, 2000]))
    tally = ik.MatrixMechanism(matrix).simulate(rng.multinomial(n, rng.dirichlet(np.ones(k))), rng)
    likelihood, w = likelihood_of_tally(tally), rng.permutation(np.r_[0, 1, rng.random(k - 2)])
    for v in (0.001, *rng.random(2), 0.99):
        found = constrained(likelihood, n, w, v)
        assert found.theta.min() >= 0
        assert w @ found.theta == pytest.approx(v, abs=1e-7)
        fit = likelihood.fit_of(likelihood.forward(found.theta))
        assert 2 * n * (likelihood.best.fit - fit) == pytest.approx(found.ratio, abs=0.011)
        # The bound of the interior point, checked by the inequality log x <= x - 1.
        assert likelihood.rows is not None
        other = most_likely(likelihood.rows, likelihood.q, FixedAnswer.of(w, v), 1e-6 / n)
        assert 2 * n * (other.bound - fit) <= 2 * RATIO_TOLERANCE


@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("v", [0.1, 0.9])
def test_drawn_tallies_are_marked_as_their_ratios_are_one_by_one(v, n, rng, monkeypatch):
    mechanism = ik.Rappor(4, 1.0)
    tally = mechanism.simulate(rng.multinomial(n, [0.4, 0.3, 0.2, 0.1]), rng)
    law, w = ListedLaw.of(tally), np.array([1.0, 0.0, 0.4, 0.0])
    region = ListedRegion(law, likelihood_of_tally(tally), 0.9, 30, 0)
    answer = FixedAnswer.of(w, v)
    theta = most_likely(region._rows, likelihood_of_tally(tally).q, answer, 1e-6).theta
    tallies = law.draw(theta, region._states)
    listed = ik.MatrixMechanism(law.rows)
    ratios = np.array(
        [
            constrained(likelihood_of_tally(listed.tally_counts(each)), n, w, v).ratio
            for each in tallies
        ]
    )
    monkeypatch.setattr(
        ListedRegion, "_by_draws", lambda self, theta, are_reached: are_reached(tallies)
    )
    for observed in np.quantile(ratios, [0.1, 0.4, 0.8, 0.95]):
        marked = region._is_reached(theta, answer, observed)
        assert marked[ratios > observed + 0.05].all()
        assert not marked[ratios < observed - 0.05].any()


def test_the_slope_is_where_the_largest_line_is_lowest():
    rng = np.random.default_rng(0)
    for _ in range(20):
        heights, slopes = rng.normal(size=5), np.r_[-1.0, 1.0, rng.normal(size=3)]
        t = least_slope(heights, slopes)
        others = np.linspace(t - 3, t + 3, 2001)
        assert (heights + t * slopes).max() <= (heights[:, None] + others * slopes[:, None]).max(
            axis=0
        ).min() + 1e-9


def test_tallies_are_drawn_as_the_law_says_and_move_little_with_the_distribution():
    tally = ik.MatrixMechanism(THREE_SECRETS).tally_counts([3, 3, 1, 3]) + ik.RandomizedResponse(
        3, 1.0
    ).tally_counts([9, 8, 3])
    law = ListedLaw.of(tally)
    region = ListedRegion(law, likelihood_of_tally(tally), 0.9, 4000, 0)
    theta = np.array([0.5, 0.3, 0.2])
    drawn = law.draw(theta, region._states)
    assert (drawn[:, :4].sum(axis=1) == 10).all()
    assert (drawn[:, 4:].sum(axis=1) == 20).all()
    expected = 30 * law.probabilities(theta)
    assert np.allclose(drawn.mean(axis=0), expected, atol=SIGMAS * np.sqrt(20 / 4 / 4000))
    again = law.draw(theta + np.array([1e-4, -1e-4, 0]), region._states)
    assert (again == drawn).all(axis=1).mean() > 0.95


def test_reports_that_cannot_be_listed_have_no_listed_law():
    def law(mechanism):
        return ListedLaw.of(mechanism.simulate(np.full(mechanism.k, 3), np.random.default_rng(0)))

    assert law(ik.OptimizedUnaryEncoding(25, 1.0)) is None
    assert law(ik.RandomizedResponse(65, 1.0)) is None
    # Reports beyond the ends of the line say as much as those at the ends.
    assert law(ik.LinearGeometric(5, 1.0)).rows.shape == (5, 5)
    assert law(ik.Rappor(3, 1.0)).rows.shape == (3, 8)
