"""How the tables of cells are set:
numbers to the right, by their points, with their errors, powers of ten raised.
"""

from __future__ import annotations

import re

import pytest
from table_layout import set_table, set_tables

HEAD = '<table class="dataframe"><thead><tr><th>what</th><th>EMD</th></tr></thead><tbody>'


def table(*rows):
    lines = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in rows)
    return f"{HEAD}{lines}</tbody></table>"


def text_of(html):
    return re.sub(r"<[^>]*>", " ", html)


def test_a_column_of_numbers_is_aligned_by_its_points():
    html = set_table(table(("a", "10"), ("b", "1.25"), ("c", "–")))
    assert html.count('class="number"') == 4  # three cells and their head
    assert '10<span class="fraction" style="--places: 3"></span>' in html
    assert '1<span class="fraction" style="--places: 3">.25</span>' in html


@pytest.mark.parametrize("text", ["closer", "1 of 2", "12 in Fig. 3"])
def test_a_column_of_words_is_not(text):
    assert "number" not in set_table(table(("a", "1.5"), ("b", text)))


def test_a_number_and_its_error_are_in_a_column_of_numbers():
    assert 'class="number">0.0027 ± 0.0001<' in set_table(
        table(("a", "0.0027 ± 0.0001"), ("b", "0.1 ± 0.02"))
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1e-04", "10<sup>−4</sup>"),
        ("2.5e+06", "2.5 × 10<sup>6</sup>"),
        ("below 1e-9", "below 10<sup>−9</sup>"),
        ("e-9, 1e, node1e4x, 1e4x", "e-9, 1e, node1e4x, 1e4x"),
    ],
)
def test_powers_of_ten_are_raised(text, shown):
    assert f">{shown}</td>" in set_table(table(("a", text)))


def test_only_tables_of_cells_are_set_and_words_stay():
    other = '<table class="indextable"><tr><td>1.5</td></tr></table>'
    body = other + table(("a", "1.5"), ("b", "22.25")) + other
    html = set_tables(body)
    assert html.count(other) == 2
    assert html.count("table-scroll") == 1
    assert text_of(html).replace(" ", "") == text_of(body).replace(" ", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-212,419", "−212,419"),
        ("-0.31", "−0.31"),
        ("from -.5 to -2", "from −.5 to −2"),
        ("(-1)", "(−1)"),
        ("3-5", "3-5"),
        ("2025-01-02", "2025-01-02"),
        ("k-2", "k-2"),
        ("-x", "-x"),
    ],
)
def test_a_negative_number_has_a_minus_sign(text, shown):
    assert f">{shown}</td>" in set_table(table(("a", text), ("b", "word")))


def test_code_keeps_its_hyphen():
    assert "<code>-1</code>" in set_table(table(("a", "<code>-1</code>")))
