"""A number keeps its error and its unit on its line, and nothing else on a page changes."""

from __future__ import annotations

import subprocess

import pytest

import build_book
import unbroken_numbers

PASTED = '<span class="pasted-text">4.1</span>'
FORMULA = r'<span class="math notranslate nohighlight">\(3.6\times 10^{-3}\)</span>'
CODE = '<code class="docutils literal notranslate"><span class="pre">0.5</span></code>'


@pytest.mark.parametrize(
    "page",
    [
        "<p>Of them 75~% do.</p>",
        "<td>0.5~km</td>",
        "<p>1.9~±~0.1, 2.0~±~0.1 and 38~±~2 times</p>",
        "<p>from 1.9~±~0.1~% on, (22~%)</p>",
        "<p>16~GB, 3~MB, 4~kB, 5~ms, 6~s, 7~m, 8~cm, 9~µs</p>",
        f"<p>{PASTED}~km and ±~{PASTED}~%</p>",
        f"<p>takes {FORMULA}~s, {CODE}~km, <b data-say='own'>4.1</b>~%</p>",
        "<p>2.5 × 10<sup>−6</sup>~±~0.1</p>",
    ],
)
def test_a_number_is_not_parted_from_its_error_and_its_unit(page):
    whole = page.replace("~", "\u00a0")
    assert unbroken_numbers.unbroken(page.replace("~", " ")) == whole
    # The line may end there in the source of a page.
    assert unbroken_numbers.unbroken(page.replace("~", "\n")) == whole
    assert unbroken_numbers.unbroken(whole) == whole


@pytest.mark.parametrize(
    "page",
    [
        "<p>30 minutes, 3 seconds, 100 people, 7 mechanisms, 4 smooth, the error, in %</p>",
        '<pre>x = 75 % 2  # <span class="c1">0.5 km</span></pre>',
        "<p><code>75 % 2</code> or <kbd>5 s</kbd></p>",
        '<p><code class="docutils literal"><span class="pre">75</span> '
        '<span class="pre">%</span></code></p>',
        '<script>say("75 %")</script><style>a{width: 75 %}</style>',
        "<title>75 % of them</title><!-- 75 % -->",
        r'<div class="math notranslate nohighlight">\[x = 5 \% y = 5 % km 7 s\]</div>',
        '<svg><text x="1">75 %</text></svg>',
        '<img alt="75 % of them" src="a.svg"/>',
        '<p title="5 km">x</p>',
    ],
)
def test_everything_else_stays_as_it_is(page):
    assert unbroken_numbers.unbroken(page) == page


def test_a_page_of_all_kinds(tmp_path):
    page, asset = tmp_path / "book" / "a.html", tmp_path / "_static" / "b.html"
    text = "<h1>About 5 %</h1><pre>5 % 3</pre><p>5\n%</p>"
    for path in (page, asset):
        path.parent.mkdir()
        path.write_text(text, "utf8")
    for _ in range(2):
        unbroken_numbers.finish(tmp_path)
        assert page.read_text("utf8") == "<h1>About 5\u00a0%</h1><pre>5 % 3</pre><p>5\u00a0%</p>"
    assert asset.read_text("utf8") == text


def test_the_book_is_built_with_it(tmp_path, monkeypatch):
    page = tmp_path / "html" / "book" / "a.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>75 %</p>", "utf8")
    monkeypatch.setattr(build_book, "BUILD", tmp_path)
    monkeypatch.setattr(build_book, "STAMP", tmp_path / ".fingerprint")
    (tmp_path / ".fingerprint").write_text(build_book.fingerprint())
    monkeypatch.setattr(build_book, "executes", lambda: False)
    monkeypatch.setattr(build_book.os, "environ", dict(build_book.os.environ))
    monkeypatch.setattr(build_book.sys, "argv", ["build_book.py"])
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(build_book.subprocess, "run", lambda *args, **kwargs: done)
    # The steps before are those of other tests.
    monkeypatch.setattr(build_book.light_book, "lighten", lambda html: None)
    monkeypatch.setattr(build_book.slides, "write", lambda html: None)
    monkeypatch.setattr(build_book.figure_files, "finish", lambda html: [])
    assert build_book.main() == 0
    assert page.read_text("utf8") == "<p>75\u00a0%</p>"
