"""How docstrings begin: with what is returned or done, not with a question word."""

import ast
import re

import pytest

from source_rules import SOURCES, faults, nodes, nodes_of_these_tests  # noqa: F401 - a fixture

QUESTION = re.compile(r"(What|Where|How|Which|Whether)\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def noun_clauses(source):
    """The first lines of docstrings that begin with a question word."""
    texts = [ast.get_docstring(node) for node in nodes(source) if isinstance(node, DOCUMENTED)]
    return [text.partition("\n")[0] for text in texts if text and QUESTION.match(text)]


def test_no_docstring_begins_with_a_question_word():
    assert faults(SOURCES, lambda name, source: noun_clauses(source)) == {}


@pytest.mark.parametrize(
    "text",
    ["What it returns.", "How often\n    it holds.", "Whether x is even.", "Which one.", "Where."],
)
def test_a_docstring_that_begins_with_a_question_word_is_found(text):
    assert len(noun_clauses(f'def f():\n    """{text}"""')) == 1
    assert len(noun_clauses(f'class A:\n    r"""\n    {text}"""')) == 1
    assert len(noun_clauses(f'"""{text}"""')) == 1


def test_other_docstrings_are_none():
    assert noun_clauses('"""However it is, this is a sentence."""') == []
    assert noun_clauses('"""Return what it is: the word may stand within."""') == []
    assert noun_clauses("def f(): ...") == []
