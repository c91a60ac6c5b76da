"""Scrambled numbers: their law by enumeration, and the moments of the papers."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

import ibukit as ik
from ibukit.testing import check_mechanism

NUMBERS, SHARES = [1, 2, 4], [0.5, 0.25, 0.25]
SECRETS = [0, 1, 3, 4]
HOW = {"replace": lambda x, s: s, "add": lambda x, s: x + s, "multiply": lambda x, s: x * s}
kinds = pytest.mark.parametrize("scramble", HOW)


def design_of(scramble, p=0.25, secrets=SECRETS):
    return ik.surveys.ScrambledResponse(secrets, NUMBERS, SHARES, scramble, p)


@kinds
@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_the_law_is_that_of_all_draws(scramble, p):
    if scramble == "replace" and p == 0:
        with pytest.raises(ik.errors.UselessDesign, match="raise p"):
            design_of(scramble, p)
        return
    design = design_of(scramble, p)
    law = {}
    drawn = list(zip(NUMBERS, SHARES, strict=True)) if p < 1 else []
    for x, (s, share) in itertools.product(SECRETS, drawn):
        z = HOW[scramble](x, s)
        law[x, z] = law.get((x, z), 0) + (1 - p) * share
    for x in SECRETS if p else []:
        law[x, x] = law.get((x, x), 0) + p
    reports = sorted({z for _, z in law})
    assert design.report_alphabet.values.tolist() == reports
    expected = [[law.get((x, z), 0) for z in reports] for x in SECRETS]
    assert design.matrix() == pytest.approx(np.array(expected), abs=1e-15)
    check_mechanism(design, attained=True)


@kinds
def test_the_mean_is_that_of_the_papers_and_no_less_precise(scramble):
    """The moments of Eriksson, of Pollock and Bek, and of Eichhorn and Hayre, from the law of z."""
    p, theta, n = 0.25, np.array([0.4, 0.3, 0.2, 0.1]), 10**9
    design = design_of(scramble, p)
    law, z = design.forward(theta), design.report_alphabet.values
    card = np.dot(NUMBERS, SHARES)
    shift = {"replace": (1 - p) * card, "add": (1 - p) * card, "multiply": 0}[scramble]
    scale = {"replace": p, "add": 1, "multiply": p + (1 - p) * card}[scramble]
    mean = (law @ z - shift) / scale
    assert mean == pytest.approx(theta @ SECRETS, rel=1e-12)
    counts = np.rint(n * law).astype(int)
    of = {x: float(x) for x in SECRETS}
    lower, upper = ik.mle(design.tally_counts(counts)).interval(of=of, method="wald")
    assert (lower + upper) / 2 == pytest.approx(mean, abs=1e-6)
    moment_error = np.sqrt((law @ z**2 - (law @ z) ** 2) / counts.sum()) / scale
    assert (upper - lower) / (2 * norm.ppf(0.975)) <= moment_error * (1 + 1e-6)


def test_where_every_secret_is_on_a_card_the_moment_is_the_estimate():
    design = ik.surveys.ScrambledResponse(SECRETS, SECRETS, scramble="replace", p=0.5)
    counts, z = np.array([300, 260, 240, 200]), np.array(SECRETS)
    estimate = ik.mle(design.tally_counts(counts))
    mean = (z @ counts / 1000 - 0.5 * 2) / 0.5
    error = np.sqrt((z**2 @ counts / 1000 - (z @ counts / 1000) ** 2) / 1000) / 0.5
    ends = mean + norm.ppf([0.025, 0.975]) * error
    of = dict(zip(SECRETS, map(float, SECRETS), strict=True))
    assert estimate.interval(of=of, method="wald") == pytest.approx(tuple(ends), abs=1e-6)
    assert design.epsilon == pytest.approx(np.log(0.625 / 0.125), rel=1e-13)


# CRAN RRTCS, ErikssonData (Arcos, Rueda and Singh 2015): exams in which somebody cheated, or a card
CHEATED = {0: 31, 1: 19, 2: 1, 3: 17, 5: 10, 8: 17, 10: 3, 12: 1, 20: 1, 40: 2}


def test_exams():
    """An EM of its own, on the numbers that were reported; and the moment estimate near it."""
    secrets, counts = np.array(list(CHEATED)), np.array(list(CHEATED.values()))
    cards = np.isin(secrets, [0, 1, 3, 5, 8]) / 5
    theta = np.full(len(secrets), 1 / len(secrets))
    for _ in range(20_000):
        truthful = 0.5 * theta / (0.5 * theta + 0.5 * cards)
        theta = (counts * truthful + theta * (counts * (1 - truthful)).sum()) / counts.sum()
    design = ik.surveys.ScrambledResponse(list(CHEATED), [0, 1, 3, 5, 8], scramble="replace", p=0.5)
    estimate = ik.mle(design.tally_counts(CHEATED))
    assert estimate.distribution @ secrets == pytest.approx(theta @ secrets, abs=1e-6)
    moment = (secrets @ counts / counts.sum() - 0.5 * 3.4) / 0.5
    assert estimate.distribution @ secrets == pytest.approx(moment, abs=0.05)


def test_sums_that_rounding_would_tell_apart_are_one_report():
    design = ik.surveys.ScrambledResponse([0.1, 0.2], [0.1, 0.2], scramble="add")
    assert design.report_alphabet.values.tolist() == [0.2, 0.3, 0.4]
    assert design.tally([0.3, 0.2]).n == 2


def test_whole_sums_beside_others_are_rounded_with_them():
    design = ik.surveys.ScrambledResponse([0.1, 0.2], [0.1, 0.9], scramble="add")
    assert design.report_alphabet.values.tolist() == [0.2, 0.3, 1.0, 1.1]


def test_the_largest_numbers_multiply():
    design = ik.surveys.ScrambledResponse([1e150, -1e150], [1e150], scramble="multiply")
    assert design.report_alphabet.values.tolist() == pytest.approx([-1e300, 1e300])


def test_large_whole_numbers_keep_their_digits():
    design = ik.surveys.ScrambledResponse([0, 10**15], [1, 2], scramble="add")
    assert design.report_alphabet.values.tolist() == [1, 2, 10**15 + 1, 10**15 + 2]


def test_numbers_without_a_share_are_no_reports():
    design = ik.surveys.ScrambledResponse([0, 1], [1, 5], [1, 0], scramble="add")
    assert design.report_alphabet.values.tolist() == [1, 2]


def test_negative_numbers_and_zero_secrets_multiply():
    design = ik.surveys.ScrambledResponse([-1, 0, 1], [1, 2], scramble="multiply")
    assert design.report_alphabet.values.tolist() == [-2, -1, 0, 1, 2]
    assert design.matrix()[1].tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scramble": "replace"}, "reports do not depend on the secret.*raise p"),
        ({"scramble": "multiply", "numbers": [0]}, "reports do not depend on the secret"),
        ({"alphabet": 1}, "reports do not depend on the secret"),
        ({"scramble": "subtract"}, "scramble must be .* got 'subtract'"),
        ({"numbers": [1, 1]}, "numbers must all be different"),
        ({"numbers": []}, "numbers must be finite numbers"),
        ({"numbers": [1, np.inf]}, "numbers must be finite numbers"),
        ({"numbers": [1, 1e200]}, "numbers must be at most 1e.150"),
        ({"numbers": ["a"]}, "numbers must be numbers"),
        ({"alphabet": ["a", "b"]}, "alphabet must be numbers"),
        ({"shares": [0.5, 0.6]}, "shares must sum to 1"),
        ({"shares": [1.0]}, "shares must have one probability for each of the 2"),
        ({"p": 1.5}, "p must be in"),
    ],
)
def test_what_tells_nothing_or_is_no_parameter_is_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ik.surveys.ScrambledResponse(**({"alphabet": 3, "numbers": [1, 2]} | arguments))
