"""Do the reports fit their mechanism? Right p-values by enumeration, and levels that hold."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from scipy.stats import binom, binomtest, chi2

import ibukit as ik
from ibukit.errors import LikelihoodUnknown, MechanismUnknown
from ibukit.model_checks import fit_test


def screening(positive, n=2000):
    test = ik.MatrixMechanism([[0.95, 0.05], [0.1, 0.9]], ["well", "ill"], ["-", "+"])
    return test.tally_counts([n - positive, positive])


def test_fewer_positives_than_false_ones_are_no_fit():
    check = ik.mle(screening(20)).fit_test()
    assert check.p_value < 1e-9
    q = 20 / 2000
    by_hand = 2 * 2000 * (xlogy(q, q / 0.05) + xlogy(1 - q, (1 - q) / 0.95))
    assert check.statistic == pytest.approx(by_hand, rel=1e-9)
    assert "do not fit" in check.reason


def test_what_some_distribution_explains_has_the_p_value_1():
    for positive in (101, 500, 1700):
        check = ik.mle(screening(positive)).fit_test()
        assert (check.p_value, check.is_surprising) == (1.0, False)


def test_warner_with_fewer_yes_than_any_share_makes():
    # 30 % of the answers are yes even if nobody has it; 250 of 1,000 are.
    warner = ik.MatrixMechanism([[0.7, 0.3], [0.3, 0.7]], ["no", "yes"])
    assert fit_test(warner.tally_counts([750, 250])).p_value < 0.01
    assert fit_test(warner.tally_counts([690, 310])).p_value == 1


def test_drawn_p_values_are_those_of_an_enumeration():
    # Of 50 well people 2.5 are positive; nobody was.
    n, x = 50, np.arange(51)
    q = x / n
    deviance = 2 * n * (xlogy(q, q / 0.05) + xlogy(1 - q, (1 - q) / 0.95))
    right = binom.pmf(x, n, 0.05)[deviance >= deviance[0] - 1e-9].sum()
    found = [fit_test(screening(0, n), 999, seed).p_value for seed in range(40)]
    assert abs(np.mean(found) - right) <= 4 * np.std(found) / np.sqrt(40) + 1e-3


def test_a_wrong_level_of_privacy_is_seen_where_it_is_too_low_for_the_reports():
    rng = np.random.default_rng(5)
    right, wrong = (ik.TruncatedGeometric(10, epsilon=e) for e in (2.0, 0.5))
    tally = right.simulate(np.eye(10, dtype=int)[4] * 5000, rng)
    assert fit_test(tally).p_value > 0.01
    part = tally.parts[0]
    taken_for = wrong.tally(part.reports, counts=part.counts, codes=True)
    assert fit_test(taken_for).p_value < 1e-9


def test_each_mechanism_of_a_pool_is_tested_apart_and_the_worst_is_named():
    good, bad = (ik.RandomizedResponse(["a", "b"], epsilon=e) for e in (1.0, 2.0))
    # The two have different distributions, which is not a misfit of either.
    assert fit_test(good.tally_counts([600, 400]) + bad.tally_counts([200, 800])).p_value == 1
    check = fit_test(good.tally_counts([600, 400]) + bad.tally_counts([990, 10]))
    assert check.is_surprising
    assert check.parts[0] < 1e-3 < check.parts[1]
    assert f"worst under {bad}" in check.reason


def test_reports_that_get_lost_are_not_missed():
    detector = ik.MatrixMechanism([[0.6, 0.2], [0.1, 0.3]], efficiency=True)
    assert fit_test(detector.tally_counts([600, 300])).p_value == 1
    assert fit_test(detector.tally_counts([900, 10])).p_value < 1e-9
    few = fit_test(detector.tally_counts([9, 4]))
    assert few.p_value == 1


def test_noise_without_an_end():
    rng = np.random.default_rng(2)
    mechanism = ik.LinearGeometric(ik.Line(None, None), epsilon=1.0)
    reports = rng.geometric(0.6, 300) - rng.geometric(0.6, 300)
    check = fit_test(mechanism.tally(reports), 99)
    assert 0 < check.p_value <= 1


def test_reports_that_all_differ_are_said_to_tell_little():
    rng = np.random.default_rng(4)
    mechanism = ik.Rappor(40, epsilon=1.0)
    tally = mechanism.simulate(rng.multinomial(100, ik.uniform(40)), rng)
    check = fit_test(tally, 19)
    assert "sees little" in check.reason
    assert not check.is_surprising


@pytest.mark.parametrize(
    ("tally", "error"),
    [
        (ik.RandomizedResponse(2, 1.0).tally([0, 1], counts=[0.5, 1.5], weighted=True), ValueError),
        (ik.Tally.from_likelihoods([[1, 0.5], [0.2, 1]]), MechanismUnknown),
        (ik.Rappor(3, 1.0).tally_sums([30, 40, 50], 100), LikelihoodUnknown),
    ],
    ids=["weights", "likelihoods", "sums"],
)
def test_what_does_not_say_what_else_might_have_been_reported_is_refused(tally, error):
    with pytest.raises(error, match="tally"):
        fit_test(tally)


def test_no_draws_leave_the_bound():
    q = 90 / 2000
    by_hand = xlogy(q, q / 0.05) + xlogy(1 - q, (1 - q) / 0.95)
    assert fit_test(screening(90), draws=0).p_value == pytest.approx(chi2.sf(2 * 2000 * by_hand, 1))
    assert fit_test(screening(0, 50), draws=0).p_value == 1


def test_summaries_name_a_misfit_and_are_silent_else():
    bad, good = ik.mle(screening(20)).summary(), ik.mle(screening(500)).summary()
    assert any("do not fit their mechanism" in warning for warning in bad.warnings)
    assert not any("mechanism" in warning for warning in good.warnings)


def test_summaries_of_weights_and_likelihoods_ask_for_no_test():
    rows = ik.Tally.from_likelihoods([[1, 0.5], [0.2, 1]], [300, 400])
    assert not any("fit" in warning for warning in ik.mle(rows).summary().warnings)


SHARES = {
    "all alike": [0, 0, 1, 0, 0, 0],
    "two": [0, 0.5, 0, 0, 0.5, 0],
    "falling": [0.8, 0.1, 0.06, 0.03, 0.01, 0],
    "uniform": [1 / 6] * 6,
}


@pytest.mark.slow
@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("n", [60, 2000])
@pytest.mark.parametrize("kind", [ik.RandomizedResponse, ik.TruncatedGeometric, ik.Rappor])
def test_right_mechanisms_are_rejected_no_more_often_than_the_level_says(kind, n, shares):
    rng = np.random.default_rng([7, n])
    mechanism = kind(6, 1.0)
    p = pd.Series(
        fit_test(mechanism.simulate(rng.multinomial(n, shares), rng), 199, seed).p_value
        for seed in range(300)
    )
    for level in (0.05, 0.2):
        rejected = int((p <= level).sum())
        assert binomtest(rejected, len(p), level, alternative="greater").pvalue > 1e-3
