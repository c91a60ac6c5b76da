"""A link to a term carries the first sentence of its definition."""

from __future__ import annotations

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

GLOSSARY = """# Glossary

:::{glossary}
gap
  How far an estimate can be improved. And more.

d-privacy
  A factor of at most $e^d$.

radius
  A length. It is $r$.

bound
  See {term}`gap`.
:::
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page that uses four terms, built."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    (source / "book").mkdir()
    (source / "book" / "glossary.md").write_text(GLOSSARY, "utf8")
    words = " ".join(f"{{term}}`{word}`" for word in ("gap", "d-privacy", "radius", "bound"))
    (source / "index.md").write_text(
        f"# A\n\n{words} [elsewhere](book/glossary)\n\n```{{toctree}}\nbook/glossary\n```\n", "utf8"
    )
    extensions = {
        "extensions": ["myst_parser", "glossary_notes"],
        "myst_enable_extensions": ["colon_fence", "dollarmath"],
        "html_theme": "basic",
    }
    with docutils_namespace():
        Sphinx(source, None, out, out / "d", "html", extensions, status=None).build()
    return (out / "index.html").read_text("utf8")


def test_a_term_says_what_it_means(page):
    assert 'href="book/glossary.html#term-gap" title="How far an estimate can be improved."' in page
    assert 'href="book/glossary.html#term-radius" title="A length."' in page


def test_a_formula_and_a_reference_are_no_meaning(page):
    assert 'href="book/glossary.html#term-d-privacy">' in page
    assert 'href="book/glossary.html#term-bound">' in page
