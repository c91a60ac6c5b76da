"""scikit-learn takes `ibukit.sklearn.MLE` for one of its own."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from ibukit.sklearn import MLE

LABELS = ["bike", "bus", "car"]
TRAVEL = ik.RandomizedResponse(LABELS, 2.0)
REPORTS = np.random.default_rng(1).permutation(["bus"] * 50 + ["bike"] * 30 + ["car"] * 20)


class AnyNumbers(ik.RandomizedResponse):
    """A mechanism to which any row of numbers is a report, the sign of its sum."""

    def tally(self, reports):
        return super().tally((np.asarray(reports, float).reshape(len(reports), -1).sum(1) > 0) * 1)


def test_scikit_learn_finds_nothing_to_complain_of():
    # What it hands over are rows of arbitrary numbers, which no mechanism of ours takes.
    allowed = {"check_fit1d": "a sequence of reports is what people have"}
    results = check_estimator(MLE(AnyNumbers(2, 1.0)), expected_failed_checks=allowed, on_skip=None)
    assert sum(each["status"] == "passed" for each in results) > 35


def test_it_is_the_estimate_of_the_tally():
    found = MLE(TRAVEL).fit(REPORTS)
    direct = ik.mle(TRAVEL.tally(REPORTS))
    assert found.estimate_ == direct
    assert np.array_equal(found.distribution_, direct.distribution)
    assert found.n_features_in_ == 1
    column = MLE(TRAVEL).fit(REPORTS.reshape(-1, 1))
    framed = MLE(TRAVEL).fit(pd.DataFrame({"vehicle": REPORTS}))
    assert column.estimate_ == framed.estimate_ == direct


def test_the_score_is_the_mean_log_likelihood_of_new_reports():
    train, test = REPORTS[:70], REPORTS[70:]
    found = MLE(TRAVEL).fit(train)
    law = found.distribution_ @ TRAVEL.matrix()
    by_hand = np.mean([np.log(law[LABELS.index(report)]) for report in test])
    assert found.score(test) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize(
    "mechanism", [ik.LinearGeometric(ik.Line(0, 30), 0.5), ik.Rappor(4, 1.0)], ids=["Z", "bits"]
)
def test_reports_that_cannot_be_listed_are_scored_with_all_factors(mechanism):
    rng = np.random.default_rng(3)
    reports = mechanism.randomize(rng.binomial(mechanism.k - 1, 0.4, size=300), rng)
    found = MLE(mechanism).fit(reports[:200])
    # of a thousand further ones, the mean of what the estimate gives each
    tally = mechanism.tally(reports[200:])
    p = tally.forward(found.distribution_)
    log_p = np.log(p) @ tally.frequencies + tally.parts[0].log_offset / tally.n
    assert found.score(reports[200:]) == pytest.approx(log_p, abs=1e-12)
    assert cross_val_score(MLE(mechanism), reports, cv=3).shape == (3,)


def test_an_alphabet_without_an_end_is_scored_on_both_samples():
    mechanism = ik.PlanarGeometric(ik.Grid(4, 4), 1.0)
    rng = np.random.default_rng(5)
    reports = mechanism.randomize(rng.integers(0, 16, 200), rng)
    assert np.isfinite(cross_val_score(MLE(mechanism), reports, cv=4)).all()


def test_a_search_finds_the_penalty_that_predicts_held_out_reports():
    rng = np.random.default_rng(2)
    mechanism = ik.TruncatedGeometric(ik.Line(0, 30), 0.3)
    reports = mechanism.randomize(rng.binomial(30, 0.4, size=2000), rng)
    folds = KFold(4, shuffle=True, random_state=1)
    search = GridSearchCV(MLE(mechanism), {"penalty": [1.0, 100.0, 1e7]}, cv=folds).fit(reports)
    assert search.best_params_ == {"penalty": 100.0}
    direct = ik.smooth(mechanism.tally(reports), penalty=100.0)
    assert search.best_estimator_.estimate_ == direct


def test_clones_know_the_mechanism_and_are_not_fitted():
    found = MLE(TRAVEL, tol=1e-6).fit(REPORTS)
    other = clone(found)
    assert other.get_params() == {"mechanism": TRAVEL, "penalty": None, "tol": 1e-6}
    with pytest.raises(NotFittedError):
        other.score(REPORTS)


@pytest.mark.parametrize(
    ("mechanism", "reports", "says"),
    [
        ("k-rr", REPORTS, "mechanism must be a Mechanism, got str"),
        (TRAVEL, ["bus", "tram"], "tram"),
        (TRAVEL, np.full((5, 2), "bus"), "dimension"),
        (ik.LinearLaplace(ik.Line(0, 4), 1.0), [1.0, np.nan], "NaN"),
    ],
    ids=["no mechanism", "unknown label", "two columns", "missing"],
)
def test_what_cannot_be_read_is_refused(mechanism, reports, says):
    with pytest.raises((TypeError, ValueError), match=says):
        MLE(mechanism).fit(reports)
