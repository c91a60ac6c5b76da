"""Small cases of all other compiled loops, for runs without JIT:
`make kernels` and `make mutants` name this file.

Not collected by `make test`, whose tests meet the loops compiled. What is checked are laws:
matrices written out, exact fractions, recursions against lists of all secrets.
"""

import math

import numpy as np
import pytest
import scipy

import ibukit as ik
from ibukit.bayes import _gibbs_kernels as gibbs
from ibukit.bayes._count_recursion_kernels import add_user
from ibukit.bayes._randomized_response_kernels import report_moments
from ibukit.bayes.sums._mixture_kernels import mixture_sums
from ibukit.channels import _bit_kernels, _plane_kernels, _score_kernels
from ibukit.channels.points._laplace_kernels import from_above, from_below
from ibukit.channels.signs._sign_kernels import hadamard_agreed, odd
from ibukit.mechanisms.sketches import _hash_kernels, _sketch_kernels
from ibukit.solvers.responses._water_filling_kernels import fill, water_level
from ibukit.testing import check_channel
from test_bloom_rappor import SMALL as FILTERS
from test_bloom_rappor import written_out as filters_written_out
from test_boundary import (
    test_a_parabola_is_highest_where_its_equalities_hold,  # noqa: F401 - run here, too
    test_blocks_lead_to_the_maximum_of_most_problems,  # noqa: F401
    test_drawn_ratios_are_those_of_another_solver,  # noqa: F401
    test_one_secret_at_a_time_leads_to_the_maximum_as_well,  # noqa: F401
)
from test_hadamard_channel import SHAPES, signs
from test_hadamard_channel import written_out as signs_written_out
from test_kernels import (
    bit_channel,
    dense_channel,
    line_channel,
    response_channel,
    test_every_bit_of_every_byte,  # noqa: F401 - run here, too
    test_sweep_with_steps,  # noqa: F401
)
from test_line_pools import (
    test_loops_are_sums_of_the_terms_written_out,  # noqa: F401 - run here, too
)
from test_listed_region import (
    TWO_SECRETS,
    test_fits_are_proved_and_attained_whatever_was_not_seen,  # noqa: F401 - run here, too
    test_the_slope_is_where_the_largest_line_is_lowest,  # noqa: F401
)
from test_local_hashing import bucket, hashed, shuffled
from test_trajectories import (
    test_a_trajectory_keeps_sum_and_energy_and_runs_backwards,  # noqa: F401
    test_arcs_and_reflections_are_those_of_small_steps,  # noqa: F401
    test_it_stops_after_too_many_walls,  # noqa: F401
)
from tests.oracles import posterior as oracle

EXACT = {"rtol": 1e-12, "atol": 1e-14}


def test_a_sign_is_the_parity_of_all_bits_that_two_numbers_share(rng):
    for r, c in rng.integers(0, 2**31, (200, 2)).tolist():
        assert odd(r, c) == (r & c).bit_count() % 2


def assert_gram(channel, dense, rng):
    weights = rng.random(channel.size)
    np.testing.assert_allclose(channel.gram(weights), dense * weights @ dense.T, rtol=1e-11)


# intervals


def test_calibrated_ends_of_three_reports_are_those_of_all_ten_tallies():
    estimate = ik.mle(ik.MatrixMechanism(TWO_SECRETS).tally_counts([2, 1, 0]))
    lower, upper = estimate.interval(0.5, of=[1, 0], method="calibrated")
    assert upper == 1
    # By a grid of 1,001 answers: p-values of all ten tallies.
    assert lower == pytest.approx(0.661, abs=1e-3)


# posteriors


def test_a_mixture_of_gamma_densities_is_summed_from_its_largest_term(rng):
    shares, x = rng.dirichlet(np.ones(12)), np.array([0.01, 3.0, 9.5, 40.0])
    shapes = 0.7 + 2 + np.arange(12)
    densities = scipy.stats.gamma.pdf(x[:, None], shapes)
    tops = densities.argmax(axis=1)
    np.testing.assert_allclose(
        mixture_sums(x, 0.7, 2, shares, tops),
        densities @ shares / densities.max(axis=1),
        rtol=1e-12,
    )


# channels


@pytest.mark.parametrize("size", [0, 1, 33, 1500])
def test_a_sum_in_blocks_is_the_sum(size, rng):
    values = rng.random(size)
    assert _score_kernels.sum_in_blocks(values) == pytest.approx(math.fsum(values), rel=1e-14)


@pytest.mark.parametrize("make", [line_channel, bit_channel, response_channel, dense_channel])
def test_channels_are_their_matrices(make, rng):
    channel, dense = make(rng)
    k, s = dense.shape
    np.testing.assert_allclose([channel.forward(row) for row in np.eye(k)], dense, **EXACT)
    np.testing.assert_allclose(
        np.transpose([channel.adjoint(row) for row in np.eye(s)]), dense, **EXACT
    )
    assert_gram(channel, dense, rng)
    for theta in (rng.dirichlet(np.ones(k)), np.arange(k) / sum(range(k))):
        counts = rng.integers(1, 9, s).astype(float)
        p = theta @ dense
        score = channel.score(theta, counts)
        assert score.log_likelihood == pytest.approx(counts @ np.log(p), rel=1e-12)
        np.testing.assert_allclose(score.g, dense @ (counts / p), rtol=1e-12)


@pytest.mark.parametrize("filled", [True, False])
def test_a_pass_over_responses_has_the_extremes_too(filled):
    reports, counts, theta = (
        np.array([0, 2, 3]),
        np.array([4.0, 1.0, 2.0]),
        np.array([0.5, 0.25, 0.0, 0.0, 0.25]),
    )
    p = 0.1 + 0.3 * theta[reports]
    g = np.zeros(5 if filled else 0)
    logs, least, most = _score_kernels.score_responses(theta, g, 1.0, reports, counts, 0.1, 0.3)
    expected = np.full(5, 0.1 * (counts / p).sum())
    expected[reports] += 0.3 * counts / p
    assert logs == pytest.approx(counts @ np.log(p), rel=1e-14)
    assert (least, most) == (
        pytest.approx(p.min(), rel=1e-14),
        pytest.approx(expected.max(), rel=1e-14),
    )
    if filled:
        np.testing.assert_allclose(g, expected, rtol=1e-14)


def test_pairs_of_bits_and_written_numbers(rng):
    bits, w = rng.integers(0, 2, (5, 16), dtype=np.uint8), rng.random(5)
    bits[:, 8:] *= np.array([[1], [0], [1], [0], [1]], dtype=np.uint8)  # some bytes are empty
    total = np.zeros((16, 16))
    _bit_kernels.add_pairs(np.packbits(bits, axis=1), w, total)
    np.testing.assert_allclose(total, np.tril(bits.T * w @ bits), **EXACT)
    numbers, theta, p, g = rng.random((4, 3)), rng.random(3), np.empty(4), np.ones(3)
    _score_kernels.score_rows(numbers, theta, w[:4], p, g)
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
    np.testing.assert_allclose(
        _bit_kernels.levels_forward(rows, entries, each, theta), dense @ theta, **EXACT
    )
    np.testing.assert_allclose(
        _bit_kernels.levels_adjoint(rows, entries, each, w, k), w @ dense, **EXACT
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_signs_are_their_matrix(shape, rng):
    channel = signs(*shape)
    dense = signs_written_out(channel)
    check_channel(channel)
    np.testing.assert_allclose(channel.rows(np.arange(channel.k)), dense, **EXACT)
    assert_gram(channel, dense, rng)
    held = (dense > channel.low * channel.scale * 1.5).any(axis=0)
    found = hadamard_agreed(
        channel.places, channel.order, channel.group, channel.column, channel.minus
    )
    assert np.array_equal(found, held)


def test_sums_to_one_side_and_on_a_plane(rng):
    w, decay = rng.random(6), 0.3
    away = np.subtract.outer(np.arange(6), np.arange(6))
    np.testing.assert_allclose(
        from_below(w, decay), np.where(away >= 0, decay ** abs(away), 0) @ w, **EXACT
    )
    np.testing.assert_allclose(
        from_above(w, decay), np.where(away <= 0, decay ** abs(away), 0) @ w, **EXACT
    )
    mass, kernels = rng.random(3), rng.random((2, 4, 4))
    secrets, cells, kinds = (
        np.array([[0, 1], [2, 3], [3, 0]]),
        np.array([[1, 1], [0, 3]]),
        np.array([1, 0]),
    )
    far = [
        [kernels[kind, abs(x[0] - z[0]), abs(x[1] - z[1])] for x in secrets]
        for kind, z in zip(kinds, cells, strict=True)
    ]
    np.testing.assert_allclose(
        _plane_kernels.forward(mass, secrets, kernels, kinds, cells), far @ mass, **EXACT
    )


# protocols


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("k", "g"), [(9, 3), (17, 4), (5, 2)])
def test_hashes_are_the_stated_ones(k, g, balanced):
    seeds = np.array([0, 12345678901234567, 2**63 - 1])
    expected = [
        shuffled(int(z), k, g) if balanced else [hashed(int(z), x, g) for x in range(k)]
        for z in seeds
    ]
    found = np.array(
        [_hash_kernels.buckets(seeds, np.full(3, x), k, g, balanced) for x in range(k)]
    ).T
    assert np.array_equal(found, expected)
    reports = np.column_stack([seeds, [0, 1, g - 1]])
    rows = _hash_kernels.supports(reports, k, g, balanced)
    supported = np.array(expected) == reports[:, 1:]
    assert np.array_equal(np.unpackbits(rows, axis=1), np.pad(supported, ((0, 0), (0, -k % 8))))
    weights = np.array([1.0, 2.5, 0.5])
    assert np.array_equal(
        _hash_kernels.support_counts(reports, weights, k, g, balanced), weights @ supported
    )


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
    assert np.array_equal(
        _sketch_kernels.buckets_of(rows, secrets, 7, 11), table[np.arange(3), secrets]
    )
    packed = rng.integers(0, 256, (3, 1), dtype=np.uint8)
    bits = np.unpackbits(packed, axis=1)
    expected = np.pad(np.take_along_axis(bits, table, axis=1), ((0, 0), (0, 3)))
    assert np.array_equal(
        np.unpackbits(_sketch_kernels.bits_of_secrets(rows, packed, 5, 7, 11), axis=1), expected
    )


@pytest.mark.parametrize("mechanism", FILTERS)
def test_filters_follow_their_definition(mechanism):
    np.testing.assert_allclose(mechanism.matrix(), filters_written_out(mechanism), rtol=1e-12)
    logs = np.log(mechanism.matrix())
    assert mechanism.epsilon == pytest.approx(
        (logs.max(axis=0) - logs.min(axis=0)).max(), rel=1e-12
    )


# solvers


def test_frequencies_that_no_double_tells_from_the_level_share_alike():
    q, theta = np.ones(3), np.zeros(4)
    beta = water_level(q, 3.0, 1e-17, 1.0)
    assert beta == 1
    fill(theta, np.array([0, 1, 3]), q, beta, 1e-17, 1.0)
    np.testing.assert_allclose(theta, [1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-15)


# posterior


def test_a_posterior_is_the_list_of_all_secrets():
    matrix = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.0, 0.5, 0.5]])
    alpha, counts = [0.3, 2.0, 1.0], (2, 1, 2)
    found = ik.posterior(
        ik.MatrixMechanism(matrix).tally_counts(counts), alpha, "frequencies", method="exact"
    )
    totals, evidence = oracle.by_listing(matrix, counts, alpha)
    mean = sum(p * np.array(t) for t, p in totals.items()) / 5
    square = sum(p * np.array(t) ** 2 for t, p in totals.items()) / 25
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.standard_deviations**2, square - mean**2, rtol=1e-10)
    assert found.log_evidence == pytest.approx(math.log(evidence), rel=1e-12)


def test_a_posterior_of_probabilities_below_all_doubles():
    seen, alpha, least = np.array([[0.7, 0.2], [0.2, 0.6], [0.1, 0.5]]), [0.3, 2.0, 1.0], 2.0**-700
    found = [
        ik.posterior(
            ik.MatrixMechanism(matrix).tally_counts([0, 3, 2]), alpha, "frequencies", method="exact"
        )
        for matrix in (
            np.column_stack([1 - share * seen.sum(axis=1), share * seen]) for share in (1, least)
        )
    ]
    np.testing.assert_allclose(found[1].mean, found[0].mean, rtol=1e-12)
    assert found[1].log_evidence == pytest.approx(
        found[0].log_evidence + 5 * math.log(least), rel=1e-12
    )


def test_how_many_of_equal_reports_tell():
    lie, centre, alpha, counts = 0.2, 0.7, np.array([0.5, 0.5, 2.0]), np.array([2, 4, 3])
    y = np.array([0.7 + 0.1j, 0.6 - 0.3j])
    logs, means, variances, ratios, t, rest, v = report_moments(alpha, counts, lie, centre, y)
    for i, (a, s) in enumerate(zip(alpha, counts, strict=True)):
        rising = [
            math.comb(s, j) * math.prod(a + m for m in range(j)) * lie ** (s - j)
            for j in range(s + 1)
        ]
        j = np.arange(s + 1)
        for at, (total, mean, variance) in [
            (centre, (math.exp(logs[i]), means[i], variances[i])),
            *((y[n], (ratios[i, n] * math.exp(logs[i]), t[i, n], v[i, n])) for n in range(2)),
        ]:
            w = rising * at**j
            assert total == pytest.approx(w.sum(), rel=1e-12)
            assert mean == pytest.approx((w @ j) / w.sum(), rel=1e-12)
            assert variance == pytest.approx(
                (w @ j**2) / w.sum() - ((w @ j) / w.sum()) ** 2, rel=1e-11
            )
        np.testing.assert_allclose(rest[i], s - t[i], rtol=1e-12)


def test_uniform_numbers_say_whom_a_report_tells():
    p, counts, cells = (
        np.array([0.1, 0.2, 0.0, 0.3, 0.15, 0.0, 0.05, 0.1, 0.1, 0.0]),
        np.array([2000, 1000]),
        10,
    )
    bits = np.zeros((2, 16), dtype=np.uint8)
    bits[0, [0, 1, 2, 8]], bits[1, [3, 7, 9]] = 1, 1
    padded = np.pad(p, (0, 6))
    # the middles of equal cells: every share is met within one user
    uniforms = np.concatenate([(np.arange(c) + 0.5) / c for c in counts])
    zero, contrast = 0.2, 0.5
    totals = gibbs.assign_by_bits(
        np.packbits(bits, axis=1), counts, zero, contrast, padded, uniforms
    )
    told_by = (
        contrast * bits * padded / (zero + contrast * (bits * padded).sum(axis=1, keepdims=True))
    )
    assert np.abs(totals - counts @ told_by).max() <= 2
    excess, least = contrast * bits[:, :cells].astype(float), np.full(2, zero)
    assert np.array_equal(
        gibbs.assign_by_columns(excess, least, counts, p, uniforms), totals[:cells]
    )


def test_moves_of_a_walk_keep_mass_slope_and_the_law():
    p, hessian = np.array([0.5, 0.3, 0.2]), np.array([[8.0, 1, 2], [1, 6, 1], [2, 1, 9]])
    alpha, slope = np.array([1.0, 2.0, 0.5]), np.array([3.0, -1.0, 0.5])
    start = p.copy()

    def move(x, y, from_prior, log_uniform, parts=(0.25, 0.75), normal=0.4):
        q, own = start.copy(), slope.copy()
        arrays = [np.array([i]) for i in (x, y, from_prior)]
        # Gamma(alpha) is Gamma(alpha + 1) times e^(-exponential / alpha).
        exponentials = np.array([0.4, 1.1])
        gammas = 2 * np.array(parts) * np.exp(exponentials / alpha[[x, y]])
        numbers = np.array([gammas]), np.array([exponentials])
        numbers += np.array([normal]), np.array([log_uniform])
        gibbs.surrogate_walk(q, own, hessian, alpha, *arrays, *numbers)
        assert q.sum() == pytest.approx(1, rel=1e-14)
        np.testing.assert_allclose(own, slope - hessian @ (q - start), rtol=1e-12)
        return q

    assert move(0, 1, True, -1e9) == pytest.approx(
        [0.2, 0.6, 0.2]
    )  # the parts of their common mass
    assert move(1, 0, True, -1e9) == pytest.approx([0.6, 0.2, 0.2])
    curvature, rise = 8 + 6 - 2 * 1, 3.0 + 1.0
    moved = rise / curvature + 0.4 / math.sqrt(curvature)
    assert move(0, 1, False, -1e9, normal=-0.4) == pytest.approx(
        [
            0.5 + rise / curvature - 0.4 / math.sqrt(curvature),
            0.3 - rise / curvature + 0.4 / math.sqrt(curvature),
            0.2,
        ]
    )
    assert move(0, 1, False, -1e9) == pytest.approx(
        start if moved >= 0.3 else [0.5 + moved, 0.3 - moved, 0.2]
    )
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


def test_a_user_is_added_to_probabilities_of_any_size():
    """Two secrets: the rank of a total is its first number,
    and taking one away moves back by one.
    """
    steps, column, alpha = (
        np.ones((1, 4), dtype=np.int64),
        np.array([0.3, 0.9]),
        np.array([0.5, 2.0]),
    )
    made = []
    for power in (0, -3000, 3000):
        mantissas, exponents = np.array([0.5, 0.75, 0.0]), np.array([power, power + 1, 0])
        add_user(mantissas, exponents, steps, 1, 3, column, alpha)
        assert (mantissas >= 0.5).all()
        made.append((mantissas, exponents - power))
    for mantissas, exponents in made[1:]:
        np.testing.assert_allclose(mantissas, made[0][0], rtol=1e-15)
        assert exponents.tolist() == made[0][1].tolist()


@pytest.mark.parametrize(
    ("first", "powers", "likely"),
    [(0.5, (3000, 0, 0), 0.0), (0.0, (0, -3000, 0), 0.3)],
    ids=["no report", "no total"],
)
def test_what_is_impossible_says_nothing_of_the_size_of_the_rest(first, powers, likely):
    """A secret that cannot have sent the report,
    or a total before it that cannot be, however large its power.
    """
    mantissas, exponents = np.array([first, 0.75, 0.0]), np.array(powers)
    add_user(
        mantissas,
        exponents,
        np.ones((1, 4), dtype=np.int64),
        1,
        3,
        np.array([likely, 0.8]),
        np.array([0.5, 2.0]),
    )
    # one of two has the first secret: the user before, so that the report is of the second
    found = math.ldexp(mantissas[1], int(exponents[1]) - powers[1])
    assert found == pytest.approx(0.75 * 0.8 * 2.0 / (0.5 + 2.0 + 1), rel=1e-15)
