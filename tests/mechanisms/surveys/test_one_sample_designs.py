"""Survey designs with one sample against the closed forms of their papers.

The formulas stand here once more, written from the papers, and know nothing of matrices. Counts of
real surveys are facts from R packages, as named; no number that a package prints is recorded.
"""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from scipy.stats import binom, chi2, norm

import ibukit as ik
from ibukit.testing import check_mechanism

LABELS = ("no", "yes")
DIE = ik.surveys.ForcedResponse(LABELS, 1 / 6, 1 / 6)
# The design, the counts of its two reports, and (a, b) of the paper's estimate a share of the
# second report + b. The first is CRAN rr, data nigeria (Blair, Imai and Zhou 2015, 22 of 2,457
# missing); then CRAN RRTCS: WarnerData, ForcedResponseData and HorvitzDataRealSurvey, item "sex".
# The others are made up.
CASES = {
    "nigeria": (DIE, [1604, 831], 3 / 2, -1 / 4),
    "WarnerData": (ik.surveys.Warner(LABELS, 0.7), [65, 60], 1 / 0.4, -0.3 / 0.4),
    "ForcedResponseData": (ik.surveys.ForcedResponse(LABELS, 0.2, 0.2), [492, 508], 5 / 3, -1 / 3),
    "HorvitzData": (ik.surveys.UnrelatedQuestion(LABELS, 0.5, 1 / 12), [657, 53], 2, -1 / 12),
    "lopsided die": (ik.surveys.ForcedResponse(LABELS, 0.1, 0.25), [600, 400], 1 / 0.65, -5 / 13),
    "rarely Warner": (ik.surveys.Warner(LABELS, 0.2), [300, 700], 1 / -0.6, 0.8 / 0.6),
    "one card": (ik.surveys.Kuk(LABELS, 0.2, 0.7), [650, 350], 2, -0.4),
    "Mangat": (ik.surveys.Mangat(LABELS, 0.7), [500, 500], 1 / 0.7, -0.3 / 0.7),
    "crosswise": (ik.surveys.Crosswise(LABELS, 0.25), [400, 600], -2, 1.5),
    "triangular": (ik.surveys.Triangular(LABELS, 0.25), [600, 400], 4 / 3, -1 / 3),
}
cases = pytest.mark.parametrize("name", CASES)


@cases
def test_estimate_and_standard_error_are_the_closed_forms(name):
    design, counts, a, b = CASES[name]
    n, share = sum(counts), counts[1] / sum(counts)
    estimate = ik.mle(design.tally_counts(counts))
    assert 0 < a * share + b < 1, "else the closed form is not the estimate"
    assert estimate["yes"] == pytest.approx(a * share + b, abs=1e-12)
    error = abs(a) * np.sqrt(share * (1 - share) / n)
    assert estimate.standard_errors() == pytest.approx([error, error], rel=1e-9)


@cases
def test_intervals_are_those_of_the_share_of_reports(name):
    """Wald's from the standard error, and all shares whose binomial likelihood is high enough."""
    design, counts, a, b = CASES[name]
    n, share = sum(counts), counts[1] / sum(counts)
    estimate = ik.mle(design.tally_counts(counts))
    wald = share + norm.ppf([0.025, 0.975]) * np.sqrt(share * (1 - share) / n)
    ends = np.clip(np.sort(a * wald + b), 0, 1)
    of = design.sensitive
    assert estimate.interval(of=of, method="wald") == pytest.approx(tuple(ends), abs=1e-9)

    def excess(x):
        both = np.array([1 - x, x])
        deviance = 2 * (xlogy(counts, np.array(counts) / n) - xlogy(counts, both)).sum()
        return deviance - chi2.ppf(0.95, 1)

    profile = [brentq(excess, 1e-12, share), brentq(excess, share, 1 - 1e-12)]
    ends = np.clip(np.sort(a * np.array(profile) + b), 0, 1)
    # The end of a profile interval is found within 1e-4 of its width or better.
    found = estimate.interval(of=of, method="profile")
    assert found == pytest.approx(tuple(ends), abs=1e-5)


@cases
def test_a_share_outside_the_possible_range_is_0(name):
    design, _, a, b = CASES[name]
    bound = -b / a  # the share of the second report for which the closed form is 0
    counts = [round(1000 * (1 - bound)), round(1000 * bound)]
    off = 20 if a > 0 else -20
    if min(bound, 1 - bound) > 0.02:
        estimate = ik.mle(design.tally_counts([counts[0] + off, counts[1] - off]))
        assert estimate["yes"] == pytest.approx(0, abs=1e-12)
    assert ik.mle(design.tally_counts(counts))["yes"] == pytest.approx(0, abs=2e-3)


EVERY = {name: case[0] for name, case in CASES.items()} | {
    "25 cards": ik.surveys.Kuk(LABELS, 0.2, 0.6, cards=25),
    "direct question": ik.surveys.Warner(LABELS, 1.0),
    "numbers": ik.surveys.Crosswise([0, 1], 0.25),
}


@pytest.mark.parametrize("name", EVERY)
def test_the_contract_of_mechanisms_is_kept(name):
    check_mechanism(EVERY[name], attained=True)
    assert EVERY[name].m == len(EVERY[name].report_alphabet)


@pytest.mark.parametrize("name", EVERY)
def test_reports_can_be_released(name):
    design = EVERY[name]
    reports = design.release(design.labels.values[[0, 1, 1]])
    assert design.tally(reports).n == 3
    assert design.release_epsilon >= design.epsilon


def test_levels_are_those_of_the_papers():
    assert ik.surveys.Warner(LABELS, 0.75).epsilon == pytest.approx(np.log(3), rel=1e-14)
    assert ik.surveys.Crosswise(LABELS, 0.25).epsilon == pytest.approx(np.log(3), rel=1e-14)
    assert DIE.epsilon == pytest.approx(np.log(5), rel=1e-14)
    assert ik.surveys.Mangat(LABELS, 0.7).epsilon == np.inf
    assert ik.surveys.Triangular(LABELS, 0.25).epsilon == np.inf
    five = ik.surveys.Kuk(LABELS, 0.2, 0.6, cards=5)
    assert five.epsilon == pytest.approx(5 * np.log(3), rel=1e-13)


@pytest.mark.parametrize(
    ("design", "reports"),
    [
        (ik.surveys.Warner(LABELS, 0.7), ["no", "yes"]),
        (ik.surveys.Crosswise(LABELS, 0.25), ["different", "same"]),
        (ik.surveys.Triangular(LABELS, 0.25), ["circle", "triangle"]),
        (ik.surveys.Kuk(LABELS, 0.2, 0.6, cards=2), [0, 1, 2]),
    ],
)
def test_reports_have_their_labels(design, reports):
    assert design.report_alphabet.values.tolist() == reports
    assert design.tally(reports).counts.tolist() == [1] * len(reports)
    assert design.tally(range(len(reports)), codes=True).counts.tolist() == [1] * len(reports)


# CRAN RRTCS, KukData: numbers of red cards among 25, of which 60 % in the deck of "yes" and 20 % in
# that of "no" are red
RED = {1: 4, 2: 8, 3: 32, 4: 28, 5: 37, 6: 28, 7: 21, 8: 7, 9: 5, 10: 4, 12: 3, 13: 4, 14: 4}
RED |= {15: 2, 16: 6, 17: 2, 18: 2, 19: 2, 20: 1}


def test_many_cards_are_a_mixture_of_two_binomials():
    """The maximum of the likelihood on a line, and its curvature there."""
    z, counts = np.array(list(RED)), np.array(list(RED.values()))
    no, yes = binom.pmf(z, 25, 0.2), binom.pmf(z, 25, 0.6)

    def misfit(share):
        return -counts @ np.log((1 - share) * no + share * yes)

    best = minimize_scalar(misfit, bounds=(0.01, 0.5), method="bounded", options={"xatol": 1e-10})
    curvature = counts @ ((yes - no) / ((1 - best.x) * no + best.x * yes)) ** 2
    estimate = ik.mle(EVERY["25 cards"].tally_counts(RED))
    assert estimate["yes"] == pytest.approx(best.x, abs=1e-7)
    assert estimate.standard_errors()[1] == pytest.approx(curvature**-0.5, rel=1e-6)
    mean = (z @ counts / (25 * counts.sum()) - 0.2) / 0.4  # Kuk's own estimate
    assert estimate["yes"] == pytest.approx(mean, abs=0.03)


@pytest.mark.parametrize("cards", [1, 2, 7])
def test_the_variance_of_kuk_is_that_of_the_mean_and_maximum_likelihood_is_no_worse(cards):
    share, no, yes = 0.3, 0.2, 0.6
    design = ik.surveys.Kuk(LABELS, no, yes, cards)
    p, red = design.forward([1 - share, share]), np.arange(cards + 1)
    variance = (p @ red**2 - (p @ red) ** 2) / (cards * (yes - no)) ** 2  # by enumeration
    rate = p @ red / cards
    formula = rate * (1 - rate) / (cards * (yes - no) ** 2) + (1 - 1 / cards) * share * (1 - share)
    assert variance == pytest.approx(formula, rel=1e-12)
    likelihood = ik.theory.asymptotic_mse(design, [1 - share, share]) / 2  # of both probabilities
    assert likelihood <= variance * (1 + 1e-9)
    assert (likelihood == pytest.approx(variance, rel=1e-9)) == (cards == 1)


def test_a_plan_asks_as_many_people_as_the_formula():
    design, share = ik.surveys.Crosswise(LABELS, 0.25), 0.1
    p = 0.25 * share + 0.75 * (1 - share)
    plan = ik.plan(design, width=0.05, of=design.sensitive, near=[1 - share, share])
    needed = p * (1 - p) / 0.25 * (2 * norm.ppf(0.975) / 0.05) ** 2
    assert plan.n == np.ceil(needed)


@pytest.mark.parametrize(
    ("make", "parameter", "remedy"),
    [
        (lambda: ik.surveys.Warner(LABELS, 0.5), "p must not be 0.5", "such as 0.7"),
        (lambda: ik.surveys.Crosswise(LABELS, 0.5), "p must not be 0.5", "birthday in one quarter"),
        (lambda: ik.surveys.Triangular(LABELS, 1), "p must be below 1", "birthday in one quarter"),
        (lambda: ik.surveys.Mangat(LABELS, 0), "p must be above 0", "such as 0.7"),
        (lambda: ik.surveys.Kuk(LABELS, 0.3, 0.3), "p_no and p_yes must differ", "0.2 and 0.6"),
        (
            lambda: ik.surveys.ForcedResponse(LABELS, 0.5, 0.5),
            "p_no and p_yes must sum to less",
            "1/6 and 1/6",
        ),
    ],
)
def test_a_design_that_tells_nothing_is_refused(make, parameter, remedy):
    with pytest.raises(ik.errors.UselessDesign, match=parameter) as caught:
        make()
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ik.surveys.Warner(LABELS, 1.1), "p must be in"),
        (lambda: ik.surveys.Mangat(LABELS, "0.7"), "p must be a number"),
        (lambda: ik.surveys.Crosswise(LABELS, -0.1), "p must be in"),
        (lambda: ik.surveys.Triangular(LABELS, 1.1), "p must be in"),
        (lambda: ik.surveys.Kuk(LABELS, 1.1, 0.2), "p_no must be in"),
        (lambda: ik.surveys.Kuk(LABELS, 0.1, 1.2), "p_yes must be in"),
        (lambda: ik.surveys.Kuk(LABELS, 0.1, 0.2, 101), "cards must be at most 100"),
        (lambda: ik.surveys.ForcedResponse(LABELS, -0.1, 0.2), "p_no must be in"),
        (lambda: ik.surveys.ForcedResponse(LABELS, 0.1, np.nan), "p_yes must be in"),
        (lambda: ik.surveys.UnrelatedQuestion(LABELS, 0, 0.5), "p must be in"),
        (lambda: ik.surveys.UnrelatedQuestion(LABELS, 0.7, 1.5), "share must be in"),
        (lambda: ik.surveys.UnrelatedQuestion(LABELS, 0.7), "share must be the share"),
        (lambda: ik.surveys.Kuk(LABELS, 0.2, 0.6, cards=0), "cards must be at least 1"),
        (lambda: ik.surveys.Kuk(LABELS, 0.2, 0.6, cards=2.0), "cards must be a whole number"),
        (lambda: ik.surveys.Warner(["a", "b", "c"], 0.7), "labels must be two"),
        (lambda: ik.surveys.Warner(ik.Grid(1, 2), 0.7), "labels must be two.*got Grid"),
        (lambda: ik.surveys.Warner("no", 0.7), "alphabet must be"),
    ],
)
def test_what_is_no_parameter_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
