"""qif's matrices and measures, and the PRIVIC authors' functions on a small city."""

import numpy as np
import pytest

import ibukit as ik
from foreign.inputs import (
    ANY,
    BETA,
    CELLS,
    CITY_FREQUENCIES,
    EPSILON,
    HEIGHT,
    LINE,
    LINE_EPSILON,
    LINE_MATRIX,
    MATRIX,
    PRIOR,
    SECRETS,
    SIX,
    WIDTH,
)
from foreign.record import read
from ibukit import privacy

CITY = ik.Grid(HEIGHT, WIDTH)
LEVEL = 0.7  # of qif's optimal mechanism


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("geometric", ik.TruncatedGeometric(ik.Line(0, LINE - 1), LINE_EPSILON)),
        ("randomized_response", ik.RandomizedResponse(SECRETS, EPSILON)),
        ("exponential", ik.Exponential(ik.Line(0, SECRETS - 1), EPSILON)),
        ("tight_constraints", ik.TightConstraints(ik.Line(0, SECRETS - 1), EPSILON)),
    ],
)
def test_the_matrices_of_qif_are_ours(name, mechanism):
    np.testing.assert_allclose(read("qif")[name], mechanism.matrix(), rtol=1e-12)


def test_the_shared_line_is_geometric_noise():
    np.testing.assert_allclose(
        LINE_MATRIX, ik.TruncatedGeometric(ik.Line(0, LINE - 1), LINE_EPSILON).matrix(), rtol=1e-13
    )


def test_planar_noise_of_qif_is_ours_on_a_square_to_the_digits_of_its_sum():
    mechanism = ik.TruncatedPlanarGeometric(ik.Grid(HEIGHT, HEIGHT), EPSILON)
    np.testing.assert_allclose(read("qif")["planar, 3 x 3"], mechanism.matrix(), atol=1e-7)


def test_planar_noise_of_qif_is_wrong_on_a_rectangle():
    """What lies beyond a corner does not depend on how large the grid is; its corner's share does.

    Where the grid is wider than high, it never reports the last column from the first: no epsilon
    allows that.
    """
    theirs = {
        name: np.array(read("qif")[f"planar, {name}"]) for name in ("3 x 3", "3 wide", "4 wide")
    }
    ours = [
        ik.TruncatedPlanarGeometric(ik.Grid(*shape), EPSILON).matrix()[0, 0]
        for shape in ((3, 3), (4, 3), (3, 4))
    ]
    assert np.ptp(ours) < 1e-12
    assert np.ptp([matrix[0, 0] for matrix in theirs.values()]) > 0.004
    assert (theirs["4 wide"] == 0).sum() == 18
    assert ((theirs["4 wide"] == 0).any(axis=0) & (theirs["4 wide"] > 0).any(axis=0)).any()


def test_the_measures_of_qif_are_ours():
    theirs, mechanism = read("qif"), ik.MatrixMechanism(MATRIX)
    assert theirs["mutual information in bits"] * np.log(2) == pytest.approx(
        privacy.mutual_information(mechanism, ANY), rel=1e-12
    )
    wrong = privacy.adversary_loss(mechanism, ANY, 1 - np.eye(4))
    assert theirs["bayes_vuln"] == pytest.approx(1 - wrong, rel=1e-12)


def test_the_optimum_of_qif_is_reached_by_geometric_noise_and_best_guesses():
    """So say Ghosh, Roughgarden and Sundararajan; its programme knows nothing of noise."""
    line = ik.Line(0, SECRETS - 1)
    matrix = np.array(read("qif")["min_loss_given_d"])
    loss = SIX @ (matrix * line.distances()).sum(axis=1)
    noise = ik.TruncatedGeometric(line, LEVEL)
    assert loss == pytest.approx(privacy.adversary_loss(noise, SIX, line.distances()), rel=1e-9)
    assert loss > 1.01 * privacy.adversary_loss(
        ik.TruncatedGeometric(line, LEVEL * 1.05), SIX, line.distances()
    )


def test_the_authors_blahut_arimoto_is_ours():
    ours = ik.blahut_arimoto(PRIOR, CITY, BETA, steps=8)
    np.testing.assert_allclose(read("privic")["Blahut-Arimoto, 8 steps"], ours.matrix(), rtol=1e-12)
    other = ik.blahut_arimoto(PRIOR, CITY, BETA, steps=9).matrix()
    assert abs(other - ours.matrix()).max() > 1e-3, "a step more or less must show"


def test_the_authors_laplace_is_an_exponential_mechanism_of_twice_its_parameter():
    """Each row is divided by its sum,
    so its level is not the parameter: on this city 30 % above.
    """
    theirs = read("privic")
    np.testing.assert_allclose(
        theirs["Laplace"], ik.Exponential(CITY, 2 * BETA).matrix(), rtol=1e-12
    )
    around = ik.Exponential(ik.Grid(HEIGHT + 4, WIDTH + 4), 2 * BETA).matrix()
    rows = (CELLS[:, 0] + 2) * (WIDTH + 4) + CELLS[:, 1] + 2
    # the reports lie on a wider grid, but a row is divided by its sum there
    np.testing.assert_allclose(theirs["Laplace, wide"], around[rows], rtol=1e-12)
    level = privacy.epsilon_metric(ik.MatrixMechanism(theirs["Laplace"], CITY))
    assert 1.29 < level / BETA < 1.31


@pytest.mark.parametrize(
    ("name", "matrix"),
    [("IBU, 10 steps", "Blahut-Arimoto, 8 steps"), ("IBU of Laplace, 10 steps", "Laplace")],
)
def test_the_authors_ibu_takes_our_steps_and_ends_long_before_the_maximum(name, matrix):
    theirs = read("privic")
    tally = ik.MatrixMechanism(theirs[matrix], CITY).tally_counts(
        np.rint(100 * CITY_FREQUENCIES).astype(int)
    )
    np.testing.assert_allclose(
        theirs[name], ik.ibu(tally, stop=ik.Steps(10)).distribution, rtol=1e-12
    )
    assert ik.gap(tally, theirs[name]) > 0.03
    assert abs(ik.mle(tally).distribution - theirs[name]).max() > 0.08


def test_the_authors_distance_is_ours():
    """It comes from pyemd; ours from POT."""
    assert read("privic")["distance"] == pytest.approx(
        ik.emd(PRIOR, CITY_FREQUENCIES, CITY), rel=1e-12
    )
