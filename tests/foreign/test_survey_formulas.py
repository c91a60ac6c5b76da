"""Estimates, standard errors and intervals of survey designs, beside R's formulas in fractions."""

import pandas as pd
import pytest

import ibukit as ik
from foreign import record, record_survey_formulas

LABELS = ("no", "yes")
KEPT = {k: v for k, v in record.read("survey_formulas").items() if isinstance(v, dict)}
# Kuk's mean of several cards is another estimate than the maximum of the likelihood.
MOMENTS = "Kuk, two cards"
WEIGHTED = "Warner, weighted in strata"


def design_of(kept):
    kind, parameters = kept["design"]
    make = getattr(ik.surveys, kind)
    if kind == "ScrambledResponse":
        return make(**parameters, scramble="replace")
    return make(LABELS, **parameters)


def estimate_of(name):
    """Our estimate, and the question."""
    kept = KEPT[name]
    design, data = design_of(kept), kept["data"]
    if name == WEIGHTED:
        rows = [
            (stratum, weight, report)
            for stratum, (weight, counts) in enumerate(data)
            for report, count in zip(LABELS, counts, strict=True)
            for _ in range(count)
        ]
        table = pd.DataFrame(rows, columns=["stratum", "weight", "report"])
        tally = ik.Tally.from_table(table, design, count="weight", weighted=True, strata="stratum")
    elif isinstance(design, ik.surveys.TwoSampleDesign):
        tally = design.tally_counts(*data)
    else:
        tally = design.tally_counts(data)
    numbers = {x: float(x) for x in range(4)}
    return ik.mle(tally), getattr(design, "sensitive", numbers)


def test_every_design_has_a_record():
    kinds = {kept["design"][0] for kept in KEPT.values()}
    abstract = {"SurveyDesign", "TwoSampleDesign", "posterior_odds"}
    assert kinds == {name for name in vars(ik.surveys) if name[0].isalpha()} - abstract


def test_the_records_are_what_the_script_computes():
    made = record_survey_formulas.records()
    assert made.keys() == KEPT.keys()
    for name, kept in KEPT.items():
        for key in ("estimate", "standard_error", "interval"):
            assert made[name][key] == pytest.approx(kept[key], rel=1e-14)


@pytest.mark.parametrize("name", sorted(KEPT.keys() - {MOMENTS}))
def test_estimate_standard_error_and_interval_are_those_of_the_formulas(name):
    kept, (estimate, of) = KEPT[name], estimate_of(name)
    value = sum(weight * estimate[label] for label, weight in of.items())
    assert value == pytest.approx(kept["estimate"], abs=1e-8)
    error = estimate.standard_errors(of=of)
    assert error == pytest.approx(kept["standard_error"], rel=1e-6)
    interval = estimate.interval(0.95, of=of, method="wald")
    assert interval == pytest.approx(tuple(kept["interval"]), abs=1e-7)


def test_the_likelihood_of_several_cards_is_more_precise_than_their_mean():
    """The counts are those that a share of 1/4 makes on average, so that both have this share."""
    kept, (estimate, of) = KEPT[MOMENTS], estimate_of(MOMENTS)
    assert estimate["yes"] == pytest.approx(kept["estimate"], abs=1e-8) == 0.25
    assert 0.9 * kept["standard_error"] < estimate.standard_errors(of=of) < kept["standard_error"]
