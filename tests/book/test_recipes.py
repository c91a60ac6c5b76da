"""The page *Recipes*: its code runs as it stands, and its sentences hold."""

import re
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik

PAGE = (Path(__file__).resolve().parents[2] / "book" / "recipes.md").read_text("utf8")
SECTIONS = dict(re.findall(r"^\(recipe-(\w+)\)=\n(.*?)(?=^\(recipe-|\Z)", PAGE, re.DOTALL | re.M))
HEAD = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture(scope="module")
def names():
    """What each recipe defines: the page is run from its beginning to its end."""
    found, defined = {}, {}
    exec(HEAD, found)
    for name, section in SECTIONS.items():
        (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        exec(block, found)
        defined[name] = dict(found)
    return defined


def test_each_recipe_runs_with_the_first_lines_alone():
    for name, section in SECTIONS.items():
        (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        alone = {}
        exec(HEAD + block, alone)
        lines = [line for line in block.splitlines() if line.strip()]
        assert len(lines) <= 12, name
        assert max(map(len, block.splitlines())) <= 79, name
        assert all(f"**{word}" in section for word in ("Question.", "It assumes", "Read on:"))
    assert len(SECTIONS) == 11


def test_two_attributes(names):
    spl = names["spl"]
    assert spl["both"].epsilon == 2.0
    assert spl["table"].shape == (2, 3)
    assert spl["table"].sum() == pytest.approx(1.0)
    # A third of the people are ("yes", "west"), and another third of the west says no.
    assert spl["lower"] < 2 / 3 < spl["upper"]
    smp = names["smp"]["estimate"]
    assert not smp.identified.all()
    p, q = 1 / (1 + np.exp(-1.0)), 1 / (1 + np.e)
    share = (0.42 - q) / (p - q)
    assert names["smp"]["lower"] < share < names["smp"]["upper"]
    assert names["smp"]["upper"] - names["smp"]["lower"] < 0.2


def test_tables_of_other_libraries_have_the_labels(names):
    found = names["elsewhere"]
    assert found["shares"]["label"].to_list() == ["north"]
    assert found["again"].counts.tolist() == [2, 1]
    assert found["reports"]["report"].to_pylist() == ["north", "west"]


def test_held_out_reports_choose_the_penalty_in_the_middle(names):
    assert names["sklearn"]["best"] == {"penalty": 100.0}
    assert names["sklearn"]["estimate"].method.startswith("smooth")


def test_random_sampling_plus_fake_data_has_the_law_of_the_paper(names):
    rsfd, smokes, region = (names["rsfd"][name] for name in ("rsfd", "smokes", "region"))
    for x, y, a, b in np.ndindex(2, 3, 2, 3):
        law = 0.5 * smokes.matrix()[x, a] / 3 + 0.5 * region.matrix()[y, b] / 2
        assert rsfd.matrix()[3 * x + y, 3 * a + b] == pytest.approx(law, rel=1e-12)
    assert rsfd.epsilon == pytest.approx(1.0, rel=1e-12)
    # Half of the people are in the west and half in the north.
    assert names["rsfd"]["shares"] == pytest.approx([0.5, 0.5, 0.0], abs=0.1)


def test_between_tuples_that_differ_in_all_attributes_the_raised_level_is_attained():
    for sizes in ((4, 4), (2, 5), (2, 3, 4)):
        d = len(sizes)
        raised = np.log(d * (np.e - 1) + 1)
        true = [ik.RandomizedResponse(k, raised) for k in sizes]
        fakes = [ik.MatrixMechanism(np.full((k, k), 1 / k)) for k in sizes]
        picks = [[true[i] if i == j else fakes[i] for i in range(d)] for j in range(d)]
        matrix = ik.average_mechanism([ik.product(*each) for each in picks]).matrix()
        # The tuples 0, 0, ... and 1, 1, ..., of which the first is reported.
        ones = np.ravel_multi_index([1] * d, sizes)
        assert np.log(matrix[0, 0] / matrix[ones, 0]) == pytest.approx(raised, rel=1e-12)


def test_maps_groups_rounds_and_sums(names):
    hexagons = names["hexagons"]
    nearest = np.sort(hexagons["distances"] + 9 * np.eye(30), axis=1)[:, 0]
    assert nearest == pytest.approx(np.ones(30))
    # Equally many people are in each hexagon.
    shares = np.sum(hexagons["weights"], axis=1) / 30
    assert ((hexagons["lower"] < shares) & (shares < hexagons["upper"])).all()
    assert names["groups"]["frame"].index.names == ["country", "label"]
    assert names["rounds"]["level"] == pytest.approx(1.5, rel=1e-12)
    assert 0 <= names["rounds"]["lower"] < names["rounds"]["upper"] <= 1
    sums = names["sums"]
    assert sums["estimate"].distribution.sum() == pytest.approx(1.0)
    with pytest.raises(ik.errors.LikelihoodUnknown):
        ik.mle(sums["tally"])


def test_qubits_and_surveys(names):
    estimate = names["qubits"]["estimate"]
    matrix = np.ones((1, 1))
    for up, down in names["qubits"]["errors"]:
        matrix = np.kron(matrix, [[1 - up, up], [down, 1 - down]])
    assert names["qubits"]["readout"].matrix() == pytest.approx(matrix)
    seen = np.zeros(8)
    for bits, count in names["qubits"]["counts"].items():
        seen[int(bits, 2)] = count
    assert (seen / seen.sum() @ np.linalg.inv(matrix)).min() < 0 <= estimate.distribution.min()
    assert estimate.gap < 1e-9
    survey = names["survey"]
    # 30 villages in two strata.
    assert survey["fit"]._fitted.survey.degrees_of_freedom == 28
    assert survey["tally"].survey.degrees_of_freedom == 28
    assert list(survey["frame"].index.names) == ["secret", "variable"]
