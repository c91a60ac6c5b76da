"""The optimal mechanism:
its value, both choices among the optima, two losses, and what is refused.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.design import _linear_programme
from oracles import shokri as oracle

CHOICES = ["least-information", "vertex"]
LINE = ik.Line(0, 99)
# Table VIII of the free-will paper
TABLE = [1, 4, 7, 10, 13, 16, 19, 22, 24.5, 28]


@st.composite
def problems(draw):
    """A prior (some with impossible secrets), a loss (some whole,
    with ties) and a bound between the useful ends.
    """
    k = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    loss = rng.integers(0, 4, (k, k)).astype(float) if draw(st.booleans()) else rng.random((k, k))
    loss *= draw(st.sampled_from([1.0, 1e-3, 1e5]))
    prior = rng.dirichlet(np.full(k, 0.7))
    if k > 1 and draw(st.booleans()):
        prior[rng.integers(k)] = 0
        prior /= prior.sum()
    least, most = float(prior @ loss.min(axis=1)), float((prior @ loss).min())
    share = draw(st.sampled_from([0.0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0, 1.4]))
    return prior, loss, least + share * (most - least), most


def both_losses(mechanism, prior, loss):
    return ik.privacy.quality_loss(mechanism, prior, loss), ik.privacy.adversary_loss(
        mechanism, prior, loss
    )


@pytest.mark.ledger("C-LP2")
@settings(max_examples=150)
@given(problems(), st.sampled_from(CHOICES))
def test_the_optimum_is_the_bound_or_the_loss_of_a_constant(problem, choice):
    prior, loss, bound, most = problem
    unit = loss.max() or 1.0
    maximum, _ = oracle.linear_programme(prior, loss / unit, loss / unit, bound / unit)
    assert maximum == pytest.approx(min(bound, most) / unit, abs=1e-7)
    mechanism = ik.shokri(prior, ik.Alphabet(range(len(prior))), bound, loss, choice=choice)
    quality, privacy = both_losses(mechanism, prior, loss)
    tolerance = {"least-information": 1e-12, "vertex": 1e-9}[choice] * unit
    assert quality <= bound + tolerance
    assert privacy >= min(bound, most) - tolerance
    assert (mechanism.matrix() >= 0).all()
    np.testing.assert_allclose(mechanism.matrix().sum(axis=1), 1, rtol=0, atol=1e-14)


@pytest.mark.ledger("C-LP2")
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("bound", TABLE)
def test_the_papers_bounds_on_a_line(bound, choice):
    mechanism = ik.shokri(ik.uniform(100), LINE, bound, choice=choice)
    quality, privacy = both_losses(mechanism, ik.uniform(100), None)
    assert quality == pytest.approx(min(bound, 25), abs=1e-9)
    assert privacy == pytest.approx(min(bound, 25), abs=1e-9)


@pytest.mark.parametrize("bound", [0.3, 1.5, 2.7, 3.0])
def test_the_papers_bounds_on_the_map(bound):
    grid = ik.datasets.load_gowalla("san_francisco").alphabet
    mechanism = ik.shokri(ik.uniform(384), grid, bound)
    quality, privacy = both_losses(mechanism, ik.uniform(384), None)
    assert bound - 1e-11 < privacy <= quality + 1e-14
    assert quality <= bound


@pytest.mark.ledger("C-LP2")
@given(problems())
def test_to_toss_a_coin_between_the_truth_and_a_constant_is_optimal(problem):
    prior, loss, bound, most = problem
    least = float(prior @ loss.min(axis=1))
    share = min(1.0, (bound - least) / (most - least)) if most > least else 1.0
    truth = np.eye(len(prior))[loss.argmin(axis=1)]
    constant = np.eye(len(prior))[(prior @ loss).argmin()]
    coin = ik.MatrixMechanism((1 - share) * truth + share * constant)
    quality, privacy = both_losses(coin, prior, loss)
    assert quality == pytest.approx(min(bound, most), rel=1e-9, abs=1e-12)
    assert privacy == pytest.approx(min(bound, most), rel=1e-9, abs=1e-12)


@pytest.mark.ledger("C-LP2")
@given(problems(), st.sampled_from(CHOICES))
def test_the_report_itself_is_a_best_guess(problem, choice):
    prior, loss, bound, most = problem
    if bound > most:
        return
    mechanism = ik.shokri(prior, ik.Alphabet(range(len(prior))), bound, loss, choice=choice)
    costs = (mechanism.matrix().T * prior) @ loss
    assert (costs.diagonal() <= costs.min(axis=1) + 1e-9 * loss.max()).all()


@pytest.mark.erratum("C6")
@pytest.mark.ledger("C-LP2")
def test_the_programme_has_many_optima_of_different_rank():
    mechanisms = [ik.shokri(ik.uniform(100), LINE, 10, choice=choice) for choice in CHOICES]
    mechanisms.append(ik.MatrixMechanism(0.6 * np.eye(100) + 0.4 * (np.arange(100) == 50), LINE))
    ranks = [int(np.linalg.matrix_rank(mechanism.matrix())) for mechanism in mechanisms]
    for mechanism in mechanisms:
        quality, privacy = both_losses(mechanism, ik.uniform(100), None)
        assert quality == pytest.approx(10, abs=1e-9)
        assert privacy == pytest.approx(10, abs=1e-9)
    assert len(set(ranks)) == 3
    assert ranks[0] < 100, "the one of least information is singular"
    assert ranks[1] < 100, "so is the vertex"
    assert ranks[2] == 100, "the coin is not"
    assert np.abs(mechanisms[0].matrix() - mechanisms[1].matrix()).max() > 0.5


@pytest.mark.erratum("C6")
def test_the_ten_optima_of_least_information_can_be_told_apart_by_their_average():
    matrices = [ik.shokri(ik.uniform(100), LINE, bound).matrix() for bound in TABLE]
    ranks = [int(np.linalg.matrix_rank(matrix)) for matrix in matrices]
    assert ranks == sorted(ranks, reverse=True)
    assert (ranks[0], ranks[-1]) == (100, 1)
    assert all(rank < 100 for rank in ranks[1:])
    singular_values = np.linalg.svd(np.mean(matrices, axis=0), compute_uv=False)
    assert singular_values[0] / singular_values[-1] == pytest.approx(81.2, abs=0.1)


@pytest.mark.erratum("C6")
def test_other_optima_leave_open_what_their_average_and_even_their_pool_could_tell():
    """Secrets 0 and 1 are always reported alike:
    each of the ten is optimal, and no estimator can tell them apart.
    """
    nearly_the_truth = np.eye(100)
    nearly_the_truth[0] = nearly_the_truth[
        1
    ]  # costs 1/100; report 1 stays a median of what it stands for
    mechanisms = []
    for bound in np.minimum(TABLE, 25):
        share = (bound - 0.01) / (25 - 0.01)
        mechanisms.append(
            ik.MatrixMechanism(
                (1 - share) * nearly_the_truth + share * (np.arange(100) == 50), LINE
            )
        )
        quality, privacy = both_losses(mechanisms[-1], ik.uniform(100), None)
        assert quality == pytest.approx(bound, rel=1e-12)
        assert privacy == pytest.approx(bound, rel=1e-12)
    matrices = [mechanism.matrix() for mechanism in mechanisms]
    assert np.linalg.matrix_rank(np.mean(matrices, axis=0)) == 99
    assert np.linalg.matrix_rank(np.hstack(matrices)) == 99


@settings(max_examples=60)
@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.2, 0.7, 1.0, 2.0]),
)
def test_two_losses(k, guesses, seed, share):
    rng = np.random.default_rng(seed)
    loss, adversary_loss = rng.random((k, k)), 3 * rng.random((k, guesses))
    prior = rng.dirichlet(np.ones(k))
    if k > 2:
        prior = np.append(0.0, prior[1:]) / prior[1:].sum()
    least, enough = float(prior @ loss.min(axis=1)), float((prior @ loss).min())
    bound = least + share * (enough - least)
    maximum, _ = oracle.linear_programme(prior, loss, adversary_loss, bound)
    mechanism = ik.shokri(prior, k, bound, loss, adversary_loss)
    assert ik.privacy.quality_loss(mechanism, prior, loss) <= bound + 1e-9
    assert ik.privacy.adversary_loss(mechanism, prior, adversary_loss) == pytest.approx(
        maximum, abs=2e-8
    )


def test_an_adversary_who_only_wants_the_exact_cell():
    """Distance for the user, right or wrong for the adversary: no longer the bound itself."""
    grid = ik.Grid(3, 4)
    wrong = 1 - np.eye(12)
    maximum, _ = oracle.linear_programme(ik.uniform(12), grid.distances(), wrong, 1.0)
    mechanism = ik.shokri(ik.uniform(12), grid, 1.0, adversary_loss=wrong)
    assert ik.privacy.adversary_loss(mechanism, ik.uniform(12), wrong) == pytest.approx(
        maximum, abs=1e-8
    )
    assert maximum < 0.9
    assert ik.privacy.quality_loss(mechanism, ik.uniform(12)) == pytest.approx(1, abs=1e-8)


def test_no_guess_is_left_out_though_the_programme_begins_with_few():
    """An adversary with many more guesses than the first nine,
    the best of them far from the report.
    """
    rng = np.random.default_rng(3)
    loss, adversary_loss = rng.random((15, 15)), rng.random((15, 80))
    maximum, _ = oracle.linear_programme(ik.uniform(15), loss, adversary_loss, 0.2)
    mechanism = ik.shokri(ik.uniform(15), 15, 0.2, loss, adversary_loss)
    assert ik.privacy.adversary_loss(mechanism, ik.uniform(15), adversary_loss) == pytest.approx(
        maximum, abs=1e-8
    )
    one = ik.shokri(ik.uniform(15), 15, 0.2, loss, choice="vertex")
    assert ik.privacy.adversary_loss(one, ik.uniform(15), loss) == pytest.approx(0.2, abs=1e-9)


def test_the_default_choice():
    prior, loss = ik.uniform(4), ik.Line(0, 3).distances()
    least = ik.shokri(prior, 4, 0.5, choice="least-information")
    assert ik.shokri(prior, 4, 0.5) == least
    assert ik.shokri(prior, 4, 0.5, adversary_loss=loss) == least, "the same loss twice is one loss"
    vertex = ik.shokri(prior, 4, 0.5, adversary_loss=loss**2, choice="vertex")
    assert ik.shokri(prior, 4, 0.5, adversary_loss=loss**2) == vertex


@pytest.mark.parametrize("choice", CHOICES)
def test_the_same_bits_twice(choice):
    grid = ik.Grid(4, 6)
    first, second = (
        ik.shokri(ik.normalize(np.arange(1, 25)), grid, 0.8, choice=choice) for _ in range(2)
    )
    assert first.matrix().tobytes() == second.matrix().tobytes()
    assert first.alphabet == grid


@pytest.mark.parametrize("choice", CHOICES)
def test_at_the_ends(choice):
    prior, loss = np.array([0.2, 0.5, 0.3]), ik.Line(0, 2).distances()
    assert np.array_equal(ik.shokri(prior, 3, 0, choice=choice).matrix(), np.eye(3))
    for bound in (0.5, 0.7, 1e9, float("inf")):
        mechanism = ik.shokri(prior, 3, bound, choice=choice)
        assert ik.privacy.quality_loss(mechanism, prior) == pytest.approx(0.5, abs=1e-9)
        assert ik.privacy.adversary_loss(mechanism, prior) == pytest.approx(0.5, abs=1e-9)
    assert ik.shokri([1.0], 1, 0.0, choice=choice).matrix().tolist() == [[1.0]]
    nothing_costs = ik.shokri(prior, 3, 0.0, np.zeros_like(loss), choice=choice)
    assert both_losses(nothing_costs, prior, np.zeros_like(loss)) == (0, 0)


def test_a_bound_that_is_too_low_by_rounding_alone_is_the_least_loss():
    prior, loss = (
        ik.normalize([3, 5, 7]),
        np.array([[0.1, 0.7, 0.9], [0.7, 0.1, 0.7], [0.9, 0.7, 0.1]]),
    )
    for choice in CHOICES:
        mechanism = ik.shokri(
            prior, 3, np.nextafter(prior @ loss.min(axis=1), 0), loss, choice=choice
        )
        np.testing.assert_allclose(mechanism.matrix(), np.eye(3), atol=1e-9)


@pytest.mark.parametrize("choice", CHOICES)
def test_rows_of_impossible_secrets(choice):
    prior, line = np.array([0.3, 0.0, 0.3, 0.4, 0.0]), ik.Line(0, 4)
    matrix = ik.shokri(prior, line, 0.4, choice=choice).matrix()
    if choice == "vertex":
        np.testing.assert_allclose(matrix[[1, 4]], np.tile(prior @ matrix, (2, 1)), atol=1e-12)
    else:  # what a prior that barely allows them gives
        barely = (1 - 1e-7) * prior + 1e-7 * np.array([0, 0.5, 0, 0, 0.5])
        np.testing.assert_allclose(ik.shokri(barely, line, 0.4).matrix(), matrix, atol=1e-4)
    without = ik.shokri(
        prior[[0, 2, 3]], 3, 0.4, line.distances()[np.ix_([0, 2, 3], [0, 2, 3])], choice=choice
    )
    assert ik.privacy.adversary_loss(
        without, prior[[0, 2, 3]], line.distances()[np.ix_([0, 2, 3], [0, 2, 3])]
    ) == (pytest.approx(0.4, abs=1e-9))


UNIFORM = ik.uniform(3)
LOSS = np.array([[0.5, 1, 2], [1, 0.5, 1], [2, 1, 0.5]])
CALLS = [
    (
        lambda: ik.shokri(UNIFORM, 3, 0.4, LOSS),
        ik.errors.Infeasible,
        ["max_quality_loss", "0.4", "0.5", "0.833333"],
    ),
    (
        lambda: ik.shokri(UNIFORM, 3, -1),
        ik.errors.Infeasible,
        ["max_quality_loss", "at least 0,", "-1", "to 0.666667"],
    ),
    (
        lambda: ik.shokri(UNIFORM, 3, float("nan")),
        ik.errors.Infeasible,
        ["max_quality_loss", "nan"],
    ),
    (
        lambda: ik.shokri(UNIFORM, 3, float("-inf"), choice="vertex"),
        ik.errors.Infeasible,
        ["max_quality_loss", "-inf"],
    ),
    (lambda: ik.shokri(UNIFORM, 3, "1"), ValueError, ["max_quality_loss", "'1'"]),
    (lambda: ik.shokri(UNIFORM, 3, True), ValueError, ["max_quality_loss", "True"]),
    (
        lambda: ik.shokri([0.5, 0.5], 3, 1),
        ik.errors.AlphabetMismatch,
        ["prior", "3 elements", "got 2"],
    ),
    (lambda: ik.shokri([0.5, 0.5, 0.5], 3, 1), ik.errors.InvalidDistribution, ["prior", "1.5"]),
    (
        lambda: ik.shokri(UNIFORM, 3, 1, np.ones((3, 2))),
        ik.errors.AlphabetMismatch,
        ["loss", "(3, 3)", "(3, 2)"],
    ),
    (lambda: ik.shokri(UNIFORM, 3, 1, np.ones(3)), ik.errors.AlphabetMismatch, ["loss", "(3,)"]),
    (lambda: ik.shokri(UNIFORM, 3, 1, -LOSS), ValueError, ["loss", "-0.5", "(0, 0)"]),
    (lambda: ik.shokri(UNIFORM, 3, 1, LOSS * np.nan), ValueError, ["loss", "nan"]),
    (lambda: ik.shokri(UNIFORM, 3, 1, LOSS * np.inf), ValueError, ["loss", "inf"]),
    (lambda: ik.shokri(UNIFORM, 3, 1, "loss"), ValueError, ["loss", "str"]),
    (
        lambda: ik.shokri(UNIFORM, 3, 1, LOSS, LOSS[:2]),
        ik.errors.AlphabetMismatch,
        ["adversary_loss", "(2, 3)"],
    ),
    (lambda: ik.shokri(UNIFORM, 3, 1, LOSS, -LOSS), ValueError, ["adversary_loss", "-0.5"]),
    (lambda: ik.shokri(UNIFORM, 3, 1, choice="any"), ValueError, ["choice", "'any'", "'vertex'"]),
    (
        lambda: ik.shokri(UNIFORM, 3, 1, LOSS, LOSS**2, choice="least-information"),
        ValueError,
        ["choice='least-information'", "adversary_loss", "choice='vertex'"],
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), CALLS, ids=range(len(CALLS)))
def test_what_cannot_be_is_refused_by_name(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_rounding_does_not_choose_the_vertex(rng, monkeypatch):
    """Optima are many: a prior that differs in its sixteenth digit ended at another one,
    as another machine would.
    """
    line, uniform = ik.Line(0, 19), ik.uniform(20)

    def spread(**how):
        priors = [ik.normalize(uniform * (1 + 1e-15 * rng.uniform(-1, 1, 20))) for _ in range(5)]
        vertices = [ik.shokri(prior, line, 2, **how).matrix() for prior in (uniform, *priors)]
        return max(np.abs(vertex - vertices[0]).max() for vertex in vertices[1:])

    two_losses = {"adversary_loss": np.minimum(line.distances(), 2)}
    assert spread(choice="vertex") < 1e-8
    assert spread(**two_losses) < 1e-7
    monkeypatch.setattr(_linear_programme, "prices", np.zeros)
    assert max(spread(choice="vertex"), spread(**two_losses)) > 0.1
