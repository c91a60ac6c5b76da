"""The page of notation speaks of names that exist: one symbol, one name, in the book and in the code."""

import inspect
import re
from pathlib import Path

import pytest

import ibukit as ik
from ibukit.mechanisms import FiniteMechanism

PAGE = (Path(__file__).resolve().parents[1] / "book" / "notation.md").read_text("utf-8")
OBJECTS = {
    "mechanism": FiniteMechanism,
    "alphabet": ik.Alphabet,
    "tally": ik.Tally,
    "Estimate": ik.Estimate,
    "theory": ik.theory,
    "privacy": ik.privacy,
}


def rows():
    """Cells of the tables, header and rule left out."""
    for line in PAGE.splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", "| Term", "| Rule")):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def in_code():
    """Every name that a table gives for something in the code."""
    for row in rows():
        for cell in row[1:3]:
            yield from re.findall(r"`([^`]+)`", cell)


def names_of_the_package():
    """Public names, with the parameters and attributes of what they stand for."""
    found = set()
    for name in ik.__all__:
        thing = getattr(ik, name)
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        if inspect.isclass(thing):
            found |= set(dir(thing)) | set(getattr(thing, "__dataclass_fields__", ()))
        if callable(thing):
            found |= {name, *inspect.signature(thing).parameters}
        if inspect.isclass(thing):
            for member in vars(thing).values():
                if inspect.isfunction(member):
                    found |= set(inspect.signature(member).parameters)
    return found


def exists(name):
    """Whether a name of the table is one of the package."""
    word, *attributes = re.sub(r"\(.*\)|=.*", "", name).split(".")  # without arguments or a value
    parameters = re.findall(r"(\w+)=", name)
    if attributes:
        return attributes[0] in set(dir(OBJECTS[word])) | set(getattr(OBJECTS[word], "__dataclass_fields__", ()))
    known = names_of_the_package()
    return word.strip('"') in known | {"none", "normalize", "project"} and set(parameters) <= known


@pytest.mark.ledger("A-TabI")
def test_every_name_on_the_page_is_one_of_the_package():
    names = list(dict.fromkeys(in_code()))
    assert len(names) > 25
    assert [name for name in names if not exists(name)] == []


@pytest.mark.ledger("A-TabI")
def test_the_papers_basic_notation_has_a_row_each():
    # what table I of the consistency paper lists, in its own letters
    symbols = " ".join(row[1] for row in rows() if len(row) == 4)
    for symbol in (r"\mathcal X", r"\theta", "x", "z", r"\mathcal Z", "M_{xz}", "q", "L"):
        assert symbol in symbols, symbol


@pytest.mark.ledger("D-TII")
def test_the_symbols_of_frequency_estimation_are_translated():
    # what table II of that paper lists and writes otherwise than we do, each in the row of the thing it stands for
    theirs = {row[1]: row[3] for row in rows() if len(row) == 4 and re.search(r"\bD\b", row[3])}
    pairs = {
        r"$\mathcal X$, $k$": r"\mathcal A",
        "$F$": "F_x=T_x/n",
        r"$\theta$; $\hat\theta$": "$P$",
        r"$\pi$": r"\mu",
        r"$M$, $M_{xz}=P(z\mid x)$": r"Q_{y\mid x}",
        r"$\lvert\mathcal Z\rvert$": "$b$",
        "$z$": "$y$",
        "$n q_z$": "S_y",
        r"$\bar\theta$, $\bar F$": r"\hat P^*",
    }
    for ours, symbol in pairs.items():
        assert symbol in theirs[ours], ours
    same = " ".join(row[1] for row in rows() if len(row) == 4 and not re.search(r"\bD\b", row[3]))
    assert "$n$" in same
    assert r"$\varepsilon$" in same


@pytest.mark.ledger("E-TI")
def test_the_symbols_of_privic_are_translated():
    # what table I of that paper lists, each in the row of the thing it stands for; two lines are names: BA and IBU
    theirs = {row[1]: row[3] for row in rows() if len(row) == 4}
    pairs = {
        r"$M$, $M_{xz}=P(z\mid x)$": r"E: $\mathcal C_{xy}$",
        r"$\theta$; $\hat\theta$": r"E: $\pi_{\mathcal X}$, $\hat\pi_{\mathcal X}$",
        "$D$": "E: $d^*$",
        "$C$, $c$": r"E: $\hat{\mathcal C}_{\mathrm{BA}}$",
        "": r"E: $\delta_{\mathrm{BA}}$, $\delta_{\mathrm{IBU}}$",
        "$t$": "E: $N$ for the cycles",
    }
    for ours, symbol in pairs.items():
        assert symbol in theirs[ours], ours
    assert all(theirs[same] == "" or "E:" not in theirs[same] for same in (r"$\mathcal X$, $k$", r"$\beta$"))


@pytest.mark.parametrize("name", ["mechanism.matrixx()", "Gap2(tol)", "ibu(tally, begin=...)", "lie_detector"])
def test_a_name_that_does_not_exist_is_noticed(name):
    assert not exists(name)
