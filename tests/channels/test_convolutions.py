"""Convolutions of a field with a kernel for each kind of report, against sums written out."""

import threading
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import fft

import ibukit as ik
from ibukit.channels import plane
from ibukit.channels.fourier import padded_transforms
from ibukit.channels.fourier.convolution import Convolutions
from ibukit.channels.fourier.few_cells import FewCells
from ibukit.channels.fourier.few_lines import FewColumns, FewRows
from ibukit.channels.fourier.padded_transforms import PaddedGrid, even_slices
from ibukit.channels.fourier.scattered_cells import ScatteredCells

OUTSIDE = 3  # reports lie up to so many lines beyond the field
seeds = st.integers(0, 2**32)


def places(kind, shape, rng):
    """Cells of one kind: all over the place, in few rows, in few columns, or a few."""
    count = {0: 40, 1: 30, 2: 30, 3: 3}[kind]
    rows, columns = (rng.integers(-OUTSIDE, n + OUTSIDE, count) for n in shape)
    if kind == 1:
        rows = rng.choice(rng.integers(-OUTSIDE, shape[0] + OUTSIDE, 3), count)
    if kind == 2:
        columns = rng.choice(rng.integers(-OUTSIDE, shape[1] + OUTSIDE, 3), count)
    return np.column_stack([rows, columns])


def drawn(shape, rng):
    """Kinds and cells of reports of four kinds, in no order."""
    cells = [places(kind, shape, rng) for kind in range(4)]
    kinds = np.repeat(np.arange(4), [len(own) for own in cells])
    order = rng.permutation(len(kinds))
    return kinds[order], np.concatenate(cells)[order]


def problem(shape, reach, rng, precision=np.float64):
    """Convolutions of four kinds of reports, and their matrix, shape (k, reports)."""
    kinds, cells = drawn(shape, rng)
    tables = rng.random((4, *(1 + r for r in reach))).astype(precision).astype(float)
    lengths = tuple(
        fft.next_fast_len(n + 2 * OUTSIDE + r + 1, real=True)
        for n, r in zip(shape, reach, strict=True)
    )
    away = np.abs(np.indices(shape).reshape(2, -1).T[:, None] - cells)
    inside = (away <= reach).all(axis=2)
    matrix = np.where(inside, tables[kinds, *np.minimum(away, reach).transpose(2, 0, 1)], 0.0)
    return Convolutions.of(PaddedGrid(shape, lengths), tables, kinds, cells, precision), matrix


@contextmanager
def cutting(cut):
    """Whether fields are cut into many blocks and strips, as large ones are."""
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(padded_transforms, "MIN_ENTRIES_TO_SLICE", 0)
            patch.setattr(padded_transforms, "MAX_SLICE_ENTRIES", 150)
        yield


either = pytest.mark.parametrize("cut", [False, True], ids=["in one", "cut"])


def shapes():
    return st.tuples(st.integers(9, 24), st.integers(9, 24))


def reaches():
    return st.tuples(st.integers(1, 30), st.integers(1, 30))


@either
@pytest.mark.parametrize("precision", [np.float64, np.float32])
@given(shape=shapes(), reach=reaches(), seed=seeds)
def test_values_are_sums_over_what_a_kernel_reaches(cut, precision, shape, reach, seed):
    rng = np.random.default_rng(seed)
    with cutting(cut):
        found, matrix = problem(shape, reach, rng, precision)
    assert {type(piece) for piece in found.pieces} >= {ScatteredCells, FewCells}
    field, weights = (rng.normal(size=size).astype(precision) for size in matrix.shape)
    with cutting(cut):
        values, back = found.forward(field), found.adjoint(weights)
    assert values.dtype == back.dtype == precision
    near = {"rtol": 0, "atol": 2e3 * np.finfo(precision).eps}
    np.testing.assert_allclose(values, field @ matrix, **near)
    np.testing.assert_allclose(back, matrix @ weights, **near)


@either
@given(shape=shapes(), seed=seeds)
def test_there_and_back_is_both(cut, shape, seed):
    rng = np.random.default_rng(seed)
    with cutting(cut):
        found, matrix = problem(shape, (5, 7), rng)
    field, weights = (rng.normal(size=size) for size in matrix.shape)
    given_rows, back = field.reshape(shape), np.full(shape, np.nan)
    seen = np.full(matrix.shape[1], np.nan)

    def weigh(job, values):
        seen[job.reports] = values
        return values * weights[job.reports]

    with cutting(cut):
        found.forward_adjoint(given_rows.__getitem__, weigh, back.__setitem__)
    np.testing.assert_allclose(seen, field @ matrix, atol=1e-12)
    np.testing.assert_allclose(back.ravel(), matrix @ (weights * (field @ matrix)), atol=1e-11)


def test_other_kernels_for_the_same_reports(rng):
    shape, field, tables = (17, 21), rng.random(357), rng.random((4, 7, 5))
    found, _ = problem(shape, (6, 4), np.random.default_rng(8))
    replaced = found.with_kernels(tables)
    assert np.abs(replaced.forward(field) - found.forward(field)).max() > 0.1
    fresh = Convolutions.of(found.padded, tables, *drawn(shape, np.random.default_rng(8)))
    np.testing.assert_allclose(replaced.forward(field), fresh.forward(field), rtol=1e-12)


@either
@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_a_single_kind(kind, cut, rng):
    cells, table = places(kind, (14, 18), rng), rng.random((1, 5, 6))
    with cutting(cut):
        found = Convolutions.of(
            PaddedGrid((14, 18), (30, 32)), table, np.zeros(len(cells), int), cells
        )
    assert [type(piece) for piece in found.pieces] == [
        [ScatteredCells, FewRows, FewColumns, FewCells][kind]
    ]
    away = np.abs(np.indices((14, 18)).reshape(2, -1).T[:, None] - cells)
    inside = (away[..., 0] < 5) & (away[..., 1] < 6)
    matrix = np.where(
        inside, table[0, np.minimum(away[..., 0], 4), np.minimum(away[..., 1], 5)], 0.0
    )
    field, weights = rng.random(252), rng.random(len(cells))
    with cutting(cut):
        np.testing.assert_allclose(found.forward(field), field @ matrix, atol=1e-12)
        np.testing.assert_allclose(found.adjoint(weights), matrix @ weights, atol=1e-12)


@pytest.mark.parametrize("threads", [2, 3])
def test_the_same_bits_whoever_works(threads):
    for seed in range(5):
        with cutting(True):
            found, matrix = problem((22, 23), (9, 5), np.random.default_rng(seed))
            field, weights = (
                np.random.default_rng(seed).normal(size=size) for size in matrix.shape
            )
            one = found.forward(field), found.adjoint(weights)
            with fft.set_workers(threads):
                shared = found.forward(field), found.adjoint(weights)
        assert len(found.padded.strips) > 1
        assert all(np.array_equal(a, b) for a, b in zip(one, shared, strict=True))


def test_two_strips_are_worth_a_companion(monkeypatch):
    """Each block waits for the other: in one thread it would be for ever."""
    monkeypatch.setattr(padded_transforms, "MIN_ENTRIES_TO_SLICE", 0)
    found, matrix = problem((22, 23), (9, 5), np.random.default_rng(0))
    assert len(found.padded.strips) == len(found.padded.blocks) == 2
    field, both = np.random.default_rng(1).random((22, 23)), threading.Barrier(2)
    back = np.empty_like(field)

    def source(rows):
        both.wait(60)
        return field[rows]

    with fft.set_workers(2):
        found.forward_adjoint(source, lambda job, values: values, back.__setitem__)
    np.testing.assert_allclose(back.ravel(), matrix @ (field.ravel() @ matrix), rtol=1e-12)


@given(st.integers(1, 40) | st.integers(1, 5000), st.integers(1, 10**8), st.sampled_from([1, 8]))
def test_what_is_cut_is_all_of_it(length, entries, together):
    slices = even_slices(length, entries, together)
    assert [slices[0].start, *(s.stop for s in slices)] == [*(s.start for s in slices), length]
    assert all(s.start % together == 0 and s.start < s.stop for s in slices)
    assert (
        (len(slices) == 1)
        if entries < padded_transforms.MIN_ENTRIES_TO_SLICE or length <= together
        else len(slices) > 1
    )


def plane_channels(rng):
    """With weak reports, scales, factors, reports far away; as the mechanisms make them."""
    grid = ik.Grid(23, 31, cell_size=(1.0, 0.7))
    yield plane.row_normalised(grid, 0.9, np.sort(rng.choice(713, 600, replace=False)))
    yield plane.column_scaled(grid, 1.4, np.arange(713), 10.0 ** rng.uniform(-4, 4, 713))
    yield plane.remapped(grid, ik.TruncatedPlanarGeometric(grid, 0.8)._table, np.arange(713))
    cells = rng.integers(-15, 45, (900, 2))
    beyond = np.hypot(
        *(np.maximum(np.maximum(-c, c - n + 1), 0) for c, n in zip(cells.T, (40, 31), strict=True))
    )
    channel, far = plane.infinite(ik.Grid(40, 31), 1.0, 0.1, cells, beyond)
    channel.columns[:] = rng.random((1240, len(far)))
    yield channel


@either
@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_a_fit_is_forward_and_adjoint(kind, cut, rng, monkeypatch):
    channel = list(plane_channels(rng))[kind]
    theta = 1e-13 * rng.random(channel.k)
    theta[[0, 1, 33]] = rng.random(3)
    theta /= theta.sum()
    one_by_one, asked = plane.PlaneChannel._improbable, []
    monkeypatch.setattr(
        plane.PlaneChannel,
        "_improbable",
        lambda self, m, weak: asked.append(len(weak)) or one_by_one(self, m, weak),
    )
    q, p, g = rng.random(channel.size), np.full(channel.size, np.nan), np.full(channel.k, np.nan)
    with cutting(cut):
        channel.score_into(theta, q, p, g)
        assert sum(asked) > 10, "for some reports a transform will not do"
        np.testing.assert_allclose(p, channel.forward(theta), rtol=1e-9)
    matrix = channel.matrix()
    np.testing.assert_allclose(p, theta @ matrix, rtol=1e-9)
    exact = matrix @ (q / (theta @ matrix))
    assert np.abs(g - exact).max() <= 1e-9 * exact.max()
    assert (g > 0).all()


def test_a_score_of_what_is_no_distribution(rng):
    channel = next(plane_channels(rng))
    theta = rng.random(713)
    theta[5] = -1e-3
    counts = rng.integers(1, 9, channel.size)
    g = channel.matrix() @ (counts / (theta @ channel.matrix()))
    np.testing.assert_allclose(channel.score(theta, counts).g, g, rtol=1e-9)
