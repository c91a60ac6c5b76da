"""Survey designs with two samples against the closed forms of their papers.

The formulas stand here once more; variances have n where R packages write n - 1. Counts of real
surveys are facts from R packages, as named; the others are made up.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import ibukit as ik
from ibukit.testing import check_mechanism

LABELS = ("no", "yes")
# CRAN RRreg, data minarets (Radukic and Musch 2014): reports (no, yes) of both groups
MINARETS = [191, 373], [294, 398]
# CRAN list, data race (Kuklinski, Cobb and Gilens 1997): numbers of items, control and treatment
RACE = [8, 132, 222, 227], [19, 123, 229, 219, 34]
AFFIRM = [8, 132, 222, 227], [9, 78, 172, 184, 139]


def rates(first, second):
    """The shares of yes in both samples, and their variances."""
    n = np.array([sum(first), sum(second)])
    share = np.array([first[1], second[1]]) / n
    return share, share * (1 - share) / n


def check(estimate, of, value, variance):
    """The estimate of a sum of probabilities, its standard error and Wald's interval."""
    assert sum(estimate[label] for label in of) == pytest.approx(value, abs=1e-7)
    weights = np.isin(np.arange(len(estimate.alphabet)), estimate.alphabet.codes(list(of)))
    assert 0 < value < 1
    ends = value + norm.ppf([0.025, 0.975]) * np.sqrt(variance)
    assert estimate.interval(of=of, method="wald") == pytest.approx(tuple(ends), abs=1e-6)
    return weights


@pytest.mark.parametrize("p", [(0.7, 0.3), (0.8, 0.0), (0.2, 0.6)])
def test_an_unrelated_question_of_unknown_share(p):
    first, second = [620, 380], [450, 350]
    (one, two), variances = rates(first, second)
    design = ik.surveys.UnrelatedQuestion(LABELS, p)
    estimate = ik.mle(design.tally_counts(first, second))
    value = (one * (1 - p[1]) - two * (1 - p[0])) / (p[0] - p[1])
    weights = np.array([1 - p[1], 1 - p[0]]) / (p[0] - p[1])
    check(estimate, design.sensitive, value, weights**2 @ variances)
    innocent = (p[0] * two - p[1] * one) / (p[0] - p[1])
    weights = np.array([p[1], p[0]]) / (p[0] - p[1])
    check(estimate, design.innocent, innocent, weights**2 @ variances)
    assert not estimate.identified.any(), "marginals say little of the pairs"


def test_cheating_is_detected():
    first, second, p = [650, 350], [300, 500], (0.2, 0.7)
    (one, two), variances = rates(first, second)
    design = ik.surveys.CheatingDetection(LABELS, p)
    estimate = ik.mle(design.tally_counts(first, second))
    width = p[1] - p[0]
    pi, beta = (p[1] * one - p[0] * two) / width, (two - one) / width
    assert design.sensitive == {"yes": 1}
    check(estimate, {"yes": 1}, pi, np.array([p[1], p[0]]) ** 2 @ variances / width**2)
    check(estimate, {"no": 1}, beta, variances.sum() / width**2)
    weights = np.array([1 - p[1], 1 - p[0]]) / width
    check(estimate, {"cheating": 1}, 1 - pi - beta, weights**2 @ variances)
    errors = np.sqrt([variances.sum() / width**2, (np.array([p[1], p[0]]) ** 2 @ variances) / 0.25])
    assert estimate.standard_errors()[:2] == pytest.approx(errors, rel=1e-6)


def test_without_cheaters_the_best_of_the_honest_is_taken():
    first, second, p = [600, 400], [100, 900], (0.2, 0.7)
    (one, two), _ = rates(first, second)
    honest = ((two - one) + (p[1] * one - p[0] * two)) / 0.5
    assert honest > 1, "else the closed form has a share of cheaters"

    def misfit(pi):
        yes = pi + (1 - pi) * np.array(p)
        return -np.sum(np.array([first, second]) * np.log([1 - yes, yes]).T)

    best = minimize_scalar(misfit, bounds=(0, 0.9), method="bounded", options={"xatol": 1e-10})
    design = ik.surveys.CheatingDetection(LABELS, p)
    estimate = ik.mle(design.tally_counts(first, second))
    assert estimate["cheating"] == pytest.approx(0, abs=1e-9)
    assert estimate["yes"] == pytest.approx(best.x, abs=1e-6)


def test_lies_are_detected():
    p = (2 / 12, 10 / 12)
    (one, two), variances = rates(*MINARETS)
    design = ik.surveys.StochasticLieDetector(LABELS, p)
    estimate = ik.mle(design.tally_counts(*MINARETS))
    value = 1 - (two - one) / (p[0] - p[1])
    check(estimate, design.sensitive, value, variances.sum() / (p[0] - p[1]) ** 2)
    truthful = (two * (1 - p[0]) - one * (1 - p[1])) / (two - one + p[1] - p[0])  # their t
    assert estimate["yes"] / value == pytest.approx(truthful, rel=1e-7)


def moments(counts):
    """The mean number of items and the variance of the mean."""
    values, n = np.arange(len(counts)), sum(counts)
    mean = values @ counts / n
    return mean, (values**2 @ counts / n - mean**2) / n


def test_inside_the_difference_of_means_is_the_estimate_of_a_list_experiment():
    control, treatment = [60, 140, 120, 80], [40, 110, 120, 90, 40]
    cumulated = np.cumsum(control) / 400 - np.cumsum(treatment)[:-1] / 400
    below = np.cumsum(treatment)[:-1] / 400 - np.append(0, np.cumsum(control)[:-1]) / 400
    assert min(cumulated.min(), below.min()) > 0
    design = ik.surveys.ItemCount(LABELS, items=3)
    estimate = ik.mle(design.tally_counts(control, treatment))
    (zero, v0), (one, v1) = moments(control), moments(treatment)
    check(estimate, design.sensitive, one - zero, v0 + v1)
    table = np.stack([below, cumulated], axis=1).ravel()  # the formula of Blair and Imai (2012)
    assert estimate.distribution == pytest.approx(table, abs=1e-7)


@pytest.mark.parametrize("counts", [RACE, AFFIRM])
def test_a_list_experiment_with_a_negative_cell_is_at_the_boundary(counts):
    """An EM of its own, on a table of numbers of items and answers."""
    control, treatment = map(np.array, counts)
    joint = np.full((4, 2), 1 / 8)
    for _ in range(3000):
        seen = joint * (control / joint.sum(axis=1))[:, None]
        total = np.append(joint[:, 0], 0) + np.append(0, joint[:, 1])
        seen += joint * np.stack([(treatment / total)[:-1], (treatment / total)[1:]], axis=1)
        joint = seen / seen.sum()
    cell = np.cumsum(control)[0] / control.sum() - np.cumsum(treatment)[0] / treatment.sum()
    assert cell < 0
    design = ik.surveys.ItemCount(LABELS, items=3)
    estimate = ik.mle(design.tally_counts(control, treatment))
    assert estimate.distribution == pytest.approx(joint.ravel(), abs=1e-6)
    assert estimate[(0, "yes")] == pytest.approx(0, abs=1e-9)


DESIGNS = [
    ik.surveys.UnrelatedQuestion(LABELS, (0.7, 0.3)),
    ik.surveys.CheatingDetection(LABELS, (0.25, 0.75)),
    ik.surveys.CheatingDetection([0, 1], (0.25, 0.75)),
    ik.surveys.StochasticLieDetector(LABELS, (0.25, 0.75)),
    ik.surveys.ItemCount(LABELS, 3),
    ik.surveys.ItemCount([0, 1], 2),
]
designs = pytest.mark.parametrize("design", DESIGNS, ids=repr)


@designs
def test_samples_keep_the_contract_of_mechanisms(design):
    for sample in design.samples:
        check_mechanism(sample, attained=True)
        assert sample.alphabet == design.alphabet
    assert design.epsilon == max(sample.epsilon for sample in design.samples)


@designs
def test_the_tally_is_that_of_both_samples(design, rng):
    people = rng.integers(1, 9, design.samples[0].k)
    tally = design.simulate(people, 2 * people, rng)
    assert [part.n for part in tally.parts] == [people.sum(), 2 * people.sum()]
    one, two = (
        sample.randomize(sample.alphabet.labels_of(np.repeat(range(sample.k), people)), rng)
        for sample in design.samples
    )
    pooled = design.tally(one, two)
    by_hand = design.samples[0].tally(one) + design.samples[1].tally(two)
    assert pooled.counts.tolist() == by_hand.counts.tolist()
    codes = design.samples[0].code_reports(one), design.samples[1].code_reports(two)
    assert design.tally(*codes, codes=True).counts.tolist() == by_hand.counts.tolist()
    weights = [np.ones(sample.m) / 2 for sample in design.samples]
    assert design.tally_counts(*weights, weighted=True).weighted


@designs
def test_the_sensitive_share_is_identified(design, rng):
    tally = design.simulate(*[np.full(design.samples[0].k, 10**6)] * 2, rng)
    # It misses the true share once in a million draws.
    lower, upper = ik.mle(tally).interval(1 - 1e-6, of=design.sensitive, method="wald")
    assert lower < len(design.sensitive) / design.samples[0].k < upper
    assert upper - lower < 0.04


@pytest.mark.parametrize(
    "kind", ["CheatingDetection", "StochasticLieDetector", "UnrelatedQuestion"]
)
def test_samples_that_are_asked_alike_are_refused(kind):
    make = getattr(ik.surveys, kind)
    with pytest.raises(ik.errors.UselessDesign, match=r"p must differ.*take values far apart"):
        make(LABELS, (0.3, 0.3))
    with pytest.raises(ValueError, match="p must be a pair"):
        make(LABELS, (0.3, 0.4, 0.5))
    with pytest.raises(ValueError, match="p must be in"):
        make(LABELS, (0.3, 1.5))
    with pytest.raises(ValueError, match="labels must be two"):
        make(["no"], (0.3, 0.4))


class Coins(ik.surveys.TwoSampleDesign):
    """A design of somebody else: two of Warner's designs."""

    def make_samples(self):
        matrices = [[[p, 1 - p], [1 - p, p]] for p in (0.75, 0.6)]
        return tuple(ik.MatrixMechanism(matrix, self.labels) for matrix in matrices)

    @property
    def sensitive(self):
        return {"yes": 1.0}


def test_the_level_is_that_of_the_less_private_sample():
    design = Coins(LABELS)
    assert design.epsilon == pytest.approx(np.log(3), rel=1e-14)
    assert ik.mle(design.tally_counts([30, 70], [40, 60]))["yes"] > 0.8


def test_what_is_no_parameter_is_refused():
    with pytest.raises(ValueError, match="p must be in"):
        ik.surveys.CheatingDetection(LABELS, (0.3, 1))
    with pytest.raises(ValueError, match="p must be in"):
        ik.surveys.StochasticLieDetector(LABELS, (0, 0.5))
    for p in (0.3, [[0.3, 0.4]], "ab", {0.3, 0.4}, None, [0.3, np.nan]):
        with pytest.raises((ValueError, TypeError), match="p must be"):
            ik.surveys.CheatingDetection(LABELS, p)
    with pytest.raises(ValueError, match="items must be at most 500"):
        ik.surveys.ItemCount(LABELS, 501)
    assert ik.surveys.ItemCount(LABELS, 1).samples[1].m == 3
    with pytest.raises(ValueError, match="items must be at least 1"):
        ik.surveys.ItemCount(LABELS, 0)
