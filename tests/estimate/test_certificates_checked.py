"""The thirty lines of the book check certificates in a process that has no ibukit."""

import copy
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import PlaneChannel, plain_numbers, plane
from ibukit.errors import NotCertified, TooLarge

PAGE = Path(__file__).parents[2] / "book" / "certificates.md"
# What checks a certificate on the page: the second block of code.
LINES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
COUNTS = [600, 250, 100, 50]


def verdicts(certificates, tmp_path):
    """Let the lines check each certificate, where neither ibukit nor numpy can be imported."""
    program = tmp_path / "check.py"
    blocked = 'sys.modules["ibukit"] = sys.modules["numpy"] = None\n'
    every = "\nfor path in sys.argv[2:]:\n    print(holds(json.load(open(path))))\n"
    program.write_text(f"import sys\n{blocked}{LINES}{every}", encoding="utf-8")
    paths = []
    for i, certificate in enumerate(certificates):
        paths.append(tmp_path / f"{i}.json")
        paths[-1].write_text(json.dumps(certificate, allow_nan=False), encoding="utf-8")
    # -I and -S leave out the folder, the environment and the installed packages.
    ran = subprocess.run(
        [sys.executable, "-I", "-S", program, paths[0], *paths],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    first, *each = ran.stdout.split("\n")[:-1]
    assert first == ("holds" if each[0] == "True" else "DOES NOT HOLD")
    return [line == "True" for line in each]


def planar_tally(rng):
    grid = ik.Grid(4, 5)
    mechanism = ik.TruncatedPlanarGeometric(grid, 0.8)
    tally = mechanism.simulate(rng.multinomial(3000, np.full(20, 0.05)), rng)
    table = plane.offset_masses.geometric_table(grid, 0.8)
    part = tally.parts[0]
    # So small a grid has a matrix; by transforms it is the same channel.
    vars(part)["channel"] = plane.remapped(grid, table, part.reports)
    assert type(tally.operator) is PlaneChannel
    return tally


def tallies():
    rng = np.random.default_rng(5)
    secrets = rng.choice(4, 2000, p=[0.5, 0.3, 0.2, 0.0])

    def drawn(mechanism):
        return mechanism.tally(mechanism.randomize(secrets, rng))

    response = ik.RandomizedResponse(4, 1.0)
    return {
        "k-RR": response.tally_counts(COUNTS),
        "line": drawn(ik.LinearGeometric(4, 0.7)),
        "bits": drawn(ik.Rappor(4, 1.0)),
        "matrix": drawn(ik.MatrixMechanism(np.full((4, 4), 0.1) + 0.6 * np.eye(4))),
        "Hadamard": drawn(ik.HadamardResponse(4, 1.0)),
        "plane": planar_tally(rng),
        "pool": response.tally_counts(COUNTS) + drawn(ik.Rappor(4, 1.0)),
        "lost": ik.MatrixMechanism(
            [[0.4, 0.1], [0.2, 0.7], [0.1, 0.1]], efficiency=True
        ).tally_counts([500, 300]),
    }


TALLIES = tallies()


def moved(certificate, share=1e-3):
    """The same with a share of the distribution moved from the largest to the smallest."""
    theta = np.array(certificate["distribution"])
    theta[theta.argmax()] -= share
    theta[theta.argmin()] += share
    return certificate | {"distribution": theta.tolist()}


def recounted(certificate):
    """The same with a tenth more of its most frequent report."""
    again = copy.deepcopy(certificate)
    counts = again["parts"][0]["counts"]
    counts[int(np.argmax(counts))] *= 1.1
    return again


@pytest.mark.parametrize("name", TALLIES)
def test_a_certificate_holds_and_a_changed_one_does_not(name, tmp_path):
    tally = TALLIES[name]
    best = ik.mle(tally).certificate()
    early = ik.ibu(tally, stop=ik.Steps(3)).certificate()
    assert best["gap"] <= 1e-9 < early["gap"]
    lowered = early | {"gap": early["gap"] * (1 - 1e-6)}
    changed = [moved(best), recounted(best), lowered, early | {"gap": best["gap"]}]
    assert verdicts([best, early, *changed], tmp_path) == [True, True, False, False, False, False]


@pytest.mark.parametrize("name", TALLIES)
def test_a_certificate_states_the_gap_of_its_estimate(name):
    estimate = ik.mle(TALLIES[name])
    certificate = estimate.certificate()
    assert certificate["gap"] == pytest.approx(estimate.gap, abs=1e-12)
    assert len(certificate["labels"]) == len(certificate["distribution"]) == estimate.tally.k
    assert sum(sum(part["counts"]) for part in certificate["parts"]) == certificate["n"]
    assert json.loads(json.dumps(certificate)) == certificate


def test_the_lines_are_thirty():
    code = [line for line in LINES.splitlines() if line.strip() and not line.startswith("#")]
    assert len(code) <= 30


def test_what_has_no_certificate_is_refused_by_name():
    estimate = ik.mle(TALLIES["k-RR"])
    with pytest.raises(NotCertified, match="no tally"):
        replace(estimate, tally=None).certificate()
    off = ik.inv(ik.RandomizedResponse(3, 0.2).tally_counts([9, 1, 0]), post="none")
    with pytest.raises(NotCertified, match="not a distribution"):
        off.certificate()
    identity = ik.MatrixMechanism(np.eye(2)).tally_counts([3, 1])
    never = replace(ik.mle(identity), distribution=np.array([1.0, 0.0]))
    with pytest.raises(NotCertified, match="gap is infinite"):
        never.certificate()


def test_a_matrix_that_would_fill_the_file_is_refused(monkeypatch):
    estimate = ik.mle(TALLIES["matrix"])
    monkeypatch.setattr(plain_numbers, "MAX_ENTRIES", 15)
    with pytest.raises(TooLarge, match="4 x 4 entries, and at most 15"):
        estimate.certificate()
    assert ik.mle(TALLIES["k-RR"]).certificate(), "two numbers are short, however many secrets"
