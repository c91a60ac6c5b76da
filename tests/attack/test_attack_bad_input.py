"""What the functions of attack refuse, and that they say which argument it was."""

import numpy as np
import pytest

import ibukit as ik

GRID = ik.Grid(2, 3)
KRR = ik.RandomizedResponse(3, 1.0)
TALLY = KRR.tally_counts([50, 30, 20])
POOLED = TALLY + ik.RandomizedResponse(3, 2.0).tally_counts([5, 5, 5])
RNG = np.random.default_rng(1)
HALF = ik.MatrixMechanism([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0]])

BAD = {
    "inputs: fraction 1": (lambda: ik.attack.poison_inputs([1, 2], 0, 1), ValueError, "fraction"),
    "inputs: fraction below 0": (
        lambda: ik.attack.poison_inputs([1, 2], 0, -0.1),
        ValueError,
        "fraction",
    ),
    "inputs: fraction NaN": (
        lambda: ik.attack.poison_inputs([1, 2], 0, np.nan),
        ValueError,
        "fraction",
    ),
    "inputs: fraction text": (
        lambda: ik.attack.poison_inputs([1, 2], 0, "0.1"),
        ValueError,
        "fraction",
    ),
    "inputs: target": (
        lambda: ik.attack.poison_inputs([1, 2], 2, 0.1),
        ik.errors.AlphabetMismatch,
        "target",
    ),
    "inputs: target negative": (
        lambda: ik.attack.poison_inputs([1, 2], -1, 0.1),
        ik.errors.AlphabetMismatch,
        "target",
    ),
    "inputs: target twice": (
        lambda: ik.attack.poison_inputs([1, 2], [1, 1], 0.1),
        ValueError,
        "target",
    ),
    "inputs: no target": (lambda: ik.attack.poison_inputs([1, 2], [], 0.1), ValueError, "target"),
    "inputs: target half": (
        lambda: ik.attack.poison_inputs([1, 2], 0.5, 0.1),
        ValueError,
        "target",
    ),
    "inputs: counts not whole": (
        lambda: ik.attack.poison_inputs([1, 2.5], 0, 0.1),
        ValueError,
        "counts",
    ),
    "inputs: counts negative": (
        lambda: ik.attack.poison_inputs([1, -2], 0, 0.1),
        ValueError,
        "counts",
    ),
    "inputs: counts all 0": (lambda: ik.attack.poison_inputs([0, 0], 0, 0.1), ValueError, "counts"),
    "inputs: counts a matrix": (
        lambda: ik.attack.poison_inputs([[1], [2]], 0, 0.1),
        ValueError,
        "counts",
    ),
    "prior: not one": (
        lambda: ik.attack.poisoned_distribution([0.5, 0.4], 0, 0.1),
        ik.errors.InvalidDistribution,
        "distribution",
    ),
    "prior: fraction": (
        lambda: ik.attack.poisoned_distribution([0.5, 0.5], 0, 1.0),
        ValueError,
        "fraction",
    ),
    "prior: target": (
        lambda: ik.attack.poisoned_distribution([0.5, 0.5], 2, 0.1),
        ik.errors.AlphabetMismatch,
        "target",
    ),
    "outputs: no tally": (lambda: ik.attack.poison_outputs([1, 2], 0, 0.1), TypeError, "tally"),
    "outputs: pooled": (
        lambda: ik.attack.poison_outputs(POOLED, 0, 0.1),
        ValueError,
        "tally .* pools 2; poison the tally of each",
    ),
    "outputs: report": (
        lambda: ik.attack.poison_outputs(TALLY, 3, 0.1),
        ik.errors.AlphabetMismatch,
        "reports",
    ),
    "outputs: no report": (lambda: ik.attack.poison_outputs(TALLY, [], 0.1), ValueError, "report"),
    "outputs: fraction": (lambda: ik.attack.poison_outputs(TALLY, 0, 1), ValueError, "fraction"),
    "outputs: impossible": (
        lambda: ik.attack.poison_outputs(HALF.tally_counts([5, 5, 0]), 2, 0.1),
        ik.errors.ImpossibleReport,
        "2",
    ),
    "outputs: impossible, from nobody": (
        lambda: ik.attack.poison_outputs(HALF.tally_counts([5, 5, 0]), 2, 0.0),
        ik.errors.ImpossibleReport,
        "2",
    ),
    "map: no grid": (
        lambda: ik.attack.coarse_map(ik.uniform(6), ik.Line(0, 5), 2),
        TypeError,
        "grid",
    ),
    "map: block 0": (lambda: ik.attack.coarse_map(ik.uniform(6), GRID, 0), ValueError, "block"),
    "map: block 1.5": (lambda: ik.attack.coarse_map(ik.uniform(6), GRID, 1.5), ValueError, "block"),
    "map: size": (
        lambda: ik.attack.coarse_map(ik.uniform(5), GRID, 2),
        ik.errors.AlphabetMismatch,
        "weights",
    ),
    "map: all 0": (
        lambda: ik.attack.coarse_map(np.zeros(6), GRID, 2),
        ik.errors.InvalidDistribution,
        "weights",
    ),
    "map: negative": (
        lambda: ik.attack.coarse_map([-1, 2, 3, 4, 5, 6], GRID, 2),
        ik.errors.InvalidDistribution,
        "weights",
    ),
    "mix: weight above 1": (
        lambda: ik.attack.mix_with_public([1, 0], [0, 1], 1.1),
        ValueError,
        "weight",
    ),
    "mix: weight below 0": (
        lambda: ik.attack.mix_with_public([1, 0], [0, 1], -0.1),
        ValueError,
        "weight",
    ),
    "mix: weight None": (
        lambda: ik.attack.mix_with_public([1, 0], [0, 1], None),
        ValueError,
        "weight",
    ),
    "mix: public": (
        lambda: ik.attack.mix_with_public([1, 0], [0, 0, 1], 0.5),
        ik.errors.AlphabetMismatch,
        "public",
    ),
    "mix: estimate": (
        lambda: ik.attack.mix_with_public([1, 1], [0, 1], 0.5),
        ik.errors.InvalidDistribution,
        "distribution",
    ),
    "breakdown: beta 0": (
        lambda: ik.attack.breakdown_fraction([1, 0], 2, 0, 1),
        ValueError,
        "beta",
    ),
    "breakdown: beta inf": (
        lambda: ik.attack.breakdown_fraction([1, 0], 2, np.inf, 1),
        ValueError,
        "beta",
    ),
    "breakdown: prior": (
        lambda: ik.attack.breakdown_fraction([1, 1], 2, 1, 1),
        ik.errors.InvalidDistribution,
        "prior",
    ),
    "breakdown: size": (
        lambda: ik.attack.breakdown_fraction([1, 0], 3, 1, 1),
        ik.errors.AlphabetMismatch,
        "prior",
    ),
    "breakdown: target": (
        lambda: ik.attack.breakdown_fraction([1, 0], 2, 1, 2),
        ik.errors.AlphabetMismatch,
        "target",
    ),
    "robust: no tally": (lambda: ik.attack.robust_mle([1, 2]), TypeError, "tally"),
    "robust: pooled": (
        lambda: ik.attack.robust_mle(POOLED),
        ValueError,
        r"tally .* pools 2; .* mle\(tally\)\.pool_test",
    ),
    "robust: threshold": (
        lambda: ik.attack.robust_mle(TALLY, threshold=-1),
        ValueError,
        "threshold",
    ),
    "robust: threshold NaN": (
        lambda: ik.attack.robust_mle(TALLY, threshold=np.nan),
        ValueError,
        "threshold",
    ),
    "robust: tol": (lambda: ik.attack.robust_mle(TALLY, tol=0), ValueError, "tol"),
    "robust: start alone": (
        lambda: ik.attack.robust_mle(TALLY, start=ik.uniform(3)),
        ValueError,
        "start",
    ),
    "robust: start": (
        lambda: ik.attack.robust_mle(
            KRR.tally_counts([500, 0, 0]), 1, stop=ik.Steps(3), start=ik.uniform(4)
        ),
        ik.errors.AlphabetMismatch,
        "start",
    ),
    "robust: most": (lambda: ik.attack.robust_mle(TALLY, most=0), ValueError, "most"),
    "robust: stop": (lambda: ik.attack.robust_mle(TALLY, stop=10), TypeError, "stop"),
    "robust: nobody honest": (
        lambda: ik.attack.robust_mle(KRR.tally_counts([500, 0, 0])),
        ValueError,
        "no honest report",
    ),
    "detect: no tally": (lambda: ik.attack.detect_poisoning([1, 2], rng=RNG), TypeError, "tally"),
    "detect: pooled": (
        lambda: ik.attack.detect_poisoning(POOLED, rng=RNG),
        ValueError,
        "tally .* pools 2",
    ),
    "detect: one report": (
        lambda: ik.attack.detect_poisoning(KRR.tally([1]), rng=RNG),
        ValueError,
        "two reports",
    ),
    "detect: level 0": (
        lambda: ik.attack.detect_poisoning(TALLY, 0, rng=RNG),
        ValueError,
        "false_alarms",
    ),
    "detect: level 1": (
        lambda: ik.attack.detect_poisoning(TALLY, 1.0, rng=RNG),
        ValueError,
        "false_alarms",
    ),
    "detect: a seed": (lambda: ik.attack.detect_poisoning(TALLY, rng=1), TypeError, "rng"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    call, error, words = BAD[name]
    with pytest.raises(error, match=words):
        call()


def test_an_empty_tally_cannot_be_made():
    with pytest.raises(ValueError, match="the tally is empty"):
        KRR.tally_counts([0, 0, 0])
