"""Small tallies beside their dense channels from the oracle,
random ones for Hypothesis, and spoilt ones.
"""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import ibukit as ik
from ibukit.channels import Channel, DenseChannel
from oracles import naive


@dataclass(frozen=True)
class Instance:
    """A tally of the package;
    the matrix and the counts of the same reports, by the oracle, in any order.
    """

    name: str
    tally: ik.Tally
    matrix: np.ndarray
    counts: np.ndarray


def _listed(name, mechanism, matrix, rng):
    counts = rng.integers(0, 40, matrix.shape[1])
    return Instance(name, mechanism.tally_counts(counts), matrix, counts)


def _seen(name, mechanism, reports, columns, rng):
    counts = rng.integers(1, 40, len(reports))
    return Instance(name, mechanism.tally(np.repeat(reports, counts, axis=0)), columns, counts)


def _pooled(name, parts):
    tally = parts[0].tally
    for part in parts[1:]:
        tally = tally + part.tally
    matrix = np.concatenate([part.matrix for part in parts], axis=1)
    return Instance(name, tally, matrix, np.concatenate([part.counts for part in parts]))


def instances():
    """One instance of every kind of channel, and two pools."""
    rng = np.random.default_rng(20)
    dense = rng.dirichlet(np.full(7, 0.5), 5)
    dense[:, 2] = [0, 0, 0.5, 0, 0.1]
    dense /= dense.sum(axis=1, keepdims=True)
    line = ik.Line(0, 4)
    rows = rng.integers(0, 2, (12, 11))
    integers = np.arange(-4, 11)
    grid = ik.Grid(2, 3, cell_size=(1.0, 1.5))
    pairs = np.array([(r, c) for r in range(-2, 4) for c in range(-1, 5)])
    krr = _listed("k-RR", ik.RandomizedResponse(5, 0.8), naive.k_rr(5, 0.8), rng)
    cautious = _listed("k-RR 0.2", ik.RandomizedResponse(5, 0.2), naive.k_rr(5, 0.2), rng)
    truncated = _listed(
        "truncated geometric",
        ik.TruncatedGeometric(line, 0.5),
        naive.truncated_geometric(5, 0.5),
        rng,
    )
    geometric = _seen(
        "geometric",
        ik.LinearGeometric(line, 0.7),
        integers,
        naive.geometric(range(5), integers, 0.7),
        rng,
    )
    rappor = _listed("RAPPOR", ik.Rappor(5, 1.0), naive.rappor(5, 1.0), rng)
    planar = naive.planar_geometric(naive.cells(2, 3), pairs.tolist(), 1.0, 1.5, 1.2)
    return [
        _listed("dense with zeros", ik.MatrixMechanism(dense), dense, rng),
        krr,
        truncated,
        geometric,
        rappor,
        _seen("RAPPOR rows", ik.Rappor(11, 2.0), rows, naive.rappor(11, 2.0, rows.tolist()), rng),
        _listed("OUE", ik.OptimizedUnaryEncoding(4, 1.5), naive.oue(4, 1.5), rng),
        _seen("planar geometric", ik.PlanarGeometric(grid, 1.2), pairs, planar, rng),
        _listed(
            "exponential",
            ik.Exponential(grid, 2.0),
            naive.exponential(naive.grid_distances(2, 3, 1.0, 1.5), 2.0),
            rng,
        ),
        _listed("linear Laplace", ik.LinearLaplace(6, 0.6), naive.linear_laplace(6, 0.6), rng),
        _pooled("two k-RR", [krr, cautious]),
        _pooled("k-RR, geometric, truncated, RAPPOR", [krr, geometric, truncated, rappor]),
    ]


def unchecked(kind, alphabet, epsilon):
    """A mechanism of a level that is refused,
    because drawn in doubles it gives the secret away or nothing at all.

    Its probabilities are right all the same, and put estimators to the test.
    """
    mechanism = object.__new__(kind)
    object.__setattr__(
        mechanism, "alphabet", ik.Line(0, alphabet - 1) if isinstance(alphabet, int) else alphabet
    )
    object.__setattr__(mechanism, "epsilon", float(epsilon))
    return mechanism


INSTANCES = instances()
NAMES = [instance.name for instance in INSTANCES]


# Weights for Hypothesis: round numbers first, because a failure should shrink to something
# readable; zeros too.
WEIGHTS = st.sampled_from([0.0, 1.0, 2.0, 5.0, 0.1, 1e-3, 1e-8]) | st.floats(0.01, 10)


@st.composite
def matrices(draw, max_k=5, max_m=5):
    """A row-stochastic matrix, with zeros,
    equal rows and unused columns among its possibilities.
    """
    shape = draw(st.tuples(st.integers(1, max_k), st.integers(1, max_m)))
    weights = draw(arrays(np.float64, shape, elements=WEIGHTS))
    weights[~weights.any(axis=1), 0] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


@st.composite
def tallies(draw, max_k=5, max_m=5):
    """A tally of a random matrix: any counts of the reports that some secret can produce."""
    matrix = draw(matrices(max_k, max_m))
    possible = matrix.any(axis=0)
    elements = st.sampled_from([0, 1, 2, 10]) | st.integers(0, 10_000)
    counts = np.where(possible, draw(arrays(np.int64, matrix.shape[1], elements=elements)), 0)
    if not counts.any():
        counts[np.argmax(possible)] = 1
    return ik.MatrixMechanism(matrix).tally_counts(counts)


@st.composite
def distributions(draw, k, full_support=False):
    """A distribution over k elements."""
    weights = draw(
        arrays(np.float64, k, elements=WEIGHTS.filter(bool) if full_support else WEIGHTS)
    )
    if not weights.any():
        weights[draw(st.integers(0, k - 1))] = 1.0
    return weights / weights.sum()


@dataclass
class Trace:
    """A stopping rule that stops after n steps and keeps what it saw on the way."""

    n: int
    distributions: list = field(default_factory=list)
    log_likelihoods: list = field(default_factory=list)
    gaps: list = field(default_factory=list)

    def met(self, now, before):
        assert (before is None) == (now.n_iter == 0)
        self.distributions.append(now.distribution.copy())
        self.log_likelihoods.append(now.log_likelihood)
        self.gaps.append(now.gap)
        return now.n_iter >= self.n


# Negative controls: the same tally with a channel that is wrong on purpose.


class Bent(Channel):
    """A channel with one of its two directions spoilt."""

    def __init__(self, channel, forward=lambda p: p, adjoint=lambda g: g, weights=lambda w: w):
        self.channel, self.bend_forward, self.bend_adjoint, self.bend_weights = (
            channel,
            forward,
            adjoint,
            weights,
        )
        self.k = channel.k

    @property
    def size(self):
        return self.channel.size

    def forward(self, theta):
        return self.bend_forward(self.channel.forward(theta))

    def adjoint(self, w):
        return self.bend_adjoint(self.channel.adjoint(self.bend_weights(w)))


class TransposedAdjoint(DenseChannel):
    """M^T w where M w belongs."""

    def adjoint(self, w):
        return w @ self.columns


class TransposedForward(DenseChannel):
    """M theta where theta M belongs."""

    def forward(self, theta):
        return self.columns @ theta


def with_operator(tally, operator):
    """The same reports through another operator;
    a fresh tally, so that the original stays whole.
    """
    copy = ik.Tally(tally.parts)
    vars(copy)["operator"] = operator
    return copy
