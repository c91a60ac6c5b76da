"""What adversaries claim and send is named by its label;
by its code where that is asked for by name.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch

LINE = ik.Line(17, 21)
WORDS = ["bus", "car", "train"]
KRR = ik.RandomizedResponse(WORDS, 2.0)
GRID = ik.Grid(3, 4)
inputs, outputs, breakdown = (
    ik.attack.poison_inputs,
    ik.attack.poison_outputs,
    ik.attack.breakdown_fraction,
)


def test_claims_are_labels_of_the_alphabet():
    assert inputs([90, 0, 0], "train", 0.1, alphabet=WORDS).tolist() == [90, 0, 10]
    assert inputs([90, 0, 0], ["train", "bus"], 0.1, alphabet=WORDS).tolist() == [95, 0, 5]
    assert inputs({"car": 90}, "train", 0.1, alphabet=WORDS).tolist() == [0, 90, 10]
    assert inputs(pd.Series({20: 90, 17: 9}), 20, 0.1, alphabet=LINE).tolist() == [9, 0, 0, 101, 0]
    mixed = ik.attack.poisoned_distribution(
        [0.5, 0.5, 0], "train", 0.1, alphabet=ik.Alphabet(WORDS)
    )
    np.testing.assert_allclose(mixed, [0.45, 0.45, 0.1])


def test_claims_against_an_estimate_are_its_labels():
    estimate = ik.mle(ik.TruncatedGeometric(LINE, 2.0).tally([17, 18, 18, 21]))
    mixed = ik.attack.poisoned_distribution(estimate, 20, 0.5)
    np.testing.assert_allclose(mixed, estimate.distribution / 2 + [0, 0, 0, 0.5, 0])
    with pytest.raises(AlphabetMismatch, match=r"target .*3"):
        ik.attack.poisoned_distribution(estimate, 3, 0.5)
    with pytest.raises(AlphabetMismatch, match="distribution must be over"):
        ik.attack.poisoned_distribution(estimate, "car", 0.5, alphabet=WORDS)


def test_cells_are_places_by_number_and_pairs_by_label():
    people = np.r_[90, np.zeros(11, dtype=int)]
    by_number, by_label = (
        inputs(people, target, 0.1, alphabet=GRID) for target in ([3, 6], [(0, 3), (1, 2)])
    )
    assert by_number.tolist() == by_label.tolist() == inputs(people, [3, 6], 0.1).tolist()
    prior = ik.normalize(np.arange(12.0))
    fractions = [breakdown(prior, GRID, 1.0, target) for target in (0, (0, 0), np.int64(0))]
    assert fractions[0] == fractions[1] == fractions[2] > 0
    assert breakdown(prior, GRID, 1.0, (1, 1)) != fractions[0]


def test_the_breakdown_fraction_takes_a_label_or_a_code_by_name():
    prior = [0.4, 0.3, 0.2, 0.1, 0.0]
    expected = breakdown(prior, 5, 0.5, 4)
    assert breakdown(prior, LINE, 0.5, 21) == breakdown(prior, LINE, 0.5, 4, codes=True) == expected
    assert breakdown(prior, list("abcde"), 0.5, "e") == breakdown(
        prior, list("abcde"), 0.5, 4, codes=True
    )


@pytest.mark.parametrize(
    ("mechanism", "label", "code"),
    [
        (KRR, "train", 2),
        (ik.TruncatedGeometric(LINE, 2.0), 20, 3),
        (ik.RandomizedResponse(GRID, 3.0), 7, 7),
    ],
    ids=["words", "line", "grid"],
)
def test_false_reports_are_labels(mechanism, label, code):
    honest = mechanism.simulate(
        np.r_[400, np.zeros(mechanism.k - 1, dtype=int)], np.random.default_rng(1)
    )
    attacked = outputs(honest, label, 0.2)
    again = outputs(honest, code, 0.2, codes=True)
    assert attacked.counts.tolist() == again.counts.tolist() != honest.counts.tolist()
    assert attacked.parts[0].reports.tolist() == again.parts[0].reports.tolist()


@pytest.mark.parametrize(
    ("alphabet", "label"),
    [(ik.Line(100, 109), 108), (ik.Alphabet(list("abcdefghij")), "i"), (ik.Grid(2, 5), 8)],
    ids=["line", "words", "grid"],
)
def test_what_is_found_is_a_label(alphabet, label):
    mechanism = ik.MatrixMechanism(ik.TruncatedGeometric(10, 0.5).matrix(), alphabet)
    honest = mechanism.simulate([1000] * 5 + [0] * 5, np.random.default_rng(1))
    attacked = outputs(honest, label, 0.05)
    found = ik.attack.robust_mle(attacked)
    assert (found.report, found.reports) == (label, (label,))
    assert f"sends {label}:" in repr(found)
    assert ik.attack.detect_poisoning(attacked, rng=np.random.default_rng(2)).report == label
    assert outputs(honest, found.report, 0.05).counts.tolist() == attacked.counts.tolist()


SIGNS = ik.MatrixMechanism(
    [[0.6, *[0.1] * 4], [0.1, 0.1, 0.6, 0.1, 0.1]], ["x", "y"], list("pqrst")
)
AGE = ik.RandomizedResponse([10, 20, 30], 4.0)


@pytest.mark.parametrize(
    ("parts", "label", "other"),
    [
        ((SIGNS, AGE), ("q", 20), ("s", 10)),
        ((ik.product(AGE, SIGNS), AGE), ((10, "q"), 30), ((20, "s"), 10)),
        ((SIGNS, ik.RandomizedResponse(ik.Grid(2, 2), 2.0)), ("q", (0, 1)), ("s", (1, 1))),
    ],
    ids=["pairs", "nested", "cells"],
)
def test_a_label_that_is_a_tuple_is_one_report(parts, label, other):
    mechanism = ik.product(*parts)
    honest = mechanism.simulate(np.full(mechanism.k, 600), np.random.default_rng(4))
    for several in (label, [label], (label,)):
        attacked = outputs(honest, several, 0.3)
        (place,) = np.flatnonzero(attacked.counts - honest.counts)
        assert attacked.counts[place] - honest.counts[place] == round(honest.n * 3 / 7)
    found = ik.attack.robust_mle(attacked)
    assert (found.report, found.reports) == (label, (label,))
    assert ik.attack.detect_poisoning(attacked, rng=np.random.default_rng(2)).report == label
    for report in (found.report, found.reports):
        assert outputs(honest, report, 0.3).counts.tolist() == attacked.counts.tolist()
    for both in ([label, other], (label, other), pd.Series([label, other])):
        assert (outputs(honest, both, 0.3).counts != honest.counts).sum() == 2
    code = mechanism.code_reports([label])
    assert outputs(honest, code[0], 0.3, codes=True).counts.tolist() == attacked.counts.tolist()


@pytest.mark.parametrize(("report", "message"), [((), "at least one"), ("car", "or several")])
def test_neither_a_tuple_nor_several_is_refused(report, message):
    with pytest.raises(ValueError, match=f"report must .*{message}"):
        outputs(ik.product(KRR, KRR).tally([("car", "bus")]), report, 0.1)


def test_labels_of_several_depths_are_told_from_several_labels():
    mechanism = ik.RandomizedResponse([((0, 1), 2), (3, 4)], 1.0)
    honest = mechanism.tally_counts([90, 90])
    for report in ((3, 4), [(3, 4)], pd.Series([(3, 4)])):
        assert outputs(honest, report, 0.1).counts.tolist() == [90, 110]
    assert outputs(honest, ((0, 1), 2), 0.1).counts.tolist() == [110, 90]


def test_false_reports_reach_tallies_without_an_end():
    line = ik.LinearGeometric(ik.Line(None, None), 0.5).tally([3, 4, 5, 5])
    attacked = outputs(line, 9, 0.5)
    assert (attacked.parts[0].reports.tolist(), attacked.counts.tolist()) == (
        [3, 4, 5, 9],
        [1, 1, 2, 4],
    )
    plane = ik.PlanarGeometric(ik.Grid(None, None), 0.5).tally([(3, 4), (5, 5)])
    attacked = outputs(plane, (9, -2), 0.5)
    assert (attacked.parts[0].reports.tolist(), attacked.counts.tolist()) == (
        [[3, 4], [5, 5], [9, -2]],
        [1, 1, 2],
    )


TALLY = KRR.tally_counts([50, 30, 20])
WRONG = {
    "a code for a label": (
        partial(outputs, TALLY, 2, 0.1),
        "reports contains 2.*places in the alphabet.*codes=True",
    ),
    "no such label": (partial(outputs, TALLY, "bike", 0.1), "reports contains 'bike'"),
    "no such code": (
        partial(outputs, TALLY, 3, 0.1, codes=True),
        "reports must be codes 0..2, got 3",
    ),
    "a target's code": (
        partial(breakdown, [1, 0, 0], WORDS, 1.0, 2),
        "target contains 2.*codes=True",
    ),
    "no such place": (
        partial(breakdown, ik.uniform(12), GRID, 1.0, 12),
        "target must be codes 0..11, got 12",
    ),
    "no such cell": (
        partial(breakdown, ik.uniform(12), GRID, 1.0, (3, 0)),
        r"target contains \(3, 0\): outside",
    ),
    "labels of counts": (
        partial(inputs, pd.Series({20: 5, 17: 9}), 1, 0.1),
        "target contains 1, which is not in the alphabet",
    ),
    "labels of nothing": (
        partial(inputs, [5, 4, 3], "car", 0.1),
        r"target must be integers of Line.*alphabet=",
    ),
    "a claim": (
        partial(inputs, [5, 4, 3], "car", 0.1, alphabet=["a", "b", "c"]),
        "target contains 'car'",
    ),
    "two alphabets": (partial(inputs, [5, 4], "car", 0.1, alphabet=WORDS), "counts"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_label_is_refused_by_name(what):
    call, said = WRONG[what]
    with pytest.raises(AlphabetMismatch, match=said):
        call()
