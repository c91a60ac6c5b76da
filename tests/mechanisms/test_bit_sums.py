"""Sums of bits: enough for inversion and its errors, and refused where the likelihood is needed."""

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch, IbukitError, LikelihoodUnknown

LABELS = ["a", "b", "c", "d", "e"]
MECHANISMS = [
    ik.Rappor(LABELS, 2.0),
    ik.OptimizedUnaryEncoding(LABELS, 1.0),
    ik.UnaryEncoding(LABELS, 0.6, 0.2),
    ik.LongitudinalUnaryEncoding.osue(LABELS, 1.0, 2.0),
]
each = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)
POSTS = ["none", "normalize", "project", "norm-mul", "norm-sub", "base-pos", "norm", "norm-cut"]
N = 20_000


def rows_of(mechanism, seed=1, n=N):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(n, [0.4, 0.3, 0.15, 0.1, 0.05])
    return mechanism.randomize(np.repeat(LABELS, counts), rng)


@each
@pytest.mark.parametrize("post", POSTS)
def test_inversion_of_sums_is_that_of_the_reports(mechanism, post):
    rows = rows_of(mechanism)
    sums = mechanism.tally_sums(rows.sum(axis=0), N)
    assert sums.n == N
    of_sums = ik.inv(sums, post).distribution
    assert abs(of_sums - ik.inv(mechanism.tally(rows), post).distribution).max() < 1e-12


@each
def test_errors_are_the_spread_of_the_raw_estimate(mechanism):
    found = [
        ik.inv(mechanism.tally_sums(rows_of(mechanism, i, 2000).sum(axis=0), 2000), "none")
        for i in range(400)
    ]
    values = np.array([estimate.distribution for estimate in found])
    # The spread of 400 repetitions has a relative standard error of 3.5 %.
    spread = np.std(values, axis=0)
    assert abs(found[0].standard_errors() / spread - 1).max() < 0.2
    total = [0, 1, 1, 0, 0]
    assert abs(found[0].standard_errors(of=total) / np.std(values @ total) - 1) < 0.2
    assert abs(np.diag(found[0].covariance()) - found[0].standard_errors() ** 2).max() < 1e-15
    truth = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    inside = []
    for estimate in found:
        lower, upper = estimate.interval(0.95, method="wald")
        inside.append((lower <= truth) & (truth <= upper))
    # 2,000 intervals: a standard error is at most .011 a secret.
    assert np.mean(inside, axis=0).min() > 0.91


def test_sums_are_aligned_by_their_labels():
    mechanism = MECHANISMS[0]
    sums = rows_of(mechanism).sum(axis=0)
    right = ik.inv(mechanism.tally_sums(sums, N)).distribution
    shuffled = pd.Series(sums, index=LABELS).sample(frac=1, random_state=3)
    for given in (shuffled, shuffled.to_dict(), sums.astype(np.int32), sums.tolist()):
        assert np.array_equal(ik.inv(mechanism.tally_sums(given, N)).distribution, right)


def test_sums_add_and_are_saved(tmp_path):
    mechanism = MECHANISMS[0]
    first = mechanism.tally_sums([0, 5, 3, 2, 1], 9)
    both = first + mechanism.tally_sums([4, 0, 0, 0, 0], 11)
    whole = mechanism.tally_sums([4, 5, 3, 2, 1], 20)
    assert both.n == 20
    assert np.array_equal(ik.inv(both, "none").distribution, ik.inv(whole, "none").distribution)
    assert pickle.loads(pickle.dumps(both)).n == 20
    both.save(tmp_path / "sums")
    again = ik.Tally.load(tmp_path / "sums")
    assert again.n == 20
    assert np.array_equal(ik.inv(again, "none").covariance(), ik.inv(whole, "none").covariance())


def test_mechanisms_with_sums_are_combined():
    first, second = MECHANISMS[:2]
    tally = first.tally_sums(rows_of(first).sum(axis=0), N) + second.tally(rows_of(second))
    reports = first.tally(rows_of(first)) + second.tally(rows_of(second))
    sums, right = (ik.combine_results(one, ik.inv).distribution for one in (tally, reports))
    assert abs(sums - right).max() < 1e-12


def test_more_than_16_secrets_have_sums():
    mechanism = ik.Rappor(100, 3.0)
    assert ik.inv(mechanism.tally_sums([50] * 100, 60)).to_frame().shape[0] == 100
    with pytest.raises(ValueError, match=r"tally_sums\(sums, n\)"):
        mechanism.tally_counts([50] * 100)


@pytest.mark.parametrize(
    "act",
    [
        ik.mle,
        ik.ibu,
        lambda t: ik.gap(t, [0.2] * 5),
        lambda t: ik.inv(t).interval(method="profile"),
        lambda t: t.forward([0.2] * 5),
    ],
)
def test_what_needs_the_likelihood_is_refused_by_name(act):
    with pytest.raises(LikelihoodUnknown, match=r"sums of bits only.*take inv"):
        act(MECHANISMS[0].tally_sums([4, 5, 3, 2, 1], 20))


@pytest.mark.parametrize(
    ("sums", "n", "error", "message"),
    [
        ([4, 5, 3, 2], 20, AlphabetMismatch, "sums"),
        ([4, 5, 3, 2, 21], 20, ValueError, "sums must be at most n = 20, got 21 at index 4"),
        ([4, 5, 3, 2, -1], 20, ValueError, "sums"),
        ([4, 5, 3, 2, 1.5], 20, ValueError, "sums"),
        ([4, 5, 3, 2, np.nan], 20, ValueError, "sums"),
        ([4, 5, 3, 2, 1], 0, ValueError, "n must be"),
        ([4, 5, 3, 2, 1], 2.5, ValueError, "n must be"),
        ([4, 5, 3, 2, 1], None, (ValueError, TypeError), "n must be"),
        ({"a": 4, "b": 5}, 20, AlphabetMismatch, "one for each of the 5 secrets, got 2"),
        (dict(zip("abcdz", range(5), strict=True)), 20, AlphabetMismatch, "z"),
        ([[4, 5, 3, 2, 1]], 20, ValueError, "sums"),
    ],
)
def test_sums_that_are_none_are_refused(sums, n, error, message):
    with pytest.raises(error, match=message):
        MECHANISMS[0].tally_sums(sums, n)


@pytest.mark.parametrize("counts", [[4, 5, 3, 2, 1], {"a": 4, "b": 5, "c": 3, "d": 2, "e": 1}])
def test_sums_given_as_counts_are_told_where_they_belong(counts):
    with pytest.raises(AlphabetMismatch, match=r"tally_sums\(sums, n\)"):
        MECHANISMS[0].tally_counts(counts)


@dataclass(frozen=True)
class Heir(ik.Rappor):
    """It may have another law."""


def test_a_class_that_inherits_has_no_sums():
    with pytest.raises(IbukitError, match="got Heir, which may have another law"):
        Heir(5, 1.0).tally_sums([1] * 5, 5)
