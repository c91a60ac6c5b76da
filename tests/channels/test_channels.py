"""What every channel offers, on all of ours and on strangers'."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import (
    BitChannel,
    Channel,
    DenseChannel,
    LineChannel,
    ResponseChannel,
    StackedChannel,
)
from ibukit.channels.base import Score, gap_between
from ibukit.channels.plane import column_scaled, infinite, remapped, row_normalised
from ibukit.testing import check_channel

MATRIX = np.array([[0.5, 0.2, 0.3, 0.0], [0.1, 0.4, 0.3, 0.2], [0.25, 0.25, 0.25, 0.25]])


class Stranger(Channel):
    """No more than what a channel must have."""

    k, size = 3, 4

    def forward(self, theta):
        return theta @ MATRIX

    def adjoint(self, w):
        return MATRIX @ w


def plane(kind):
    grid = ik.Grid(4, 3, (1.0, 0.5))
    codes = np.array([0, 2, 5, 7, 11])
    if kind == "remapped":
        return remapped(grid, ik.TruncatedPlanarGeometric(grid, 1.0)._table, codes)
    if kind == "row normalised":
        return row_normalised(grid, 1.0, codes)
    if kind == "column scaled":
        return column_scaled(grid, 1.0, codes, np.linspace(0.5, 1, 5))
    cells = np.array([[0, 0], [2, 1], [6, 4]])
    found, far = infinite(grid, 1.0, 0.7, cells, np.array([0.0, 0.0, 3.0]))
    found.columns[:] = np.linspace(0.1, 0.9, 12)[:, None]
    assert len(far) == 1
    return found


OURS = {
    "dense": DenseChannel(MATRIX),
    "k-RR, all": ResponseChannel(5, np.arange(5), 0.6, 0.1),
    "k-RR, some": ResponseChannel(5, np.array([0, 3]), 0.6, 0.1),
    "k-RR, likelier to lie": ResponseChannel(2, np.arange(2), 0.2, 0.8),
    "k-RR of one": ResponseChannel(1, np.arange(1), 0.5, 0.7),
    "line": LineChannel(6, 0.7, np.array([0, 0, 2, 5]), np.array([1.0, 0.5, 0.3, 0.8])),
    "line, blunt": LineChannel(6, 1.0, np.array([0, 2, 5]), np.ones(3)),
    "bits": ik.Rappor(9, 1.0)
    .tally(np.random.default_rng(1).integers(0, 2, (20, 9), dtype=np.uint8))
    .operator,
    "OUE": ik.OptimizedUnaryEncoding(5, 1.0).tally(np.eye(5, dtype=np.uint8)).operator,
    "sets": ik.SubsetSelection(6, 1.0).simulate([9] * 6, np.random.default_rng(2)).operator,
    **{
        f"plane, {kind}": plane(kind)
        for kind in ("remapped", "row normalised", "column scaled", "infinite")
    },
    "a stranger": Stranger(),
}
OURS["stack"] = StackedChannel(
    (ResponseChannel(3, np.arange(3), 0.6, 0.2), DenseChannel(MATRIX), Stranger()), 3, (3, 7)
)
OURS["pooled bits"] = sum(
    mechanism(9, 1.0).simulate([3] * 9, np.random.default_rng(4))
    for mechanism in (ik.Rappor, ik.OptimizedUnaryEncoding, ik.SubsetSelection)
).operator
OURS["pooled k-RR"] = StackedChannel(
    (OURS["k-RR, all"], OURS["k-RR, some"], ResponseChannel(5, np.array([4, 1]), 0.3, 0.2)),
    5,
    (5, 7),
)
OURS["a pool of k-RR"] = OURS["pooled k-RR"].blocks[0]
OURS["some of a pool"] = OURS["pooled bits"].blocks[0].take(np.array([40, 3, 3, 60]))
OURS["adversaries"] = OURS["k-RR, some"].with_one_more(np.array([0.0, 1.0]))
OURS["adversaries of two kinds"] = (
    OURS["bits"].with_one_more(np.arange(20.0)).with_one_more(np.ones(20))
)
OURS["taken"] = Stranger().take(np.array([3, 1]))


@pytest.mark.parametrize("channel", OURS.values(), ids=OURS)
def test_every_shortcut_is_what_forward_and_adjoint_say(channel):
    check_channel(channel)


BROKEN = {
    "score": (lambda self, theta, counts: Channel.score(self, theta * 1.001, counts), "score"),
    "certificate": (
        lambda self, theta, counts, n: (self.score(theta, counts).log_likelihood, 0.9),
        "certificate",
    ),
    "rows": (lambda self, secrets: DenseChannel.rows(self, secrets) * 1.001, "rows"),
    "add_gram": (
        lambda self, total, weights: DenseChannel.add_gram(self, total, weights * 1.001),
        "gram",
    ),
    "gram": (lambda self, weights: np.zeros((3, 3)), "gram"),
    "scaled": (lambda self, factor: self, "scaled"),
    "unit_columns": (lambda self: self, "unit_columns"),
    "take": (lambda self, reports: DenseChannel(self.columns[:, ::-1][:, reports]), "take"),
    "with_one_more": (
        lambda self, row: DenseChannel(np.vstack([row, self.columns])),
        "with_one_more",
    ),
    "adjoint": (lambda self, w: self.columns @ w + 1e-6, "adjoint"),
    "forward": (lambda self, theta: theta @ self.columns + 1e-6, "linear|adjoint"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_shortcut_is_caught(name):
    broken, words = BROKEN[name]
    kind = type(
        "Broken",
        (DenseChannel,),
        {name: broken, "__reduce__": lambda self: (DenseChannel, (self.columns,))},
    )
    with pytest.raises(AssertionError, match=words):
        check_channel(kind(MATRIX))


@dataclass(frozen=True, eq=False)
class Softer(LineChannel):
    """Says forward and adjoint anew: the line's shortcuts are not its own."""

    def forward(self, theta):
        return 0.5 * super().forward(theta) + 0.5 * theta.sum()

    def adjoint(self, w):
        return 0.5 * super().adjoint(w) + 0.5 * w.sum()


def test_a_class_that_says_forward_anew_inherits_no_shortcut():
    channel = Softer(**vars(OURS["line"]))
    check_channel(channel)
    assert type(channel.take(slice(2))) is not Softer
    assert Softer.rows is Channel.rows
    assert LineChannel.rows is not Channel.rows


class Louder(ResponseChannel):
    """Says score anew, which its certificate then follows."""

    def score(self, theta, counts):
        return super().score(theta, counts)._replace(log_likelihood=7.0)


class Loudest(Louder):
    """Says both anew."""

    def score(self, theta, counts):
        return Score(np.ones(self.k), 7.0)

    def certificate(self, theta, counts, n):
        return 6.0, 0.5


def test_a_class_that_says_its_certificate_anew_keeps_it():
    assert Loudest(5, np.arange(2), 0.6, 0.1).certificate(np.full(5, 0.2), np.ones(2), 2.0) == (
        6.0,
        0.5,
    )


def test_a_class_that_says_score_anew_inherits_no_certificate():
    channel = Louder(5, np.array([0, 3]), 0.6, 0.1)
    assert channel.certificate(np.full(5, 0.2), np.ones(2), 2.0)[0] == 7.0


class Named(LineChannel):
    pass


def test_a_class_that_changes_numbers_alone_keeps_them():
    assert Named.rows is LineChannel.rows
    check_channel(Named(**vars(OURS["line"])))


def test_reports_that_are_taken_keep_their_structure():
    assert type(OURS["k-RR, all"].take(slice(2))) is ResponseChannel
    assert type(OURS["line"].take(np.array([2]))) is LineChannel
    assert isinstance(OURS["bits"].take(slice(3)), BitChannel)
    twice = OURS["a stranger"].take(np.array([1, 1]))
    np.testing.assert_allclose(twice.adjoint(np.ones(2)), 2 * MATRIX[:, 1])


def test_a_pool_of_lines_adds_up_their_grams():
    line = OURS["line"]
    other = replace(line, decay=0.2)
    stack = StackedChannel((line, other), 6, (4,))
    w = np.arange(1.0, 9.0)
    np.testing.assert_allclose(stack.gram(w), line.gram(w[:4]) + other.gram(w[4:]))


@pytest.mark.parametrize(
    ("least", "largest"), [(0, 1), (math.nan, 1), (1, 0), (1, math.inf), (1, math.nan)]
)
def test_what_is_no_positive_number_certifies_nothing(least, largest):
    assert gap_between(least, largest) == math.inf


def test_a_bound_without_an_end_is_infinite_and_a_score_without_a_gap_is_kept():
    g = np.array([2.0, 3.0])
    assert (Score(-1.0, g, 0.1).raised(math.inf).g == math.inf).all()
    off = Score(-math.inf, g, 0.0)
    assert off.raised(0.5) is off
    assert (Score(-1.0, g, 0.1).raised(0.5).g >= 1.5 * g).all()
