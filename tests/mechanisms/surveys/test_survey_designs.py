"""All survey designs at once: respondents' odds, files, tables."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import ibukit as ik

LABELS = ("no", "yes")
ONE_SAMPLE = [
    ik.surveys.Warner(LABELS, 0.7),
    ik.surveys.ForcedResponse(LABELS, 0.1, 0.2),
    ik.surveys.UnrelatedQuestion(LABELS, 0.7, 0.25),
    ik.surveys.Kuk(LABELS, 0.2, 0.6, cards=3),
    ik.surveys.Mangat(LABELS, 0.7),
    ik.surveys.Crosswise([0, 1], 0.25),
    ik.surveys.Triangular(LABELS, 0.25),
]
TWO_SAMPLES = [
    ik.surveys.UnrelatedQuestion(LABELS, (0.7, 0.3)),
    ik.surveys.CheatingDetection(LABELS, (0.25, 0.75)),
    ik.surveys.StochasticLieDetector(LABELS, (0.25, 0.75)),
    ik.surveys.ItemCount(LABELS, 2),
]
SCRAMBLED = ik.surveys.ScrambledResponse(3, [0, 1, 2], scramble="replace", p=0.5)


def odds_by_counting(mechanism, prior, sensitive):
    """P(A and z) / P(not A and z) for each report, term by term."""
    found = []
    for z in range(mechanism.m):
        masses = [0.0, 0.0]
        for x, label in enumerate(mechanism.alphabet.labels_of(range(mechanism.k))):
            masses[label in sensitive] += prior[x] * mechanism.matrix()[x, z]
        found.append(masses[1] / masses[0] if masses[0] else np.inf)
    return found


@pytest.mark.parametrize("design", ONE_SAMPLE, ids=repr)
def test_odds_are_those_of_bayes(design):
    prior = [0.9, 0.1]
    found = ik.surveys.posterior_odds(design, prior)
    assert found == pytest.approx(odds_by_counting(design, prior, design.sensitive), rel=1e-12)
    if np.isfinite(design.epsilon):
        assert np.abs(np.log(found * 9)).max() == pytest.approx(design.epsilon, rel=1e-12)


@pytest.mark.parametrize("design", TWO_SAMPLES, ids=repr)
def test_odds_of_two_samples_are_two(design, rng):
    prior = rng.dirichlet(np.ones(design.samples[0].k))
    for sample, found in zip(design.samples, ik.surveys.posterior_odds(design, prior), strict=True):
        expected = odds_by_counting(sample, prior, design.sensitive)
        assert found == pytest.approx(expected, rel=1e-12)


def test_odds_agree_with_what_an_estimate_says_of_each_report():
    design = ONE_SAMPLE[0]
    estimate = ik.mle(design.tally_counts([60, 40]))
    given = estimate.given(["no", "yes"])
    assert ik.surveys.posterior_odds(design, estimate) == pytest.approx(
        (given["yes"] / given["no"]).to_numpy(), rel=1e-12
    )


def test_a_design_without_sensitive_secrets_asks_which():
    with pytest.raises(ValueError, match="of must name the sensitive"):
        ik.surveys.posterior_odds(SCRAMBLED, [0.5, 0.3, 0.2])
    found = ik.surveys.posterior_odds(SCRAMBLED, [0.5, 0.3, 0.2], of={2: 1})
    assert found == pytest.approx(odds_by_counting(SCRAMBLED, [0.5, 0.3, 0.2], {2}), rel=1e-12)
    with pytest.raises(ValueError, match="of must be one set of secrets"):
        ik.surveys.posterior_odds(SCRAMBLED, [0.5, 0.3, 0.2], of=[0.5, 0.5, 0])
    with pytest.raises(ValueError, match="prior must sum to 1"):
        ik.surveys.posterior_odds(ONE_SAMPLE[0], [0.5, 0.3])
    with pytest.raises(ik.errors.ImpossibleReport, match=r"prior must .* got 0 for 'no'"):
        ik.surveys.posterior_odds(ik.surveys.Mangat(LABELS, 0.7), [0, 1])
    certain = ik.surveys.posterior_odds(ik.surveys.Mangat(LABELS, 0.7), [1, 0])
    assert certain.tolist() == [0, 0]
    with pytest.raises(TypeError, match="design must be"):
        ik.surveys.posterior_odds(None, [0.5, 0.5])


@pytest.mark.parametrize("design", [*ONE_SAMPLE, *TWO_SAMPLES, SCRAMBLED], ids=repr)
def test_designs_are_values(design):
    again = pickle.loads(pickle.dumps(design))
    assert again == design
    assert hash(again) == hash(design)
    assert again.alphabet == design.alphabet
    assert again != ik.surveys.Warner(LABELS, 0.9)


def test_shown_designs_say_what_they_are():
    shown = [repr(design).partition("(")[0] for design in (*ONE_SAMPLE, *TWO_SAMPLES, SCRAMBLED)]
    assert shown == [
        *["Warner", "ForcedResponse", "UnrelatedQuestion", "Kuk", "Mangat", "Crosswise"],
        *["Triangular", "UnrelatedQuestion", "CheatingDetection", "StochasticLieDetector"],
        *["ItemCount", "ScrambledResponse"],
    ]


def test_files_are_read_where_no_design_was_named(tmp_path):
    tallies = [design.tally_counts(range(1, design.m + 1)) for design in (*ONE_SAMPLE, SCRAMBLED)]
    tallies += [
        design.tally_counts(*(np.arange(1, sample.m + 1) for sample in design.samples))
        for design in TWO_SAMPLES
    ]
    for i, tally in enumerate(tallies):
        tally.save(tmp_path / f"{i}.tally")
        again = ik.Tally.load(tmp_path / f"{i}.tally")
        assert [part.mechanism for part in again.parts] == [part.mechanism for part in tally.parts]
    code = f"import ibukit as ik; print(ik.Tally.load({str(tmp_path / '0.tally')!r}).n)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "3"


def test_a_column_says_the_sample():
    design = TWO_SAMPLES[1]
    table = pd.DataFrame({"report": ["no", "yes", "yes"], "group": ["a", "a", "b"]})
    samples = dict(zip("ab", design.samples, strict=True))
    tally = ik.Tally.from_table(table, samples, by="group")
    assert tally.forward([1, 0, 0]).sum() == pytest.approx(0.75 + 0.25 + 0.75)
    assert design.tally(["no", "yes"], ["yes"]).n == tally.n == 3
