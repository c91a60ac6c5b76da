"""The page *Several reports of one person*: its code runs as it stands."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "book" / "several-reports.md").read_text("utf8")


def test_the_code_runs_in_the_order_of_the_page():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert names["tally"].n == 3
    assert len(names["wednesday"]) == 3
    assert names["mechanism"].release_epsilon == 2.0
    assert names["estimate"].gap < 1e-8


def test_the_table_holds_the_bound_where_the_answer_is_kept():
    rows = re.findall(r"\| (\d+) \| ([\d.]+) ± [\d.]+ % \| ([\d.]+) ± ([\d.]+) % \|", PAGE)
    assert [int(row[0]) for row in rows] == [1, 10, 50, 200]
    assert all(float(kept) < 28.0 + 3 * float(error) for _, _, kept, error in rows)
    assert float(rows[-1][1]) > 90
