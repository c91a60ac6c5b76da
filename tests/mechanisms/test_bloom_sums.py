"""Sums of the bits of Bloom filters: the same inversion as from reports, with its errors."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch, LikelihoodUnknown

MECHANISM = ik.BloomRappor(
    ["a", "b", "c", "d"], bits=16, hashes=2, cohorts=3, f=0.25, p=0.35, q=0.65
)
SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def reports(n, rng):
    return MECHANISM.randomize(rng.choice(4, n, p=SHARES), rng, codes=True)


def sums_of(rows):
    cohorts = rows[:, 0]
    people = np.bincount(cohorts, minlength=3)
    return np.array([rows[cohorts == c, 1:].sum(axis=0, dtype=int) for c in range(3)]), people


def test_sums_have_the_estimate_of_their_reports():
    rows = reports(3000, np.random.default_rng(1))
    known = MECHANISM.tally_sums(*sums_of(rows))
    assert known.n == 3000
    for post in ("none", "project", "normalize"):
        found, right = (ik.inv(t, post=post) for t in (known, MECHANISM.tally(rows)))
        assert np.allclose(found.distribution, right.distribution, atol=1e-12)


def test_standard_errors_are_the_spread_of_estimates():
    rng = np.random.default_rng(2)
    estimates = [
        ik.inv(MECHANISM.tally_sums(*sums_of(reports(2000, rng))), post="none") for _ in range(400)
    ]
    spread = np.std([e.distribution for e in estimates], axis=0, ddof=1)
    stated = np.mean([e.standard_errors() for e in estimates], axis=0)
    # The standard error of a standard deviation of 400 draws is 3.5 %.
    assert np.abs(stated / spread - 1).max() < 4 * 0.0355
    of = np.array([1, 1, 0, 0.0])
    together = np.std([e.distribution @ of for e in estimates], ddof=1)
    assert abs(np.mean([e.standard_errors(of=of) for e in estimates]) / together - 1) < 4 * 0.0355
    covered = [
        lower <= SHARES[0] <= upper
        for lower, upper in ((e.interval(0.95, of="a", method="wald")) for e in estimates)
    ]
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)


def test_sums_of_two_days_add():
    rng = np.random.default_rng(3)
    first, second = reports(500, rng), reports(700, rng)
    both = MECHANISM.tally_sums(*sums_of(first)) + MECHANISM.tally_sums(*sums_of(second))
    right = ik.inv(MECHANISM.tally(np.concatenate([first, second])), post="none")
    assert np.allclose(ik.inv(both, post="none").distribution, right.distribution, atol=1e-12)


def test_what_needs_the_likelihood_is_refused_by_name():
    known = MECHANISM.tally_sums(*sums_of(reports(300, np.random.default_rng(4))))
    for ask in (ik.mle, ik.ibu, lambda t: ik.inv(t).interval(0.95, method="profile")):
        with pytest.raises(LikelihoodUnknown, match="sums of bits"):
            ask(known)


@pytest.mark.parametrize(
    ("sums", "n", "error", "message"),
    [
        (np.ones((2, 16), int), [5, 5, 5], AlphabetMismatch, "a row for each of 3 cohorts"),
        (np.full((3, 16), 9), [5, 9, 9], ValueError, "number of reports, 5, got 9 for bit 0"),
        (np.full((3, 16), -1), [5, 9, 9], ValueError, "got -1"),
        (np.full((3, 16), 0.5), [5, 9, 9], ValueError, "sums"),
        (np.ones((3, 16), int), [5, 9], AlphabetMismatch, "n"),
        (np.ones((3, 16), int), 15, AlphabetMismatch, "n"),
    ],
)
def test_sums_that_cannot_be_are_refused(sums, n, error, message):
    with pytest.raises(error, match=message):
        MECHANISM.tally_sums(sums, n)
