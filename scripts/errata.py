"""Print a letter to the authors of a paper: its errors with counterexamples, then the remarks.

    python scripts/errata.py --paper E

The letter is made from data/errata.csv. An error or a missing condition stands in it with its
place, the paper's own words, what we find, and the lines of data/counterexamples/<code>.txt if
there are any: Python of at most five lines that stops if we are wrong. An answer of the authors
goes into data/replies.csv and stands on the page of errata from then on.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from pathlib import Path

import ledger

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 78
MIN_SENTENCE = 25  # characters of a sentence that says something by itself
PAPERS = {
    "A": "On the Consistency and Performance of the Iterative Bayesian Update",
    "B": "Geometric Noise for Locally Private Counting Queries",
    "C": "Reconstruction of the distribution of sensitive data under free-will privacy",
    "D": "Improving Frequency Estimation under Local Differential Privacy",
    "E": "PRIVIC: A privacy-preserving method for incremental collection of location data",
}
KINDS = {
    "error": "Sentences, formulas and numbers that seem to us to be false as printed",
    "conditional error": "What seems to us to be false if the published data are the figure's",
    "missing condition": "Statements that seem to us to need a condition",
    "irreproducible": "What we could not repeat from the text",
    "remark": "Remarks, which are no faults of the paper",
}
LONG = ("error", "conditional error", "missing condition")
GREEK = {"varepsilon": "ε", "theta": "θ", "alpha": "α", "beta": "β", "delta": "δ", "lambda": "λ"}
GREEK |= {"phi": "φ", "gamma": "γ", "pi": "π", "pm": "±", "le": "≤", "ge": "≥", "times": "×"}
GREEK |= {"ldots": "...", "infty": "∞", "log": "log", "sum": "Σ", "max": "max", "min": "min"}
GREEK |= {"ell": "ℓ", "ln": "ln", "mid": "|", "cdot": "·", "sqrt": "√"}


def plain(text: str) -> str:
    """A text whose formulas, between dollars in TeX, are written as in a letter."""

    def formula(found: re.Match[str]) -> str:
        tex = re.sub(r"\\mathrm\{([^}]*)\}", r"\1", found[1])
        tex = re.sub(r"\\operatorname\{([^}]*)\}", r"\1", tex)
        tex = re.sub(r"\\[,;! ]", " ", tex.replace("{,}", ","))
        tex = re.sub(r"\\sqrt\{(\w+)\}", r"√\1", tex)
        tex = re.sub(r"\\([a-z]+)", lambda name: GREEK.get(name[1], name[1]), tex)
        tex = re.sub(r"\\([{}])", r"\1", tex)
        tex = re.sub(r" *× *", " × ", tex)
        return re.sub(r"([_^])\{(\w)\}", r"\1\2", tex)

    return re.sub(r"\$([^$]+)\$", formula, text)


def beginning(text: str) -> str:
    """The first sentence of a text, or the first two where the first is a word or two.

    A full stop in a number or in "Sec." does not end a sentence.
    """
    ends = r"(?<=[a-z\d)$%])(?<!Sec)(?<!Figs)(?<!Thm)\. (?=[A-Z])"
    first, *others = re.split(ends, text)
    if len(first) < MIN_SENTENCE and others:
        first += f". {others[0]}"
    return first.rstrip(".") + "."


def counterexample(code: str, root: Path = ROOT) -> str:
    """The lines of a counterexample, or nothing where there are none."""
    path = root / "data" / "counterexamples" / f"{code}.txt"
    return path.read_text("utf8") if path.is_file() else ""


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph in lines of a letter."""
    return textwrap.fill(
        plain(text), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def entry(row: dict[str, str], root: Path = ROOT) -> str:
    """An error or a missing condition, with its counterexample."""
    lines = [f"{row['id']}. {row['where']}"]
    if row["quote"]:
        lines.append(wrapped(f'The paper: "{row["quote"]}".', "  "))
    lines += [wrapped(row["wrong"], "  "), wrapped(f"We find: {row['right']}", "  ")]
    if code := counterexample(row["id"], root):
        lines += ["", textwrap.indent(code.rstrip("\n"), "    ")]
    else:
        place = (
            f"The computation takes more than five lines; it is in the book's chapter "
            f"{row['chapter']}."
        )
        lines.append(wrapped(place, "  "))
    return "\n".join(lines)


def letter(paper: str, root: Path = ROOT) -> str:
    """The letter on one paper."""
    rows = [row for row in ledger.rows("erratum", root) if row["id"][0] == paper]
    if not rows:
        raise ValueError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    parts = [
        f'Subject: Your paper "{PAPERS[paper]}"',
        "Dear authors,",
        wrapped(
            "we have rebuilt your paper as a program, line by line, for an open book on "
            "reconstructing distributions from locally private reports (ibukit). Most of what we "
            "could check holds, and the book says so row by row. On the way we noted the points "
            "below. We may have misread you: if so, please tell us, and the point is withdrawn."
        ),
        wrapped(
            "Each short program below runs as it stands where ibukit is installed, and stops "
            "with an AssertionError if we are wrong. We read your paper as text, so a formula may "
            "have been damaged on its way to us."
        ),
    ]
    for kind in LONG:
        found = [entry(row, root) for row in rows if row["class"] == kind]
        if found:
            parts += [f"{KINDS[kind]}\n{'-' * len(KINDS[kind])}", *found]
    for kind in KINDS:
        found = [row for row in rows if row["class"] == kind and kind not in LONG]
        if found:
            items = [
                f"{row['id']}, {row['where']}: {row['wrong']} {beginning(row['right'])}"
                for row in found
            ]
            parts.append(f"{KINDS[kind]}\n{'-' * len(KINDS[kind])}")
            parts.append("\n".join(wrapped(f"- {item}") for item in items))
    parts += [
        wrapped(
            "We would be glad of an answer, also a short one; with your leave we "
            "print it next to the point, on the book's page of errata."
        ),
        "With kind regards,\nthe authors of ibukit",
    ]
    return "\n\n".join(parts) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Print the letter on the paper that the command line names."""
    parser = argparse.ArgumentParser(description="Print a letter to the authors of a paper.")
    parser.add_argument("--paper", choices=PAPERS, required=True)
    sys.stdout.write(letter(parser.parse_args(argv).paper))
    return 0


if __name__ == "__main__":
    sys.exit(main())
