"""opendp's exact samplers:
the law that it drew from, 100,000 times each, is the law of our `release`.

What was drawn is fixed, and our own bits have a seed, so a test has one outcome. When drawn anew, a
right sampler fails each of the seven tests of a law with probability 1e-6, and each of the seven
tests of two samples likewise.
"""

import math

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
from bit_trees import Seeded
from foreign.inputs import DRAWS, LINE, LINE_EPSILON, SECRETS
from foreign.record import read

FALSE_ALARM = 1e-6
MIN_EXPECTED = 10  # expected draws of a cell; rarer reports are taken together
PLACES = 8  # of opendp's byte


def bits_of(byte):
    """The bits of a byte, most significant first, as opendp's bit vector has them."""
    return np.unpackbits(np.array([byte], dtype=np.uint8))


LINEAR, SLOW = (
    ik.LinearGeometric(ik.Line(0, LINE - 1), LINE_EPSILON),
    ik.LinearGeometric(ik.Line(0, LINE - 1), 0.05),
)
CUT = ik.TruncatedGeometric(ik.Line(0, LINE - 1), LINE_EPSILON)
RESPONSE = ik.RandomizedResponse(
    SECRETS, math.log(5)
)  # 1/2 for the secret, 1/10 for each of five others
TWO = ik.RandomizedResponse(2, math.log(3))
BITS = ik.UnaryEncoding(PLACES, 0.75, 0.25)
# name -> our mechanism, the secret, and which report of ours one of theirs is
SAME = {
    "geometric": (LINEAR, 3, int),
    "geometric, slow": (SLOW, 0, int),
    "laplace": (LINEAR, 3, int),
    "geometric within bounds": (CUT, 3, int),
    "randomized response": (RESPONSE, 2, int),
    "two secrets": (TWO, 1, int),
    "bits": (BITS, 0, bits_of),
}


def law(mechanism, secret, reports):
    """The probabilities of reports, by the formula of the mechanism's docstring."""
    if isinstance(mechanism, ik.LinearGeometric):
        a = math.exp(-mechanism.epsilon)
        return (1 - a) / (1 + a) * a ** abs(reports - secret)
    if isinstance(mechanism, ik.UnaryEncoding):
        ones = np.array([bits_of(byte) for byte in reports])
        likely = np.where(np.arange(PLACES) == secret, mechanism.p, mechanism.q)
        return np.where(ones == 1, likely, 1 - likely).prod(axis=1)
    return mechanism.matrix()[secret][reports]


def drawn(name):
    """Their reports and how often each came."""
    reports, counts = np.array(
        [(int(report), count) for report, count in read("opendp")[name]["draws"]]
    ).T
    assert counts.sum() == DRAWS
    return reports, counts


def tail(observed, expected):
    """P(chi-square as large as this);
    cells with few expected draws are one, as is what never came.
    """
    often = expected >= MIN_EXPECTED
    observed, expected = observed[often], expected[often]
    rest = DRAWS - expected.sum()
    if rest > 1e-6:
        observed, expected = np.append(observed, DRAWS - observed.sum()), np.append(expected, rest)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1)


@pytest.mark.parametrize("name", SAME)
def test_opendp_draws_from_our_law(name):
    mechanism, secret, _ = SAME[name]
    reports, counts = drawn(name)
    assert tail(counts, DRAWS * law(mechanism, secret, reports)) > FALSE_ALARM


@pytest.mark.parametrize("name", SAME)
def test_another_level_is_noticed(name):
    """Six hundredths more, or a chance of 0.765 for 0.75."""
    mechanism, secret, _ = SAME[name]
    if isinstance(mechanism, ik.UnaryEncoding):
        other = ik.UnaryEncoding(PLACES, 0.765, 0.235)
    else:
        other = type(mechanism)(mechanism.alphabet, mechanism.epsilon * 1.06)
    reports, counts = drawn(name)
    assert tail(counts, DRAWS * law(other, secret, reports)) < FALSE_ALARM


@pytest.mark.parametrize("name", SAME)
def test_what_we_release_has_the_law_of_what_opendp_drew(name, rng):
    """Two samples of one law: chi-square with half of both together as expected."""
    mechanism, secret, report = SAME[name]
    ours = mechanism._release_from(np.full(DRAWS, secret), False, Seeded(rng))
    if report is bits_of:
        ours = np.packbits(ours, axis=1)[:, 0]
    reports, counts = drawn(name)
    seen = np.union1d(reports, ours)
    theirs = np.zeros(len(seen), dtype=int)
    theirs[np.searchsorted(seen, reports)] = counts
    table = np.array([theirs, [(ours == value).sum() for value in seen]])
    often = table.sum(axis=0) >= 2 * MIN_EXPECTED
    table = np.column_stack([table[:, often], table[:, ~often].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    assert stats.chi2_contingency(table, correction=False).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", SAME)
def test_opendp_says_the_level_that_release_has(name):
    """It rounds up; for bits it speaks of vectors with one 1, of which two differ in two bits."""
    level = read("opendp")[name]["level"]
    mechanism = SAME[name][0]
    assert level == pytest.approx(mechanism.release_epsilon, rel=1e-14)
    assert level >= mechanism.epsilon * (1 - 1e-15)
