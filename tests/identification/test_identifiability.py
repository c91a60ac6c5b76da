"""identifiable: against ranks in fractions,
with null vectors that are checked and never believed.
"""

import numpy as np
import pytest
from scipy import special

import ibukit as ik
import mechanism_cases
from ibukit.theory import identifiable
from oracles import exact


def integer_channel(rng):
    """Weights, whose rank is known without rounding,
    and the channel with these rows divided by their sums.
    """
    k, m = rng.integers(1, 9, 2)
    weights = rng.integers(0, 10, (k, m))
    weights[:, rng.integers(m)] += 1  # no row of zeros
    kind = rng.integers(5)
    if kind == 1 and k > 1:
        weights[rng.integers(1, k)] = weights[0]  # duplicate rows
    elif kind == 2 and k > 2:
        weights[-1] = weights[0] + 2 * weights[1]  # a row is a mixture of others
    elif kind == 3:
        weights[:, 0] = 0  # a report that never occurs
        weights[:, -1] += 1
    elif kind == 4 and k > 2:
        weights = (
            np.maximum(rng.integers(0, 4, (k, 2)) @ rng.integers(0, 4, (2, m)), 0) + 1
        )  # rank 3 at most
    return weights, weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.ledger("A-T3")
@pytest.mark.erratum("A10")
def test_a_matrix_that_identifies_is_strictly_concave_only_where_the_likelihood_is_finite():
    """M = I identifies; whatever is seen, the likelihood is 0 on a whole edge of the simplex."""
    identity = np.eye(3)
    assert identifiable(identity)
    edges = [np.delete(identity, secret, axis=0).mean(axis=0) for secret in range(3)]
    for seen in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        assert any((edge[seen] == 0).any() for edge in edges)
        # on the distributions of finite likelihood two reports are enough
        tally = ik.MatrixMechanism(identity).tally(seen)
        assert bool(ik.theory.strictly_concave(tally)) == (len(seen) >= 2)
    # without zeros there is no such edge
    positive = (identity + 0.1) / 1.3
    assert all((edge @ positive > 0).all() for edge in edges)


@pytest.mark.ledger("A-T3")
def test_agrees_with_exact_ranks_on_five_hundred_channels(rng):
    ranks = []
    for _ in range(500):
        weights, matrix = integer_channel(rng)
        k, m = matrix.shape
        answer = identifiable(matrix)
        assert answer.rank == exact.rank(weights)
        assert answer.identifiable == bool(answer) == (answer.rank == k)
        assert answer.singular_values.shape == (k,)
        assert answer.singular_values[: min(k, m)] == pytest.approx(
            np.linalg.svd(matrix, compute_uv=False), abs=1e-12
        )
        check_evidence(answer, matrix)
        ranks.append((answer.rank, k, m))
    deficient = [rank < min(k, m) for rank, k, m in ranks]
    assert (
        min(sum(deficient), sum(k > m for _, k, m in ranks), sum(k < m for _, k, m in ranks)) > 100
    )


def check_evidence(answer, matrix):
    """Two distributions that differ and give the same reports, or random pairs that never do."""
    if answer:
        assert answer.null_vector is None
        return
    w = answer.null_vector
    theta, phi = np.maximum(w, 0), np.maximum(-w, 0)
    assert theta.sum() == pytest.approx(1, abs=1e-12)
    assert phi.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(w @ matrix).max() < 1e-13


def test_rounding_does_not_choose_the_sign():
    """All four entries are equally large: which is the largest is rounding."""
    eighths = np.array([[3, 1, 2, 2], [1, 3, 2, 2], [2, 2, 3, 1], [2, 2, 1, 3]]) / 8
    rng = np.random.default_rng(2)
    signs = set()
    for _ in range(20):
        noisy = eighths * (1 + 1e-15 * rng.uniform(-1, 1, (4, 4)))
        w = identifiable(noisy / noisy.sum(axis=1, keepdims=True)).null_vector
        np.testing.assert_allclose(w, [0.5, 0.5, -0.5, -0.5], atol=1e-12)
        signs.add(float(np.sign(w[np.abs(w).argmax()])))
    assert signs == {1.0, -1.0}, "the largest entry alone would choose both"


def test_a_false_null_vector_would_be_found():
    matrix = np.array([[0.5, 0.5], [0.2, 0.8], [0.35, 0.65]])
    right = identifiable(matrix)
    check_evidence(right, matrix)
    with pytest.raises(AssertionError):
        check_evidence(right, matrix[[0, 0, 1]])


@pytest.mark.parametrize(
    "mechanism", mechanism_cases.KINDS, ids=lambda mechanism: type(mechanism).__name__
)
@pytest.mark.ledger("A-C1", "A-C2", "A-C3")
def test_what_theory_says_is_what_the_columns_say(mechanism, rng):
    answer = identifiable(mechanism)
    if isinstance(mechanism, ik.mechanisms.FiniteMechanism):
        columns = mechanism.matrix()
    else:  # enough of its infinitely many
        reports = mechanism.draw(np.repeat(np.arange(mechanism.k), 50), rng)
        columns = mechanism.tally(reports, codes=True).matrix()
    assert answer.rank == np.linalg.matrix_rank(columns)
    values = np.linalg.svd(columns, compute_uv=False)
    if isinstance(mechanism, ik.mechanisms.FiniteMechanism):
        assert answer.singular_values == pytest.approx(
            np.r_[values, np.zeros(mechanism.k - len(values))], rel=1e-10
        )
    assert answer.singular_values[-1] > 0 or not answer


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 5.0])
@pytest.mark.parametrize("mechanism", [ik.RandomizedResponse, ik.Rappor, ik.OptimizedUnaryEncoding])
def test_singular_values_in_closed_form(mechanism, k, epsilon):
    made = mechanism(k, epsilon)
    assert identifiable(made).singular_values == pytest.approx(
        np.linalg.svd(made.matrix(), compute_uv=False), rel=1e-9
    )


def test_untruncated_noise_is_read_on_the_reports_inside():
    line = ik.Line(-3, 4)
    truncated = ik.TruncatedGeometric(line, 0.4)
    values = identifiable(ik.LinearGeometric(line, 0.4)).singular_values
    assert values == pytest.approx(np.linalg.svd(truncated.matrix(), compute_uv=False))
    grid = ik.Grid(3, 4, cell_size=0.5)
    kernel = np.exp(-0.4 * grid.distances())
    offsets = np.arange(-400, 401) * 0.5
    total = np.exp(-0.4 * np.hypot(offsets[:, None], offsets)).sum()
    values = identifiable(ik.PlanarGeometric(grid, 0.4)).singular_values
    assert values == pytest.approx(np.linalg.svd(kernel / total, compute_uv=False), rel=1e-9)


@pytest.mark.ledger("A-C2")
def test_geometric_columns_are_independent_on_sets_with_holes(rng):
    for _ in range(30):
        secrets = np.sort(rng.choice(60, size=rng.integers(2, 12), replace=False))
        kernel = np.exp(-rng.uniform(0.05, 3) * np.abs(secrets[:, None] - secrets))
        assert np.linalg.matrix_rank(kernel) == len(secrets)
        # the rest of the reports in one column
        rows = np.column_stack([kernel, kernel.sum(axis=1).max() - kernel.sum(axis=1)])
        assert identifiable(rows / rows.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.RandomizedResponse(10**6, 1e-6),
        ik.TruncatedGeometric(10**6, 1e-9),
        ik.LinearGeometric(ik.Line(-(10**6), 10**6), 3.0),
        ik.Rappor(10**5, 0.1),
        ik.PlanarGeometric(ik.Grid(400, 300), 0.2),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_theory_needs_no_matrix(mechanism):
    answer = identifiable(mechanism)
    assert (answer.identifiable, answer.rank, answer.null_vector) == (True, mechanism.k, None)


def test_a_duplicate_row_gives_the_plainest_evidence():
    matrix = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]
    w = identifiable(matrix).null_vector
    assert w * w[1] == pytest.approx([0, 1, 0, -1], abs=1e-12)


def test_a_report_that_never_occurs_and_a_scale_do_not_matter():
    rows = np.array([[0.5, 0.0, 0.5], [0.2, 0.0, 0.8]])
    assert identifiable(rows)
    rare = np.array([[1 - 2e-18, 1e-18, 1e-18], [1 - 2e-18, 2e-18, 0], [1 - 1e-18, 0, 1e-18]])
    assert identifiable(rare)  # three rare reports tell all three apart, however rare they are
    assert np.linalg.matrix_rank(rare) == 1


def test_one_secret():
    answer = identifiable([[0.3, 0.7]])
    assert (answer.identifiable, answer.rank, answer.null_vector) == (True, 1, None)
    assert identifiable(ik.LinearGeometric(ik.Line(5, 5), 1.0)).singular_values.tolist() == [1]


def test_it_says_how_well_and_why():
    assert "singular value" in identifiable(ik.Exponential(4, 1.0)).reason
    assert (
        "2 reports cannot tell 3 secrets apart" in identifiable([[1, 0], [0.5, 0.5], [0, 1]]).reason
    )
    assert repr(identifiable(np.full((2, 2), 0.5))).startswith(
        "Identifiability(False: rank 1 of 2; "
    )


@pytest.mark.ledger("A-S9")
@pytest.mark.parametrize("noise", [ik.TruncatedPlanarGeometric, ik.PlanarLaplace])
@pytest.mark.parametrize("shape", [(2, 2), (4, 3), (1, 5), (6, 6)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_differences_of_neighbours_see_no_border(noise, shape, epsilon):
    """The proof that truncation to a rectangle identifies, on the matrix itself."""
    mechanism = noise(ik.Grid(*shape, cell_size=(1.0, 0.7)), epsilon)
    matrix = mechanism.matrix()
    rows, cols = (np.diff(np.eye(n), axis=0) for n in shape)
    squares = np.kron(rows, cols)
    # a larger map has the noise of the squares inside its border
    wide = noise(ik.Grid(shape[0] + 2, shape[1] + 2, cell_size=(1.0, 0.7)), epsilon).matrix()
    inside = np.arange(wide.shape[0]).reshape(shape[0] + 2, shape[1] + 2)[1:-1, 1:-1]
    of_squares = inside[: shape[0] - 1, : shape[1] - 1].ravel()
    kernel = wide[np.ix_(of_squares, of_squares)]
    assert squares @ matrix == pytest.approx(kernel @ squares, abs=1e-11)
    assert np.linalg.eigvalsh(kernel).min(initial=1) > 0
    found = identifiable(mechanism)
    assert found
    assert "positive characteristic function" in found.reason
    assert np.linalg.matrix_rank(matrix) == mechanism.k


def test_truncated_noise_is_answered_at_sizes_that_cannot_be_decomposed():
    for noise in (ik.TruncatedPlanarGeometric, ik.PlanarLaplace):
        assert identifiable(noise(ik.Grid(100, 100), 0.1))
    assert identifiable(ik.LinearLaplace(10_000, 1e-3))


@pytest.mark.ledger("A-S9")
def test_rounded_laplace_noise_has_a_positive_characteristic_function():
    """So have Gaussians over unit intervals and at the integers, of which it is a mixture."""
    steps, angles = np.arange(-2000, 2001), np.linspace(0, np.pi, 301)
    for spread in (0.05, 0.3, 1.0, 2.0):
        over_cells = np.diff(special.ndtr((np.r_[steps, 2001] - 0.5) / spread))
        at_points = np.exp(-0.5 * (steps / spread) ** 2)
        for masses in (over_cells, at_points):
            values = np.cos(np.outer(angles, steps)) @ masses
            assert values.min() > 0
    for epsilon in (0.2, 1.0, 5.0):
        laplace = np.exp(-epsilon * np.maximum(np.abs(steps) - 0.5, 0)) - np.exp(
            -epsilon * (np.abs(steps) + 0.5)
        )
        laplace[2000] = 2 * -np.expm1(-epsilon / 2)
        assert (np.cos(np.outer(angles, steps)) @ laplace).min() > 0


@pytest.mark.ledger("A-S9")
def test_noise_whose_characteristic_function_changes_sign_may_not_identify():
    found = identifiable(np.array([[2, 1, 0], [1, 1, 1], [0, 1, 2]]) / 3)
    assert (bool(found), found.rank) == (False, 2)


def test_a_mixture_whose_reports_name_the_mechanism_has_the_matrices_side_by_side():
    honest, contrary = (ik.MatrixMechanism([[p, 1 - p], [1 - p, p]]) for p in (0.75, 0.25))
    users = ik.FreeWill([honest, contrary], [0.3, 0.7])
    found = identifiable(users)
    pairs = np.hstack([0.3 * honest.matrix(), 0.7 * contrary.matrix()])
    assert found
    assert found.mechanism is users
    assert found.singular_values == pytest.approx(np.linalg.svd(pairs, compute_uv=False))
    assert repr(found).startswith("Identifiability(True: rank 2 of 2; ")
    # without the names, what remains is the average
    equal = ik.average_mechanism([honest, contrary])
    assert not identifiable(equal)


def test_a_mixture_may_identify_where_no_mechanism_does():
    first, last = [[1, 0], [0, 1], [0, 1]], [[1, 0], [1, 0], [0, 1]]
    both = [ik.MatrixMechanism(rows) for rows in (first, last)]
    assert not any(identifiable(each) for each in both)
    assert identifiable(ik.FreeWill(both))
    nobody = identifiable(ik.FreeWill(both, [1, 0]))
    assert (bool(nobody), nobody.rank) == (False, 2)
    assert nobody.null_vector @ np.array(first) == pytest.approx([0, 0])
    assert "2 reports cannot tell 3 secrets apart" in nobody.reason
    assert nobody.singular_values[-1] == 0


def test_one_mechanism_of_a_mixture_that_identifies_is_enough():
    line = ik.Line(0, 5)
    mute = ik.MatrixMechanism(np.full((6, 2), 0.5), line)
    for each in (
        ik.RandomizedResponse(line, 1.0),
        ik.Rappor(line, 1.0),
        ik.SubsetSelection(line, 1.0),
        ik.LinearGeometric(line, 1.0),
        ik.Exponential(line, 1.0),
    ):
        found = identifiable(ik.FreeWill([mute, each], [0.9, 0.1]))
        assert found
        assert "one of its mechanisms is enough" in found.reason or type(each) is ik.Exponential
        columns = each.as_finite().matrix() if type(each) is not ik.LinearGeometric else None
        if columns is not None:
            pairs = np.hstack([0.9 * mute.matrix(), 0.1 * columns])
            values = np.linalg.svd(pairs, compute_uv=False)[:6]
            assert found.singular_values == pytest.approx(values, rel=1e-9)


class Opaque(ik.mechanisms.Mechanism):
    """Its reports cannot be listed, and nobody knows its kind."""

    alphabet = ik.Line(0, 2)
    epsilon = 1.0

    def draw(self, secrets, rng):
        return np.asarray(secrets)

    def check_reports(self, reports):
        return np.asarray(reports)

    def channel(self, reports):
        raise NotImplementedError


def test_bad_input():
    with pytest.raises(ValueError, match="mechanism must have reports that can be listed"):
        identifiable(Opaque())
    with pytest.raises(ik.errors.InvalidDistribution, match=r"row 0 sums to 0\.9"):
        identifiable([[0.5, 0.4]])
    large = ik.Exponential(5001, 1.0)
    with pytest.raises(
        ValueError, match="k must be at most 5000 where a matrix is decomposed, got 5001; k-RR"
    ):
        identifiable(large)
