"""*Samplers for phones*: its code, its test vectors and `release` draw the same reports."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

import sampler_vectors

PAGE = (Path(__file__).resolve().parents[2] / "book" / "samplers.md").read_text("utf8")
VECTORS = json.loads(sampler_vectors.FILE.read_text("utf8"))


@pytest.fixture(scope="module")
def device():
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "ibukit" not in code
    names = {}
    exec(code, names)
    return names["Device"]


def drawn(device, vector):
    """The report that the page's code draws, and the words that it leaves."""
    k, x, epsilon = vector["k"], vector["secret"], Fraction(vector["epsilon"])
    phone = device([int(word, 16) for word in vector["words"]])
    report = {
        "RandomizedResponse": lambda: phone.randomized_response(x, k, epsilon),
        "Rappor": lambda: phone.unary(x, k, -epsilon / 2, epsilon / 2),
        "OptimizedUnaryEncoding": lambda: phone.unary(x, k, Fraction(0), epsilon),
        "LinearGeometric": lambda: phone.noisy(x, epsilon),
        "TruncatedGeometric": lambda: min(max(phone.noisy(x, epsilon), 0), k - 1),
    }[vector["mechanism"]]()
    return report, list(phone.words)


def test_the_vectors_are_what_release_draws():
    assert sampler_vectors.FILE.read_text("utf8") == sampler_vectors.text()
    assert len(VECTORS) == 264


def test_the_code_of_the_page_draws_them_from_the_same_words(device):
    for vector in VECTORS:
        assert drawn(device, vector) == (vector["report"], []), vector


def test_the_vectors_have_every_mechanism_ties_and_rejected_numbers():
    kinds = {vector["mechanism"] for vector in VECTORS}
    assert len(kinds) == 5
    words = [len(v["words"]) for v in VECTORS if v["mechanism"] == "RandomizedResponse"]
    assert max(words) > 3  # a tie, and a number drawn again


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (">> (64 - width)", "% 2**width"),
        ("n + 64", "64"),
        ("(x + 1 + u) % k", "(x + u) % k"),
        ("while epsilon * u < 1", "while epsilon * u <= 1"),
        ("return word < here", "return word > here"),
        ("row[x] = int(self.coin(1, own))", "row[x] = 1"),
    ],
)
def test_a_sampler_with_a_fault_fails(device, old, new):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code.count(old) == 1
    names = {}
    exec(code.replace(old, new), names)
    wrong = 0
    for vector in VECTORS:
        try:
            wrong += drawn(names["Device"], vector) != (vector["report"], [])
        except StopIteration:
            wrong += 1
    assert wrong
