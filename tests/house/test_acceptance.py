"""Extremes that a user may meet:
noise that no integer holds, files that are not quite CSV, tolerances too fine.
"""

import copy
import csv
import pickle
import warnings

import numpy as np
import pytest

import ibukit as ik
from ibukit.cli import main
from instances import unchecked
from oracles import naive

KRR = ["--mechanism", "k-rr", "--epsilon", "2", "--k", "15"]


def bits(numbers):
    return [float(p).hex() for p in numbers]


def estimated(file, out, *options):
    """What the command line writes."""
    assert main(["estimate", str(file), *KRR, *options, "--out", str(out)]) == 0
    with open(out, newline="", encoding="utf-8") as text:
        return bits(float(row["probability"]) for row in csv.DictReader(text))


@pytest.mark.parametrize("kind", [ik.LinearGeometric, ik.TruncatedGeometric])
@pytest.mark.parametrize("epsilon", [4.9e-15, 1e-17, 1e-30, 5e-324])
def test_noise_that_integers_cannot_hold_is_refused(kind, epsilon):
    """Draws above 2^53 are even, those above 2^63 are cut;
    two of these differ by 0, and the report is the secret.
    """
    with pytest.raises(ValueError, match=f"epsilon must be at least 5e-15, got {epsilon!r}"):
        kind(4, epsilon)


@pytest.mark.parametrize("epsilon", [5e-15, 1e-12])
def test_the_least_epsilon_still_hides_the_secret(epsilon, rng):
    reports = ik.LinearGeometric(4, epsilon).randomize(np.full(20_000, 2), rng)
    # half of two-sided geometric noise lies within log 2 / epsilon; the share errs by 0.02 with
    # odds below 1e-7
    assert np.mean(np.abs(reports) * epsilon < np.log(2)) == pytest.approx(0.5, abs=0.02)
    ends = (
        np.bincount(
            ik.TruncatedGeometric(4, epsilon).randomize(np.full(20_000, 2), rng), minlength=4
        )
        / 20_000
    )
    assert ends == pytest.approx([0.5, 0, 0, 0.5], abs=0.02)


@pytest.mark.parametrize("epsilon", [500.0, 5000.0, 1e300])
def test_laplace_noise_too_small_to_leave_its_cell(epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"epsilon must be at most 72\.08, got "):
            ik.LinearLaplace(4, epsilon)
        matrix = unchecked(ik.LinearLaplace, 4, epsilon).matrix()
    assert bits(matrix.diagonal()) == bits(np.ones(4))
    assert matrix.sum(axis=1) == pytest.approx(np.ones(4), abs=1e-15)


def test_gap_of_any_size_is_compared_as_it_is_reported():
    tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([60, 30, 10])
    assert ik.ibu(tally, stop=ik.Gap(1000.0)).n_iter == 0  # exp(1000) is not a double
    start = ik.ibu(tally, stop=ik.Steps(0))
    assert ik.ibu(tally, stop=ik.Gap(start.gap * (1 + 1e-13))).n_iter == 0
    below = ik.Gap(start.gap * (1 - 1e-13))
    assert ik.ibu(tally, stop=below, max_iter=0).status is ik.Status.MAX_ITER


@pytest.mark.parametrize("tol", [1e-15, 1.05e-15, 1.3e-15, 2e-15])
def test_converged_means_a_gap_of_at_most_tol(tol):
    # the gap falls through the last few values that a double has above 0
    tally = ik.MatrixMechanism(naive.k_rr(3, 1.0)).tally_counts([50, 30, 20])
    estimate = ik.ibu(tally, stop=ik.Gap(tol), max_iter=2000)
    assert (estimate.gap <= tol) == (estimate.status is ik.Status.CONVERGED)


@pytest.mark.parametrize("rows", [[[1.0], [0.5, 0.5]], [["a", "b"]], [[None, 1.0]], [[1j, 1.0]]])
def test_a_matrix_of_something_else_is_named(rows):
    with pytest.raises(ik.errors.InvalidDistribution, match="matrix must"):
        ik.MatrixMechanism(rows)


@pytest.mark.parametrize(
    "arguments",
    [
        ["estimate", "reports.csv", "--mechanism", "bogus", "--epsilon", "2", "--k", "3"],
        ["estimate", "reports.csv", "--mechanism", "k-rr", "--epsilon", "two", "--k", "3"],
        ["estimate", "reports.csv", "--mechanism", "k-rr", "--epsilon", "2"],
        ["estimate", "reports.csv", *KRR, "--bogus"],
        [],
    ],
)
def test_wrong_options_are_one_line_too(arguments, capsys):
    try:
        code = main(arguments)
    except SystemExit as stopped:  # what the parser itself refuses
        code = stopped.code
    assert code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ibukit: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("value\n3\n1,5\n", "line 3"),  # a decimal comma: not the report 1
        ("value,value\n1,2\n", "must have one column 'value', but has 2"),
        ("id,value\n1\n", "line 2"),
        ("value\n\n3\nfrog\n", "line 2"),  # a blank line is a missing report
        ("value\n5\n3\nfrog\n", "line 4"),
        ("value\n" + "1" * 200_000 + "\n", "field"),
    ],
)
def test_files_that_would_lose_a_report_are_refused(text, message, tmp_path, capsys):
    file = tmp_path / "reports.csv"
    file.write_text(text)
    assert main(["estimate", str(file), *KRR, "--column", "value"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ibukit: ")
    assert error.count("\n") == 1
    assert message in error


def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path, capsys):
    file = tmp_path / "reports.csv"
    file.write_text("value\n1\n")
    assert main(["estimate", str(file), *KRR, "--out", str(tmp_path / "nowhere" / "out.csv")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_headers_and_marks_of_spreadsheets_lose_no_report(tmp_path):
    reports = [7, 7, 3, 0, 14, 7]
    expected = bits(ik.mle(ik.RandomizedResponse(15, 2.0).tally(reports)).distribution)
    lines = [*map(str, reports), ""]
    for name, text in {
        "plain": "\n".join(["value", *lines]),
        "marked": "\ufeff" + "\n".join(["value", *lines]),
        "windows": "\r\n".join(["value", *lines]),
        "headless": "\n".join(lines),
    }.items():
        file = tmp_path / f"{name}.csv"
        file.write_bytes(text.encode("utf-8"))
        options = [] if name == "headless" else ["--column", "value"]
        assert estimated(file, tmp_path / "out.csv", *options) == expected, name


@pytest.mark.parametrize(
    "estimate", [ik.ibu, ik.mle, ik.inv, lambda x: ik.gap(x, [0.5, 0.5]), lambda x: ik.gibu([x])]
)
@pytest.mark.parametrize("wrong", [[3, 4], np.array([3, 4]), None])
def test_what_is_no_tally_is_named(estimate, wrong):
    with pytest.raises(
        TypeError, match=r"tally must be a Tally, as mechanism\.tally\(reports\) makes it"
    ):
        estimate(wrong)


def test_one_tally_is_not_several():
    tally = ik.RandomizedResponse(2, 1.0).tally_counts([3, 4])
    with pytest.raises(TypeError, match=r"pass \[tally\], or call ibu\(tally\)"):
        ik.gibu(tally)


def test_a_rule_is_an_object_not_its_class():
    with pytest.raises(TypeError, match="stop must be a rule such as"):
        ik.ibu(ik.RandomizedResponse(2, 1.0).tally_counts([3, 4]), stop=ik.Gap)


def test_labels_of_different_types_stay_what_they_are():
    labels = ik.Alphabet([1, "a", None])
    assert labels.codes(["a", 1, None]).tolist() == [1, 0, 2]
    with pytest.raises(ik.errors.AlphabetMismatch, match="'1'"):
        labels.codes(["1"])


@pytest.mark.parametrize("labels", [[np.nan, np.nan], [1.0, np.nan]])
def test_a_label_equals_itself(labels):
    with pytest.raises(ValueError, match="not missing"):
        ik.Alphabet(labels)


def frozen_things():
    mechanism = ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]])
    tally = mechanism.tally_counts([6, 4])
    yield ik.Line(0, 3), "values"
    yield ik.Alphabet(["a", "b"], distances=[[0, 2], [2, 0]]), "_distances"
    yield mechanism, "entries"
    yield tally.parts[0], "counts"
    yield ik.mle(tally), "distribution"
    yield ik.datasets.load_adult_ages(), "counts"


@pytest.mark.parametrize(
    ("thing", "name"),
    list(frozen_things()),
    ids=lambda value: value if isinstance(value, str) else None,
)
@pytest.mark.parametrize(
    "travel", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy, copy.copy]
)
def test_arrays_stay_read_only_after_a_journey(thing, name, travel):
    with pytest.raises(ValueError, match="read-only"):
        getattr(travel(thing), name)[0] = 0


@pytest.mark.parametrize("rng", [1, None, np.random.RandomState(1)])
@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(4, 1.0),
        ik.Rappor(4, 1.0),
        ik.LinearGeometric(4, 1.0),
        ik.TruncatedGeometric(4, 1.0),
        ik.LinearLaplace(4, 1.0),
        ik.PlanarGeometric(ik.Grid(2, 2), 1.0),
        ik.TruncatedPlanarGeometric(ik.Grid(2, 2), 1.0),
        ik.PlanarLaplace(ik.Grid(2, 2), 1.0),
        ik.Exponential(4, 1.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_randomness_comes_from_a_generator(mechanism, rng):
    for draw in (
        lambda: mechanism.randomize([0, 1], rng),
        lambda: mechanism.simulate([1, 1, 0, 0], rng),
    ):
        with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
            draw()
