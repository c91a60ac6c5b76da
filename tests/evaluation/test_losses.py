"""Losses: the earth mover's distance by four programs,
the laws of a distance, units, and bad input.
"""

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance

import ibukit as ik
from instances import distributions
from oracles import naive


def pair(rng, k, alpha=0.5):
    return rng.dirichlet(np.full(k, alpha), 2)


@pytest.mark.ledger("A-D12")
@pytest.mark.parametrize("k", [1, 2, 3, 10, 100])
def test_on_a_line_four_programs_agree(k, rng):
    for _ in range(5):
        p, q = pair(rng, k)
        ours = ik.emd(p, q, ik.Line(5, 4 + k))
        places = np.arange(k)
        assert ours == pytest.approx(wasserstein_distance(places, places, p, q), abs=1e-12)
        distances = naive.line_distances(k)
        assert ours == pytest.approx(ot.emd2(p, q, distances), abs=1e-12)
        if k <= 10:
            assert ours == pytest.approx(naive.emd(p, q, distances), abs=1e-9)
        # the closed form, one flow across each gap between neighbours
        assert ours == pytest.approx(
            sum(abs(p[: i + 1].sum() - q[: i + 1].sum()) for i in range(k - 1)), abs=1e-12
        )


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 2), (3, 4)])
@pytest.mark.parametrize("cell_size", [1.0, 0.5, (0.3, 0.7)])
def test_on_a_grid_it_is_the_linear_programme(shape, cell_size, rng):
    grid = ik.Grid(*shape, cell_size=cell_size)
    height, width = cell_size if isinstance(cell_size, tuple) else (cell_size, cell_size)
    distances = naive.grid_distances(*shape, height, width)
    for alpha in (0.1, 1.0):
        p, q = pair(rng, len(grid), alpha)
        assert ik.emd(p, q, grid) == pytest.approx(naive.emd(p, q, distances), abs=1e-9)


def test_what_both_have_in_common_may_stay_on_a_grid_only(rng):
    class Detour(
        ik.Grid
    ):  # from end to end it is shorter by way of the middle: the mass there must move, too
        def distances(self):
            return np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])

    assert ik.emd([0.5, 0.5, 0], [0, 0.5, 0.5], Detour(1, 3)) == pytest.approx(1.0, abs=1e-12)
    grid = ik.Grid(7, 9, cell_size=0.5)
    for _ in range(20):
        p, q = pair(rng, len(grid), 0.2)
        p[rng.random(len(grid)) < 0.5] = 0
        p /= p.sum()
        assert ik.emd(p, q, grid) == pytest.approx(ot.emd2(p, q, grid.distances()), rel=1e-12)
        assert ik.emd(q, q, grid) == 0


def test_a_grid_of_one_row_is_a_line(rng):
    p, q = pair(rng, 30)
    assert ik.emd(p, q, ik.Grid(1, 30)) == pytest.approx(ik.emd(p, q, 30), abs=1e-12)
    assert ik.emd(p, q, ik.Grid(30, 1)) == pytest.approx(ik.emd(p, q, 30), abs=1e-12)


def test_on_a_line_it_is_not_the_total_variation_and_on_other_labels_it_is(rng):
    p, q = pair(rng, 8)
    labels = ik.Alphabet(list("abcdefgh"))
    assert ik.emd(p, q, labels) == pytest.approx(ik.total_variation(p, q), abs=1e-12)
    assert ik.emd(p, q, 8) > 1.1 * ik.total_variation(p, q)


def test_on_given_distances(rng):
    points = rng.random((6, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    p, q = pair(rng, 6)
    assert ik.emd(p, q, ik.Alphabet(range(6), distances)) == pytest.approx(
        naive.emd(p, q, distances), abs=1e-9
    )


def test_worked_by_hand():
    # from the corner of a 2 x 2 km square half goes along one side, half across
    grid = ik.Grid(2, 2, cell_size=2.0)
    assert ik.emd([1, 0, 0, 0], [0, 0.5, 0, 0.5], grid) == pytest.approx(
        0.5 * 2 + 0.5 * 2 * np.sqrt(2), abs=1e-12
    )
    # all but the first year's mass is one year further on
    assert ik.emd([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], ik.Line(17, 19)) == pytest.approx(1)
    assert ik.total_variation([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]) == 0.5
    assert ik.squared_l2([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]) == 0.5


def test_the_unit_is_the_alphabet_s(rng):
    p, q = pair(rng, 12)
    in_cells = ik.emd(p, q, ik.Grid(3, 4))
    assert ik.emd(p, q, ik.Grid(3, 4, cell_size=0.5)) == pytest.approx(0.5 * in_cells, rel=1e-12)
    assert ik.emd(p, q, ik.Grid(3, 4, cell_size=500.0)) == pytest.approx(500 * in_cells, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "cells"), [("privic_paris", 2.022618), ("privic_san_francisco", 7.376104)]
)
@pytest.mark.ledger("E-D2.7")
def test_the_papers_distance_from_uniform(name, cells):
    truth = ik.datasets.load_gowalla(name)
    grid = ik.Grid(truth.alphabet.n_rows, truth.alphabet.n_cols)
    assert ik.emd(ik.uniform(len(grid)), truth.distribution, grid) == pytest.approx(cells, abs=5e-7)


ALPHABETS = {
    "line": ik.Line(0, 5),
    "grid": ik.Grid(2, 3, cell_size=(1.0, 1.5)),
    "labels": ik.Alphabet(list("abcdef")),
}
LOSSES = {name: lambda p, q, a=alphabet: ik.emd(p, q, a) for name, alphabet in ALPHABETS.items()}
LOSSES["total variation"] = ik.total_variation
LOSSES["l2"] = lambda p, q: np.sqrt(ik.squared_l2(p, q))


@pytest.mark.parametrize("name", LOSSES)
@given(p=distributions(6), q=distributions(6), r=distributions(6))
def test_the_laws_of_a_distance(name, p, q, r):
    loss = LOSSES[name]
    assert loss(p, p) <= 1e-15
    assert loss(p, q) == pytest.approx(loss(q, p), abs=1e-12)
    assert loss(p, r) <= loss(p, q) + loss(q, r) + 1e-12
    # different distributions are apart: the smallest distance here is 1
    assert loss(p, q) >= np.abs(p - q).max() - 1e-12


def test_a_difference_that_is_rounding_is_none():
    """A last digit more in one cell, and less in none: there is nothing to carry."""
    p = np.full(6, 1 / 6)
    found = 0
    for cell in range(6):
        for step in (0.0, 1.0):
            q = p.copy()
            q[cell] = np.nextafter(q[cell], step)
            given, wanted = p / p.sum(), q / q.sum()
            found += bool((given > wanted).any()) != bool((given < wanted).any())
            for name in ALPHABETS:
                assert LOSSES[name](p, q) <= 1e-15
                assert LOSSES[name](q, p) <= 1e-15
    assert found, "the case must be among them"


@given(p=distributions(6), q=distributions(6))
def test_total_variation_bounds_the_others(p, q):
    tv = ik.total_variation(p, q)
    assert 0 <= tv <= 1 + 1e-15
    for name, alphabet in ALPHABETS.items():
        d = alphabet.distances()
        least, most = d[d > 0].min(), d.max()
        assert least * tv - 1e-12 <= LOSSES[name](p, q) <= most * tv + 1e-12
    assert ik.squared_l2(p, q) <= 2 * tv**2 + 1e-12


@given(data=st.data(), x=st.integers(0, 5), y=st.integers(0, 5))
def test_between_two_points_it_is_their_distance(data, x, y):
    name = data.draw(st.sampled_from(sorted(ALPHABETS)))
    p, q = np.eye(6)[[x, y]]
    assert LOSSES[name](p, q) == pytest.approx(ALPHABETS[name].distances()[x, y], abs=1e-12)
    assert ik.total_variation(p, q) == (x != y)


def test_raw_inversion_is_welcome_to_l2_only():
    v, p = [1.2, -0.2], [0.5, 0.5]
    assert ik.squared_l2(v, p) == pytest.approx(0.98)
    for refuses in (lambda: ik.emd(v, p, 2), lambda: ik.total_variation(v, p)):
        with pytest.raises(
            ik.errors.InvalidDistribution,
            match=r"p must not have negative or NaN entries, got -0\.2 at 1",
        ):
            refuses()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: ik.emd([0.5, 0.4], [0.5, 0.5], 2),
            ik.errors.InvalidDistribution,
            "p must sum to 1.*but sums to 0.9",
        ),
        (
            lambda: ik.emd([0.5, 0.5], [0.5, np.nan], 2),
            ik.errors.InvalidDistribution,
            "q must not have .* got nan at 1",
        ),
        (
            lambda: ik.emd([0.5, 0.5], [0.5, 0.5], 3),
            ik.errors.AlphabetMismatch,
            "p must have one .* 3 elements, got 2",
        ),
        (
            lambda: ik.emd([0.5, 0.5], [1.0], 2),
            ik.errors.AlphabetMismatch,
            "q must have one .* 2 elements, got 1",
        ),
        (lambda: ik.emd([1.0], [1.0], 0), ValueError, "alphabet must be at least 1, got 0"),
        (
            lambda: ik.emd([1.0], [1.0], "ages"),
            ValueError,
            "must be a sequence of labels, got the text 'ages'",
        ),
        (
            lambda: ik.total_variation([1.0], [0.5, 0.5]),
            ik.errors.AlphabetMismatch,
            "q must have one .* 1 elements, got 2",
        ),
        (
            lambda: ik.total_variation([], []),
            ik.errors.InvalidDistribution,
            "p must be a non-empty vector, got shape",
        ),
        (
            lambda: ik.squared_l2([1.0, 0.0], [1.0]),
            ik.errors.AlphabetMismatch,
            r"q must have shape \(2,\), got \(1,\)",
        ),
        (
            lambda: ik.squared_l2(np.eye(2), np.eye(2)),
            ik.errors.AlphabetMismatch,
            r"p must have shape \(4,\), got \(2, 2\)",
        ),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
