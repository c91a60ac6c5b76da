"""Small cases of every compiled loop, for runs without JIT: `make kernels` and `make mutants` name this file.

Not collected by `make test`, whose tests meet the loops compiled. What is checked are laws: matrices written out,
exact fractions, recursions against lists of all secrets.
"""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import LineChannel, _bit_kernels, _plane_kernels, _score_kernels
from ibukit.channels._sign_kernels import hadamard_held
from ibukit.channels.points._slope_kernels import from_above, from_below
from ibukit.posterior import _gibbs_kernels as gibbs
from ibukit.posterior._response_kernels import told
from ibukit.protocols import _hash_kernels, _sketch_kernels
from ibukit.solvers import _em_kernels, _line_kernels, _water_filling_kernels, water_filling
from ibukit.solvers.em import updates_of
from ibukit.solvers.line import _workspace, maximise
from ibukit.testing import check_channel
from test_bloom_rappor import SMALL as FILTERS
from test_bloom_rappor import written_out as filters_written_out
from test_hadamard_channel import SHAPES, signs
from test_hadamard_channel import written_out as signs_written_out
from test_kernels import bit_channel, dense_channel, line_channel, response_channel
from test_line_interior_point import kernel_matrix
from test_local_hashing import bucket, hashed, shuffled
from test_updates import FURTHER
from test_water_filling import exactly
from tests.oracles import naive
from tests.oracles import posterior as oracle

EXACT = {"rtol": 1e-12, "atol": 1e-14}


def assert_gram(channel, dense, rng):
    weights = rng.random(channel.size)
    np.testing.assert_allclose(channel.gram(weights), dense * weights @ dense.T, rtol=1e-11)


# channels


@pytest.mark.parametrize("make", [line_channel, bit_channel, response_channel, dense_channel])
def test_channels_are_their_matrices(make, rng):
    channel, dense = make(rng)
    k, s = dense.shape
    np.testing.assert_allclose([channel.forward(row) for row in np.eye(k)], dense, **EXACT)
    np.testing.assert_allclose(np.transpose([channel.adjoint(row) for row in np.eye(s)]), dense, **EXACT)
    assert_gram(channel, dense, rng)
    for theta in (rng.dirichlet(np.ones(k)), np.arange(k) / sum(range(k))):
        counts = rng.integers(1, 9, s).astype(float)
        p = theta @ dense
        score = channel.score(theta, counts)
        assert score.log_likelihood == pytest.approx(counts @ np.log(p), rel=1e-12)
        np.testing.assert_allclose(score.g, dense @ (counts / p), rtol=1e-12)


@pytest.mark.parametrize("filled", [True, False])
def test_a_pass_over_responses_has_the_extremes_too(filled):
    reports, counts, theta = np.array([0, 2, 3]), np.array([4.0, 1.0, 2.0]), np.array([0.5, 0.25, 0.0, 0.0, 0.25])
    p = 0.1 + 0.3 * theta[reports]
    g = np.zeros(5 if filled else 0)
    logs, least, most = _score_kernels.score_responses(theta, g, 1.0, reports, counts, 0.1, 0.3)
    expected = np.full(5, 0.1 * (counts / p).sum())
    expected[reports] += 0.3 * counts / p
    assert logs == pytest.approx(counts @ np.log(p), rel=1e-14)
    assert (least, most) == (pytest.approx(p.min(), rel=1e-14), pytest.approx(expected.max(), rel=1e-14))
    if filled:
        np.testing.assert_allclose(g, expected, rtol=1e-14)


def test_pairs_of_bits_and_written_numbers(rng):
    bits, w = rng.integers(0, 2, (5, 16), dtype=np.uint8), rng.random(5)
    bits[:, 8:] *= np.array([[1], [0], [1], [0], [1]], dtype=np.uint8)  # some bytes are empty
    total = np.zeros((16, 16))
    _bit_kernels.add_pairs(np.packbits(bits, axis=1), w, total)
    np.testing.assert_allclose(total, np.tril(bits.T * w @ bits), **EXACT)
    numbers, theta, p, g = rng.random((4, 3)), rng.random(3), np.empty(4), np.ones(3)
    _score_kernels.score_written(numbers, theta, w[:4], p, g)
    np.testing.assert_allclose(p, numbers @ theta, **EXACT)
    np.testing.assert_allclose(g, 1 + w[:4] / (numbers @ theta) @ numbers, **EXACT)


@pytest.mark.parametrize("each", [1, 2, 3, 5])
def test_sums_over_levels(each, rng):
    entries = rng.random(3)
    digits = rng.integers(0, 3, (4, 2 * each))
    weights = 3 ** np.arange(each - 1, -1, -1)
    rows = (digits.reshape(4, 2, each) @ weights).astype(np.uint8)
    k = 2 * each - (each > 1)  # does not fill its last byte
    theta, w, dense = rng.random(k), rng.random(4), entries[digits[:, :k]]
    np.testing.assert_allclose(_bit_kernels.levels_forward(rows, entries, each, theta), dense @ theta, **EXACT)
    np.testing.assert_allclose(_bit_kernels.levels_adjoint(rows, entries, each, w, k), w @ dense, **EXACT)


@pytest.mark.parametrize("shape", SHAPES)
def test_signs_are_their_matrix(shape, rng):
    channel = signs(*shape)
    dense = signs_written_out(channel)
    check_channel(channel)
    np.testing.assert_allclose(channel.rows(np.arange(channel.k)), dense, **EXACT)
    assert_gram(channel, dense, rng)
    held = (dense > channel.low * channel.scale * 1.5).any(axis=0)
    found = hadamard_held(channel.places, channel.order, channel.group, channel.column, channel.minus)
    assert np.array_equal(found, held)


def test_sums_to_one_side_and_on_a_plane(rng):
    w, decay = rng.random(6), 0.3
    away = np.subtract.outer(np.arange(6), np.arange(6))
    np.testing.assert_allclose(from_below(w, decay), np.where(away >= 0, decay ** abs(away), 0) @ w, **EXACT)
    np.testing.assert_allclose(from_above(w, decay), np.where(away <= 0, decay ** abs(away), 0) @ w, **EXACT)
    mass, kernels = rng.random(3), rng.random((2, 4, 4))
    secrets, cells, kinds = np.array([[0, 1], [2, 3], [3, 0]]), np.array([[1, 1], [0, 3]]), np.array([1, 0])
    far = [
        [kernels[kind, abs(x[0] - z[0]), abs(x[1] - z[1])] for x in secrets]
        for kind, z in zip(kinds, cells, strict=True)
    ]
    np.testing.assert_allclose(_plane_kernels.forward(mass, secrets, kernels, kinds, cells), far @ mass, **EXACT)


# solvers


@pytest.mark.parametrize("make", FURTHER.values(), ids=FURTHER)
def test_steps_are_those_of_the_oracle(make, rng):
    instance = make(rng)
    for steps in (1, 7):
        ours = ik.ibu(instance.tally, stop=ik.Steps(steps)).distribution
        assert np.abs(ours - naive.ibu(instance.matrix, instance.counts, steps)).max() <= 1e-12


@pytest.mark.parametrize("name", ["three dense", "three lines", "three k-RR", "three RAPPORs"])
def test_steps_end_at_the_first_whose_ratios_are_all_small(name, rng):
    instance = FURTHER[name](rng)
    k, q = instance.tally.k, instance.tally.frequencies
    ratios = []
    for n in range(1, 9):
        theta, g, p = np.full(k, 1 / k), np.ones(k), np.empty(len(q))
        assert updates_of(instance.tally.operator, q)(theta, p, g, n, -1.0) == n
        ratios.append(g.max())
    for enough in (ratios[2], np.nextafter(ratios[4], 0)):
        first = next(i for i, ratio in enumerate(ratios, 1) if ratio <= enough)
        theta, g, p = np.full(k, 1 / k), np.ones(k), np.empty(len(q))
        assert updates_of(instance.tally.operator, q)(theta, p, g, 8, enough) == first


def test_mass_below_the_normal_doubles_is_gone_if_it_falls():
    theta, g = np.array([1e-308, 1e-308, 1.0]), np.array([0.5, 1.5, 2.0])
    assert _em_kernels._step(theta, g) == 2.0
    assert theta.tolist() == [0.0, 1.5e-308, 2.0]
    assert g.tolist() == [0.0] * 3
    assert _em_kernels._any_above(np.array([1.0, np.nan]), 2.0)
    assert not _em_kernels._any_above(np.array([1.0, 2.0]), 2.0)


@pytest.mark.parametrize("counts", [(9, 5, 3, 1), (100, 1, 1, 1), (1, 1, 1, 1), (50, 40, 2, 1, 1, 1), (7, 0, 2)])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_water_finds_its_level(counts, epsilon):
    k, seen = len(counts) + 1, np.flatnonzero(counts)
    q = np.array(counts)[seen] / sum(counts)
    channel = ik.RandomizedResponse(k, epsilon).channel(seen)
    contrast = channel.diagonal - channel.off
    theta = water_filling.maximise(channel, q)
    np.testing.assert_allclose(
        theta[seen], exactly(q, contrast, channel.off), atol=1e-13 * (1 + channel.off / contrast)
    )
    assert theta.sum() == pytest.approx(1, rel=1e-14)


def test_many_secrets_are_summed_in_blocks(rng):
    q = rng.dirichlet(np.ones(2 * _water_filling_kernels.BLOCK + 5))
    channel = ik.RandomizedResponse(len(q), 6.0).channel(np.arange(len(q)))
    theta = water_filling.maximise(channel, q)
    ratios = channel.adjoint(q / channel.forward(theta))
    assert abs(ratios[theta > 0] - 1).max() <= 1e-9
    assert ratios.max() <= 1 + 1e-9


def test_equal_reports_share_what_no_level_tells_apart():
    theta, q = np.zeros(4), np.array([0.4, 0.4, 0.2])
    _water_filling_kernels.fill(theta, np.array([0, 2, 3]), q, 1.0, 0.5, 0.5)
    assert theta.tolist() == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize("eps", [1e-6, 0.05, 1.0, 8.0])
@pytest.mark.parametrize("costs", [False, True])
def test_a_line_is_climbed_to_its_top(eps, costs, rng):
    channel = LineChannel(9, math.exp(-eps), np.array([0, 1, 3, 4, 8]), np.ones(5))
    q = rng.dirichlet(np.full(5, 0.5))
    cost = rng.uniform(0.5, 2, 9) if costs else None
    theta, steps = maximise(channel, q, 1e-9, cost)
    g = channel.adjoint(q / channel.forward(theta)) / (1 if cost is None else cost)
    assert g.max() <= 1 + 1e-9
    assert (theta >= 0).all()
    assert (theta if cost is None else theta * cost).sum() == pytest.approx(1, rel=1e-12)
    assert 0 < steps <= 20


def test_steps_on_a_line_are_few(rng):
    channel = LineChannel(40, math.exp(-0.3), np.arange(40), np.ones(40))
    counts = rng.multinomial(500, kernel_matrix(channel)[[5, 20]].sum(axis=0) / kernel_matrix(channel)[[5, 20]].sum())
    seen = np.flatnonzero(counts)
    channel = LineChannel(40, math.exp(-0.3), seen, np.ones(len(seen)))
    theta, steps = maximise(channel, counts[seen] / 500, 1e-9)
    assert channel.adjoint(counts[seen] / 500 / channel.forward(theta)).max() <= 1 + 1e-9
    assert (theta > 0).sum() < len(seen)  # exact zeros, by Newton's method on the support
    assert steps <= 25


def test_a_newton_step_on_a_line_solves_its_equations(rng):
    seen, decay = np.array([0, 1, 4, 6, 7]), 0.6
    work = _workspace(rng.dirichlet(np.ones(5)), seen, decay)
    K = decay ** np.abs(np.subtract.outer(seen, seen))
    q, theta, lam, s = work[_line_kernels.Q], *rng.random((3, 5))
    largest = _line_kernels.fit(work, theta)
    nu = theta @ K
    np.testing.assert_allclose(work[_line_kernels.NU], nu, **EXACT)
    np.testing.assert_allclose(work[_line_kernels.G], K @ (q / nu), **EXACT)
    assert largest == pytest.approx((K @ (q / nu)).max(), rel=1e-13)
    _line_kernels.factor(work, theta, s, lam)
    f, h = rng.normal(size=(2, 5))
    work[_line_kernels.Y], work[_line_kernels.V] = f, h
    _line_kernels.solve(work)
    inverse = np.linalg.inv(K)
    system = np.block([[np.diag(lam / nu), inverse], [inverse, -np.diag(theta / s)]])
    y, v = np.split(np.linalg.solve(system, np.concatenate([f, h])), 2)
    np.testing.assert_allclose(work[_line_kernels.Y], y, rtol=1e-10)
    np.testing.assert_allclose(work[_line_kernels.V], v, rtol=1e-10)
    out = np.empty(5)
    _line_kernels.unsweep(work[_line_kernels.RATIO], work[_line_kernels.LOSS], f, out)
    np.testing.assert_allclose(out, inverse @ f, rtol=1e-11)


def climbed(q, eps, goal=1e-9, em_steps=3, most=100, patience=8):
    """The excess that a climb ends with, its steps, and whether the point that it keeps has that excess."""
    seen = np.arange(len(q))
    work = _workspace(np.array(q), seen, math.exp(-eps))
    best, steps = _line_kernels.climb(work, goal, em_steps, 0.1, False, 1e-8, most, patience)
    K = math.exp(-eps) ** np.abs(np.subtract.outer(seen, seen))
    theta = work[_line_kernels.BEST]
    assert theta.sum() == pytest.approx(1, rel=1e-13)
    assert (K @ (q / (theta @ K))).max() - 1 == pytest.approx(best, rel=1e-9, abs=1e-14)
    return best, steps


def test_a_climb_ends_as_soon_as_it_may(rng):
    uneven = [0.6, 0.1, 0.05, 0.25]
    assert climbed([0.5, 0.5], 1.0) == (pytest.approx(0, abs=1e-15), 0)  # uniform is the maximiser
    assert climbed(uneven, 1.0, goal=0.5, em_steps=50)[1] == 0
    assert climbed(uneven, 1.0, most=2)[1] == 2
    best, steps = climbed(uneven, 1.0, goal=-1.0, patience=2)  # no excess is below 0: it stops where none improves
    assert (abs(best) <= 1e-12, steps < 40) == (True, True)


def test_peaks_of_the_ratios_join_the_support():
    work = np.zeros((_line_kernels.ROWS, 6))
    work[_line_kernels.G] = [1.1, 1.0, 1.3, 1.3, 1.2, 1.25]
    point = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert _line_kernels.set_support(work, point)
    # of two equal neighbours the right one
    assert np.flatnonzero(point).tolist() == [0, 1, 3, 5]
    work[_line_kernels.G, 1] = 1.5
    assert not _line_kernels.set_support(work, np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))


def test_what_reaches_no_report_is_infinitely_wrong():
    work = _workspace(np.array([0.5, 0.5]), np.array([0, 3000]), 1e-300)
    assert _line_kernels.fit(work, np.array([1.0, 0.0])) == np.inf


# protocols


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("k", "g"), [(9, 3), (17, 4), (5, 2)])
def test_hashes_are_the_stated_ones(k, g, balanced):
    seeds = np.array([0, 12345678901234567, 2**63 - 1])
    expected = [shuffled(int(z), k, g) if balanced else [hashed(int(z), x, g) for x in range(k)] for z in seeds]
    found = np.array([_hash_kernels.buckets(seeds, np.full(3, x), k, g, balanced) for x in range(k)]).T
    assert np.array_equal(found, expected)
    reports = np.column_stack([seeds, [0, 1, g - 1]])
    rows = _hash_kernels.supports(reports, k, g, balanced)
    supported = np.array(expected) == reports[:, 1:]
    assert np.array_equal(np.unpackbits(rows, axis=1), np.pad(supported, ((0, 0), (0, -k % 8))))
    weights = np.array([1.0, 2.5, 0.5])
    assert np.array_equal(_hash_kernels.support_counts(reports, weights, k, g, balanced), weights @ supported)


def test_words_that_would_favour_a_bucket_are_drawn_again():
    g = 2**31 + 1
    for word in (0, 1, g, 2**32, 2**63 + 5, 2**64 - 1):
        assert int(_hash_kernels.bucket_of(np.uint64(word), np.uint64(g))) == bucket(word, g)


def test_buckets_of_a_sketch_are_one_family(rng):
    rows, secrets = np.array([3, 0, 3]), np.array([4, 1, 0])
    table = _sketch_kernels.buckets(rows, 5, 7, 11)
    assert ((table >= 0) & (table < 7)).all()
    assert np.array_equal(table[0], table[2])
    assert (table[0] != table[1]).any()
    assert np.array_equal(_sketch_kernels.buckets_of(rows, secrets, 7, 11), table[np.arange(3), secrets])
    packed = rng.integers(0, 256, (3, 1), dtype=np.uint8)
    bits = np.unpackbits(packed, axis=1)
    expected = np.pad(np.take_along_axis(bits, table, axis=1), ((0, 0), (0, 3)))
    assert np.array_equal(np.unpackbits(_sketch_kernels.bits_of_secrets(rows, packed, 5, 7, 11), axis=1), expected)


@pytest.mark.parametrize("mechanism", FILTERS)
def test_filters_follow_their_definition(mechanism):
    np.testing.assert_allclose(mechanism.matrix(), filters_written_out(mechanism), rtol=1e-12)
    logs = np.log(mechanism.matrix())
    assert mechanism.epsilon == pytest.approx((logs.max(axis=0) - logs.min(axis=0)).max(), rel=1e-12)


# posterior


def test_a_posterior_is_the_list_of_all_secrets():
    matrix = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.0, 0.5, 0.5]])
    alpha, counts = [0.3, 2.0, 1.0], (2, 1, 2)
    found = ik.posterior(ik.MatrixMechanism(matrix).tally_counts(counts), alpha, "frequencies", method="exact")
    totals, evidence = oracle.by_listing(matrix, counts, alpha)
    mean = sum(p * np.array(t) for t, p in totals.items()) / 5
    square = sum(p * np.array(t) ** 2 for t, p in totals.items()) / 25
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.standard_deviations**2, square - mean**2, rtol=1e-10)
    assert found.log_evidence == pytest.approx(math.log(evidence), rel=1e-12)


def test_how_many_of_equal_reports_tell():
    lie, centre, alpha, counts = 0.2, 0.7, np.array([0.5, 0.5, 2.0]), np.array([2, 4, 3])
    y = np.array([0.7 + 0.1j, 0.6 - 0.3j])
    logs, means, variances, ratios, t, rest, v = told(alpha, counts, lie, centre, y)
    for i, (a, s) in enumerate(zip(alpha, counts, strict=True)):
        rising = [math.comb(s, j) * math.prod(a + m for m in range(j)) * lie ** (s - j) for j in range(s + 1)]
        j = np.arange(s + 1)
        for at, (total, mean, variance) in [
            (centre, (math.exp(logs[i]), means[i], variances[i])),
            *((y[n], (ratios[i, n] * math.exp(logs[i]), t[i, n], v[i, n])) for n in range(2)),
        ]:
            w = rising * at**j
            assert total == pytest.approx(w.sum(), rel=1e-12)
            assert mean == pytest.approx((w @ j) / w.sum(), rel=1e-12)
            assert variance == pytest.approx((w @ j**2) / w.sum() - ((w @ j) / w.sum()) ** 2, rel=1e-11)
        np.testing.assert_allclose(rest[i], s - t[i], rtol=1e-12)


def test_uniform_numbers_say_whom_a_report_tells():
    p, counts, cells = np.array([0.1, 0.2, 0.0, 0.3, 0.15, 0.0, 0.05, 0.1, 0.1, 0.0]), np.array([2000, 1000]), 10
    bits = np.zeros((2, 16), dtype=np.uint8)
    bits[0, [0, 1, 2, 8]], bits[1, [3, 9]] = 1, 1
    padded = np.pad(p, (0, 6))
    # the middles of equal cells: every share is met within one user
    uniforms = np.concatenate([(np.arange(c) + 0.5) / c for c in counts])
    zero, contrast = 0.2, 0.5
    totals = gibbs.assigned_by_bits(np.packbits(bits, axis=1), counts, zero, contrast, padded, uniforms)
    told_by = contrast * bits * padded / (zero + contrast * (bits * padded).sum(axis=1, keepdims=True))
    assert np.abs(totals - counts @ told_by).max() <= 2
    excess, least = contrast * bits[:, :cells].astype(float), np.full(2, zero)
    assert np.array_equal(gibbs.assigned_by_columns(excess, least, counts, p, uniforms), totals[:cells])


def test_moves_of_a_walk_keep_mass_slope_and_the_law():
    p, hessian = np.array([0.5, 0.3, 0.2]), np.array([[8.0, 1, 2], [1, 6, 1], [2, 1, 9]])
    alpha, slope = np.array([1.0, 2.0, 0.5]), np.array([3.0, -1.0, 0.5])
    start = p.copy()

    def move(x, y, from_prior, log_uniform, parts=(0.25, 0.75), normal=0.4):
        q, own = start.copy(), slope.copy()
        arrays = [np.array([i]) for i in (x, y, from_prior)]
        numbers = np.array([parts]), np.array([normal]), np.array([log_uniform])
        gibbs.surrogate_walk(q, own, hessian, alpha, *arrays, *numbers)
        assert q.sum() == pytest.approx(1, rel=1e-14)
        np.testing.assert_allclose(own, slope - hessian @ (q - start), rtol=1e-12)
        return q

    assert move(0, 1, True, -1e9) == pytest.approx([0.2, 0.6, 0.2])  # the parts of their common mass
    assert move(1, 0, True, -1e9) == pytest.approx([0.6, 0.2, 0.2])
    curvature, rise = 8 + 6 - 2 * 1, 3.0 + 1.0
    moved = rise / curvature + 0.4 / math.sqrt(curvature)
    assert move(0, 1, False, -1e9, normal=-0.4) == pytest.approx(
        [0.5 + rise / curvature - 0.4 / math.sqrt(curvature), 0.3 - rise / curvature + 0.4 / math.sqrt(curvature), 0.2]
    )
    assert move(0, 1, False, -1e9) == pytest.approx(start if moved >= 0.3 else [0.5 + moved, 0.3 - moved, 0.2])
    hessian *= -1  # no parabola with a top: only the prior proposes
    assert move(0, 1, False, -1e9) == pytest.approx(start)
    hessian *= -1
    # accepted just below the logarithm of the ratio, refused just above it
    for x, y, from_prior in [(0, 1, True), (1, 0, True), (0, 1, False)]:
        to = move(x, y, from_prior, -1e9, normal=-0.4)
        change = to - start
        parabola = slope @ change - change @ hessian @ change / 2
        prior = (alpha - 1) @ np.log(to / start)
        ratio = parabola if from_prior else prior
        assert move(x, y, from_prior, ratio - 1e-9, normal=-0.4) == pytest.approx(to)
        assert move(x, y, from_prior, ratio + 1e-9, normal=-0.4) == pytest.approx(start)
