"""Compute the figures that move, draw their still pictures, and write both to book/moving.

    python scripts/moving_figures.py [NAME ...]

Each figure is a function of moving_ages, moving_person, moving_values or moving_paris. It describes
the controls, the panels with their marks, and the sentence, in the form that moving_marks explains.
The numbers are rounded to what the figure shows. The same seed gives the same file.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import moving_ages
import moving_drawing
import moving_landing
import moving_marks
import moving_paris
import moving_person
import moving_values

FOLDER = Path(__file__).resolve().parents[1] / "book" / "moving"
FIGURES: dict[str, Callable[[], dict[str, Any]]] = {
    "ages-reconstructed": moving_landing.ages_reconstructed,
    "epsilon-and-steps": moving_ages.epsilon_and_steps,
    "hump-to-comb": moving_ages.hump_to_comb,
    "penalty": moving_ages.penalty,
    "best-mechanism": moving_values.best_mechanism,
    "person": moving_person.person,
    "liars": moving_paris.liars,
    "triangle": moving_values.triangle,
}


def written(spec: dict[str, Any]) -> str:
    """The text of the file: a list of numbers, of short words or of places is one line."""
    text = json.dumps(spec, indent=1, ensure_ascii=False)
    text = re.sub(
        r"\[\s+([^\[\]{}]*?)\s+\]", lambda m: "[" + re.sub(r",\n\s*", ",", m[1]) + "]", text
    )
    return (
        re.sub(r"(\d)\](,?)\n\s+(?=\[|\])", r"\1]\2", re.sub(r"\[\n\s+\[(?=\d)", "[[", text)) + "\n"
    )


def main() -> None:
    """Write the figures that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*FIGURES, []])
    for name in parser.parse_args().names or FIGURES:
        path = FOLDER / f"{name}.json"
        spec = FIGURES[name]()
        for panel in spec["panels"]:
            panel["plot"] = list(moving_marks.plot_size(panel))
        path.write_text(written(spec), "utf8")
        path.with_suffix(".html").write_text(moving_drawing.page(spec) + "\n", "utf8")
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
