"""Sums of many tallies: the same as pooling them at once, in about linear time."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.tally import tally as module
from ibukit.tally.tally import pool


def tallies(kind, m, rng):
    for i in range(m):
        mechanism = ik.OptimizedUnaryEncoding(12, 1.0 if kind == "same" else 1 + i / m)
        yield mechanism.simulate(rng.integers(0, 9, 12), rng)


def assert_same(one, other):
    assert one.n == other.n
    assert len(one.parts) == len(other.parts)
    for own, theirs in zip(one.parts, other.parts, strict=True):
        assert own.mechanism == theirs.mechanism
        np.testing.assert_array_equal(own.reports, theirs.reports)
        np.testing.assert_array_equal(own.counts, theirs.counts)


@pytest.mark.parametrize("kind", ["same", "different"])
@pytest.mark.parametrize("m", [1, 2, 3, 7, 100])
def test_a_sum_is_the_pool(kind, m, rng):
    each = list(tallies(kind, m, rng))
    assert_same(sum(each), pool(each))
    # A sum of sums, and one whose parts were asked for on the way.
    half = m // 2
    assert_same(sum(each[:half]) + sum(each[half:]), pool(each))
    total = each[0]
    for i, tally in enumerate(each[1:]):
        total = total + tally
        if i % 5 == 0:
            assert total.n == sum(one.n for one in each[: i + 2])
    assert_same(total, pool(each))


@pytest.mark.parametrize("kind", ["same", "different"])
def test_the_work_of_a_sum_is_about_linear(kind, rng, monkeypatch):
    each, work = list(tallies(kind, 400, rng)), []

    def counted(some):
        work.append(sum(len(part.counts) for tally in some for part in tally.parts))
        return pool(some)

    monkeypatch.setattr(module, "pool", counted)
    sum(each).parts  # noqa: B018
    # With each addition pooled at once the work is some 200 times as much.
    assert sum(work) <= (1 + math.log2(len(each))) * sum(len(tally.counts) for tally in each)


def unlike(kind, m, rng):
    """Tallies of weights, over an unbounded line, and with dropped reports."""
    for i in range(m):
        reports, epsilon = rng.integers(0, 12, 30), 1 + i / m
        if kind == "unbounded":
            yield ik.LinearGeometric(ik.Line(None, None), epsilon).tally(reports)
            continue
        table = pd.DataFrame({"report": reports, "w": rng.random(30)})
        how = {"count": "w", "weighted": True} if kind == "weighted" else {}
        mechanism = ik.RandomizedResponse(10, epsilon if kind != "weighted" else 1.0)
        yield ik.Tally.from_table(table, mechanism, unknown="drop", **how)


@pytest.mark.parametrize("kind", ["weighted", "unbounded", "dropped"])
def test_sums_of_all_kinds_are_linear_and_have_the_digits_of_additions(kind, rng, monkeypatch):
    each, work = list(unlike(kind, 100, rng)), []
    stepwise = each[0]
    for tally in each[1:]:
        stepwise = pool([stepwise, tally])

    def counted(some):
        work.append(sum(len(part.counts) for tally in some for part in tally.parts))
        return pool(some)

    monkeypatch.setattr(module, "pool", counted)
    total = sum(each)
    assert total.dropped == stepwise.dropped
    assert total.full_alphabet == stepwise.full_alphabet
    assert_same(total, stepwise)
    assert total.alphabet == stepwise.alphabet
    # Each addition pooled at once is some 25 times as much where mechanisms differ.
    assert sum(work) <= 4 * sum(len(tally.counts) for tally in each)


def test_reports_too_far_apart_are_refused_where_they_are_added():
    mechanism = ik.LinearGeometric(ik.Line(None, None), 1.0)
    total = mechanism.tally([0, 1, 2, 3]) + mechanism.tally([4])
    with pytest.raises(ik.errors.TooLarge, match="so far apart"):
        total + mechanism.tally([10**12])


def test_a_sum_that_is_not_yet_pooled_is_a_tally_in_every_way(rng):
    large = ik.OptimizedUnaryEncoding(12, 1.0).simulate([99] * 12, rng)
    each = [large, *tallies("same", 3, rng)]
    expected = pool(each)

    def total():
        made = sum(each)
        assert "parts" not in vars(made)
        return made

    for read in (pickle.dumps, copy.copy, copy.deepcopy):
        again = read(total())
        assert_same(pickle.loads(again) if isinstance(again, bytes) else again, expected)
    assert repr(total()) == repr(expected)
    np.testing.assert_array_equal(total().counts, expected.counts)
    assert ik.mle(total()).gap <= 1e-9
    with pytest.raises(AttributeError, match="'Tally' object has no attribute 'part'"):
        getattr(total(), "part")  # noqa: B009
    one = total()
    with ThreadPoolExecutor(8) as threads:
        for parts in threads.map(lambda _: one.parts, range(40)):
            assert sum(part.n for part in parts) == expected.n


def test_what_does_not_add_is_refused_at_once(rng):
    total = sum(tallies("same", 3, rng))
    with pytest.raises(ik.errors.AlphabetMismatch, match="the same secrets"):
        total + ik.RandomizedResponse(3, 1.0).tally([0])
    with pytest.raises(TypeError):
        total + 1
