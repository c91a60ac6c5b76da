"""What every protocol promises whose reports are rows of numbers,
and what everything downstream makes of them.
"""

import pickle

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.mechanisms import FiniteMechanism

KINDS = [
    ik.HadamardResponse(6, 1.0),
    ik.HadamardResponse(6, 2.0, published=True),
    ik.HadamardMechanism(6, 1.0),
    ik.HadamardMechanism(6, 1.0, 2),
    ik.CountMeanSketch(6, 1.0, 3, 4),
    ik.HadamardCountMeanSketch(6, 1.0, 3, 4),
    ik.BloomRappor(6, 8, 2, 3, 0.5, 0.5, 0.75),
    ik.HistogramEncoding(6, 1.0),
]
LISTED = [mechanism for mechanism in KINDS if isinstance(mechanism, FiniteMechanism)]
COUNTS = np.array([500, 300, 100, 50, 30, 20])


def name(mechanism):
    return type(mechanism).__name__


@pytest.mark.parametrize("mechanism", KINDS, ids=name)
def test_pickled_equal_and_the_same_for_the_same_seed(mechanism, rng):
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert len(pickle.dumps(mechanism)) < 2000
    secrets = np.repeat(np.arange(6), 9)
    draws = [mechanism.draw(secrets, np.random.default_rng(seed)) for seed in (5, 5, 6)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    both = mechanism.tally(draws[0], codes=True) + again.tally(draws[2], codes=True)
    assert (both.n, len(both.parts)) == (108, 1)
    assert mechanism.simulate(COUNTS, rng).n == 1000
    with pytest.raises(AttributeError):
        mechanism.alphabet = 3


@pytest.mark.parametrize("mechanism", KINDS, ids=name)
def test_reports_by_their_form(mechanism, rng):
    reports = mechanism.randomize([0, 0, 5, 1], rng)
    tally = mechanism.tally(reports, counts=[1, 2, 0, 4])
    kept = tally.parts[0].reports
    shown = mechanism.restore_reports(kept)
    assert tally.n == 7
    assert np.array_equal(mechanism.tally(shown, codes=True).parts[0].reports, kept)
    assert mechanism.tally(mechanism.label_reports(shown)).n == len(kept)
    poisoned = ik.attack.poison_outputs(
        mechanism.simulate(COUNTS, rng), report=reports[0], fraction=0.1
    )
    assert poisoned.n == 1111
    assert mechanism.tally(pickle.loads(pickle.dumps(reports))).n == 4


@pytest.mark.parametrize("mechanism", KINDS, ids=name)
def test_reports_in_tables(mechanism, rng):
    """A column for each number, or one of lists;
    the number of a report that is a code is a label.
    """
    reports = mechanism.randomize(rng.integers(0, 6, 60), rng)
    wanted = mechanism.tally(reports)
    tables = [(pd.DataFrame({"report": reports.tolist()}), "report")]
    if reports.ndim == 2:
        columns = [f"column {i}" for i in range(reports.shape[1])]
        tables.append((pd.DataFrame(reports, columns=columns), columns))
        with pytest.raises(ValueError, match="reports must be"):
            ik.Tally.from_table(tables[1][0], mechanism, report=columns[0])
        with pytest.raises(ValueError, match="missing"):
            ik.Tally.from_table(
                tables[1][0].astype(float).replace(reports[0, 0], np.nan), mechanism, report=columns
            )
    for table, columns in tables:
        tally = ik.Tally.from_table(table, mechanism, report=columns)
        assert np.array_equal(tally.parts[0].reports, wanted.parts[0].reports)
        assert np.array_equal(tally.counts, wanted.counts)


@pytest.mark.parametrize("mechanism", LISTED, ids=name)
def test_counts_of_listed_reports(mechanism, rng):
    counts = rng.integers(0, 3, mechanism.m)
    tally = mechanism.tally_counts(counts)
    assert tally.n == counts.sum()
    theta = rng.dirichlet(np.ones(6))
    expected = (theta @ mechanism.matrix())[counts > 0]
    np.testing.assert_allclose(tally.forward(theta) * np.exp(tally.log_scale), expected, rtol=1e-12)


@pytest.mark.parametrize("mechanism", KINDS, ids=name)
def test_everything_downstream_takes_them(mechanism, rng):
    tally = mechanism.simulate(COUNTS, rng)
    found = ik.mle(tally)
    low, high = found.interval(0.9, of=[1.0, 0, 0, 0, 0, 0])
    assert low <= found.distribution[0] <= high
    assert found.standard_errors().shape == (6,)
    assert ik.ibu(tally, stop=ik.Gap(1e-4)).gap <= 1e-4
    # by the rank of the columns seen, together with ones
    seen = tally.matrix() / tally.matrix().max(axis=0)
    assert bool(ik.theory.strictly_concave(tally)) == (
        np.linalg.matrix_rank(np.c_[np.ones(6), seen]) == 6
    )
    few = mechanism.simulate([1, 0, 1, 0, 0, 0], rng)
    seen = few.matrix() / few.matrix().max(axis=0)
    assert bool(ik.theory.strictly_concave(few)) == (
        np.linalg.matrix_rank(np.c_[np.ones(6), seen]) == 6
    )
    assert ik.theory.mle_set(tally).unique == bool(ik.theory.strictly_concave(tally))


def test_gibbs_takes_bits_that_are_no_reports(rng):
    """A sketch's channel has bits of secrets, its reports bits of buckets."""
    tally = KINDS[4].simulate(COUNTS, rng)
    mean = ik.posterior_mean(tally, 1.0, method="gibbs", rng=rng)
    assert mean.distribution.sum() == pytest.approx(1)
    assert ik.gap(tally, mean.distribution) < 0.05


@pytest.mark.parametrize("mechanism", KINDS[:4], ids=name)
def test_the_published_estimate_has_no_less_variance_than_the_likelihood(mechanism):
    """At uniform secrets."""
    theta, matrix = ik.uniform(6), mechanism.matrix()
    every = mechanism.tally_counts(np.ones(mechanism.m, dtype=int)).parts[0].reports
    t = np.array([mechanism.invert(every[[z]], np.ones(1)) for z in range(mechanism.m)])
    published = (theta @ matrix @ t**2 - theta**2).sum()
    assert ik.theory.asymptotic_mse(mechanism, theta) <= published * (1 + 1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.OptimizedUnaryEncoding(1100, 1.0),
        ik.LinkedRounds(1100, (0.75, 0.25), (0.75, 0.25), 3),
    ],
    ids=name,
)
def test_a_single_report_may_be_a_long_row(mechanism, rng):
    people = np.zeros(1100, dtype=int)
    people[700] = 1
    tally = mechanism.simulate(people, rng)
    assert tally.n == 1
    assert (tally + tally).counts.tolist() == [2]
