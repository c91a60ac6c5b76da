"""The file of a run: cut or killed anywhere it is completed, and it answers no other question."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import ibukit as ik
from replicate_cases import ESTIMATORS, LINE, MECHANISMS, PEOPLE, ask, numbers

module = importlib.import_module(
    "ibukit.evaluation.replicate"
)  # the attribute of that name is the function


@pytest.fixture(scope="module")
def table():
    return ask()


@pytest.fixture
def repeated(monkeypatch):
    """The repetitions that were computed, not read."""
    keys, original = [], module._repeat

    def counting(key, *rest):
        keys.append(key)
        return original(key, *rest)

    monkeypatch.setattr(module, "_repeat", counting)
    return keys


def test_a_file_cut_anywhere_is_completed_to_the_same_file(table, tmp_path, rng, repeated):
    path = tmp_path / "runs.jsonl"
    ask(path=path)
    whole = path.read_bytes()
    assert whole.count(b"\n") == 1 + len(repeated) == 19
    ends = [len(b"".join(whole.splitlines(keepends=True)[:count])) for count in (0, 1, 2, 19)]
    cuts = [*ends, *(end - 1 for end in ends[1:]), *rng.integers(len(whole), size=20).tolist()]
    for cut in cuts:
        path.write_bytes(whole[:cut])
        repeated.clear()
        again = ask(path=path)
        assert numbers(again) == numbers(table)
        assert len(repeated) == 18 - max(whole[:cut].count(b"\n") - 1, 0)
        assert path.read_bytes().count(b"\n") == 19
        assert ask(path=path).equals(again)  # seconds too: all is read


def test_a_repetition_is_in_the_file_before_the_next_begins(tmp_path, monkeypatch):
    path, original, lines = tmp_path / "runs.jsonl", module._repeat, []

    def looking(*task):
        lines.append(path.read_bytes().count(b"\n"))
        return original(*task)

    monkeypatch.setattr(module, "_repeat", looking)
    ask(path=path)
    assert lines == list(range(1, 19))


def test_a_file_goes_on_to_more_repetitions_and_serves_fewer(table, tmp_path, repeated):
    path = tmp_path / "runs.jsonl"
    grow = partial(
        ik.replicate,
        PEOPLE,
        MECHANISMS[::-1],
        dict(reversed(ESTIMATORS.items())),
        seed=11,
        path=path,
    )
    for repetitions, computed in ((2, 6), (6, 12), (4, 0)):
        repeated.clear()
        found = numbers(grow(repetitions=repetitions))
        assert len(repeated) == computed
        assert found.items() <= numbers(table).items()
        assert len(found) == 15 * repetitions


SCRIPT = """
import sys
from functools import partial
import ibukit as ik

def ask(**how):
    ages = ik.datasets.load_adult_ages()
    mechanisms = [ik.TruncatedGeometric(ages.alphabet, epsilon) for epsilon in (0.1, 0.5)]
    estimators = {"IBU": partial(ik.ibu, stop=ik.Steps(300)), "INV-P": ik.inv}
    return ik.replicate(ages, mechanisms, estimators, 60, seed=5, **how)
"""


@pytest.fixture(scope="module")
def asked():
    """What the script answers in one go, and the function that asks it."""
    names = {}
    exec(SCRIPT, names)
    return numbers(names["ask"]()), names["ask"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_killed_run_goes_on_to_the_same_table(tmp_path, n_jobs, asked):
    path, moment = tmp_path / "runs.jsonl", np.random.default_rng()  # any moment must do
    call = f"{SCRIPT}\nask(path=sys.argv[1], n_jobs={n_jobs})"
    run = subprocess.Popen([sys.executable, "-c", call, str(path)], start_new_session=True)
    try:
        lines, deadline = (
            int(moment.integers(1, 60)),
            time.monotonic() + 900,
        )  # a busy machine takes its time to start it
        while not (path.exists() and path.read_bytes().count(b"\n") >= lines):
            assert run.poll() in (None, 0)  # 0: it may be faster than we are
            assert time.monotonic() < deadline
            time.sleep(0.002 * moment.random())
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    in_one_go, ask_anew = asked
    assert numbers(ask_anew(path=path)) == in_one_go


def with_header(change):
    """A change of the file's first line."""

    def edit(content):
        first, _, rest = content.partition(b"\n")
        header = json.loads(first)
        change(header)
        return json.dumps(header).encode() + b"\n" + rest

    return edit


FOREIGN = {
    "seed": ({"seed": 12}, ["seed 11 there, 12 here"]),
    "population": (
        {"population": replace(PEOPLE, counts=PEOPLE.counts[::-1])},
        ["population 200 on 8 values"],
    ),
    "mechanism": (
        {"mechanisms": MECHANISMS[1:]},
        ["mechanisms: TruncatedGeometric(epsilon=0.3) only there"],
    ),
    "more mechanisms": (
        {"mechanisms": [*MECHANISMS, ik.Exponential(LINE, 0.5)]},
        ["Exponential(epsilon=0.5) only here"],
    ),
    "stop": (
        {"estimators": {**ESTIMATORS, "IBU": partial(ik.ibu, stop=ik.Steps(21))}},
        ["IBU is Steps(n=20)", "21"],
    ),
    "name": (
        {"estimators": {("MLE*" if n == "MLE" else n): e for n, e in ESTIMATORS.items()}},
        ["MLE only there", "MLE*"],
    ),
    "partial": (
        {"estimators": {**ESTIMATORS, "INV": partial(ik.inv, post="project")}},
        ["estimators: INV is"],
    ),
    "lambda": (
        {"estimators": {**ESTIMATORS, "INV-N": lambda tally: ik.inv(tally, post="project")}},
        ["INV-N is"],
    ),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_file_for_another_question_is_refused_and_left_alone(tmp_path, what):
    path, (other, said) = tmp_path / "runs.jsonl", FOREIGN[what]
    question = {
        "population": PEOPLE,
        "mechanisms": MECHANISMS,
        "estimators": ESTIMATORS,
        "seed": 11,
        "path": path,
    }
    ik.replicate(**question, repetitions=1)
    before = path.read_bytes()
    with pytest.raises(ik.errors.ForeignFile) as caught:
        ik.replicate(**{**question, **other}, repetitions=1)
    assert all(words in str(caught.value) for words in [*said, str(path), "Name another file"])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            with_header(lambda header: header["versions"].update(numpy="1.26")),
            "versions: numpy is 1.26 there",
        ),
        (with_header(lambda header: header.pop("seed")), "is neither"),
        (lambda content: b"mechanism,emd\nTruncatedGeometric,0.5\n", "is neither"),
        (lambda content: b"notes without a line break", "is neither"),
        (lambda content: b"[1]\n", "is neither"),
        (lambda content: content[:-40] + b"\n" + content, "line 4 of"),
        (
            lambda content: content + b'{"mechanism": "x", "repetition": 0, "estimators": {}}\n',
            "line 5 of",
        ),
        (lambda content: content + bytes(9) + b"\n", "line 5 of"),
    ],
    ids=["version", "key", "csv", "text", "list", "line cut inside", "no estimators", "zeros"],
)
def test_a_file_with_lines_out_of_order_is_refused_and_left_alone(tmp_path, edit, said):
    path = tmp_path / "runs.jsonl"
    once = partial(ik.replicate, PEOPLE, MECHANISMS, ESTIMATORS, 1, 11, path)
    once()
    path.write_bytes(edit(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(ik.errors.ForeignFile, match=said):
        once()
    assert path.read_bytes() == before
