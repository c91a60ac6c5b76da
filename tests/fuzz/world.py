"""A small world that fits together:
an alphabet, a mechanism over it, a tally of its reports, an estimate of that.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import ibukit as ik
from ibukit.mechanisms.longitudinal.chances import Chances

ALPHABETS = ["number", "line", "labels", "distances", "grid", "oblong", "bounds"]
COUNTS = ["a few", "some", "zeros", "one", "1e15", "1e3 and 1e15"]
# what a mechanism takes besides its alphabet, as a function of the world
LEVELS = """RandomizedResponse Rappor OptimizedUnaryEncoding SubsetSelection LinearGeometric TruncatedGeometric
PlanarGeometric TruncatedPlanarGeometric LinearLaplace PlanarLaplace Exponential TightConstraints SquareWave
DiscreteSquareWave Piecewise Duchi HybridMechanism Staircase HadamardResponse HadamardMechanism LocalHashing
HistogramEncoding ThresholdedHistogram"""
PLAIN = {name: lambda world: {"epsilon": world.epsilon} for name in LEVELS.split()}
GAUSSIAN = {
    name: lambda world: {"sigma": world.sigma} for name in ["DiscreteGaussian", "LinearGaussian"]
}
# survey designs with one sample, which have two secrets
TWO_SECRETS = {
    "Warner": lambda _: {"p": 0.7},
    "ForcedResponse": lambda _: {"p_no": 0.25, "p_yes": 0.125},
    "Kuk": lambda _: {"p_no": 0.2, "p_yes": 0.6, "cards": 3},
    "Mangat": lambda _: {"p": 0.7},
    "Crosswise": lambda _: {"p": 0.25},
    "Triangular": lambda _: {"p": 0.25},
}
MECHANISMS = {
    **PLAIN,
    **TWO_SECRETS,
    "ScrambledResponse": lambda _: {"numbers": [1, 2, 4], "scramble": "add", "p": 0.25},
    **GAUSSIAN,
    "PlanarGaussian": lambda world: {"sigma": world.sigma},
    "UnaryEncoding": lambda _: {"p": 0.75, "q": 0.25},
    "CountMeanSketch": lambda world: {"epsilon": world.epsilon, "rows": 2, "width": 4},
    "HadamardCountMeanSketch": lambda world: {"epsilon": world.epsilon, "rows": 2, "width": 4},
    "BloomRappor": lambda _: {"bits": 4, "hashes": 2, "cohorts": 2, "f": 0.5, "p": 0.25, "q": 0.75},
    "LongitudinalUnaryEncoding": lambda _: {
        "permanent": Chances(0.75, 0.25),
        "instantaneous": Chances(0.7, 0.2),
    },
    "LongitudinalResponse": lambda world: {
        "epsilon": world.epsilon / 2,
        "epsilon_inf": world.epsilon,
    },
    "LongitudinalHashing": lambda world: {
        "epsilon": world.epsilon / 2,
        "epsilon_inf": world.epsilon,
    },
    "LinkedRounds": lambda _: {
        "permanent": Chances(0.75, 0.25),
        "instantaneous": Chances(0.7, 0.2),
        "rounds": 2,
    },
    "product": lambda _: {},
}
ON_A_LINE = {
    "LinearGeometric",
    "TruncatedGeometric",
    "LinearLaplace",
    "SquareWave",
    "DiscreteSquareWave",
    "Piecewise",
}
ON_A_LINE |= {
    "ScrambledResponse",
    "Duchi",
    "HybridMechanism",
    "Staircase",
    "DiscreteGaussian",
    "LinearGaussian",
}
IN_THE_PLANE = {"PlanarGeometric", "TruncatedPlanarGeometric", "PlanarLaplace", "PlanarGaussian"}


@dataclass(frozen=True)
class World:
    """What Hypothesis chooses;
    all else follows from it, so that a failure is repeated from one printed line.
    """

    k: int = 3
    letters: str = "number"
    kind: str = "RandomizedResponse"
    epsilon: float = 1.0
    many: str = "a few"
    seed: int = 0
    rng: np.random.Generator = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        object.__setattr__(self, "rng", np.random.default_rng(self.seed))
        if self.kind in TWO_SECRETS:
            object.__setattr__(self, "k", 2)

    @property
    def sigma(self):
        return 1 / self.epsilon

    def of_kind(self, kind):
        return World(self.k, self.letters, kind, self.epsilon, self.many, self.seed)

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    @cached_property
    def grid(self):
        rows = max(d for d in range(1, self.k + 1) if self.k % d == 0 and d * d <= self.k)
        if self.letters == "bounds":
            return ik.Grid.from_bounds(40.0, 40.2, -74.0, -73.8, rows, self.k // rows)
        return ik.Grid(
            rows, self.k // rows, cell_size=(0.5, 2.0) if self.letters == "oblong" else 1.0
        )

    @cached_property
    def line(self):
        return self.k if self.letters == "number" else ik.Line(-2, self.k - 3)

    @cached_property
    def alphabet(self):
        """As the world's mechanism takes it: a number is one, too."""
        if self.kind in ON_A_LINE:
            return self.line
        if self.kind in IN_THE_PLANE:
            return self.grid
        labels = [f"v{i}" for i in range(self.k)]
        if self.letters == "distances":
            return ik.Alphabet(
                labels,
                distances=np.abs(np.subtract.outer(np.arange(self.k), np.arange(self.k))) ** 0.5,
            )
        if self.letters == "labels":
            return labels
        return self.line if self.letters in ("number", "line") else self.grid

    @cached_property
    def simplex(self):
        theta = self.rng.dirichlet(np.ones(self.k))
        if self.many == "zeros" and self.k > 1:
            theta[0] = 0
        return theta / theta.sum()

    @cached_property
    def secret_counts(self):
        base = self.rng.integers(1, 30, self.k)
        if self.many == "zeros":
            base[1:] = 0
        if self.many == "one":
            base = np.eye(self.k, dtype=int)[0]
        if self.many == "1e15":
            base = base * 10**13
        if self.many == "1e3 and 1e15":
            base[0] = 10**15
        # where every report is drawn by itself there can be no more of them than fit
        return base if self.many != "some" else base * 10

    def counts(self, size):
        """How often each of `size` reports was seen, one of them at least."""
        base = self.rng.integers(0, 30, size) * (10**13 if "1e15" in self.many else 1)
        base[self.rng.integers(size)] += 1
        return base

    @cached_property
    def secrets(self):
        return self.rng.integers(0, self.k, 12)

    @cached_property
    def mechanism(self):
        if self.kind == "MatrixMechanism":
            return ik.MatrixMechanism(self.matrix)
        if self.kind == "product":
            # tuples of a secret and of something that is the same for all
            same = ik.MatrixMechanism([[0.25, 0.75]], alphabet=["x"])
            return ik.product(ik.RandomizedResponse(self.alphabet, self.epsilon), same)
        room = ik if hasattr(ik, self.kind) else ik.surveys
        return getattr(room, self.kind)(self.alphabet, **MECHANISMS[self.kind](self))

    @cached_property
    def labels(self):
        return self.mechanism.alphabet.labels_of(self.secrets)

    @cached_property
    def reports(self):
        return self.mechanism.randomize(self.secrets, self.rng, codes=True)

    @cached_property
    def matrix(self):
        rows = self.rng.dirichlet(np.ones(self.k + 1), self.k)
        if self.many == "zeros":
            rows[0, 1:] = 0
        return rows / rows.sum(axis=1, keepdims=True)

    @cached_property
    def loss(self):
        return np.abs(np.subtract.outer(np.arange(self.k), np.arange(self.k))).astype(float)

    @cached_property
    def tally(self):
        listed = isinstance(self.mechanism, ik.FiniteMechanism) and self.mechanism.m <= 64
        if "1e15" in self.many and listed:
            return self.mechanism.tally_counts(self.counts(self.mechanism.m))
        if "1e15" in self.many:
            return ik.RandomizedResponse(self.k, self.epsilon).tally_counts(self.counts(self.k))
        return self.mechanism.tally(self.mechanism.randomize(np.repeat(range(self.k), self.secret_counts), self.rng,
                                                             codes=True))  # fmt: skip

    @cached_property
    def other(self):
        """A mechanism over the same secrets."""
        return ik.RandomizedResponse(self.mechanism.alphabet, 2.0)

    @cached_property
    def pooled(self):
        return self.tally if self.seed % 3 else self.tally + ik.RandomizedResponse(
            self.tally.alphabet, 2.0).simulate(np.ones(self.tally.k, dtype=int), self.rng)  # fmt: skip

    @cached_property
    def estimate(self):
        return self.pick(ik.mle, ik.ibu, ik.inv)(self.tally)

    @cached_property
    def population(self):
        from ibukit.datasets import Dataset

        return Dataset("fuzz", np.minimum(self.secret_counts, 50), ik.RandomizedResponse(self.alphabet, 1.0).alphabet,
                       "made up")  # fmt: skip
