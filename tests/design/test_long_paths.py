"""Lines of more secrets than have their columns looked through:
the relaxed bound, and the columns that are guessed.
"""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.design.optimal import heuristic_paths
from ibukit.design.optimal.column_generation import deviations, generated_columns
from ibukit.design.optimal.column_weights import Criterion, optimal_design
from ibukit.design.optimal.extremal_columns import extremal_logs
from ibukit.design.optimal.heuristic_paths import guessed_columns
from ibukit.design.optimal.large_design import large_optimal_design
from ibukit.design.optimal.path_neighbours import Tangent, random_walk_above
from ibukit.design.optimal.path_relaxation import Forms, Multipliers, solve_path_relaxation
from ibukit.design.optimal.whitening import Pairs, WhitenedCriterion
from ibukit.fisher_information import contrasts
from ibukit.theory.asymptotic_emd import cumulative_sums
from oracles import naive

LIMITS = {"mse": ik.theory.asymptotic_mse, "emd": ik.theory.asymptotic_emd}
# most that the relaxation has been seen to leave, as a share of the optimum, up to 20 secrets
LOOSE = 1e-3


def measure_of(steps, roots):
    """The criterion "emd" or "mse" on a line with such steps."""
    k = len(steps) + 1
    places = np.append(0, np.cumsum(steps))
    sums = cumulative_sums(ik.Alphabet(range(k), np.abs(places[:, None] - places)))
    return Criterion((sums if roots else np.eye(k)) @ contrasts(k), roots)


def exact(steps, theta, measure):
    """The bound on all columns, which are listed."""
    places = np.append(0, np.cumsum(steps))
    points, sizes = deviations(extremal_logs(np.abs(places[:, None] - places)), theta)
    return optimal_design(points @ contrasts(len(theta)), sizes / sizes.sum(), measure)[1]


def scores(dual, steps, theta):
    """Of all columns on a tangent."""
    places = np.append(0, np.cumsum(steps))
    points = deviations(extremal_logs(np.abs(places[:, None] - places)), theta)[0] @ contrasts(
        len(theta)
    )
    return ((points @ dual.quadratic) * points).sum(axis=1) - points @ dual.linear


def a_path(k, seed, scale, equal):
    rng = np.random.default_rng(seed)
    steps = scale * (np.ones(k - 1) if equal else rng.uniform(0.5, 2, k - 1))
    return steps, 0.9 * rng.dirichlet(np.ones(k)) + 0.1 / k


PATHS = st.builds(
    a_path,
    st.integers(3, 9),
    st.integers(0, 2**32),
    st.sampled_from([1e-3, 0.1, 0.3, 0.7, 1.0, 2.0, 5.0]),
    st.booleans(),
)


@settings(max_examples=40)
@given(PATHS, st.booleans())
def test_the_relaxed_bound_is_below_the_optimum_and_near(path, roots):
    steps, theta = path
    measure = measure_of(steps, roots)
    told, best = solve_path_relaxation(steps, theta, measure), exact(steps, theta, measure)
    assert (1 - LOOSE) * best <= told.bound <= best * (1 + 1e-10)
    # the score that the bound is made of is that of no column
    highest = (
        told.dual.value * measure.degree * (told.dual.value / told.bound) ** (1 / measure.degree)
    )
    assert scores(told.dual, steps, theta).max() <= highest * (1 + 1e-9)


@pytest.mark.parametrize("roots", [False, True])
@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 2.0])
def test_the_same_of_fourteen_secrets(scale, roots):
    for equal in (True, False):
        steps, theta = a_path(14, 5, scale, equal)
        measure = measure_of(steps, roots)
        best, bound = (
            generated_columns(steps, theta, measure)[1],
            solve_path_relaxation(steps, theta, measure).bound,
        )
        assert (1 - LOOSE) * best <= bound <= best * (1 + 1e-8)


@settings(max_examples=40)
@given(PATHS, st.booleans(), st.integers(0, 2**32))
def test_any_multipliers_certify_no_more_than_is_true(path, roots, seed):
    """Wrong ones are loose or prove nothing:
    what they say of a column's score holds for every column.
    """
    steps, theta = path
    rng, n = np.random.default_rng(seed), len(steps)
    measure, forms = measure_of(steps, roots), Forms.of(steps, theta)
    told = solve_path_relaxation(steps, theta, measure)
    frame = WhitenedCriterion.at(np.linalg.cholesky(told.information), measure)
    turned = Forms(forms.rows @ frame.root, n)
    products = rng.exponential(size=(2 * n, 2 * n)) * rng.integers(0, 2, (2 * n, 2 * n)) / n
    forged = Multipliers(products + products.T, -frame.value * rng.exponential(size=n))
    found = forged.certify(turned, frame, measure.degree) or forged._replace(
        ties=-forged.ties
    ).certify(turned, frame, measure.degree)
    if found is not None:
        dual, highest = found
        assert dual.bound(highest) <= exact(steps, theta, measure) * (1 + 1e-10)
        assert scores(dual, steps, theta).max() <= highest * (1 + 1e-9)


def test_negative_multipliers_are_not_used(monkeypatch):
    """Negative control: summed as they are they would prove what is false."""
    steps, theta = np.full(7, 0.5), ik.uniform(8)
    measure, forms = measure_of(steps, False), Forms.of(steps, theta)
    best, kept = exact(steps, theta, measure), []
    certify = Multipliers.certify

    def kept_too(self, *arguments):
        kept.append((self, *arguments))
        return certify(self, *arguments)

    monkeypatch.setattr(Multipliers, "certify", kept_too)
    solve_path_relaxation(steps, theta, measure)
    multipliers, turned, frame, degree = kept[-1]
    honest = certify(multipliers, turned, frame, degree)
    assert honest[0].bound(honest[1]) == pytest.approx(best, rel=1e-5)
    large = 1 + turned.rows @ turned.rows.T > 1
    forged = multipliers._replace(
        products=multipliers.products - 0.05 * multipliers.ties.mean() * large
    )
    said = certify(forged, turned, frame, degree)
    assert said[0].bound(said[1]) <= best
    # what would be said if nobody looked at signs
    scale, free = 1 / np.sqrt(frame.gradient), np.where(forms.different_steps(), forged.products, 0)
    share = np.linalg.eigvalsh(
        -Multipliers(free, forged.ties).weighted_sum(turned) * scale * scale[:, None]
    )[0]
    assert share > 0
    assert honest[0].bound((0.5 * free.sum() + forged.ties.sum()) / share) > 1.1 * best


# `make slow` looks through the columns of the longer lines, four times as many for two secrets more
@pytest.mark.parametrize("roots", [False, True])
@pytest.mark.parametrize(
    ("k", "scale"),
    [(16, 0.05), (17, 0.3), (16, 0.6), (17, 1.2), (16, 3.0)]
    + [pytest.param(k, scale, marks=pytest.mark.slow) for k, scale in ((18, 0.6), (20, 1.2))],
)
def test_guessed_or_looked_through_the_optimum_is_the_same(k, scale, roots):
    steps, theta = a_path(k, k, scale, True)
    measure = measure_of(steps, roots)
    best = generated_columns(steps, theta, measure)[1]
    logs, weights, bound = guessed_columns(steps, theta, measure)
    np.testing.assert_allclose(
        np.abs(np.diff(logs, axis=1)), np.tile(steps, (len(logs), 1)), rtol=1e-9
    )
    points = deviations(logs, theta)[0] @ contrasts(k)
    value = measure.at((points.T * weights) @ points).value
    assert np.abs(weights @ points).max() < 1e-8 * np.abs(points).max()
    assert weights.sum() == pytest.approx(1)
    assert bound <= best * (1 + 1e-8)
    assert best * (1 - 1e-8) <= value <= best * (1 + LOOSE)


@pytest.mark.parametrize(
    ("k", "eps", "criterion"),
    [
        (27, 0.2, "mse"),
        (28, 1.0, "emd"),
        (26, 1e-3, "mse"),
        pytest.param(30, 0.2, "mse", marks=pytest.mark.slow),
    ],
)
def test_a_long_line(k, eps, criterion, rng):
    prior = 0.5 * rng.dirichlet(np.ones(k)) + 0.5 / k
    best = ik.optimal_private(prior, k, eps, criterion)
    matrix = best.mechanism.matrix()
    assert 0 <= best.gap <= 2e-3 * best.value
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert naive.epsilon_metric(matrix, naive.line_distances(k)) <= eps * (1 + 1e-9)
    assert LIMITS[criterion](best.mechanism, prior) == pytest.approx(best.value, rel=1e-9)
    assert LIMITS[criterion](ik.TruncatedGeometric(k, eps), prior) >= best.value - best.gap


def test_the_walks_are_the_same_each_time():
    first, second = (
        ik.optimal_private(ik.uniform(26), 26, 2.0).mechanism.matrix() for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_the_order_of_many_secrets_does_not_matter(rng):
    order = rng.permutation(26)
    prior = 0.5 * rng.dirichlet(np.ones(26)) + 0.5 / 26
    mixed = ik.Alphabet(range(26), ik.Line(0, 25).distances()[np.ix_(order, order)])
    there, here = ik.optimal_private(prior[order], mixed, 2.0), ik.optimal_private(prior, 26, 2.0)
    assert there.value == pytest.approx(here.value, rel=2e-4)


def continued(first, eps):
    """The second differences of the values of four lines, as a share of the value."""
    values = [ik.optimal_private(ik.uniform(k), k, eps).value for k in range(first, first + 4)]
    return abs(np.diff(values, 2)).max() / values[0]


@pytest.mark.parametrize("eps", [0.05, 1.0])
def test_where_columns_are_guessed_the_values_continue(eps, monkeypatch):
    monkeypatch.setattr(
        sys.modules["ibukit.design.optimal.optimal_private"], "MAX_K_EXACT_PRICING", 16
    )
    assert continued(15, eps) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("eps", [0.05, 1.0])
def test_twenty_five_and_twenty_six_secrets_continue_each_other(eps):
    """At 1.0 the few weights of 24 secrets take more steps than three for each column."""
    assert continued(24, eps) < 2e-3


def test_walks_that_are_missed_show_in_the_gap(monkeypatch):
    """Negative control: columns with one peak alone are far from the best,
    and the bound is the same.
    """
    steps, theta, measure = np.full(25, 0.3), ik.uniform(26), measure_of(np.full(25, 0.3), False)
    bound = solve_path_relaxation(steps, theta, measure).bound
    monkeypatch.setattr(heuristic_paths, "random_walk_above", lambda logs, *given: logs[:0])
    monkeypatch.setattr(heuristic_paths, "MAX_ROUNDS", 1)
    logs, weights, said = guessed_columns(steps, theta, measure)
    points = deviations(logs, theta)[0] @ contrasts(26)
    assert said == bound
    assert measure.at((points.T * weights) @ points).value > 1.05 * bound
    # the public function then raises, and the error carries the design
    with pytest.raises(ik.ConvergenceError, match="the optimum was missed") as caught:
        ik.optimal_private(theta, 26, 0.3)
    assert caught.value.estimate.gap > 0.05 * bound
    assert ik.optimal_private(theta, 26, 0.3, strict=False).gap == caught.value.estimate.gap


@pytest.mark.parametrize(("longest", "eps"), [(90, 0.7), (25, 20.0), (25, 1e-7)])
def test_steps_of_any_length(longest, eps):
    """One step of 45 nats beside short ones, steps of 20 nats, and steps of nearly none."""
    places = np.append(np.arange(25.0), longest)
    best = ik.optimal_private(
        ik.uniform(26), ik.Alphabet(range(26), np.abs(places[:, None] - places)), eps
    )
    np.testing.assert_allclose(best.mechanism.matrix().sum(axis=1), 1, rtol=0, atol=1e-12)
    assert 0 <= best.gap <= 2e-3 * best.value


def test_a_line_too_long_for_doubles_is_refused():
    with pytest.raises(
        ValueError, match=r"must be at most 600 from one end of the line to the other, got 1000"
    ):
        ik.optimal_private(ik.uniform(26), 26, 40.0)


@given(PATHS, st.booleans())
@settings(max_examples=15)
def test_scores_of_turned_columns(path, roots):
    """Against the columns themselves, each turned and scored;
    where steps are long, only their order counts.
    """
    steps, theta = path
    steps = np.minimum(steps, 1.0)
    k, n = len(theta), len(steps)
    rng = np.random.default_rng(1)
    root = rng.normal(size=(n, n))
    tangent = Tangent(
        contrasts(k) @ (root @ root.T) @ contrasts(k).T, contrasts(k) @ rng.normal(size=n), theta
    )
    signs = rng.choice([-1.0, 1.0], (5, n))

    def scored(ups):
        logs = np.append(0, np.cumsum(ups * steps))
        point = deviations(logs[None], theta)[0][0]
        return point @ tangent.quadratic @ point - point @ tangent.linear

    now, turned = tangent.flip_scores(
        np.column_stack([np.zeros(5), np.cumsum(signs * steps, axis=1)])
    )
    for column in range(5):
        assert now[column] == pytest.approx(
            scored(signs[column]), rel=1e-7, abs=1e-9 * np.abs(now).max()
        )
        for i in range(n):
            for j in range(n):
                ups = signs[column].copy()
                ups[list({i, j})] *= -1
                wanted = scored(ups) if i <= j else -np.inf
                assert turned[column, i, j] == pytest.approx(
                    wanted, rel=1e-6, abs=1e-8 * np.abs(now).max()
                )


def test_columns_wander_above_the_level(rng):
    steps, theta = np.ones(9), ik.uniform(10)
    told = solve_path_relaxation(steps, theta, measure_of(steps, False))
    tangent, level = Tangent.of(told.dual, contrasts(10), theta), 0.97 * told.bound
    signs = rng.choice([-1.0, 1.0], (30, 9))
    logs = random_walk_above(
        np.column_stack([np.zeros(30), np.cumsum(signs, axis=1)]), tangent, level, rng
    )
    met = tangent.flip_scores(logs)[0]
    assert len(logs) > 30
    assert (met > level).all()
    assert met.max() <= told.dual.value**2 / told.bound * (1 + 1e-9)


@pytest.mark.parametrize("roots", [False, True])
def test_many_weights_are_those_of_few(roots):
    steps, theta = a_path(8, 3, 0.5, False)
    measure = measure_of(steps, roots)
    places = np.append(0, np.cumsum(steps))
    points, sizes = deviations(extremal_logs(np.abs(places[:, None] - places)), theta)
    points = points @ contrasts(8)
    _, bound = optimal_design(points, sizes / sizes.sum(), measure)
    weights, value, dual = large_optimal_design(points, sizes / sizes.sum(), measure, 0.0, 1e-9)
    assert value == pytest.approx(bound, rel=1e-8)
    assert measure.at((points.T * weights) @ points).value == pytest.approx(value, rel=1e-9)
    highest = (((points @ dual.quadratic) * points).sum(axis=1) - points @ dual.linear).max()
    assert dual.bound(highest) == pytest.approx(bound, rel=1e-8)


@pytest.mark.parametrize("roots", [False, True])
def test_the_curvature_in_round_coordinates(roots, rng):
    root = rng.normal(size=(4, 4))
    measure = Criterion(rng.normal(size=(3 if roots else 5, 4)), roots)
    frame, pairs = WhitenedCriterion.at(root, measure), Pairs.of(4)
    local = Criterion(frame.loadings, roots).at(np.eye(4))
    assert frame.value == pytest.approx(local.value)
    assert frame.value == pytest.approx(measure.at(root @ root.T).value)
    np.testing.assert_allclose(local.gradient, np.diag(frame.gradient), atol=1e-9 * frame.value)
    diagonal, taken = frame.curvature(pairs)
    plain = np.diag(diagonal) - taken.T @ taken
    basis = np.array([pairs.matrix(each).ravel() for each in np.eye(10)])
    np.testing.assert_allclose(
        plain, basis @ local.second @ basis.T, atol=1e-9 * np.abs(plain).max()
    )
    if np.linalg.eigvalsh(frame.gradient * np.eye(4))[0] > 1e-9:
        kept, added = frame.inverse_curvature(pairs)
        inverse = np.diag(kept) + added.T @ added
        np.testing.assert_allclose(inverse @ plain, np.eye(10), atol=1e-6)
