"""Labels are the language of the outside:
what is handed over in another form is looked up or refused, never reread.
"""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch

WORK = ["Private", "Self-emp", "Federal-gov"]
RESPONSE = ik.RandomizedResponse(WORK, 1.0)
REPORTS = ["Self-emp", "Private", "Private", "Federal-gov", "Private"]
FORMS = {
    "list": REPORTS,
    "tuple": tuple(REPORTS),
    "array": np.array(REPORTS),
    "objects": np.array(REPORTS, dtype=object),
    "Series": pd.Series(REPORTS, index=[7, 5, 3, 1, 0]),
    "categorical": pd.Series(REPORTS, dtype="category"),
    "categories in another order": pd.Categorical(
        REPORTS, categories=["Federal-gov", "never", "Private", "Self-emp"]
    ),
    "nullable": pd.Series(REPORTS, dtype="string"),
    "unmasked": np.ma.array(REPORTS, mask=False),
}


@pytest.mark.parametrize("reports", FORMS.values(), ids=FORMS)
def test_reports_of_any_form_are_the_same_tally(reports):
    tally = RESPONSE.tally(reports)
    assert tally.parts[0].reports.tolist() == [0, 1, 2]
    assert tally.counts.tolist() == [3, 1, 1]


@pytest.mark.parametrize(
    "counts",
    [
        [3, 1, 1],
        {"Federal-gov": 1, "Private": 3, "Self-emp": 1},
        pd.Series(REPORTS).value_counts(),
        pd.Series(REPORTS).value_counts().sort_index(),
        pd.Series(REPORTS, dtype="category").value_counts(),
    ],
    ids=["in order", "dict", "by number", "by label", "categorical"],
)
def test_counts_are_aligned_by_label(counts):
    assert RESPONSE.tally_counts(counts).counts.tolist() == [3, 1, 1]
    drawn = [
        RESPONSE.simulate(c, np.random.default_rng(1)).counts.tolist() for c in ([3, 1, 1], counts)
    ]
    assert drawn[0] == drawn[1]


def test_a_label_that_is_not_there_counts_nothing():
    assert RESPONSE.tally_counts({"Self-emp": 4}).parts[0].reports.tolist() == [1]


def test_what_is_missing_or_twice_is_refused():
    for reports in (
        ["Private", None],
        ["Private", np.nan],
        pd.Series(["Private", pd.NA]),
        pd.Categorical(["a", None]),
    ):
        with pytest.raises(
            (ValueError, AlphabetMismatch),
            match=r"reports (has a missing value at index 1|contains)",
        ):
            RESPONSE.tally(reports)
    with pytest.raises(ValueError, match=r"reports has a missing value \(masked\) at index 1"):
        ik.RandomizedResponse(3, 1.0).tally(np.ma.array([0, 1, 2], mask=[0, 1, 0]))
    with pytest.raises(
        ValueError, match=r"reports must be whole numbers, got nan at index 0 \(a missing value"
    ):
        ik.RandomizedResponse(ik.Line(17, 20), 1.0).tally(pd.Series([np.nan, 18]))
    with pytest.raises(
        ValueError, match=r"reports must be whole numbers, got nan at index 1 \(a missing value"
    ):
        ik.RandomizedResponse(ik.Line(17, 20), 1.0).tally(pd.array([18, None], dtype="Int64"))
    for others in [], [WORK[1]]:
        twice = pd.Series(1, index=["Private", *others, "Private"])
        message = "counts must have each label once, got 'Private' twice"
        with pytest.raises(ValueError, match=message):
            RESPONSE.tally_counts(twice)
    with pytest.raises(
        ValueError, match="counts must be a Series, a mapping or an array, got a frame"
    ):
        RESPONSE.tally_counts(pd.DataFrame({"n": [3, 1, 1], "m": [3, 1, 1]}, index=WORK))
    one = pd.DataFrame({"n": [1, 1, 3]}, index=WORK[::-1])
    assert RESPONSE.tally_counts(one).counts.tolist() == [3, 1, 1]


def test_codes_are_taken_by_name_alone():
    with pytest.raises(
        AlphabetMismatch, match=r"reports contains 1, .* places in the alphabet .* codes=True"
    ):
        RESPONSE.tally([1, 0, 0, 2, 0])
    assert RESPONSE.tally([1, 0, 0, 2, 0], codes=True).counts.tolist() == [3, 1, 1]
    with pytest.raises(AlphabetMismatch, match=r"counts contains 0, .*: rename them"):
        RESPONSE.tally_counts(pd.Series([3, 1, 1]))
    assert RESPONSE.tally_counts(pd.Series([3, 1, 1]).to_numpy()).counts.tolist() == [3, 1, 1]


@pytest.mark.parametrize(
    "kind", [ik.TruncatedGeometric, ik.LinearLaplace, ik.LinearGeometric, ik.Exponential]
)
def test_ages_are_ages(kind, rng):
    """Once they were taken for places on a line from 17,
    and the mean age came out 17 years too high.
    """
    line, values = ik.Line(17, 90), np.arange(17, 91)
    ages = rng.binomial(60, 0.4, 3000) + 20
    mechanism = kind(line, 0.5)
    reports = mechanism.randomize(ages, rng)
    assert abs(ik.mle(mechanism.tally(reports)).distribution @ values - ages.mean()) < 1.0
    # the negative control: the same numbers as places
    with_codes = mechanism.randomize(np.minimum(ages, 73), rng, codes=True)
    wrong = ik.mle(mechanism.tally(with_codes, codes=True)).distribution @ values
    assert wrong > ages.mean() + 10
    with pytest.raises(
        AlphabetMismatch, match=r"secrets contains 16, which is not in 17\.\.90, at index 1"
    ):
        mechanism.randomize([17, 16], rng)


def test_cells_are_pairs_and_answers_are_labels(rng):
    grid = ik.Grid(3, 4, first=(10, 20))
    for mechanism in (
        ik.PlanarLaplace(grid, 1.0),
        ik.TruncatedPlanarGeometric(grid, 1.0),
        ik.Exponential(grid, 1.0),
    ):
        reports = mechanism.randomize([(10, 20), (12, 23)] * 50, rng)
        assert reports.shape == (100, 2)
        assert (
            mechanism.tally(reports).counts.tolist()
            == mechanism.tally(grid.codes(reports), codes=True).counts.tolist()
        )
    answers = RESPONSE.randomize(["Private"] * 20, np.random.default_rng(1))
    places = RESPONSE.randomize([0] * 20, np.random.default_rng(1), codes=True)
    assert answers.tolist() == [WORK[place] for place in places]


def test_each_report_may_come_with_its_count():
    tally = RESPONSE.tally(["Federal-gov", "Private", "Federal-gov"], counts=[2, 5, 1])
    assert tally.counts.tolist() == [5, 3]
    assert tally.parts[0].reports.tolist() == [0, 2]
    integers = ik.LinearGeometric(ik.Line(0, 9), 1.0).tally([-3, 12], counts=[4, 1])
    assert integers.n == 5
    with pytest.raises(AlphabetMismatch, match="counts must have one count for each of the 2"):
        RESPONSE.tally(["Private", "Private"], counts=[1])


def test_reports_that_are_no_secrets_have_names_of_their_own():
    merged = ik.compose(RESPONSE, [[1, 0], [0, 1], [0, 1]])
    assert merged.report_alphabet == ik.Line(0, 1)
    assert merged.tally([0, 1, 1]).counts.tolist() == [1, 2]
    assert ik.Rappor(WORK, 1.0).tally([[1, 0, 1]]).n == 1
    assert ik.SubsetSelection(WORK, 1.0, 1).report_alphabet == ik.Line(
        0, 2
    )  # as many sets as secrets


def test_an_alphabet_may_be_a_list_of_its_labels():
    assert ik.RandomizedResponse(ik.Alphabet(WORK), 1.0) == RESPONSE
    assert ik.RandomizedResponse(pd.Index(WORK), 1.0) == RESPONSE
    with pytest.raises(ValueError, match="values must all be different"):
        ik.RandomizedResponse(pd.Series(REPORTS), 1.0)  # the reports, in the place of the alphabet
    with pytest.raises(ValueError, match="must be a sequence of labels, got the text 'abc'"):
        ik.RandomizedResponse("abc", 1.0)


def test_without_an_end_labels_are_all_there_is(rng):
    endless = ik.LinearGeometric(ik.Line(None, None), 1.0)
    with pytest.raises(ValueError, match=r"codes must be False: Line\(None, None\) has no end"):
        endless.randomize([3, 4], rng, codes=True)
