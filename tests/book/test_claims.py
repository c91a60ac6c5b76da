"""Published numbers beside ours:
the tables are in order, and a verdict is believed only when the numbers give it.
"""

import csv
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
import ibukit_claims as claims
from ibukit.datasets import DATA
from ibukit_claims import _beside, _published

FILES = sorted((DATA / "published").glob("*.csv"))
STEMS = [path.stem for path in FILES]
ROW = {
    "claim": "A-F8",
    "where": "Fig. 8(b)",
    "setting": "eps_g = 1",
    "quantity": "EMD of the reports",
    "value": "0.50",
    "unit": "km",
    "read": "text",
    "stop": "",
    "repetitions": "60",
    "tolerance_kind": "absolute",
    "tolerance": "0.25",
    "verdict": "reproduced",
    "note": "a note, with a comma",
}
KEY = ("A-F8", "EMD of the reports")


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A function that makes rows (changes of ROW) the whole of data/published/consistency.csv."""
    monkeypatch.setattr(_published, "DATA", tmp_path)
    (tmp_path / "published").mkdir()

    def write(*changes, columns=tuple(ROW)):
        with (tmp_path / "published" / "consistency.csv").open(
            "w", encoding="utf-8", newline=""
        ) as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows({**ROW, **change} for change in changes)

    return write


@pytest.mark.parametrize("stem", STEMS)
def test_every_table_is_in_order(stem):
    rows = claims.load_published(stem)
    assert list(rows.columns) == [*claims.COLUMNS, "printed"]
    assert len(rows) > 0
    assert not rows.duplicated(claims.KEY).any()
    assert rows["value"].notna().sum() == (rows["printed"] != "").sum()
    compared = rows[~rows["verdict"].isin(["setting", "not checkable", "open"])]
    assert (compared["tolerance_kind"] != "").all()


@pytest.mark.parametrize("stem", STEMS)
def test_rounding_means_half_a_unit_of_the_last_printed_digit(stem):
    rows = claims.load_published(stem)
    for row in rows[rows["tolerance_kind"] == "rounding"].itertuples():
        decimals = len(row.printed.partition(".")[2])
        assert row.tolerance == pytest.approx(0.5 * 10.0**-decimals, rel=1e-12), row


@pytest.mark.parametrize(
    "stem", [stem for stem in STEMS if stem != "protocols"]
)  # which repeats single tables
def test_every_claim_is_in_the_ledger(stem):
    with (DATA / "ledger.csv").open(encoding="utf-8", newline="") as file:
        known = {row["id"] for row in csv.DictReader(file)}
    assert set(claims.load_published(stem)["claim"]) <= known


@pytest.mark.parametrize(
    ("stem", "claim", "setting", "quantity", "printed"),
    [
        ("consistency", "A-F8", "Manhattan", "EMD of IBU", "0.16995"),
        ("consistency", "A-F8", "Manhattan", "EMD of the noisy histogram", "0.7658"),
        (
            "consistency",
            "A-N1",
            "k = 100, eps = 2",
            "n times the bound on the squared error of raw INV",
            "227.28",
        ),
        ("consistency", "A-P7", "", "delta'", "1.87"),
        ("freewill", "C-TV", "planar, k-RR, number 10", "eps", "8.20"),
        ("freewill", "C-TVI", "linear, geometric, number 1", "eps", "0.020"),
        ("freewill", "C-TVII", "linear, k-RR, number 1", "eps", "3.00"),
        ("freewill", "C-TVIII", "linear, Shokri, number 9", "Q", "24.5"),
        ("estimators", "D-F4b", "Adult, training file", "people", "32561"),
        ("privic", "E-F6", "Paris", "check-ins", "10260"),
        ("privic", "E-TII", "San Francisco", "mean run time of IBU", "128.192"),
        ("privic", "E-TIII", "Paris, beta = 1, N = 15, round 5", "EMD", "0.12413"),
        ("privic", "E-TIV", "San Francisco, beta = 0.5, N = 1, round 1", "EMD", "7.37595"),
        ("privic", "E-F11a", "panel 4", "adversarial users", "39"),
    ],
)
def test_numbers_are_as_the_papers_print_them(stem, claim, setting, quantity, printed):
    rows = claims.load_published(stem).set_index(claims.KEY)
    assert rows.loc[(claim, setting, quantity), "printed"] == printed


@pytest.mark.parametrize(
    ("stem", "claim", "numbers"),
    [("freewill", f"C-T{table}", 20) for table in ("IV", "VII", "VIII")]
    + [
        ("freewill", f"C-T{table}", 40) for table in ("V", "VI")
    ]  # as settings, and as results of a guess of ours
    + [("privic", "E-TIII", 15 * 10), ("privic", "E-TIV", 8 * 10)],
)
def test_tables_are_whole(stem, claim, numbers):
    rows = claims.load_published(stem)
    assert (rows["claim"] == claim).sum() == numbers


@pytest.mark.ledger("A-D13")
def test_the_ages_are_those_of_the_paper():
    ages = ik.datasets.load_adult_ages()
    numbers = {
        ("A-D13", "people"): ages.n,
        ("A-D13", "least age of the alphabet"): ages.alphabet.values[0],
        ("A-D13", "greatest age of the alphabet"): ages.alphabet.values[-1],
    }
    claims.check(claims.beside("consistency", numbers))
    with pytest.raises(AssertionError, match=r"48841.*48842.*computed deviates, recorded setting"):
        claims.check(claims.beside("consistency", numbers | {("A-D13", "people"): ages.n - 1}))


@pytest.mark.ledger("A-D14")
def test_manhattan_is_the_papers_but_for_one_check_in():
    manhattan = ik.datasets.load_gowalla("manhattan")
    grid = manhattan.alphabet
    south, north, west, east = grid.bounds
    km_per_degree = 40_007.863 / 360  # of the meridian, WGS 84
    numbers = {
        "rows of the grid": grid.n_rows,
        "columns of the grid": grid.n_cols,
        "height of the box": (north - south) * km_per_degree,
        "width of the box": (east - west)
        * km_per_degree
        * math.cos(math.radians((south + north) / 2)),
        "width of a cell": (north - south) / grid.n_rows * km_per_degree,
        "south edge": south,
        "north edge": north,
        "west edge": west,
        "east edge": east,
        "check-ins": manhattan.n,
    }
    table = claims.beside(
        "consistency", {("A-D14", name): number for name, number in numbers.items()}
    )
    claims.check(table)
    assert list(table.loc[table["verdict"] == "deviates", "quantity"]) == ["check-ins"]
    numbers["check-ins"] = ik.datasets.load_gowalla("manhattan_exact_km").n
    with pytest.raises(AssertionError, match="computed reproduced, recorded deviates"):
        claims.check(
            claims.beside(
                "consistency", {("A-D14", name): number for name, number in numbers.items()}
            )
        )


@pytest.mark.parametrize(
    ("recorded", "ours", "passes"),
    [
        ("reproduced", 0.6, True),
        ("reproduced", 0.8, False),
        ("deviates", 0.8, True),
        ("deviates", 0.6, False),
        ("open", 0.6, False),
        ("open", 0.8, False),
        ("not checkable", 0.6, False),
    ],
)
def test_a_verdict_is_checked_in_both_directions(published, recorded, ours, passes):
    published({"verdict": recorded})
    table = claims.beside("consistency", {KEY: ours})
    if passes:
        claims.check(table)
    else:
        with pytest.raises(
            AssertionError,
            match=rf"A-F8 \(eps_g = 1\).*ours {ours}, paper 0.50.*recorded {recorded}",
        ):
            claims.check(table)


@pytest.mark.parametrize("recorded", ["fitted", "holds with a condition"])
def test_what_agrees_may_be_fitted_or_conditional_and_says_how(published, recorded):
    published({"verdict": recorded})
    inside, outside = (claims.beside("consistency", {KEY: ours}) for ours in (0.6, 0.8))
    claims.check(inside)
    assert list(inside["verdict"]) == [recorded]
    with pytest.raises(AssertionError, match=f"computed deviates, recorded {recorded}"):
        claims.check(outside)
    published({"verdict": recorded, "note": ""})
    with pytest.raises(
        claims.InvalidClaim,
        match=f"column note: must be filled in where the verdict is '{recorded}'",
    ):
        claims.load_published("consistency")


def test_a_setting_is_no_result(published):
    setting = {
        "quantity": "people",
        "value": "100",
        "verdict": "setting",
        "tolerance_kind": "",
        "tolerance": "",
    }
    published({}, setting)
    table = claims.beside("consistency", {KEY: 0.5})
    claims.check(table)
    assert list(table["verdict"]) == ["reproduced", "setting"]
    assert "people" not in repr(claims.show(table))
    assert list(claims.settings("consistency", "A-F8")["value"]) == [100.0]
    # one of ours that is not the paper's is found, and a table of settings alone is no comparison
    same, other = ({KEY: 0.5, ("A-F8", "people"): people} for people in (100, 101))
    claims.check(claims.beside("consistency", same))
    with pytest.raises(
        AssertionError, match=r"ours 101, paper 100.*computed deviates, recorded setting"
    ):
        claims.check(claims.beside("consistency", other))
    published(setting)
    with pytest.raises(claims.InvalidClaim, match="must have a result to show"):
        claims.show(claims.beside("consistency", {("A-F8", "people"): 100}))
    published({})
    with pytest.raises(
        claims.InvalidClaim, match="names must be claims with a setting in consistency"
    ):
        claims.settings("consistency", "A-F8")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("verdict", "agrees"),
        ("verdict", ""),
        ("read", "guessed"),
        ("tolerance_kind", "about"),
        ("tolerance_kind", ""),
        ("value", "about 0.5"),
        ("value", ""),
        ("value", "nan"),
        ("value", "inf"),
        ("tolerance", ""),
        ("tolerance", "0"),
        ("tolerance", "-0.1"),
        ("repetitions", "many"),
        ("repetitions", "0"),
        ("claim", ""),
        ("where", ""),
        ("quantity", ""),
    ],
)
def test_a_wrong_field_is_refused_by_name(published, column, value):
    published({"quantity": "another"}, {column: value})
    told = "tolerance" if column == "tolerance_kind" and not value else column
    with pytest.raises(
        claims.InvalidClaim,
        match=rf"consistency.csv, line 3, column {told}.*got {re.escape(repr(value))}",
    ):
        claims.load_published("consistency")


def test_an_exact_row_has_no_tolerance(published):
    published({"tolerance_kind": "exact"})
    with pytest.raises(claims.InvalidClaim, match="column tolerance: must be empty"):
        claims.load_published("consistency")


def test_what_is_open_may_leave_its_tolerance_to_the_chapter(published):
    published({"verdict": "open", "tolerance_kind": "", "tolerance": ""})
    assert claims.load_published("consistency")["tolerance"].isna().all()


@pytest.mark.parametrize("column", ROW)
def test_a_missing_column_is_refused(published, column):
    published({}, columns=[name for name in ROW if name != column])
    with pytest.raises(claims.InvalidClaim, match="must have the columns claim, where"):
        claims.load_published("consistency")


def test_the_same_number_twice_is_refused(published):
    published({}, {"value": "0.6"})
    with pytest.raises(
        claims.InvalidClaim, match=r"line 3, .*'EMD of the reports'\) is in consistency.csv, line 2"
    ):
        claims.load_published("consistency")


@pytest.mark.parametrize("line", ["A-F8,Fig. 8", ",".join(ROW.values()), ""])
def test_a_line_with_the_wrong_number_of_fields_is_refused(published, tmp_path, line):
    published()
    with (tmp_path / "published" / "consistency.csv").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(claims.InvalidClaim, match="of 13 fields"):
        claims.load_published("consistency")


def test_an_unknown_table_is_refused():
    with pytest.raises(claims.InvalidClaim, match=r"consistency.*got 'constancy'"):
        claims.load_published("constancy")


@pytest.mark.parametrize(
    "key",
    [
        ("A-F9", "EMD of the reports"),
        ("A-F8", "emd"),
        ("A-F8", "eps_g = 2", "EMD of the reports"),
        ("A-F8",),
        (),
        "A-F8",
    ],
)
def test_a_key_that_names_no_row_is_refused(published, key):
    published({})
    with pytest.raises(claims.InvalidClaim, match="must name one row of consistency"):
        claims.beside("consistency", {KEY: 0.5, key: 0.5})


def test_a_key_must_name_one_row_once(published):
    published({}, {"setting": "eps_g = 2"})
    both = {("A-F8", f"eps_g = {eps}", "EMD of the reports"): 0.5 for eps in (1, 2)}
    assert len(claims.beside("consistency", both)) == 2
    with pytest.raises(claims.InvalidClaim, match="names 2 of"):
        claims.beside("consistency", {KEY: 0.5})
    published({})
    with pytest.raises(claims.InvalidClaim, match="once"):
        claims.beside("consistency", {KEY: 0.5, ("A-F8", "eps_g = 1", "EMD of the reports"): 0.5})


def test_no_row_of_a_claim_is_passed_over(published):
    published({}, {"quantity": "EMD of IBU"}, {"claim": "A-F9a"})
    with pytest.raises(claims.InvalidClaim, match=r"must have a number for .*'EMD of IBU'"):
        claims.beside("consistency", {KEY: 0.5})
    assert len(claims.beside("consistency", {KEY: 0.5, ("A-F8", "EMD of IBU"): 0.5})) == 2


def test_what_cannot_be_checked_needs_no_number(published):
    published(
        {},
        {
            "quantity": "read off",
            "verdict": "not checkable",
            "value": "",
            "tolerance_kind": "",
            "tolerance": "",
        },
    )
    table = claims.beside("consistency", {KEY: 0.5})
    claims.check(table)
    assert list(table["verdict"]) == ["reproduced", "not checkable"]
    assert re.search(
        r"read off, eps_g = 1 \(km\) +Fig. 8\(b\) +– +unreadable +– +not checkable",
        repr(claims.show(table)),
    )
    published(
        {},
        {"quantity": "seconds", "verdict": "not checkable", "tolerance_kind": "", "tolerance": ""},
    )
    assert re.search(
        r"seconds.* – +0.50 +– +not checkable",
        repr(claims.show(claims.beside("consistency", {KEY: 0.5}))),
    )


@pytest.mark.parametrize("ours", [math.nan, math.inf, "0.5", None, True, [0.5], (math.nan, 0.1)])
def test_a_number_that_is_none_is_refused(published, ours):
    published({})
    with pytest.raises(
        ValueError, match=r"ours\[\('A-F8', 'EMD of the reports'\)\] must be a finite number"
    ):
        claims.beside("consistency", {KEY: ours})


@pytest.mark.parametrize("error", [0.0, -1.0, math.nan, "0.1"])
def test_a_standard_error_must_be_above_zero(published, error):
    published({"tolerance_kind": "standard_errors", "tolerance": "3"})
    with pytest.raises(ValueError, match="standard error of ours"):
        claims.beside("consistency", {KEY: (0.5, error)})


def test_standard_errors_are_asked_for(published):
    published({"tolerance_kind": "standard_errors", "tolerance": "3"})
    with pytest.raises(claims.InvalidClaim, match=r"\(number, standard error\) for \('A-F8'"):
        claims.beside("consistency", {KEY: 0.5})


@pytest.mark.parametrize(
    ("kind", "tolerance", "inside", "outside"),
    [
        ("exact", "", 0.5, np.nextafter(0.5, 1)),
        ("absolute", "0.25", 0.75, 0.7500001),
        ("absolute", "0.1", 0.6, 0.6000001),  # 0.6 - 0.5 is above 0.1 in binary
        ("relative", "0.25", 0.625, 0.6250001),
        ("relative", "0.1", 0.45, 0.4499999),
        ("rounding", "0.005", 0.505, 0.5050001),
        ("rounding", "0.005", 0.495, 0.4949999),
        ("standard_errors", "3", (0.8, 0.1), (0.8000001, 0.1)),
        ("standard_errors", "3", (0.2, 0.1), (0.1999999, 0.1)),
    ],
)
def test_the_edge_of_each_tolerance(published, kind, tolerance, inside, outside):
    published({"tolerance_kind": kind, "tolerance": tolerance})
    verdicts = [
        claims.beside("consistency", {KEY: ours})["verdict"][0] for ours in (inside, outside)
    ]
    assert verdicts == ["reproduced", "deviates"]


def test_a_relative_tolerance_is_one_of_the_size_of_the_number(published):
    published({"tolerance_kind": "relative", "tolerance": "0.25", "value": "-0.5"})
    for ours, verdict in ((-0.625, "reproduced"), (-0.375, "reproduced"), (-0.3749, "deviates")):
        assert claims.beside("consistency", {KEY: ours})["verdict"][0] == verdict


@given(st.decimals(min_value=-(10**6), max_value=10**6, places=5), st.integers(0, 4))
def test_a_number_agrees_with_what_it_rounds_to(exact, decimals):
    printed = f"{exact:.{decimals}f}"
    row = {**ROW, "printed": printed, "value": float(printed), "tolerance_kind": "rounding"}
    row |= {"tolerance": 0.5 * 10.0**-decimals}
    assert _beside._compare(row, float(exact), math.nan)["verdict"] == "reproduced"
    beyond = float(printed) + 0.51 * 10.0**-decimals
    assert _beside._compare(row, beyond, math.nan)["verdict"] == "deviates"


def test_numbers_are_shown_with_the_papers_digits(published):
    published(
        {},
        {
            "quantity": "check-ins",
            "value": "98060",
            "unit": "",
            "tolerance_kind": "exact",
            "tolerance": "",
        },
    )
    rows = {KEY: 0.4999, ("A-F8", "check-ins"): 98061}
    text, html = (
        repr(claims.show(claims.beside("consistency", rows))),
        claims.show(claims.beside("consistency", rows)),
    )
    assert re.search(
        r"EMD of the reports, eps_g = 1 \(km\) +Fig. 8\(b\) +0.500 +0.50 +0.000 +reproduced", text
    )
    assert re.search(r"98,061 +98,060 +1 +deviates", text)
    assert html._repr_html_() == claims.show(claims.beside("consistency", rows))._repr_html_()
    assert html._repr_html_().count('<th scope="col">') == 6
    assert " id=" not in html._repr_html_()


def test_a_deviation_is_not_rounded_away(published):
    published({"tolerance": "0.001"})
    shown = repr(claims.show(claims.beside("consistency", {KEY: 0.502})))
    assert re.search(r"0.502 +0.50 +0.002 +deviates", shown)


def test_html_is_escaped_and_long_text_is_whole(published):
    long = "the reports <" + "x" * 200
    published({"quantity": long})
    html = claims.show(claims.beside("consistency", {("A-F8", long): 0.5}))._repr_html_()
    assert "the reports &lt;" + "x" * 200 in html
