"""Files with a right checksum that hold what no object of ibukit has: they are refused by name."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from attacks import Content, changed, forge, opened, sign
from ibukit.files import file_format, journal
from ibukit.tally.restored_parts import restored_part

LINE = ik.RandomizedResponse(3, 1.0)
BITS = ik.Rappor(3, 1.0)
LABELS = ik.RandomizedResponse(["a", "b", "c"], 1.0)


def part_arrays(content, reports=None, counts=None):
    """Replace reports or counts of the first part of a tally."""
    _, kept, number = content.fields["parts"][0]
    for where, array in ((kept, reports), (number, counts)):
        if array is not None:
            content.arrays[where["array"]] = np.asarray(array)


def of_part(place, value):
    """Replace an entry of the first part by a value of JSON."""

    def change(content):
        content.fields["parts"][0][place] = value

    return change


def reports(values):
    return lambda content: part_arrays(content, reports=values)


def counts(values):
    return lambda content: part_arrays(content, counts=values)


def field(name, value):
    return lambda content: content.__setitem__(name, value)


def first_mechanism(**arguments):
    def change(content):
        content.fields["parts"][0][0]["arguments"].update(arguments)

    return change


def repeated_part(content):
    content.fields["parts"] = content.fields["parts"] * 2
    other = dict(content.fields["parts"][0][0]["arguments"], alphabet={"class": "Nothing"})
    content.fields["parts"][1] = [{"class": "RandomizedResponse", "arguments": other}] * 3


TALLIES = {
    "a code below 0": reports([0, 1, -1]),
    "a code beyond the last": reports([0, 1, 99]),
    "codes that are not whole": reports([0.0, 1.0, 1.5]),
    "codes of another type": reports(np.array([0, 1, 2], dtype=np.uint8)),
    "codes in two dimensions": reports([[0], [1], [2]]),
    "codes twice": reports([0, 1, 1]),
    "fewer reports than counts": reports([0, 1]),
    "no report": lambda content: part_arrays(
        content, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    ),
    "a negative count": counts([5, 3, -1]),
    "a count of 0": counts([5, 3, 0]),
    "a count that is no number": counts([5.0, 3.0, np.nan]),
    "an infinite count": counts([5.0, 3.0, np.inf]),
    "complex counts": counts([5j, 3.0, 1.0]),
    "counts that are true": counts([True, True, True]),
    "counts that are texts": counts(["5", "3", "1"]),
    "counts of 8 bits": counts(np.array([100, 100, 100], dtype=np.int8)),
    "counts without a sign": counts(np.array([2**63, 2, 2**63], dtype=np.uint64)),
    "counts that wrap": counts([2**62, 2**62, 2**62]),
    "counts in two dimensions": counts([[5], [3], [1]]),
    "dates for reports": reports(np.array(["2020", "2021", "2022"], dtype="M8[Y]")),
    "an epsilon that is no number": first_mechanism(epsilon=float("nan")),
    "an epsilon in text": first_mechanism(epsilon="1"),
    "a negative epsilon": first_mechanism(epsilon=-1.0),
    "an argument more": first_mechanism(path="/etc/passwd"),
    "a mechanism that is none": of_part(0, {"class": "Line", "arguments": {"first": 0, "last": 2}}),
    "a mechanism that is a number": of_part(0, 3),
    "an abstract mechanism": of_part(0, {"class": "Mechanism", "arguments": {}}),
    "an estimator for a mechanism": of_part(0, {"class": "mle", "arguments": {}}),
    "a member of a class": of_part(0, {"class": "Status", "member": "CONVERGED"}),
    "reports that are a list": of_part(1, [0, 1, 2]),
    "counts that are a list": of_part(2, [5, 3, 1]),
    "an array that is not there": of_part(1, {"array": "array 99"}),
    "a negative number of dropped reports": field("dropped", [["missing", -5]]),
    "dropped reports without a number": field("dropped", [["missing", float("nan")]]),
    "a list for a reason": field("dropped", [[["missing"], 1]]),
    "a reason twice": field("dropped", [["missing", 1], ["missing", 2]]),
    "dropped reports that are true": field("dropped", [["missing", True]]),
    "a full alphabet with an end": field(
        "full_alphabet", {"class": "Line", "arguments": {"first": 100, "last": 103, "unit": ""}}
    ),
    "a full alphabet that is none": field("full_alphabet", 5),
    "no part": field("parts", []),
    "parts that are text": field("parts", "abc"),
    "a part over nothing": repeated_part,
}


@pytest.mark.parametrize("what", TALLIES)
def test_an_impossible_tally_is_refused(what, tmp_path):
    path = tmp_path / "tally"
    LINE.tally_counts([5, 3, 1]).save(path)
    changed(path, TALLIES[what])
    with pytest.raises(ik.errors.ForeignFile, match="path must be a file that Tally wrote"):
        ik.Tally.load(path)


@pytest.mark.parametrize("rows", [[[255], [128]], [[0, 0], [1, 1]], [0, 1]])
def test_bits_that_no_report_has_are_refused(rows, tmp_path):
    path = tmp_path / "tally"
    BITS.tally([[1, 0, 0], [0, 1, 1]]).save(path)
    changed(path, reports(np.array(rows, dtype=np.uint8)))
    with pytest.raises(ik.errors.ForeignFile, match="the content of"):
        ik.Tally.load(path)


GROUPED = pd.DataFrame({"report": [0, 1, 2, 0], "group": ["x", "x", "y", "y"]})
GROUPS = {
    "a text for names": field("names", "ab"),
    "no name": field("names", []),
    "a number for a name": field("names", [5]),
    "a group twice": field("groups", ["x", "x"]),
    "a group less": field("groups", ["x"]),
    "a mapping for a group": field("groups", [{"a": 1}, "y"]),
    "numbers for tallies": field("tallies", [1, 2]),
    "a negative number of dropped reports": field("dropped", [["missing", -1]]),
}


@pytest.mark.parametrize("what", GROUPS)
def test_groups_that_no_table_has_are_refused(what, tmp_path):
    path = tmp_path / "groups"
    groups = ik.Tally.from_table(GROUPED, LINE, groups="group")
    groups.save(path)
    changed(path, GROUPS[what])
    with pytest.raises(ik.errors.ForeignFile, match="the content of"):
        type(groups).load(path)
    groups.save(path)
    assert type(groups).load(path).n == 4


def weighted():
    rows = {"report": [0, 1, 2, 0], "w": [1.5, 2, 3, 0.5], "s": list("aabb"), "c": list("abcd")}
    more = {"count": "w", "weighted": True, "strata": "s", "clusters": "c"}
    return ik.Tally.from_table(pd.DataFrame(rows), LINE, **more)


SURVEYS = ("at", "stratum", "cluster", "weights", "squares", "rows", "deviations")


@pytest.mark.parametrize("name", SURVEYS)
@pytest.mark.parametrize("change", ["below", "beyond"])
def test_weights_that_no_table_has_are_refused(name, change, tmp_path):
    path = tmp_path / "tally"
    weighted().save(path)
    assert ik.Tally.load(path).n == 7

    def spoil(content):
        (survey,) = content.fields["surveys"]
        key = survey["arguments"][name]["array"]
        array = content.arrays[key]
        beyond = array * np.nan if array.dtype.kind == "f" else array + 100
        content.arrays[key] = -np.abs(array) - 2 if change == "below" else beyond

    changed(path, spoil)
    with pytest.raises(ik.errors.ForeignFile, match="the content of"):
        ik.Tally.load(path)


SHARES = {
    "a table without a name": {"table": 5},
    "a part below 0": {"part": -2},
    "a part that is true": {"part": True},
    "more people than the table has": {"own": [["a", 3]]},
    "people of a stratum that is none": {"own": [["c", 1]]},
    "a number of people below 0": {"own": [["a", -1]]},
    "units that are numbers": np.arange(3.0),
    "units in two dimensions": np.zeros((2, 2), dtype=np.uint8),
    "a text that is none": [255, 255],
    "a number of people that is not whole": [[["a", 9.5]], []],
    "people that are true": [[["a", True]], []],
    "people without a stratum": [[[5, 9], ["a", 9]], []],
    "people in a list": [[1, 2], []],
    "clusters without names": [[["a", 9]], [["a", 5]]],
    "clusters without strata": [[["a", 9]], [["a"]]],
}


@pytest.mark.parametrize("what", [*SHARES, "no share"])
def test_people_that_no_table_has_are_refused(what, tmp_path):
    path = tmp_path / "tally"
    tally = ik.Tally.from_table(
        pd.DataFrame({"report": [0, 1, 2], "w": [1.5, 2, 0], "s": list("aab")}),
        LINE,
        count="w",
        weighted=True,
        strata="s",
    )
    tally.save(path)
    assert ik.Tally.load(path).survey.shares == tally.survey.shares

    def spoil(content):
        survey = content.fields["surveys"][0]["arguments"]
        if what == "no share":
            survey["shares"] = [{"class": "Line", "arguments": {"first": 0, "last": 2}}]
        elif isinstance(SHARES[what], dict):
            survey["shares"][0]["arguments"].update(SHARES[what])
        else:
            units = SHARES[what]
            if isinstance(units, list):
                text = bytes(units) if units == [255, 255] else json.dumps(units).encode()
                units = np.frombuffer(text, dtype=np.uint8)
            content.arrays[survey["shares"][0]["arguments"]["units"]["array"]] = units

    changed(path, spoil)
    with pytest.raises(ik.errors.ForeignFile, match="the content of"):
        ik.Tally.load(path)


def test_weights_of_other_reports_are_refused(tmp_path):
    path = tmp_path / "tally"
    weighted().save(path)
    changed(path, lambda content: part_arrays(content, counts=[2.0, 2.0, 3.5]))
    with pytest.raises(ik.errors.ForeignFile, match="must sum to those of the reports"):
        ik.Tally.load(path)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("change", ["below", "none", "complex", "shorter"])
def test_likelihoods_that_no_observation_has_are_refused(place, change, tmp_path):
    path = tmp_path / "tally"
    ik.Tally.from_likelihoods(np.array([[1, 0.5, 0.2], [0.1, 1, 0.3]]), [3, 4]).save(path)
    kind, values, arrays = opened(path)
    array = arrays[f"array {place}"]
    spoilt = {
        "below": -np.abs(array) - 1,
        "none": array * np.nan,
        "complex": array.astype(complex),
        "shorter": array[:1],
    }[change]
    forge(path, kind, values, arrays | {f"array {place}": spoilt})
    # The factor of a row may be any number.
    if (place, change) == (1, "below"):
        assert ik.Tally.load(path).n == 7
        return
    with pytest.raises(ik.errors.ForeignFile, match="the content of"):
        ik.Tally.load(path)


@pytest.mark.parametrize("labels", [[None, "a", "b"], [["a", None], "b", "c"], [{}, "a", "b"]])
def test_labels_that_no_file_holds_are_refused(labels, tmp_path):
    path = tmp_path / "tally"
    LABELS.tally_counts([5, 3, 1]).save(path)

    def change(content):
        alphabet = content.fields["parts"][0][0]["arguments"]["alphabet"]
        (name,) = (k for k, v in alphabet["arguments"].items() if isinstance(v, dict))
        alphabet["arguments"][name] = {"labels": labels}

    changed(path, change)
    with pytest.raises(ik.errors.ForeignFile, match="the content of"):
        ik.Tally.load(path)


def test_the_estimate_of_sums_has_no_gap_and_is_read(tmp_path):
    estimate = ik.inv(BITS.tally_sums([3, 2, 1], 5))
    estimate.save(tmp_path / "estimate")
    assert np.isnan(ik.Estimate.load(tmp_path / "estimate").gap)


def test_repeated_names_and_bytes_after_the_end_are_refused(tmp_path):
    path = tmp_path / "tally"
    LINE.tally_counts([5, 3, 1]).save(path)
    body = path.read_bytes().partition(b"\n")[2]
    for other in (
        body + b"more",
        body + body,
        body.replace(b'"full_alphabet": null', b'"full_alphabet": null, "parts": []'),
        body.replace(b'"arrays": [', b'"arrays": ["array 0", '),
        body.replace(b'"array 1"]', b'"array 0"]'),
    ):
        assert other != body
        sign(path, "Tally", other)
        with pytest.raises(ik.errors.ForeignFile, match="the content of"):
            ik.Tally.load(path)
    sign(path, "Tally", body)
    assert ik.Tally.load(path).n == 9


@pytest.mark.parametrize("version", ["0", "01", "1.0", "-1", "1" * 150])
def test_a_version_is_written_in_one_way(version, tmp_path):
    path = tmp_path / "tally"
    LINE.tally_counts([5, 3, 1]).save(path)
    sign(path, "Tally", path.read_bytes().partition(b"\n")[2], version)
    with pytest.raises(ik.errors.ForeignFile, match="path must be"):
        ik.Tally.load(path)


ESTIMATES = {
    "a sum of 3": field("distribution", np.ones(3)),
    "a number that is none": field("distribution", np.array([np.nan, 0.5, 0.5])),
    "an infinite probability": field("distribution", np.array([np.inf, 0.5, 0.5])),
    "a negative probability": field("distribution", np.array([-1.0, 1.0, 1.0])),
    "two probabilities for three secrets": field("distribution", np.array([0.5, 0.5])),
    "probabilities in two dimensions": field("distribution", np.full((3, 1), 1 / 3)),
    "whole numbers": field("distribution", np.array([1, 0, 0])),
    "probabilities in a list": field("distribution", [0.5, 0.25, 0.25]),
    "a gap in text": field("gap", "0"),
    "a negative gap": field("gap", -1.0),
    "a gap that is no number": field("gap", float("nan")),
    "a likelihood that is true": field("log_likelihood", True),
    "half a step": field("n_iter", 0.5),
    "a negative number of steps": field("n_iter", -1),
    "no method": field("method", None),
    "a status in text": field("status", "CONVERGED"),
    "a status that is none": field("status", {"class": "Status", "member": "NOPE"}),
    "an alphabet that is a number": field("alphabet", 3),
    "a tally that is text": field("tally", "none"),
    "a tally of other secrets": field(
        "alphabet", {"class": "Line", "arguments": {"first": 5, "last": 7, "unit": ""}}
    ),
}


@pytest.mark.parametrize("what", ESTIMATES)
def test_an_estimate_that_is_not_a_distribution_is_refused(what, tmp_path):
    path = tmp_path / "estimate"
    ik.mle(LINE.tally_counts([50, 30, 10])).save(path)
    changed(path, ESTIMATES[what])
    with pytest.raises(ik.errors.ForeignFile, match="path must be a file that Estimate wrote"):
        ik.Estimate.load(path)


@pytest.mark.parametrize("name", ["Unfolded", "Tally", "os.system", "open", "Estimate.load"])
def test_a_class_that_another_file_has_is_refused(name, tmp_path):
    path = tmp_path / "estimate"
    ik.mle(LINE.tally_counts([50, 30, 10])).save(path)
    kind, values, arrays = opened(path)
    values["content"]["class"] = name
    forge(path, kind, values, arrays)
    with pytest.raises(ik.errors.ForeignFile, match="path must be"):
        ik.Estimate.load(path)


def one_of(name, place, value):
    """Replace an entry of an array of a loop."""

    def change(content):
        array = content[name].copy()
        array[place] = value
        content[name] = array

    return change


def end(place, value):
    return lambda content: content["ends"][1].__setitem__(place, value)


def other_mechanism(matrix):
    return field("mechanism", np.asarray(matrix, dtype=float))


NEARLY = 0.97 * np.eye(4) + 0.01 * (1 - np.eye(4))
LOOPS = {
    "the channel that says every secret": other_mechanism(np.eye(4)),
    "a channel that says most secrets": other_mechanism(NEARLY),
    "a channel of another prior": other_mechanism(np.full((4, 4), 0.25)),
    "a channel of fewer reports": other_mechanism(np.full((4, 3), 1 / 3)),
    "a channel that is no number": other_mechanism(np.full((4, 4), np.nan)),
    "another estimate": one_of("distributions", 1, [0.97, 0.01, 0.01, 0.01]),
    "an estimate that is not a distribution": one_of("distributions", 1, np.nan),
    "an estimate that sums to 2": one_of("distributions", 0, 0.5),
    "negative counts": one_of("counts", 1, [-5, 1, 1, 1]),
    "a cycle without reports": one_of("counts", 0, 0),
    "counts that are not whole": lambda content: content.__setitem__(
        "counts", content["counts"] + 0.5
    ),
    "counts of other reports": field("counts", np.ones((2, 5), dtype=np.int64)),
    "a cycle more": field("counts", np.ones((3, 4), dtype=np.int64)),
    "a status that is none": end(2, "NOPE"),
    "a gap in text": end(0, "0"),
    "a negative gap": end(0, -1.0),
    "half a step": end(1, 0.5),
    "a method that is a list": end(3, ["mle"]),
    "no method": lambda content: content["ends"][1].pop(),
    "a beta of 0": field("beta", 0.0),
    "another file to write to": lambda content: content.fields.update(path="planted"),
}


@pytest.mark.parametrize("what", LOOPS)
def test_an_impossible_loop_is_refused(what, tmp_path):
    path = tmp_path / "loop"
    ik.Privic(4, beta=1.0, path=path).run(np.array([100, 200, 300, 400]), 2, 1)
    changed(path, LOOPS[what])
    for load in (ik.Privic.load, lambda file: ik.Privic(4, beta=1.0, path=file)):
        with pytest.raises(ik.errors.ForeignFile, match="path must be"):
            load(path)
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("steps", [{}, {"ba_steps": None, "ibu_steps": None}])
def test_the_optimum_of_another_machine_is_read_but_no_channel_of_less_privacy(steps, tmp_path):
    path = tmp_path / "loop"
    ik.Privic(4, beta=1.0, path=path, **steps).run(np.array([100, 200, 300, 400]), 1, 1)
    mechanism = opened(path)[2][opened(path)[1]["content"]["arguments"]["mechanism"]["array"]]
    changed(path, other_mechanism((1 - 1e-12) * mechanism + 1e-12 / 4))
    assert ik.Privic(4, beta=1.0, path=path, **steps).cycle == 1
    changed(path, other_mechanism(NEARLY))
    with pytest.raises(ik.errors.ForeignFile, match="a level of at most 2 beta = 2 per unit"):
        ik.Privic(4, beta=1.0, path=path, **steps)


def rows_of(value):
    """Replace the numbers of the one estimator by another value."""

    def change(entry):
        entry["estimators"] = {"MLE": value}

    return change


def number(value):
    return rows_of({"emd": value, "status": "CONVERGED"})


LINES = {
    "a text for a number": number("0.5"),
    "nothing for a number": number(None),
    "a list for a number": number([0.5]),
    "a mapping for a number": number({"x": 0.5}),
    "true for a number": number(True),
    "a number for a status": rows_of({"emd": 0.5, "status": 1}),
    "no numbers": rows_of({}),
    "a list of numbers": rows_of([0.5]),
    "a text": rows_of("emd"),
    "another estimator": lambda entry: entry.update(estimators={"INV": {"emd": 0.5}}),
    "a list of estimators": lambda entry: entry.update(estimators=["MLE"]),
    "a repetition in text": lambda entry: entry.update(repetition="0"),
    "a negative repetition": lambda entry: entry.update(repetition=-1),
    "half a repetition": lambda entry: entry.update(repetition=0.5),
    "a number for a mechanism": lambda entry: entry.update(mechanism=5),
    "a list for a mechanism": lambda entry: entry.update(mechanism=["k-RR"]),
    "a field more": lambda entry: entry.update(path="planted"),
}


@pytest.mark.parametrize("what", [None, *LINES])
def test_a_journal_line_that_is_not_a_repetition_is_refused(what, tmp_path):
    path, question = tmp_path / "runs", {"seed": 1, "estimators": {"MLE": "mle"}}
    entry = {"mechanism": "k-RR", "repetition": 0}
    entry["estimators"] = {"MLE": {"emd": 0.5, "gap": float("inf"), "status": "CONVERGED"}}
    if what is not None:
        LINES[what](entry)
    line = json.dumps(entry).encode()
    signed = line[:-1] + b', "sha256": "' + journal._checksum(line) + b'"}\n'
    path.write_bytes(journal._line(question | journal.LINES) + signed)
    before = path.read_bytes()
    if what is None:
        with journal.open_journal(path, question) as (finished, _):
            assert finished.keys() == {("k-RR", 0)}
        return
    with (
        pytest.raises(ik.errors.ForeignFile, match="a repetition in each line, but line 2"),
        journal.open_journal(path, question),
    ):
        pass
    assert path.read_bytes() == before


def test_a_journal_larger_than_memory_is_refused_by_its_first_bytes(tmp_path):
    path = tmp_path / "runs"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    with (
        pytest.raises(ik.errors.ForeignFile, match="a new file or one that replicate began"),
        journal.open_journal(path, {"seed": 1, "estimators": {}}),
    ):
        pass
    assert path.stat().st_size == 1 << 42


def test_what_is_changed_here_is_read_where_nothing_is_changed(tmp_path):
    """The tools of these tests change nothing by themselves."""
    for thing, load in (
        (LINE.tally_counts([5, 3, 1]), ik.Tally.load),
        (ik.mle(LABELS.tally_counts([5, 3, 1])), ik.Estimate.load),
        (ik.Privic(4), ik.Privic.load),
    ):
        path = tmp_path / "file"
        thing.save(path)
        before = path.read_bytes()
        changed(path, lambda content: None)
        assert re.sub(rb"sha256 \w+", b"", path.read_bytes()) == re.sub(rb"sha256 \w+", b"", before)
        load(path)
    assert file_format.VERSION == 1
    assert isinstance(Content(*opened(path)[1:]), Content)


@pytest.mark.parametrize(
    ("reports", "counts"), [([0, 1], np.ones(2, np.int64)), (np.arange(2), [1, 1])]
)
def test_a_part_is_made_of_arrays(reports, counts):
    with pytest.raises(ValueError, match="reports and counts must be arrays"):
        restored_part(ik.RandomizedResponse(2, 1.0), reports, counts)
