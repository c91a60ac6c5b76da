"""What every chapter must have,
read off the notebook files themselves (nbval runs them beside this).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(
    p for p in (ROOT / "book").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts
)
CHAPTERS = [path for path in NOTEBOOKS if path.parent.name == "chapters"]
LINES_PER_CELL = 15
COLUMNS = 79
COLUMNS_OF_TEXT = 76  # code in the text of a page, in whatever language
FENCED = re.compile(r"^ *(`{3,})([^\n]*)\n(.*?)^ *\1$", re.MULTILINE | re.DOTALL)
PAGES = sorted(p for p in (ROOT / "book").rglob("*.md") if ".ipynb_checkpoints" not in p.parts)
FOLDED = {"remove-cell", "hide-input", "hide-cell", "check"}
CHARTS = {
    "what-to-run"
}  # its picture is a schematic, not a figure that a cell draws; see test_schematics.py


def toc_files(node: Any) -> Iterator[str]:
    """Every page that a table of contents names."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("file", "root"):
                yield value
            else:
                yield from toc_files(value)
    elif isinstance(node, list):
        for value in node:
            yield from toc_files(value)


def code_cells(path: Path) -> list[Any]:
    return [
        c for c in nbformat.read(path, 4).cells if c["cell_type"] == "code" and c["source"].strip()
    ]


def tags(cell: Any) -> list[str]:
    return cell["metadata"].get("tags", [])


def draws(cell: Any) -> bool:
    return any(
        "<Figure" in str(output.get("data", {}).get("text/plain", "")) for output in cell["outputs"]
    )


def test_the_contents_and_the_pages_are_the_same_set():
    named = set(toc_files(yaml.safe_load((ROOT / "_toc.yml").read_text("utf8"))))
    pages = {
        p.relative_to(ROOT).with_suffix("") for p in (*NOTEBOOKS, *(ROOT / "book").rglob("*.md"))
    }
    assert named == {page.as_posix() for page in pages}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_cell_was_run(path):
    # nbval runs a cell without an execution count, but compares nothing
    assert [c["id"] for c in code_cells(path) if c["execution_count"] is None] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_no_cell_fails_writes_to_stderr_or_escapes_comparison(path):
    for cell in code_cells(path):
        assert not any(
            o["output_type"] == "error" or o.get("name") == "stderr" for o in cell["outputs"]
        ), cell["id"]
        assert not {"nbval-skip", "raises-exception"} & set(tags(cell)), cell["id"]
        assert "NBVAL_" not in cell["source"], cell["id"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_figure_has_alternative_text_a_caption_and_a_name(path):
    for cell in code_cells(path):
        if draws(cell):
            mystnb = cell["metadata"].get("mystnb", {})
            assert len(mystnb.get("image", {}).get("alt", "")) > 20, cell["id"]
            assert mystnb.get("figure", {}).get("caption"), cell["id"]
            assert mystnb.get("figure", {}).get("name"), cell["id"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_column_of_a_table_has_a_name(path):
    for cell in code_cells(path):
        for output in cell["outputs"]:
            text = str(output.get("data", {}).get("text/html", ""))
            assert not re.search(r"<th[^>]*>\s*</th>", text), (
                f"{cell['id']}: a header cell without words, which a screen reader cannot say; "
                'name the index: frame.rename_axis(columns="user")'
            )


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_a_chapter_draws_and_asserts_what_it_claims(path):
    cells = code_cells(path)
    assert any(draws(cell) for cell in cells) or path.stem in CHARTS
    assert any(
        re.search(r"^\s*assert |\bclaims\.\w+\(", cell["source"], re.MULTILINE) for cell in cells
    )


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_visible_cells_are_short(path):
    for cell in code_cells(path):
        if not FOLDED & set(tags(cell)):
            assert len(cell["source"].strip().splitlines()) <= LINES_PER_CELL, cell["id"]


def wide_lines(cell: Any) -> list[str]:
    """Lines that would run out of their column on a page at 1280 px."""
    return [line for line in cell["source"].splitlines() if len(line) > COLUMNS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_visible_code_is_no_wider_than_its_column(path):
    for cell in code_cells(path):
        if "remove-cell" not in tags(cell):
            assert wide_lines(cell) == [], cell["id"]


def wide_lines_of_text(text: str) -> list[str]:
    """The same of what a text sets as code."""
    found = FENCED.finditer(text)
    blocks = [match[3] for match in found if not match[2].startswith("{")]  # else a directive
    return [line for block in blocks for line in block.splitlines() if len(line) > COLUMNS_OF_TEXT]


@pytest.mark.parametrize("path", PAGES + NOTEBOOKS, ids=lambda p: p.stem)
def test_code_in_a_text_is_no_wider_than_its_column(path):
    if path.suffix == ".md":
        texts = [path.read_text("utf8")]
    else:
        cells = nbformat.read(path, 4).cells
        texts = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    assert [line for text in texts for line in wide_lines_of_text(text)] == []


def test_a_line_that_is_too_wide_is_found():
    entry = f"```bibtex\n{'x' * 76}\n{'y' * 77}\n```\n"
    assert wide_lines_of_text(entry) == ["y" * 77]
    assert wide_lines_of_text(f"```{{note}}\n{'y' * 77}\n```\n") == []
    assert wide_lines({"source": f"x = 1\n{'x' * 79}\n{'y' * 80}"}) == ["y" * 80]


def bare_floats(cell: Any) -> list[str]:
    """Numbers glued or printed with all their digits: the last ones are another machine's."""
    texts = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        texts += [text for mime, text in data.items() if mime.endswith("text/plain")]
        texts.append(output.get("text", ""))
    return re.findall(r"\d\.\d{13,}(?:e-?\d+)?|\d\.\d{7,}e-?\d+", " ".join(map(str, texts)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_no_number_shows_digits_that_another_machine_would_not(path):
    assert [number for cell in code_cells(path) for number in bare_floats(cell)] == []


def test_a_float_as_python_writes_it_is_caught():
    for value in (1.885787763199095, 0.1 + 0.2, 2.5e-17 / 3):
        outputs = [{"data": {"application/papermill.record/text/plain": repr(value)}}]
        assert bare_floats({"outputs": outputs}) == [repr(value)]
    assert bare_floats({"outputs": [{"text": "0.05 ± 0.01, 1e-09, 0.00010, 7.376104"}]}) == []


# not after a letter or a brace, as in TeX: \begin{tabular}{lrr}
FIELD = re.compile(
    r"(?<![A-Za-z}])\{[A-Za-z_][\w.]*(?:\([^{}]*\)|\[[^{}]*\])*(?:![rsa])?(?::[^{}\s]*)?\}"
)


def raw_fields(cell: Any) -> list[str]:
    """Fields that a cell shows unformatted, since the string lacks its f."""
    texts = [output.get("text", "") for output in cell["outputs"]]
    for output in cell["outputs"]:
        texts += [text for mime, text in output.get("data", {}).items() if "text/" in mime]
    return FIELD.findall(" ".join(map(str, texts)))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_no_output_shows_an_unformatted_field(path):
    assert [field for cell in code_cells(path) for field in raw_fields(cell)] == []


def test_an_unformatted_field_is_found_and_a_set_is_not():
    for field in ("{beta:g}", "{left[beta]}", "{name}", "{x.mean():.2f}", "{x!r}"):
        assert raw_fields({"outputs": [{"data": {"text/html": f"<td>{field}</td>"}}]}) == [field]
    assert raw_fields({"outputs": [{"text": "{1, 2} {'a': 1} {a, b} {}"}]}) == []
