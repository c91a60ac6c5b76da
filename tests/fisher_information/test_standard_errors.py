"""Standard errors at every size:
against exact fractions, against a matrix, and where there is none to be had.
"""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import ibukit as ik
from ibukit.fisher_information import asymptotic_covariance, asymptotic_variances, dense
from ibukit.fisher_information.diagonal import DiagonalInformation
from oracles.exact_information import covariance as exact_covariance

LABELS = ik.Alphabet(["a", "b", "c", "d", "e"])


def many(mechanism, rng, users=400):
    """Each report seen, as long as the noise is not weak."""
    return mechanism.simulate(np.full(mechanism.k, users), rng)


def from_the_matrix(tally, theta):
    lower = np.tril(dense.lower_covariance(tally, theta))
    return lower + np.tril(lower, -1).T


TALLIES = {
    "k-RR": lambda rng: many(ik.RandomizedResponse(LABELS, 1.0), rng),
    "k-RR, strong noise": lambda rng: many(ik.RandomizedResponse(LABELS, 1e-3), rng),
    "k-RR of two secrets": lambda rng: many(ik.RandomizedResponse(2, 1.0), rng),
    "k-RR, pooled": lambda rng: sum(
        many(ik.RandomizedResponse(LABELS, eps), rng) for eps in (0.1, 1.0, 3.0)
    ),
    "line": lambda rng: many(ik.TruncatedGeometric(6, 1.0), rng),
    "line, strong noise": lambda rng: many(ik.TruncatedGeometric(6, 0.05), rng),
    "line of two": lambda rng: many(ik.TruncatedGeometric(2, 0.5), rng),
    "bits": lambda rng: many(ik.OptimizedUnaryEncoding(LABELS, 1.0), rng),
    "bits and k-RR": lambda rng: (
        many(ik.Rappor(LABELS, 1.0), rng) + many(ik.RandomizedResponse(LABELS, 1.0), rng)
    ),
    "matrix, strong noise": lambda rng: many(ik.Exponential(LABELS, 0.01), rng),
    "lines, pooled": lambda rng: (
        many(ik.TruncatedGeometric(5, 0.5), rng) + many(ik.TruncatedGeometric(5, 2.0), rng)
    ),
}


def probabilities(tally):
    """The columns as they are:
    what an operator makes of them is another machine's in its last digits.
    """
    return np.concatenate([part.channel.rows(np.arange(tally.k)) for part in tally.parts], axis=1)


@pytest.mark.parametrize("name", TALLIES)
def test_covariances_are_those_of_exact_arithmetic(name, rng):
    tally = TALLIES[name](rng)
    theta = rng.dirichlet(np.ones(tally.k))
    exact = exact_covariance(probabilities(tally), theta, tally.counts)
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert np.abs(asymptotic_covariance(tally, theta) - exact).max() <= 1e-12 * np.diag(exact).max()
    assert np.abs(from_the_matrix(tally, theta) / scale - exact / scale).max() <= 1e-9
    np.testing.assert_allclose(asymptotic_variances(tally, theta), np.diag(exact), rtol=1e-12)
    # the test can tell: a few reports more are felt
    more = exact_covariance(
        probabilities(tally), theta, tally.counts + np.arange(len(tally.counts)) % 2
    )
    assert np.abs(np.diag(more) / np.diag(exact) - 1).max() > 1e-7


def by_singular_values(tally, theta):
    """Pseudo-inverse on the directions that keep the sum;
    inf where a flat one moves a probability.
    """
    k = tally.k
    columns = tally.matrix()
    centred = (columns - columns.mean(axis=0)) * np.sqrt(tally.counts) / (theta @ columns)
    vectors, values, _ = np.linalg.svd(np.pad(centred, ((0, 0), (0, k))), full_matrices=False)
    seen = values > 1e-9 * max(values.max(), 1e-300)
    found = (vectors[:, seen] / values[seen] ** 2) @ vectors[:, seen].T
    onto_flat = np.eye(k) - vectors[:, seen] @ vectors[:, seen].T - 1 / k
    undetermined = np.diag(onto_flat) > 1e-9
    found[undetermined] = found[:, undetermined] = np.inf
    return found


@pytest.mark.parametrize("mechanism", [ik.RandomizedResponse, ik.TruncatedGeometric])
@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_reports_that_nobody_made_leave_open_what_they_leave_open(mechanism, k, rng):
    open_ones = set()
    for seen in product([0, 1], repeat=k):
        if not any(seen):
            continue
        tally = mechanism(k, 0.7).tally_counts(np.array(seen) * rng.integers(1, 50, k))
        theta = rng.dirichlet(np.ones(k))
        wanted = by_singular_values(tally, theta)
        for found in (asymptotic_covariance(tally, theta), from_the_matrix(tally, theta)):
            assert np.array_equal(np.isinf(found), np.isinf(wanted)), seen
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10 * np.diag(wanted).min())
        assert np.array_equal(
            asymptotic_variances(tally, theta), np.diag(asymptotic_covariance(tally, theta))
        )
        open_ones.add(int(np.isinf(np.diag(wanted)).sum()))
    assert 0 in open_ones
    assert k == 2 or len(open_ones) > 1, "some must leave something open"


def test_one_secret_has_nothing_to_err_about():
    tally = ik.MatrixMechanism([[0.3, 0.7]]).tally_counts([3, 7])
    assert asymptotic_variances(tally, np.ones(1)).tolist() == [0]
    assert DiagonalInformation(np.array([2.0])).variances().tolist() == [0]


@pytest.mark.parametrize("mechanism", [ik.RandomizedResponse, ik.TruncatedGeometric])
def test_a_million_secrets_take_no_matrix(mechanism, rng, monkeypatch):
    k = 10**6
    monkeypatch.setattr(dense, "lower_covariance", None)
    estimate = ik.mle(mechanism(k, 20.0).tally_counts(rng.multinomial(50 * k, np.full(k, 1 / k))))
    errors = estimate.standard_errors()
    assert errors.shape == (k,)
    assert np.isfinite(errors).all()
    # under weak noise they are about those of the shares of a sample
    p = estimate.distribution
    assert np.median(errors / np.sqrt(p / estimate.tally.n)) == pytest.approx(1, abs=0.01)
    lower, upper = estimate.interval(0.95, method="wald")
    assert (lower <= p).all()
    assert (p <= upper).all()
    with pytest.raises(ik.errors.TooLarge, match="1000000 x 1000000 numbers"):
        estimate.covariance()


def test_bits_are_read_in_stretches(rng, monkeypatch):
    tally = many(ik.OptimizedUnaryEncoding(LABELS, 1.0), rng) + many(
        ik.Exponential(LABELS, 1.0), rng
    )
    theta = np.full(5, 0.2)
    whole = asymptotic_covariance(tally, theta)
    stretches = []
    monkeypatch.setattr(dense, "MATRIX_ENTRIES_AT_ONCE", 15)
    original = dense.dsyrk
    monkeypatch.setattr(
        dense, "dsyrk", lambda *a, **k: stretches.append(a[1].shape) or original(*a, **k)
    )
    np.testing.assert_allclose(asymptotic_covariance(tally, theta), whole, rtol=1e-11, atol=1e-18)
    assert len(stretches) > 5
    assert max(shape[0] for shape in stretches) <= 3


def test_each_row_of_covariances_sums_to_zero(rng):
    estimate = ik.mle(TALLIES["bits and k-RR"](rng))
    covariance = estimate.covariance()
    np.testing.assert_allclose(covariance.sum(axis=1), 0, atol=1e-15)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), estimate.standard_errors(), rtol=1e-12)
    # the mean's variance, of a line seen as it is: the sample's variance over n
    line = ik.Line(10, 14)
    sure = ik.mle(ik.RandomizedResponse(line, 30.0).tally_counts([5, 10, 20, 10, 5]))
    spread = sure.distribution @ (line.values - 12.0) ** 2
    assert line.values @ sure.covariance() @ line.values == pytest.approx(spread / 50, rel=1e-6)


def test_they_are_computed_once_and_do_not_travel(rng, monkeypatch):
    estimate = ik.mle(TALLIES["bits"](rng))
    once = estimate.standard_errors()
    light = len(pickle.dumps(ik.mle(estimate.tally)))
    assert len(pickle.dumps(estimate)) == light
    monkeypatch.setattr(dense, "lower_covariance", None)
    again = estimate.standard_errors()
    assert np.array_equal(again, once)
    again[:] = 0  # a caller's own copy
    assert np.array_equal(estimate.standard_errors(), once)
    with pytest.raises(TypeError):
        ik.mle(estimate.tally).standard_errors()


def test_finite_standard_errors_prove_that_all_is_identified(rng, monkeypatch):
    tallies = [TALLIES[name](rng) for name in ("k-RR", "line", "bits", "matrix, strong noise")]
    assert all(ik.mle(tally).identified.all() for tally in tallies)
    merged = ik.compose(
        ik.RandomizedResponse(3, epsilon=1.0), [[1, 0], [0, 1], [0, 1]]
    ).tally_counts([50, 50])
    open_one = ik.mle(merged)
    assert open_one.standard_errors()[1:].tolist() == [np.inf, np.inf]
    assert open_one.identified.tolist() == [True, False, False]
    monkeypatch.setattr("ibukit.estimate.estimate.determined_probabilities", None)
    for tally in tallies:
        estimate = ik.mle(tally)
        estimate.standard_errors()
        assert estimate.identified.all()
    with pytest.raises(TypeError):
        assert replace(open_one).identified.all()


def test_what_would_not_fit_is_refused_with_its_size(rng):
    grid = ik.Grid(256, 256, cell_size=0.1)
    tally = ik.PlanarGeometric(grid, 5.0).tally([[3, 4], [100, 200]])
    estimate = ik.ibu(tally, stop=ik.Steps(1))
    size = "65536 x 65536 numbers, 3.44e.10 bytes.* coarser alphabet"
    for call in (
        estimate.standard_errors,
        lambda: estimate.interval(method="wald"),
        estimate.covariance,
        estimate.to_frame,
        lambda: ik.smooth(tally),
    ):
        with pytest.raises(ik.errors.TooLarge, match=size):
            call()
    with pytest.raises(ik.errors.TooLarge, match=size):
        ik.smooth(tally, penalty=1.0)
    assert len(estimate.to_frame(level=None)) == 65536


def test_flat_directions_of_a_large_alphabet_are_refused():
    tally = ik.MatrixMechanism([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]]).tally_counts([5, 5])
    estimate = ik.mle(tally)
    with (
        ik.solvers.limits(factorised_order=2),
        pytest.raises(
            ik.errors.TooLarge, match="leave some combinations of probabilities undetermined"
        ),
    ):
        estimate.standard_errors()
    whole = ik.MatrixMechanism([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]).tally_counts(
        [5, 5, 5]
    )
    with ik.solvers.limits(factorised_order=2):
        assert np.isfinite(ik.mle(whole).standard_errors()).all()


def test_a_report_of_probability_zero_leaves_no_curvature():
    mechanism = ik.MatrixMechanism([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(ValueError, match="positive probability"):
        ik.inv(mechanism.tally_counts([90, 9, 1])).standard_errors()
    assert np.isfinite(ik.mle(mechanism.tally_counts([90, 9, 1])).standard_errors()).all()


def test_what_is_not_k_rr_by_type_gets_no_closed_form(rng):
    # a proof holds for the exact type: who inherits may mean something else
    class Shifted(ik.channels.ResponseChannel):
        def forward(self, theta):
            return super().forward(theta[::-1])

        def adjoint(self, w):
            return super().adjoint(w)[::-1]

    class Backwards(ik.RandomizedResponse):
        def channel(self, reports):
            there = super().channel(reports)
            return Shifted(there.k, there.reports, there.diagonal, there.off)

    tally = Backwards(LABELS, 1.0).tally_counts([500, 400, 300, 200, 100])
    theta = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
    exact = exact_covariance(probabilities(tally), theta, tally.counts)
    np.testing.assert_allclose(asymptotic_variances(tally, theta), np.diag(exact), rtol=1e-11)
    straight = ik.RandomizedResponse(LABELS, 1.0).tally_counts([500, 400, 300, 200, 100])
    assert not np.allclose(asymptotic_variances(straight, theta), np.diag(exact), rtol=1e-3)


TWINS = np.array([[0.8, 0.2, 0.0], [0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])


@pytest.mark.parametrize("background", [None, [5.0, 5.0, 5.0]])
def test_a_sum_is_determined_although_its_terms_are_not(background):
    """Two twins, everything seen with probability .9: their sum is 1 minus the third share."""
    if background is None:
        mechanism = ik.MatrixMechanism(0.9 * TWINS, efficiency=True)
        estimate = ik.mle(mechanism.tally_counts([50, 40, 60]))
        lossless = ik.mle(ik.MatrixMechanism(TWINS).tally_counts([50, 40, 60]))
        expected = lossless.standard_errors(of=[1, 1, 0])
    else:
        estimate = ik.unfold([50, 40, 60], 0.9 * TWINS, background=background)
        expected = estimate.standard_errors()[2]
    found = estimate.standard_errors(of=[[1, 1, 0], [0, 0, 1], [1, 1, 1], [1, 0, 0], [0.5, 0.5, 3]])
    assert found[:2] == pytest.approx([expected, expected])
    assert found[2] == pytest.approx(0, abs=1e-9)
    assert found[3] == np.inf
    assert found[4] == pytest.approx(2.5 * expected)
    assert estimate.standard_errors() == pytest.approx([np.inf, np.inf, expected])
    lower, upper = estimate.interval(0.95, of=[1, 1, 0], method="wald")
    assert upper - lower == pytest.approx(2 * 1.959964 * expected)


def test_errors_of_counts_scale_with_the_efficiency():
    """A row of the response scaled by s scales the number behind it, and its error, by 1 / s."""
    line = np.arange(8)
    response = np.exp(-0.5 * ((line[:, None] - line + 0.4) / 0.8) ** 2)
    efficiency = np.array([0.6, 0.8, 0.5, 0.9, 0.7, 0.6, 0.8, 0.5])
    response *= efficiency[:, None] / response.sum(axis=1, keepdims=True)
    counts = [150, 330, 420, 400, 220, 90, 35, 12]
    scale = np.where(line % 2, 1.0, 1e-6)
    expected = ik.unfold(counts, response).count_errors()
    found = ik.unfold(counts, response * scale[:, None]).count_errors()
    assert found * scale == pytest.approx(expected, rel=1e-6)
