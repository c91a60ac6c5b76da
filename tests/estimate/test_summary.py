"""Bands that hold together, and summaries in words."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import ibukit as ik

TALLY = ik.RandomizedResponse(["a", "b", "c"], 2.0).tally_counts([430, 310, 80])
MERGED = ik.compose(ik.RandomizedResponse(3, 1.0), [[1, 0], [0, 1], [0, 1]]).tally_counts([50, 50])


@pytest.mark.parametrize("method", ["profile", "wald"])
def test_a_band_divides_what_may_fail(method):
    estimate = ik.mle(TALLY)
    np.testing.assert_array_equal(
        estimate.band(0.9, method), estimate.interval(1 - 0.1 / 3, method=method)
    )
    lower, upper = estimate.band(0.9, "wald")
    assert upper[0] - lower[0] == pytest.approx(
        2 * ndtri(1 - 0.05 / 3) * estimate.standard_errors()[0]
    )


def test_boxes_hold_together_as_they_are():
    estimate = ik.mle(TALLY)
    np.testing.assert_array_equal(
        estimate.band(0.9, "guaranteed"),
        estimate.interval(0.9, method="guaranteed", by="region"),
    )


def held_together(draws, ends):
    """How many draws have all of a distribution between the ends."""
    rng, mechanism, theta = (
        np.random.default_rng(4),
        ik.RandomizedResponse(4, 1.5),
        np.array([0.4, 0.3, 0.2, 0.1]),
    )
    held = 0
    for _ in range(draws):
        lower, upper = ends(ik.mle(mechanism.simulate(rng.multinomial(4000, theta), rng)))
        held += bool(((lower <= theta) & (theta <= upper)).all())
    return held / draws


@pytest.mark.slow
def test_a_band_holds_and_single_intervals_do_not_hold_together():
    level, draws = 0.9, 100
    error = np.sqrt(level * (1 - level) / draws)
    assert held_together(draws, lambda estimate: estimate.band(level, "wald")) >= level - 3 * error
    assert held_together(draws, lambda estimate: estimate.band(level)) >= level - 3 * error
    assert held_together(draws, lambda estimate: estimate.interval(level)) < level - 3 * error


def test_a_summary_is_the_interval_in_a_table():
    estimate = ik.mle(TALLY)
    found = estimate.summary(0.9, method="profile")
    lower, upper = estimate.interval(0.9, method="profile")
    assert found.table["lower"].tolist() == lower.tolist()
    assert found.table["upper"].tolist() == upper.tolist()
    assert found.table.index.tolist() == ["a", "b", "c"]
    assert "820 reports" in found.head
    assert 'level 0.9 by method "profile"' in found.head
    assert "<li>1 interval ends at a bound" in found._repr_html_()
    tagged = ik.mle(
        ik.RandomizedResponse(["a", "b", "<b>"], 2.0).tally_counts([430, 310, 80])
    ).summary()
    assert "<b>" in str(tagged)
    assert "<b>" not in tagged._repr_html_()
    inside = ik.mle(ik.RandomizedResponse(["a", "b", "c"], 2.0).tally_counts([500, 300, 200]))
    two = inside.summary(of=[[1, 0, 0], [0, 1, 1]], method="wald")
    assert two.table.index.tolist() == ["question 0", "question 1"]
    assert two.warnings == ()
    for of, name in (("b", "b"), (["b", "c"], "b + c"), ({"a": 1}, "a"), ({"a": 2}, "question 0")):
        assert inside.summary(of=of).table.index.tolist() == [name]


@pytest.mark.parametrize(
    ("estimate", "method", "says"),
    [
        (ik.mle(TALLY), "wald", "for c: Wald's interval is void there"),
        (ik.mle(TALLY), "profile", "for c: there its level is not exactly 0.95"),
        (ik.ibu(TALLY, stop=ik.Steps(2)), None, "falls short by up to .* nats"),
        (ik.ibu(TALLY, stop=ik.Steps(2)), "wald", "do not know its bias"),
        (ik.ibu(TALLY, stop=ik.Steps(2)), None, "outside of its interval for a, c"),
        (ik.mle(MERGED), None, "do not determine 1, 2"),
        (ik.mle(TALLY), "profile", "1 of 3 probabilities are estimated as 0"),
    ],
)
def test_a_summary_says_what_to_be_careful_about(estimate, method, says):
    assert any(re.search(says, warning) for warning in estimate.summary(method=method).warnings)


def test_a_gap_matters_by_what_all_reports_together_lose_by_it():
    found = []
    for times in (1, 10**6):
        tally = ik.RandomizedResponse(["a", "b", "c"], 2.0).tally_counts(times * TALLY.counts)
        estimate = ik.ibu(tally, stop=ik.Gap(1e-6))
        assert 1e-8 < estimate.gap <= 1e-6
        warnings = " ".join(estimate.summary(method="profile").warnings)
        found.append("is not the maximum of the likelihood" in warnings)
    assert found == [False, True]


def test_a_summary_has_nothing_to_say_where_all_is_well():
    tally = ik.RandomizedResponse(["a", "b", "c"], 2.0).tally_counts([500, 300, 200])
    assert ik.mle(tally).summary().warnings == ()
    table = ik.Tally.from_table(
        pd.DataFrame({"report": ["a", "b", "b", None]}),
        ik.RandomizedResponse(["a", "b"], 2.0),
        missing="drop",
    )
    assert ik.mle(table).summary().warnings[0] == "Reports left out: 1 missing."


def test_bad_levels_and_unknown_tallies_are_named():
    estimate = ik.mle(TALLY)
    for call in (estimate.band, estimate.summary):
        with pytest.raises(ValueError, match="level must be"):
            call(1.5)
    with pytest.raises(ValueError, match="has no tally"):
        ik.Estimate(
            np.array([0.5, 0.5]), 0.0, 0.0, ik.Status.CONVERGED, 1, "given", ik.Line(0, 1)
        ).summary()
