"""Which random numbers a mechanism meets:
the recorded words, what they may depend on and what they may not.
"""

import dataclasses

import numpy as np
import pytest

import ibukit as ik
from ibukit.domain.alphabet import Unbounded
from ibukit.files import seeding
from ibukit.files.seeding import spawn_key, text
from ibukit.mechanisms.base import Mechanism

LINE, GRID = ik.Line(0, 99), ik.Grid(3, 4, cell_size=0.5)
TWO = [ik.RandomizedResponse(LINE, 1.0), ik.TruncatedGeometric(LINE, 0.5)]
# Published numbers hang on these words. A change that moves one moves chapters: do not record it
# anew, undo it.
PINNED = [
    (
        ik.RandomizedResponse(ik.Alphabet([*"abc"], distances=2 * (1 - np.eye(3))), 1.0),
        (506355755, 1348895631, 996927415, 2429096410),
    ),
    (
        ik.BloomRappor(LINE, 32, 2, 4, 0.5, 0.5, 0.75),
        (3934621066, 3094640263, 2953613794, 1952307370),
    ),
    (ik.CountMeanSketch(LINE, 1.0, 16, 32), (1458869087, 2965459000, 314428384, 1352682409)),
    (ik.DiscreteGaussian(LINE, 2.5), (3811318761, 3324574682, 3111084788, 3160768034)),
    (ik.DiscreteSquareWave(LINE, 1.0), (2223316555, 747232956, 2476273751, 3144678786)),
    (ik.Duchi(LINE, 1.0), (1005358392, 1882289661, 2273431007, 1094894613)),
    (ik.Exponential(GRID, 1), (987799807, 312969275, 922865863, 741204631)),
    (ik.FreeWill(TWO, [0.25, 0.75], "two"), (3451802810, 3581859283, 753612299, 11209192)),
    (
        ik.HadamardCountMeanSketch(LINE, 1.0, 16, 32),
        (634586811, 1034018339, 1106424013, 1490934676),
    ),
    (ik.HadamardMechanism(LINE, 1.0), (1498772539, 500328284, 3472552586, 3136002949)),
    (ik.HadamardResponse(LINE, 1.0), (4205272563, 2663518094, 2538520197, 2408687097)),
    (ik.HistogramEncoding(LINE, 1.0), (1123101781, 3591070378, 331267008, 2730472363)),
    (ik.HybridMechanism(LINE, 1.0), (630323090, 2671925883, 2142709293, 1022927888)),
    (ik.LinearGaussian(LINE, 2.5), (2807041453, 1336658974, 922491460, 2269760888)),
    (ik.LinearGeometric(LINE, 0.3), (1184150220, 3167631859, 2834596027, 3262241205)),
    (ik.LinearGeometric(ik.Line(0, None), 0.3), (2975089320, 1250426362, 2439110992, 3058215546)),
    (ik.LinearLaplace(LINE, 0.3), (1508804135, 3193355687, 3590561599, 2748377955)),
    (
        ik.LinkedRounds(LINE, (0.5, 0.25), (0.75, 0.25), 5),
        (2345454853, 3156575001, 3004972175, 925616079),
    ),
    (ik.LocalHashing(LINE, 1.0), (4081343512, 3705176530, 3399972120, 460573587)),
    (ik.LongitudinalHashing(LINE, 1.0, 2.0), (102693727, 2309434868, 1502624328, 3151130565)),
    (ik.LongitudinalResponse(LINE, 1.0, 2.0), (497168257, 3052597690, 1376244651, 2865212947)),
    (
        ik.LongitudinalUnaryEncoding(LINE, (0.5, 0.25), (0.75, 0.25)),
        (3510872889, 3982491078, 2736365379, 1225343973),
    ),
    (
        ik.MatrixMechanism([[0.75, 0.25], [0.5, 0.5]]),
        (3442879270, 3280034093, 1993443249, 3644021221),
    ),
    (ik.OptimizedUnaryEncoding(LINE, 2.0), (1805827626, 1752901314, 1088045277, 3101119989)),
    (ik.Piecewise(LINE, 1.0), (4067232627, 2655747786, 1159776612, 981710847)),
    (ik.PlanarGaussian(GRID, 0.5), (2264924740, 2194430849, 2114745795, 2199787913)),
    (ik.PlanarGeometric(GRID, 0.3), (245126481, 2158295158, 3724924656, 3020023400)),
    (
        ik.PlanarGeometric(ik.Grid(None, None, 0.5), 0.3),
        (3954524106, 2069540972, 4198697198, 979951567),
    ),
    (ik.PlanarLaplace(GRID, 0.3), (2339656599, 470832473, 1831975831, 1119333681)),
    (ik.RandomizedResponse(LINE, 4), (1702554722, 1481113151, 630820441, 1630459408)),
    (ik.Rappor(ik.Alphabet(["a", "b"]), 2.0), (2898910108, 3188655869, 3248651032, 2908892425)),
    (ik.SquareWave(LINE, 1.0), (2990596631, 3595012966, 2586435853, 1069172827)),
    (ik.Staircase(LINE, 1.0), (2919293321, 2260568121, 431577817, 1494416717)),
    (ik.SubsetSelection(LINE, 1.0), (3267627307, 1778553247, 252768556, 849135573)),
    (ik.ThresholdedHistogram(LINE, 1.0, 0.75), (2315539756, 1138057979, 1829333931, 2737670030)),
    (ik.TightConstraints(LINE, 1.0), (986355807, 2060855013, 4213914765, 1155000394)),
    (ik.TruncatedGeometric(LINE, 0.05), (798138855, 2620792316, 626930279, 186468570)),
    (ik.TruncatedPlanarGeometric(GRID, 0.3), (2827265195, 850867067, 2395023669, 2661090886)),
    (ik.UnaryEncoding(LINE, 0.5, 0.25), (4037721136, 1504814962, 12323389, 1258227879)),
]


@pytest.mark.parametrize(("mechanism", "words"), PINNED, ids=lambda value: type(value).__name__)
def test_the_words_of_a_mechanism_stay_what_they_are(mechanism, words):
    assert spawn_key(mechanism) == words


def test_every_kind_of_mechanism_and_alphabet_is_recorded_and_pinned():
    def kinds(kind):
        return {kind}.union(*map(kinds, kind.__subclasses__()))

    ours = {
        kind for kind in kinds(Mechanism) | {ik.FreeWill} if kind.__module__.startswith("ibukit.")
    }
    concrete = {
        kind for kind in ours if dataclasses.is_dataclass(kind) and kind.__name__ in ik.__all__
    }
    assert (
        set(seeding.recorded_classes()) == concrete == {type(mechanism) for mechanism, _ in PINNED}
    )
    ours = {kind for kind in kinds(ik.Alphabet) if kind.__module__.startswith("ibukit.")}
    assert set(seeding.ALPHABETS) == ours - {Unbounded}


def test_a_class_that_is_renamed_or_moved_keeps_its_words():
    before, kinds = (
        [text(mechanism) for mechanism, _ in PINNED],
        (*seeding.recorded_classes(), *seeding.ALPHABETS),
    )
    names = [(kind.__name__, kind.__qualname__, kind.__module__) for kind in kinds]
    try:
        for kind in kinds:
            kind.__name__ = kind.__qualname__ = kind.__module__ = "Another"
        assert [text(mechanism) for mechanism, _ in PINNED] == before
    finally:
        for kind, (kind.__name__, kind.__qualname__, kind.__module__) in zip(
            kinds, names, strict=True
        ):
            assert kind.__name__ != "Another"


def test_a_field_that_is_renamed_changes_the_words_only_of_a_class_that_is_not_recorded():
    made = [
        dataclasses.make_dataclass("Own", [(name, float)], frozen=True)(0.5)  # a stranger's
        for name in ("epsilon", "level")
    ]
    assert text(made[0]) == "Own(epsilon=0.5)"
    assert spawn_key(made[0]) != spawn_key(made[1])


def test_a_subclass_meets_numbers_of_its_own():
    class Mine(ik.RandomizedResponse):
        pass

    assert spawn_key(Mine(4, 1.0)) != spawn_key(ik.RandomizedResponse(4, 1.0))


def test_the_last_digits_of_a_number_do_not_decide(rng):
    k, moved = 40, 0
    for trial in range(200):
        matrix = rng.dirichlet(np.full(k, 0.3), size=k)
        distances = np.abs(np.subtract.outer(rng.random(k), rng.random(k)))
        distances = distances + distances.T
        np.fill_diagonal(distances, 0)

        def made(noise, matrix=matrix, distances=distances, trial=trial):
            wobble = 1 + noise * rng.uniform(-1, 1, size=(k, k))
            level = ik.Alphabet(range(k), distances=distances * (wobble + wobble.T) / 2)
            own = matrix * wobble
            return (
                ik.MatrixMechanism(own / own.sum(axis=1, keepdims=True)),
                ik.RandomizedResponse(k, (1 + trial / 7) * wobble[0, 0]),
                ik.RandomizedResponse(level, 1.0),
            )

        assert [spawn_key(m) for m in made(1e-13)] == [spawn_key(m) for m in made(0)]
        moved += sum(
            spawn_key(m) != spawn_key(same) for m, same in zip(made(1e-2), made(0), strict=True)
        )
    assert moved > 0.9 * 600  # what is more than last digits does


def test_matrices_that_differ_meet_other_numbers(rng):
    matrix = rng.dirichlet(np.ones(6), size=6)
    others = [
        matrix,
        matrix[::-1],
        matrix[:, ::-1],
        matrix.T / matrix.T.sum(axis=1, keepdims=True),
        np.eye(6),
    ]
    assert len({spawn_key(ik.MatrixMechanism(other)) for other in others}) == len(others)
    assert spawn_key(ik.MatrixMechanism(matrix)) != spawn_key(
        ik.MatrixMechanism(matrix, ik.Line(1, 6))
    )
    units = [ik.Alphabet([*"abc"], distances=unit * (1 - np.eye(3))) for unit in (1, 2, 1000)]
    assert len({spawn_key(ik.RandomizedResponse(alphabet, 1.0)) for alphabet in units}) == 3
