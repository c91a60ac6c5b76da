"""The kept distances of the chapters:
complete, in order, and made anew in part (`make slow`: all of them).
"""

from __future__ import annotations

import importlib
from functools import partial

import nbformat
import numpy as np
import pytest
from scipy.stats import binom

import ibukit as ik
import ibukit_claims as claims
import notebooks
import repetitions

kept = importlib.import_module("ibukit_claims._repetitions")
ASKS = ("claims.repeated", "claims.remembered")
CHAPTERS = {
    p.stem: p for p in notebooks.chapters() if any(words in p.read_text("utf8") for words in ASKS)
}
FILES = {path.stem: path for path in kept.FOLDER.glob("*.csv")}
ALL = [(stem, row) for stem, path in FILES.items() for row in repetitions.read(path)]
ROWS = [(stem, row) for stem, row in ALL if "estimator" in row]
NEARLY = 1e-4  # of a distance: another machine's last digits, and six digits in the file
AGES = ik.datasets.load_adult_ages()
INV_P = {"INV-P": partial(ik.inv, post="project")}


def numbers(row):
    return np.array(row["emd" if "emd" in row else "values"].split(), dtype=float)


def test_each_chapter_that_asks_has_a_file_and_no_other():
    assert set(FILES) == set(CHAPTERS)
    assert len(FILES) >= 3


def test_the_rows_are_in_order():
    assert len({(stem, *repetitions.key(row)) for stem, row in ALL}) == len(ALL)
    for stem, row in ALL:
        assert tuple(row) in (kept.KEPT, kept.COMPUTED), stem
        values, many = numbers(row), int(row["repetitions"])
        assert len(values) == many > 1
        assert np.isfinite(values).all()
        error = values.std(ddof=1) / np.sqrt(many)
        assert float(row["mean"]) == pytest.approx(values.mean(), rel=1e-4)
        assert float(row["error"]) == pytest.approx(error, rel=0.06)


def test_distances_are_those_of_estimates():
    for stem, row in ROWS:
        assert (numbers(row) > 0).all(), stem
        ended = {"CLOSED_FORM", "CONVERGED", "STOPPED"}
        if (
            row["estimator"] == "discrepancy"
        ):  # a rule that the chapter ends after 3,000 steps, met or not
            ended |= {"MAX_ITER", "OUT_OF_REACH"}
        assert set(row["status"].split()) <= ended, stem


# A loop that two machines leave in different ways, as *The same numbers on every machine* says: the
# chapter prints a bound, and asserts it.
SEPARATE_WAYS = ", both certified;"


def people_of(laws, seed, n):
    line = ik.Line(0, len(laws) - 1)
    return ik.datasets.Dataset(
        "people", np.random.default_rng([seed, n]).multinomial(n, laws), line, "drawn here"
    )


def some():
    """Of each file something cheap: chapter, people, mechanism, estimators, seed."""
    bits = [ik.Rappor(ik.Line(0, 19), i / 10) for i in range(1, 11)]
    bell = people_of(binom.pmf(np.arange(20), 19, 0.5), 2023, 1000)
    yield (
        "free-will-measured",
        bell,
        ik.FreeWill(bits, name="high privacy"),
        {"GIBU": ik.mle},
        2023 + bell.n,
    )
    yield "comparison", AGES, ik.RandomizedResponse(AGES.alphabet, 0.5), {**INV_P, "MLE": ik.mle}, 7
    noise = ik.TruncatedGeometric(AGES.alphabet, 0.05)
    yield "comparison", AGES, noise, {"IBU, 300 steps": partial(ik.ibu, stop=ik.Steps(300))}, 7
    yield (
        "what-to-run",
        AGES,
        ik.TruncatedGeometric(AGES.alphabet, 3.0),
        {**INV_P, "MLE": ik.mle},
        16,
    )


def beside(chapter, people, mechanism, estimators, seed, other=0):
    """Distances made here and those of the file; `other` changes the seed of what is made here."""
    rows = {tuple(row[name] for name in kept.ASKED): row for stem, row in ROWS if stem == chapter}
    made = ik.replicate(people, [mechanism], estimators, 2, seed + other)
    stored = [numbers(rows[*kept.asked(people, mechanism, seed), name])[:2] for name in estimators]
    return made["emd"].to_numpy(), np.concatenate(stored)


@pytest.mark.parametrize(
    "question",
    list(some()),
    ids=lambda question: f"{question[0]}, {question[2].__class__.__name__}",
)
def test_some_distances_made_anew(question):
    made, stored = beside(*question)
    assert made == pytest.approx(stored, rel=NEARLY)
    made, stored = beside(*question, other=1)  # the control
    assert (np.abs(made - stored) > NEARLY * stored).all()


@pytest.mark.slow
@pytest.mark.parametrize("chapter", FILES)
def test_all_distances_made_anew(chapter, tmp_path):
    repetitions.make(CHAPTERS[chapter], tmp_path / "made.csv")
    made = {repetitions.key(row): numbers(row) for row in repetitions.read(tmp_path / "made.csv")}
    stored = {repetitions.key(row): numbers(row) for stem, row in ALL if stem == chapter}
    assert set(made) == set(stored)
    kept_apart = [key for key in stored if SEPARATE_WAYS in key[0]]
    assert len(kept_apart) == (4 if chapter == "privic-measured" else 0)
    for key, values in stored.items():
        if key in kept_apart:
            assert made[key].shape == values.shape
        else:
            assert made[key] == pytest.approx(values, rel=10 * NEARLY, abs=1e-9), key


@pytest.fixture
def computed(monkeypatch):
    """The questions that were computed, not read."""
    asked, replicate = [], kept.replicate

    def counting(people, mechanisms, *rest, **how):
        asked.extend(mechanisms)
        return replicate(people, mechanisms, *rest, **(how | {"n_jobs": 1}))

    monkeypatch.setattr(kept, "replicate", counting)
    return asked


def test_what_is_kept_is_read_and_all_else_computed(computed):
    line = AGES.alphabet
    has, has_not = ik.RandomizedResponse(line, 0.5), ik.RandomizedResponse(line, 0.6)
    ask = partial(claims.repeated, "comparison", AGES, estimators=INV_P, repetitions=3, seed=7)
    found = ask([has])
    assert computed == []
    assert list(found) == kept.SAME
    assert found["repetition"].tolist() == [0, 1, 2]
    assert set(found["status"]) == {"CLOSED_FORM"}
    for question in ({}, {"seed": 8}, {"repetitions": 101}, {"estimators": {"another": ik.inv}}):
        mechanisms = [has] if question else [has_not]
        computed.clear()
        assert len(ask(mechanisms, **question)) == question.get("repetitions", 3)
        assert computed == mechanisms
    fewer = ik.datasets.Dataset("fewer", AGES.counts // 2, line, "here")
    computed.clear()
    claims.repeated("comparison", fewer, [has], INV_P, 2, 7)
    assert computed == [has]


def test_what_is_read_is_what_would_be_computed():
    krr = [ik.RandomizedResponse(AGES.alphabet, level) for level in (0.5, 2.0)]
    estimators = {**INV_P, "IBU, 300 steps": partial(ik.ibu, stop=ik.Steps(300))}
    read = claims.repeated("comparison", AGES, krr, estimators, 2, 7)
    made = ik.replicate(AGES, krr, estimators, 2, 7)
    words = ["mechanism", "epsilon", "estimator", "stop", "repetition", "status"]
    assert read[words].equals(made[words])
    assert read["emd"].to_numpy() == pytest.approx(made["emd"].to_numpy(), rel=NEARLY)


def test_other_shares_and_levels_are_other_questions():
    line = AGES.alphabet
    two = [ik.RandomizedResponse(line, level) for level in (1.0, 2.0)]
    mixes = [
        ik.FreeWill(two),
        ik.FreeWill(two, [0.1, 0.9]),
        ik.FreeWill(two[::-1]),
        ik.FreeWill(two[:1]),
    ]
    assert len({kept.asked(AGES, mix, 7) for mix in mixes}) == 4


def test_distances_are_kept_and_the_more_of_two(tmp_path):
    repeated = repetitions.recorder(str(tmp_path / "toy.csv"), n_jobs=1)
    for many in (2, 3, 2):
        made = repeated("toy", AGES, [ik.RandomizedResponse(AGES.alphabet, 0.5)], INV_P, many, 7)
        assert len(made) == many
    [row] = repetitions.read(tmp_path / "toy.csv")
    assert row["repetitions"] == "3"
    made = ik.replicate(AGES, [ik.RandomizedResponse(AGES.alphabet, 0.5)], INV_P, 3, 7)["emd"]
    assert numbers(row) == pytest.approx(made.to_numpy(), rel=NEARLY)


TOY = (
    """
import ibukit_claims as claims
import ibukit as ik
EPSILON, SEED = 0.5, 7
""",
    """
ages = ik.datasets.load_adult_ages()
tally = ik.RandomizedResponse(ages.alphabet, EPSILON).tally_counts(ages.counts)
claims.remembered("toy", "numbers", [tally], lambda: [[1.0, 2.0], [3.0, 5.0]])
""",
)


def ran(folder, *sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    chapter, to = folder / "toy.ipynb", folder / "toy.csv"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=notebooks.METADATA), chapter)
    repetitions.make(chapter, to)
    return repetitions.read(to)


def test_what_is_computed_in_a_chapters_own_way_is_kept_and_read(tmp_path, monkeypatch):
    rows = ran(tmp_path, *TOY)
    assert [row["mean"] for row in rows] == ["2", "3.5"]
    assert [row["error"] for row in rows] == ["1", "1.5"]
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    krr = ik.RandomizedResponse(AGES.alphabet, 0.5)
    tally = krr.tally_counts(AGES.counts)
    assert claims.remembered(
        "toy", "numbers", [tally], lambda: [[1.0, 2.0], [3.0, 5.0]]
    ).tolist() == [[1, 2], [3, 5]]
    other = krr.tally_counts(AGES.counts[::-1])
    for what, tallies in (
        ("numbers", [other]),
        ("numbers", [tally, tally]),
        ("other numbers", [tally]),
    ):
        assert claims.remembered("toy", what, tallies, lambda: [[4.0]]).tolist() == [[4]]
