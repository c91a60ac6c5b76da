"""The page *Write your own mechanism*:
its code keeps the contract, knows public names only, and is shown in full.
"""

import ast
import importlib
import inspect
import pickle
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik
from ibukit.testing import check_channel, check_mechanism
from stranger import checks
from stranger.coins import CoinResponse
from stranger.comparison import compare
from stranger.estimators import Settled, shrunk
from stranger.fast import FastWithRefusals, RefusalChannel
from stranger.refusals import WithRefusals

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "extend.md").read_text("utf8")
MODULES = sorted(
    path for path in (ROOT / "tests" / "stranger").glob("*.py") if path.name != "__init__.py"
)
SLOW, FAST, COINS = checks.MECHANISMS
# what of ibukit a stranger may import, besides the names that `import ibukit` has
OPEN = {"ibukit", "ibukit.channels", "ibukit.testing"}


@pytest.mark.parametrize(
    "mechanism", checks.MECHANISMS, ids=lambda mechanism: type(mechanism).__name__
)
def test_they_keep_the_contract(mechanism):
    checks.check(mechanism)


@pytest.mark.parametrize(
    "change", [{"refusal": 0.01}, {"alphabet": ik.Alphabet(["a", "b", "c"])}, {"epsilon": 0.1}]
)
@pytest.mark.parametrize("mechanism", [SLOW, FAST], ids=lambda mechanism: type(mechanism).__name__)
def test_they_keep_it_with_other_parameters(mechanism, change):
    checks.check(replace(mechanism, **change))


@dataclass(frozen=True)
class Leaky(CoinResponse):
    """Rounds up: likelier to tell the truth than its level allows."""

    @property
    def truth(self):
        return 0.5

    @property
    def lie(self):
        return 0.125


class WrongChannel(RefusalChannel):
    def rows(self, secrets):
        return super().rows(secrets) + 1e-6


class Eager(FastWithRefusals):
    def draw(self, secrets, rng):
        return self.answers.draw(secrets, rng)  # nobody refuses


def test_the_checks_find_what_is_wrong(rng):
    with pytest.raises(AssertionError, match=r"epsilon is claimed to be 1\.0"):
        check_mechanism(Leaky(5, 1.0), rng=rng)
    with pytest.raises(AssertionError, match="draw"):
        check_mechanism(Eager(5, 1.0, 0.25), rng=rng)
    honest = FAST.channel(np.arange(6))
    with pytest.raises(AssertionError, match="rows are not what forward says"):
        check_channel(WrongChannel(honest.k, honest.own, honest.same, honest.more))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: WithRefusals(3, -1.0, 0.1), "epsilon must be a finite number above 0"),
        (lambda: WithRefusals(3, 1.0, 1.0), "refusal must be at least 0 and below 1"),
        (lambda: FastWithRefusals(3, 1.0, 1.0), "refusal must be at least 0 and below 1"),
        (lambda: replace(FAST, refusal=2), "refusal must be at least 0 and below 1"),
        (lambda: CoinResponse(3, -1.0), "epsilon must be a finite number above 0"),
        (lambda: CoinResponse(1, 1.0), "number of secrets must be at least 2"),
        (lambda: CoinResponse(5, 0.01, coins=2), "coins must be more, got 2"),
    ],
)
def test_they_refuse_what_is_out_of_range(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_the_fast_one_is_the_slow_one(rng):
    counts = np.array([300, 200, 0, 100, 50, 250])
    slow, fast = SLOW.tally_counts(counts), FAST.tally_counts(counts)
    theta, w = rng.dirichlet(np.ones(5)), rng.random(5 + 1)
    np.testing.assert_allclose(FAST.forward(theta), SLOW.forward(theta))
    np.testing.assert_allclose(FAST.adjoint(w), SLOW.matrix() @ w)
    np.testing.assert_allclose(ik.mle(fast).distribution, ik.mle(slow).distribution, atol=1e-6)


def test_a_hundred_thousand_secrets_need_no_matrix():
    mechanism = FastWithRefusals(100_000, 20.0, 0.1)
    counts = np.zeros(mechanism.k, dtype=int)
    counts[[5, 70_000]] = 3000, 1000
    estimate = ik.ibu(mechanism.simulate(counts, np.random.default_rng(1)), stop=ik.Steps(20))
    assert estimate.distribution[[5, 70_000]] == pytest.approx([0.75, 0.25], abs=0.05)
    assert "_matrix" not in vars(mechanism)


def test_every_question_can_be_asked_of_them(rng):
    for mechanism in checks.MECHANISMS:
        tally = mechanism.simulate([400, 300, 200, 100, 0], rng)
        estimate = ik.mle(tally)
        assert estimate.gap <= 1e-9
        assert estimate.distribution == pytest.approx([0.4, 0.3, 0.2, 0.1, 0], abs=0.2)
        answer = ik.theory.identifiable(mechanism)
        assert (answer.identifiable, answer.rank) == (True, 5)
        assert ik.theory.mle_set(tally).unique
        assert ik.inv(tally).distribution.sum() == pytest.approx(1)
        assert ik.theory.asymptotic_mse(mechanism, ik.uniform(5)) > 0
        assert ik.ibu(tally + tally, stop=Settled(1e-6)).status is ik.Status.CONVERGED
        assert ik.privacy.epsilon_ldp(mechanism) <= 1 + 1e-12
        attacked = ik.attack.poison_outputs(tally, report=4, fraction=0.3)
        found = ik.attack.robust_mle(attacked, threshold=0, most=1)
        assert ik.attack.poison_outputs(tally, found.report, 0.3).n == attacked.n
        assert pickle.loads(pickle.dumps(mechanism)) == mechanism


def test_refusals_cost_accuracy_and_no_privacy():
    theta = ik.uniform(5)
    without = ik.theory.asymptotic_mse(ik.RandomizedResponse(5, 1.0), theta)
    assert ik.theory.asymptotic_mse(SLOW, theta) == pytest.approx(without / 0.75, rel=0.01)
    assert ik.privacy.epsilon_ldp(SLOW) == pytest.approx(1.0, rel=1e-12)


def test_the_rule_stops_where_it_says(rng):
    tally = COINS.simulate([400, 300, 200, 100, 0], rng)
    estimate = ik.ibu(tally, stop=Settled(1e-5))
    before, here = (
        ik.ibu(tally, stop=ik.Steps(n)).distribution for n in (estimate.n_iter - 1, estimate.n_iter)
    )
    assert np.abs(here - before).max() <= 1e-5
    assert (
        np.abs(ik.ibu(tally, stop=ik.Steps(estimate.n_iter - 2)).distribution - before).max() > 1e-5
    )


def test_replicate_takes_them_all():
    ages = ik.datasets.load_adult_ages()
    table = compare(ages, repetitions=2)
    assert len(table) == 2 * 4 * 2
    assert set(table["mechanism"]) == {"CoinResponse", "FastWithRefusals"}
    assert set(table.loc[table["estimator"] == "IBU until settled", "stop"]) == {
        "Settled(tol=0.0001)"
    }
    assert (table["tv"] < 0.5).all()
    again = compare(ages, repetitions=2).drop(columns="seconds")
    assert again.equals(table.drop(columns="seconds"))
    tally = COINS.tally_counts([5, 4, 3, 2, 1])
    assert shrunk(tally, weight=1.0) == pytest.approx(ik.uniform(5))


def private_uses(source):
    """Names that a stranger imports or reads of ibukit and should not know."""
    tree = ast.parse(source)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [
                alias.name
                for alias in node.names
                if alias.name.split(".")[0] == "ibukit" != alias.name
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ibukit":
            closed = [] if node.module in OPEN else [node.module]
            found += closed + [alias.name for alias in node.names if alias.name.startswith("_")]
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            private = re.search(r"\._(?!_)", dotted)
            found += [dotted] if private and not dotted.startswith(("self.", "cls.")) else []
    return found


def read_of_self(source):
    """Private attributes that are read of `self` and not made in the same source."""
    tree = ast.parse(source)
    made = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    read = {
        n.attr
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute) and re.match(r"_(?!_)", n.attr)
    }
    return sorted(read - made)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_stranger_knows_public_names_only(path):
    source = path.read_text("utf8")
    assert private_uses(source) == []
    assert read_of_self(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import ibukit._ground.arguments",
        "import ibukit.mechanisms.base",
        "from ibukit.mechanisms.base import FiniteMechanism",
        "from ibukit.channels import _line_kernels",
        "from ibukit import _validate",
        "import ibukit as ik\nik.channels._gram_kernels.f()",
        "import ibukit as ik\nx = ik.mle(t)._covariance",
    ],
)
def test_a_private_name_is_found(source):
    assert private_uses(source) != []


def test_a_private_attribute_of_the_parents_is_found():
    assert read_of_self("class A(B):\n    def f(self):\n        return self._matrix") == ["_matrix"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_stranger_overrides_public_names_only(path):
    module = importlib.import_module(f"stranger.{path.stem}")
    for kind in vars(module).values():
        if inspect.isclass(kind) and kind.__module__ == module.__name__:
            theirs = {
                name
                for parent in kind.__mro__
                if parent.__module__.startswith("ibukit")
                for name in vars(parent)
            }
            assert [
                name for name in theirs & vars(kind).keys() if re.match(r"_(?!_|abc_impl)", name)
            ] == []


def shown(page):
    return re.findall(r"^```\{literalinclude\} \.\./tests/stranger/(\w+\.py)$", page, re.MULTILINE)


def test_the_page_shows_every_module_once_and_has_no_code_of_its_own():
    assert sorted(shown(PAGE)) == [path.name for path in MODULES]
    assert "```python" not in PAGE
    assert "```{code" not in PAGE
    assert sorted(shown(PAGE.replace("coins.py", "gone.py"))) != [path.name for path in MODULES]


def test_what_the_page_names_exists():
    for kind, name in re.findall(r"\{(class|func|meth)\}`~?(ibukit[\w.]+)`", PAGE):
        thing = ik
        for part in name.split(".")[1:]:
            thing = (
                importlib.import_module("ibukit.testing")
                if part == "testing"
                else getattr(thing, part)
            )
        assert inspect.isclass(thing) if kind == "class" else callable(thing)
