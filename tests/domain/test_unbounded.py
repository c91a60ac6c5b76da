"""Alphabets without an end:
what they refuse, and that the part between the reports is all an estimate needs.
"""

import copy
import pickle

import numpy as np
import pytest

import ibukit as ik

LINES = [ik.Line(None, None), ik.Line(0, None), ik.Line(None, 5, unit="euro")]
PLANES = [
    ik.Grid(None, None, cell_size=0.5),
    ik.Grid(None, None, cell_size=(0.3, 1.1), unit="mile"),
]


@pytest.mark.parametrize("alphabet", [*LINES, *PLANES], ids=repr)
@pytest.mark.parametrize(
    "asked",
    [
        len,
        lambda a: a.values,
        lambda a: a.distances(),
        lambda a: a.codes([1]),
        lambda a: ik.RandomizedResponse(a, 1.0),
        lambda a: ik.Rappor(a, 1.0),
        lambda a: ik.SubsetSelection(a, 1.0),
        lambda a: ik.Exponential(a, 1.0),
        lambda a: ik.MatrixMechanism(np.eye(2), a),
        lambda a: ik.emd([1.0], [1.0], a),
    ],
)
def test_what_needs_an_end_says_so(alphabet, asked):
    with pytest.raises(
        ik.errors.TooLarge, match=r"has no end, and so no .*: take a bounded alphabet"
    ) as error:
        asked(alphabet)
    assert repr(alphabet) in str(error.value)
    # All mechanisms that do work without an end are named.
    assert "LinearGeometric, DiscreteGaussian and PlanarGeometric work" in str(error.value)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (lambda: ik.TruncatedGeometric(LINES[0], 1.0), "length"),
        (lambda: ik.LinearLaplace(LINES[1], 1.0), "length"),
        (lambda: ik.TruncatedPlanarGeometric(PLANES[0], 1.0), "length"),
        (lambda: ik.PlanarLaplace(PLANES[0], 1.0), "length"),
        (lambda: ik.LinearGeometric(LINES[0], 1.0).k, "length"),
        (
            lambda: ik.LinearGeometric(LINES[0], 1.0).simulate([3], np.random.default_rng(1)),
            "length",
        ),
        (lambda: ik.theory.dominated(ik.LinearGeometric(LINES[0], 1.0), [3]), "length"),
        (lambda: LINES[0].first, "first element"),
        (lambda: LINES[1].last, "last element"),
        (lambda: PLANES[0].n_rows, "number of rows"),
        (lambda: PLANES[0].centers(), "list of values"),
    ],
)
def test_what_there_is_not_has_a_name(asked, what):
    with pytest.raises(ik.errors.TooLarge, match=f"no {what}"):
        asked()


def test_bad_calls_say_what_to_do(rng):
    with pytest.raises(ValueError, match="n_rows and n_cols must both be None"):
        ik.Grid(None, 3)
    with pytest.raises(ValueError, match="bounds and first must be left out"):
        ik.Grid(None, None, bounds=(0, 1, 0, 1))
    with pytest.raises(ValueError, match="first must be a whole number"):
        ik.Line(0.5, None)
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"secrets contains -1, which is not in Line\(0, None\)"
    ):
        ik.LinearGeometric(LINES[1], 1.0).randomize([2, -1], rng)
    with pytest.raises(ValueError, match=r"\(row, column\) pairs"):
        ik.PlanarGeometric(PLANES[0], 1.0).randomize([[1, 2, 3]], rng)
    with pytest.raises(ValueError, match="at least one report"):
        ik.LinearGeometric(LINES[1], 1.0).tally([])
    with pytest.raises(ValueError, match="at least one report"):
        ik.PlanarGeometric(PLANES[0], 1.0).tally(np.zeros((0, 2), int))
    with pytest.raises(
        ik.errors.TooLarge, match="reports must not lie so far apart: between them are 1e"
    ):
        ik.LinearGeometric(LINES[0], 1.0).tally([0, 10**9])
    with pytest.raises(ik.errors.TooLarge, match="reports must not lie so far apart"):
        ik.PlanarGeometric(PLANES[0], 1.0).tally([[0, 0], [10**5, 10**5]])
    for tally in (ik.LinearGeometric(LINES[0], 1.0).tally([1, 2]),):
        with pytest.raises(ik.errors.TooLarge, match="a Dirichlet prior is over all secrets"):
            ik.posterior_mean(tally, 0.5)
        with pytest.raises(
            ik.errors.TooLarge, match="a smooth curve does not end with the reports"
        ):
            ik.smooth(tally)
        with pytest.raises(ik.errors.NotInvertible):
            ik.inv(tally)


def test_alphabets_without_an_end_compare_and_travel():
    assert ik.Line(None, None) == ik.Line(None, None) != ik.Line(0, None) != ik.Line(0, 9)
    assert ik.Grid(None, None, 0.5) == ik.Grid(None, None, (0.5, 0.5)) != ik.Grid(None, None, 0.4)
    assert isinstance(ik.Line(0, None), ik.Line)
    assert isinstance(ik.Grid(None, None), ik.Grid)
    assert ik.Line(0, None).first == 0
    assert [alphabet.bounded for alphabet in (*LINES, *PLANES, ik.Line(0, 3), ik.Grid(2, 2))] == [
        False
    ] * 5 + [True] * 2
    for alphabet in (*LINES, *PLANES, ik.Grid(2, 3, first=(-4, 5))):
        for again in (pickle.loads(pickle.dumps(alphabet)), copy.deepcopy(alphabet)):
            assert again == alphabet
            assert hash(again) == hash(alphabet)
            assert repr(again) == repr(alphabet)
    tally = ik.LinearGeometric(LINES[1], 1.0).tally([3, 5])
    again = pickle.loads(pickle.dumps(tally))
    assert (again.full_alphabet, again.alphabet) == (LINES[1], ik.Line(3, 5))


def test_a_grid_may_begin_anywhere():
    # all that depends on places is as on a grid that begins at (0, 0)
    here, there = ik.Grid(3, 4, (0.5, 0.25)), ik.Grid(3, 4, (0.5, 0.25), first=(-7, 10))
    assert there.values[0].tolist() == [-7, 10]
    assert there.codes(there.values).tolist() == list(range(12))
    assert there != here
    np.testing.assert_allclose(there.distances(), here.distances())
    np.testing.assert_allclose(there.centers() - here.centers(), [[-3.5, 2.5]] * 12)
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"\(0, 0\): outside 3 x 4 cells from \(-7, 10\)"
    ):
        there.codes([[0, 0]])
    frame = there.to_geodataframe(np.arange(12))
    assert frame.total_bounds.tolist() == [2.5, -3.5, 3.5, -2.0]
    assert ik.Grid.from_geodataframe(frame)[0] == there
    rng = np.random.default_rng(1)
    for kind in (ik.TruncatedPlanarGeometric, ik.PlanarLaplace, ik.Exponential):
        np.testing.assert_allclose(kind(there, 1.0).matrix(), kind(here, 1.0).matrix())
        a = kind(here, 1.0).draw(np.array([0, 5, 11]), np.random.default_rng(2))
        np.testing.assert_array_equal(
            kind(there, 1.0).draw(np.array([0, 5, 11]), np.random.default_rng(2)), a
        )
    reports = ik.PlanarGeometric(here, 0.4).draw(rng.integers(0, 12, 50), rng)
    shifted = reports + np.array([-7, 10])
    first, second = (
        ik.PlanarGeometric(here, 0.4).tally(reports),
        ik.PlanarGeometric(there, 0.4).tally(shifted),
    )
    np.testing.assert_allclose(second.matrix(), first.matrix())
    np.testing.assert_allclose(second.log_scale, first.log_scale)


def test_a_large_grid_may_begin_anywhere(rng):
    # convolutions instead of a matrix
    here, there = ik.Grid(64, 64), ik.Grid(64, 64, first=(100, -30))
    reports = ik.PlanarGeometric(here, 0.1).draw(rng.integers(0, 64**2, 4000), rng)
    theta = rng.dirichlet(np.ones(64**2))
    first = ik.PlanarGeometric(here, 0.1).tally(reports)
    second = ik.PlanarGeometric(there, 0.1).tally(reports + np.array([100, -30]))
    assert type(second.operator).__name__ == "PlaneChannel"
    np.testing.assert_allclose(second.forward(theta), first.forward(theta))
    codes = rng.integers(0, 64**2, 4000)
    for kind in (ik.TruncatedPlanarGeometric, ik.Exponential):
        np.testing.assert_allclose(
            kind(there, 0.1).tally(codes, codes=True).forward(theta),
            kind(here, 0.1).tally(codes, codes=True).forward(theta),
        )


def test_estimates_say_what_they_are_of():
    mechanism = ik.LinearGeometric(ik.Line(0, None), 0.5)
    tally = mechanism.tally([-3, 4, 4, 12])
    assert repr(tally) == "Tally(n=4, k=13 of Line(0, None), 3 distinct reports of LinearGeometric)"
    estimate = ik.mle(tally)
    assert estimate.alphabet == ik.Line(0, 12)
    assert "k=13 on Line(0, 12), 0 elsewhere on Line(0, None)" in repr(estimate)
    assert "elsewhere" not in repr(ik.mle(ik.LinearGeometric(13, 0.5).tally([4])))
    # all reports before the line begins: then all mass is on its first element
    assert ik.mle(mechanism.tally([-8, -3])).alphabet == ik.Line(0, 0)
    cells = ik.mle(ik.PlanarGeometric(PLANES[1], 1.0).tally([[4, -2], [6, 1]]))
    assert cells.alphabet == ik.Grid(3, 4, (0.3, 1.1), first=(4, -2))
    assert cells.alphabet.unit == "mile"


@pytest.mark.parametrize("whole", [*LINES, *PLANES], ids=repr)
def test_reports_have_the_same_law_as_on_a_part_that_holds_the_secrets(whole, rng):
    if isinstance(whole, ik.Line):
        part, kind, secrets = ik.Line(1, 4), ik.LinearGeometric, np.array([1, 1, 2, 4])
    else:
        part, kind, secrets = (
            whole.window(np.array([[0, 0], [1, 2]])),
            ik.PlanarGeometric,
            np.array([[0, 1], [1, 2]]),
        )
    endless, bounded = kind(whole, 1.0), kind(part, 1.0)
    many = np.repeat(secrets, 20_000, axis=0)
    tally = endless.tally(endless.randomize(many, rng))
    p = bounded.tally(tally.parts[0].reports).forward(
        np.bincount(part.codes(many), minlength=len(part)) / len(many)
    )
    expected = len(many) * p
    often = expected > 25
    z = (tally.counts - expected)[often] / np.sqrt(expected[often])
    # chi-squared of all frequent reports: a false alarm once in 10^6, at 5 standard deviations
    assert abs((z**2).sum() - often.sum()) < 5 * np.sqrt(2 * often.sum())
    assert expected[often].sum() > 0.9 * len(many)


def test_no_report_at_all_is_named_on_an_alphabet_without_an_end_too():
    for alphabet in (ik.Line(0, None), ik.Line(0, 9)):
        with pytest.raises(ValueError, match="reports"):
            ik.LinearGeometric(alphabet, 0.5).tally([])
