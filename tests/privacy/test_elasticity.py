"""How far a mechanism hides one secret: mass of a block, exposure, mean displacement."""

import numpy as np
import pytest

import ibukit as ik

LINE = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=0.7)
WIDE = ik.MatrixMechanism(np.random.default_rng(3).dirichlet(np.ones(7), size=4))
PRIOR = ik.normalize(np.arange(1.0, 11))


def naive_exposure(matrix, prior, x):
    total = 0.0
    for y in range(matrix.shape[1]):
        seen = sum(prior[w] * matrix[w, y] for w in range(len(prior)))
        if seen > 0:
            total += matrix[x, y] * prior[x] * matrix[x, y] / seen
    return total


def test_the_mass_of_a_block_is_a_sum_over_a_row():
    assert ik.privacy.block_mass(LINE, 3, [2, 3, 9]) == pytest.approx(
        LINE.matrix()[3, [2, 3, 9]].sum(), abs=1e-15
    )
    assert ik.privacy.block_mass(LINE, 3, range(10)) == pytest.approx(1, abs=1e-12)
    assert ik.privacy.block_mass(WIDE, 1, [6]) == WIDE.matrix()[1, 6]
    assert ik.privacy.block_mass(LINE, 3, []) == 0


@pytest.mark.parametrize("x", range(10))
def test_exposure_is_the_mean_posterior_of_the_truth(x):
    assert ik.privacy.exposure(LINE, PRIOR, x) == pytest.approx(
        naive_exposure(LINE.matrix(), PRIOR, x), rel=1e-12
    )


def test_exposure_by_simulation(rng):
    reports = LINE.randomize(np.full(200_000, 2), rng)
    posterior = PRIOR[2] * LINE.matrix()[2] / LINE.forward(PRIOR)
    believed = posterior[reports]
    error = believed.std() / np.sqrt(len(believed))
    assert abs(ik.privacy.exposure(LINE, PRIOR, 2) - believed.mean()) < 5 * error
    assert error < 0.001


def test_exposure_lies_between_the_prior_and_certainty():
    constant = ik.MatrixMechanism(np.tile([0.2, 0.8], (10, 1)))
    open_book = ik.MatrixMechanism(np.eye(10))
    for x in range(10):
        assert ik.privacy.exposure(constant, PRIOR, x) == pytest.approx(PRIOR[x], rel=1e-12)
        assert ik.privacy.exposure(open_book, PRIOR, x) == pytest.approx(1, rel=1e-12)
        # by Jensen: whoever is there is believed to be there at least as much as before
        assert ik.privacy.exposure(LINE, PRIOR, x) >= PRIOR[x]


def test_what_is_impossible_is_not_believed():
    prior = np.append(0.0, ik.uniform(9))
    assert ik.privacy.exposure(LINE, prior, 0) == 0
    assert ik.privacy.exposure(ik.MatrixMechanism(np.eye(10)), prior, 0) == 0


def test_mean_displacement_is_the_quality_loss_of_one_secret():
    shifts = [ik.privacy.mean_displacement(LINE, x) for x in range(10)]
    by_hand = [sum(LINE.matrix()[x, y] * abs(x - y) for y in range(10)) for x in range(10)]
    assert shifts == pytest.approx(by_hand, rel=1e-12)
    assert PRIOR @ shifts == pytest.approx(ik.privacy.quality_loss(LINE, PRIOR), rel=1e-12)


def test_mean_displacement_of_reports_with_places_of_their_own():
    # reports at half-way between the secrets 0..3, and beyond them
    loss = np.abs(np.arange(4)[:, None] - (np.arange(7) - 1.5))
    assert ik.privacy.mean_displacement(WIDE, 2, loss) == pytest.approx(
        WIDE.matrix()[2] @ loss[2], rel=1e-12
    )
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"loss .* \(4, 7\)"):
        ik.privacy.mean_displacement(WIDE, 2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ik.privacy.block_mass(LINE, 10, [1]), ik.errors.AlphabetMismatch, "secret"),
        (lambda: ik.privacy.block_mass(LINE, -1, [1]), ik.errors.AlphabetMismatch, "secret"),
        (lambda: ik.privacy.block_mass(LINE, 0.5, [1]), ValueError, "secret"),
        (lambda: ik.privacy.block_mass(LINE, True, [1]), ValueError, "secret"),
        (lambda: ik.privacy.block_mass(LINE, 0, [10]), ik.errors.AlphabetMismatch, "block"),
        (lambda: ik.privacy.block_mass(LINE, 0, [1, 2, 1]), ValueError, "block .* 1 2 times"),
        (lambda: ik.privacy.block_mass(LINE, 0, [True, False]), ValueError, "block"),
        (lambda: ik.privacy.block_mass(LINE, 0, 3), ValueError, "block"),
        (lambda: ik.privacy.exposure(LINE, PRIOR, 10), ik.errors.AlphabetMismatch, "secret"),
        (lambda: ik.privacy.exposure(LINE, PRIOR[:9], 1), ik.errors.AlphabetMismatch, "prior"),
        (lambda: ik.privacy.exposure(LINE, 2 * PRIOR, 1), ik.errors.InvalidDistribution, "prior"),
        (lambda: ik.privacy.mean_displacement(LINE, 11), ik.errors.AlphabetMismatch, "secret"),
        (lambda: ik.privacy.mean_displacement(LINE, 1, -LINE.matrix()), ValueError, "loss"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
