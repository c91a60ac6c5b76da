"""Intervals of unfolded numbers, and of shares over a background."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import poisson

import ibukit as ik
from ibukit.estimators.unfolding import interval_methods
from ibukit.estimators.unfolding.poisson import maximise_signal

RESPONSE = np.array([[0.6, 0.2], [0.1, 0.3]])
OVER = ik.unfold([80, 80], RESPONSE, background=[10, 30])
PLAIN = ik.unfold([80, 50], RESPONSE)


@pytest.fixture
def each_draw_once(monkeypatch):
    """Few draws differ, or the same ones come again: each is unfolded once."""

    @cache
    def kept(shape, *flat):
        response, drawn, background = (np.array(each) for each in flat)
        return maximise_signal(response.reshape(shape), drawn, background)

    monkeypatch.setattr(
        interval_methods,
        "maximise_signal",
        lambda response, drawn, background: kept(
            response.shape, *(tuple(each.ravel()) for each in (response, drawn, background))
        ),
    )


def test_without_a_background_shares_are_those_of_the_tally():
    # The maximum over the number of events leaves the likelihood of the reports.
    from ibukit.intervals.poisson.model import PoissonModel
    from ibukit.intervals.poisson.profile import PoissonProfile

    region = PoissonProfile(PoissonModel(RESPONSE, np.array([80.0, 50.0]), np.zeros(2)), 0.95)
    lower, upper = PLAIN.interval()
    for x, w in enumerate(np.eye(2)):
        np.testing.assert_allclose(region.highest_share(w), upper[x], atol=3e-9)
        np.testing.assert_allclose(-region.highest_share(-w), lower[x], atol=3e-9)


def test_numbers_and_their_sums_have_intervals_by_every_method(each_draw_once):
    for unfolded in (PLAIN, OVER):
        for method, options in (
            ("profile", {}),
            ("wald", {}),
            ("guaranteed", {}),
            ("bootstrap", {"draws": 200}),
        ):
            lower, upper = unfolded.count_intervals(0.9, method=method, **options)
            assert ((lower < unfolded.counts) & (unfolded.counts < upper)).all()
            low, high = unfolded.count_intervals(0.9, [1, 1], method, **options)
            assert low < unfolded.total < high
            # A sum is known better than its terms, which trade places.
            assert high - low < (upper - lower).sum()
            named = unfolded.count_intervals(0.9, {0: 1, 1: 1}, method, **options)
            assert named == (low, high)


def test_numbers_of_few_secrets_are_profiled_unless_they_are_weights():
    for unfolded in (OVER, PLAIN):
        profile, wald = (unfolded.count_intervals(method=name) for name in ("profile", "wald"))
        assert np.abs(np.array(profile) - wald).max() > 0.5
        np.testing.assert_array_equal(unfolded.count_intervals(), profile)
    weights = ik.unfold([80.5, 80.0], RESPONSE, background=[10, 30])
    np.testing.assert_array_equal(weights.count_intervals(), weights.count_intervals(method="wald"))


@pytest.mark.parametrize("background", [None, 0.5])
def test_numbers_of_many_secrets_are_by_wald(background):
    # A square matrix of lost events alone, so that nothing but the number of secrets matters.
    for k, method in ((100, "profile"), (101, "wald")):
        below = None if background is None else np.full(k, background)
        unfolded = ik.unfold(np.full(k, 9), np.eye(k) / 2, background=below)
        share = np.eye(k)[:1]
        np.testing.assert_array_equal(
            unfolded.count_intervals(of=share), unfolded.count_intervals(of=share, method=method)
        )
        other = {"profile": "wald", "wald": "profile"}[method]
        apart = np.array(unfolded.count_intervals(of=share)) - unfolded.count_intervals(
            of=share, method=other
        )
        assert np.abs(apart).max() > 0.5


def test_wald_of_numbers_is_their_errors():
    lower, upper = OVER.count_intervals(method="wald")
    np.testing.assert_allclose((upper - lower) / 2, 1.959963984540054 * OVER.count_errors())
    none = ik.unfold([5, 40], RESPONSE, background=[4, 3]).count_intervals(method="wald")
    assert none[0][0] == 0


def test_the_bootstrap_of_one_number_is_poisson(each_draw_once):
    unfolded = ik.unfold([50], [[0.5]], background=[10])
    lower, upper = unfolded.count_intervals(method="bootstrap", draws=4000)
    quantiles = poisson.ppf([0.025, 0.975], 50)
    np.testing.assert_allclose([lower[0], upper[0]], (quantiles - 10) / 0.5, atol=2.1)


def test_numbers_count_in_the_unit_of_the_matrix():
    area = 7 * RESPONSE
    big = ik.unfold([80, 80], area, background=[10, 30])
    for method in ("profile", "guaranteed", "wald"):
        for one, other in zip(
            big.count_intervals(method=method), OVER.count_intervals(method=method), strict=True
        ):
            np.testing.assert_allclose(7 * one, other, rtol=1e-7)
        np.testing.assert_allclose(
            big.interval(method=method), OVER.interval(method=method), atol=1e-7
        )


def test_tables_over_a_background_have_profile_intervals():
    ends = np.array(OVER.interval())
    np.testing.assert_array_equal(OVER.to_frame()[["lower", "upper"]].to_numpy().T, ends)
    summary = OVER.summary()
    assert 'by method "profile"' in summary.head
    np.testing.assert_array_equal(summary.table[["lower", "upper"]].to_numpy().T, ends)
    lower, upper = OVER.band()
    assert ((lower < ends[0]) & (ends[1] < upper)).all()
    weights = ik.unfold([80.5, 80.0], RESPONSE, background=[10, 30])
    assert 'by method "wald"' in weights.summary().head


def test_without_a_signal_every_share_is_possible_and_numbers_have_an_upper_end():
    none = ik.unfold([5, 5], RESPONSE, background=[10, 10])
    for method, options in (("profile", {}), ("guaranteed", {})):
        np.testing.assert_array_equal(none.interval(method=method, **options), [[0, 0], [1, 1]])
        lower, upper = none.count_intervals(method=method, **options)
        assert (lower == 0).all()
        assert ((upper > 0) & (upper < 40)).all()
    np.testing.assert_array_equal(none.interval(method="bootstrap", draws=60), [[0, 0], [1, 1]])


def test_methods_and_options_that_are_not_there_are_refused_by_name():
    for ask in (OVER.interval, OVER.count_intervals, PLAIN.count_intervals):
        with pytest.raises(ValueError, match="need a prior of the number of events"):
            ask(method="credible")
        with pytest.raises(ValueError, match="method must be one of 'auto', 'profile', 'wald'"):
            ask(method="calibrated")
        with pytest.raises(ValueError, match="method='profile' takes no option 'draws'"):
            ask(method="profile", draws=5)
        with pytest.raises(ValueError, match="takes no option 'by'"):
            ask(method="guaranteed", by="split")
        with pytest.raises(ValueError, match="level"):
            ask(1.5)
    with pytest.raises(ValueError, match="target must be 'distribution' over a background"):
        OVER.interval(target="frequencies")
    weights = ik.unfold([80.5, 80.0], RESPONSE, background=[10, 30])
    for method in ("profile", "guaranteed", "bootstrap"):
        with pytest.raises(ValueError, match=r"counts must be whole numbers .* got 80\.5"):
            weights.count_intervals(method=method)
    assert np.isfinite(weights.count_intervals(method="wald")).all()
