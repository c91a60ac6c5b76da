"""The best private mechanism:
against other solvers and closed forms, and the bound against every other channel.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.design.optimal import column_weights
from ibukit.fisher_information import contrasts
from oracles import naive
from oracles import private_designs as oracle

KINDS = ["mse", "emd"]
LIMITS = {"mse": ik.theory.asymptotic_mse, "emd": ik.theory.asymptotic_emd}
PATH = ik.Alphabet(["a", "b", "c"], distances=[[0, 1, 3], [1, 0, 2], [3, 2, 0]])
TRIANGLE = ik.Alphabet(["a", "b", "c"], distances=[[0, 1, 2], [1, 0, 1.5], [2, 1.5, 0]])
ALPHABETS = [
    *[ik.Line(0, k - 1) for k in (2, 3, 4, 6)],
    PATH,
    TRIANGLE,
    ik.Alphabet(list("abcd")),
    ik.Grid(2, 2),
]


@st.composite
def problems(draw, alphabets=ALPHABETS):
    """An alphabet, a prior without zeros,
    a level from nearly nothing to nearly everything, and a criterion.
    """
    alphabet = draw(st.sampled_from(alphabets))
    k = len(alphabet)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    prior = 0.9 * rng.dirichlet(np.full(k, draw(st.sampled_from([0.3, 1, 10])))) + 0.1 / k
    on_a_line = isinstance(alphabet, ik.Line) or alphabet is PATH
    criterion = draw(st.sampled_from(KINDS)) if on_a_line else "mse"
    return alphabet, prior, draw(st.sampled_from([1e-3, 0.1, 0.5, 1.0, 2.0, 6.0])), criterion, rng


@given(problems())
def test_it_keeps_its_promises(problem):
    alphabet, prior, eps, criterion, _ = problem
    k = len(alphabet)
    best = ik.optimal_private(prior, alphabet, eps, criterion)
    matrix = best.mechanism.matrix()
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (matrix > 0).all()
    assert naive.epsilon_metric(matrix, alphabet.distances()) <= eps * (1 + 1e-9)
    assert k <= best.mechanism.m <= k * (k + 1) / 2
    assert best.mechanism.alphabet == alphabet
    assert best.criterion == criterion
    assert 0 <= best.gap <= 1e-9 * best.value
    assert best.value == pytest.approx(LIMITS[criterion](best.mechanism, prior), rel=1e-9)
    meant = np.arange(k) * prior @ matrix / (prior @ matrix)
    assert (np.diff(meant) > -1e-8).all(), "reports that speak for the first secrets come first"


@settings(max_examples=200)
@given(problems(), st.sampled_from([0.0, 0.9, 0.999]))
def test_no_private_channel_is_below_the_bound(problem, share):
    alphabet, prior, eps, criterion, rng = problem
    best = ik.optimal_private(prior, alphabet, eps, criterion)
    other = oracle.random_channel(alphabet.distances(), eps, rng)
    mixed = np.hstack([share * best.mechanism.matrix(), (1 - share) * other])
    mechanism = ik.MatrixMechanism(mixed[:, mixed.any(axis=0)], alphabet)
    assert LIMITS[criterion](mechanism, prior) >= (best.value - best.gap) * (1 - 1e-9)


@given(problems())
def test_the_known_mechanisms_are_not_below_the_bound_either(problem):
    alphabet, prior, eps, criterion, _ = problem
    nearest = alphabet.distances()[~np.eye(len(alphabet), dtype=bool)].min()
    rivals = [
        ik.RandomizedResponse(alphabet, eps * nearest),
        ik.SubsetSelection(alphabet, eps * nearest),
    ]
    rivals += [ik.Exponential(alphabet, eps)]
    rivals += [ik.TruncatedGeometric(alphabet, eps)] if isinstance(alphabet, ik.Line) else []
    best = ik.optimal_private(prior, alphabet, eps, criterion)
    for rival in rivals:
        assert LIMITS[criterion](rival, prior) >= (best.value - best.gap) * (1 - 1e-9), rival


@pytest.mark.parametrize("criterion", KINDS)
def test_a_little_less_privacy_does_go_below_the_bound(criterion):
    best = ik.optimal_private(ik.uniform(4), 4, 0.5, criterion)
    looser = ik.optimal_private(ik.uniform(4), 4, 0.501, criterion)
    assert looser.value < best.value - best.gap


@pytest.mark.parametrize("criterion", KINDS)
def test_a_bound_from_too_few_columns_is_none(criterion):
    """Without one of the extremal columns that are used, what is proved is false:
    the true optimum is below it.
    """
    k, eps, prior = 4, 0.5, ik.uniform(4)
    columns = oracle.walks(k, eps)
    columns /= (columns @ prior)[:, None]
    sums = np.eye(k) if criterion == "mse" else np.sqrt(2 / np.pi) * np.tril(np.ones((k, k)))[:-1]
    measure = column_weights.Criterion(sums @ contrasts(k), criterion == "emd")
    best = ik.optimal_private(prior, k, eps, criterion)
    bounds = []
    for left in range(len(columns)):
        some = np.delete(columns, left, axis=0)
        _, bound = column_weights.optimal_design(
            (some - 1) @ contrasts(k), np.full(len(some), 1 / len(some)), measure
        )
        bounds.append(bound)
    assert max(bounds) > best.value * (1 + 1e-4)
    assert min(bounds) > (best.value - best.gap) * (1 - 1e-9), (
        "fewer columns, never a smaller optimum"
    )


@pytest.mark.parametrize("criterion", KINDS)
@pytest.mark.parametrize(("k", "eps"), [(3, 0.1), (3, 1.0), (4, 0.3), (5, 0.5), (5, 2.0)])
def test_another_solver_of_the_convex_problem(k, eps, criterion, rng):
    for prior in (ik.uniform(k), 0.8 * rng.dirichlet(np.ones(k)) + 0.2 / k):
        value, channel = oracle.best_weights(oracle.walks(k, eps), prior, criterion)
        assert naive.epsilon_metric(
            channel[:, channel.min(axis=0) > 1e-9], naive.line_distances(k)
        ) <= eps * (1 + 1e-9)
        best = ik.optimal_private(prior, k, eps, criterion)
        assert best.value == pytest.approx(value, rel=1e-5)
        assert best.value <= value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("alphabet", "eps"), [(ik.Line(0, 2), 0.4), (TRIANGLE, 0.7), (ik.Alphabet(list("abc")), 1.0)]
)
def test_a_search_over_all_channels_that_knows_nothing_of_columns(alphabet, eps, rng):
    prior = np.array([0.5, 0.2, 0.3])
    for criterion in KINDS[: 2 if isinstance(alphabet, ik.Line) else 1]:
        best = ik.optimal_private(prior, alphabet, eps, criterion)
        enough = best.value * (1 + 1e-5)
        value = oracle.best_channel(
            alphabet.distances(), eps, prior, criterion, best.mechanism.m, rng, enough
        )
        assert value == pytest.approx(best.value, rel=1e-4)
        assert value >= (best.value - best.gap) * (1 - 1e-7)


@pytest.mark.ledger("B-C46")
@pytest.mark.erratum("B9")
@given(st.floats(0.05, 0.95), st.floats(0.01, 5))
def test_for_two_secrets_it_is_randomised_response(share, eps):
    """Closed form: the variance of matrix inversion with truth p = e^eps / (1 + e^eps)."""
    prior = np.array([share, 1 - share])
    p = np.exp(eps) / (1 + np.exp(eps))
    seen = share * p + (1 - share) * (1 - p)
    variance = seen * (1 - seen) / (2 * p - 1) ** 2
    best = ik.optimal_private(prior, 2, eps)
    np.testing.assert_allclose(best.mechanism.matrix(), [[p, 1 - p], [1 - p, p]], rtol=1e-9)
    assert best.value == pytest.approx(2 * variance, rel=1e-9)
    assert ik.optimal_private(prior, 2, eps, "emd").value == pytest.approx(
        np.sqrt(2 / np.pi * variance), rel=1e-9
    )


@pytest.mark.parametrize(("k", "size"), [(3, 1), (6, 2), (6, 3), (8, 2)])
def test_for_local_privacy_at_a_uniform_prior_it_is_as_good_as_subset_selection(k, size):
    """Where k / (e^eps + 1) is whole there is a bound that subset selection attains."""
    letters, eps = ik.Alphabet(list("abcdefgh"[:k])), np.log(k / size - 1)
    if eps == 0:
        eps = 1e-3  # sets of half of the secrets: best in the limit of no information
    best = ik.optimal_private(ik.uniform(k), letters, eps)
    assert best.value == pytest.approx(
        ik.theory.least_asymptotic_mse(k, eps, ik.uniform(k)), rel=1e-6
    )
    rival = ik.SubsetSelection(letters, eps, size)
    assert best.value == pytest.approx(ik.theory.asymptotic_mse(rival, ik.uniform(k)), rel=1e-6)


@pytest.mark.parametrize("criterion", KINDS)
def test_where_no_privacy_is_left_nothing_but_sampling_is(criterion, rng):
    prior = 0.5 * rng.dirichlet(np.ones(5)) + 0.1
    limit = oracle.criterion(np.eye(5), prior, criterion)
    assert ik.optimal_private(prior, 5, 60.0, criterion).value == pytest.approx(limit, rel=1e-9)


@given(problems([ik.Line(0, 4), ik.Line(0, 2)]))
def test_the_mirror_image_is_as_good(problem):
    alphabet, prior, eps, criterion, _ = problem
    there = ik.optimal_private(prior, alphabet, eps, criterion)
    back = ik.optimal_private(prior[::-1], alphabet, eps, criterion)
    assert there.value == pytest.approx(back.value, rel=1e-9)


def test_only_epsilon_times_distance_matters():
    scaled = ik.Alphabet(range(4), 0.25 * ik.Line(0, 3).distances())
    prior = [0.1, 0.2, 0.3, 0.4]
    assert ik.optimal_private(prior, scaled, 2.0).value == pytest.approx(
        ik.optimal_private(prior, 4, 0.5).value
    )
    in_quarters = ik.optimal_private(prior, scaled, 2.0, "emd").value
    assert 4 * in_quarters == pytest.approx(ik.optimal_private(prior, 4, 0.5, "emd").value)


def test_one_secret_has_nothing_to_hide():
    best = ik.optimal_private([1.0], 1, 1.0)
    assert (best.value, best.gap, best.mechanism.m) == (0, 0, 1)
