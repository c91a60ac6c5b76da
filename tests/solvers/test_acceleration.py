"""Accelerated ibu: the same maximum in few evaluations, a likelihood that never falls,
and secrets that come back.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ibukit as ik
from hard_cases import FAMILIES, draw
from ibukit.channels import DenseChannel
from ibukit.solvers import anderson
from instances import INSTANCES, NAMES, Bent, Trace, distributions, tallies, with_operator

TINY_STARTS = [0, 100, 600]


def accelerated(tally, tol=1e-8, **words):
    return ik.ibu(tally, stop=ik.Gap(tol), accelerate=True, **words)


def assert_agrees_with_mle(tally, estimate):
    best = ik.mle(tally)
    allowed = tally.n * (best.gap + estimate.gap + 1e-14) + 1e-12 * abs(best.log_likelihood)
    assert abs(best.log_likelihood - estimate.log_likelihood) <= allowed


class Path(Trace):
    """Until so many evaluations; keeps what it saw."""

    def met(self, now, before):
        assert np.isfinite(now.g).all()
        assert now.n_iter == 0 or now.n_iter > before.n_iter
        return super().met(now, before)


def path(tally, n, start=None):
    seen = Path(n)
    ik.ibu(tally, start=start, stop=seen, max_iter=n, accelerate=True)
    return seen


def assert_never_falls(tally, n=200, start=None):
    seen = path(tally, n, start)
    values = np.array(seen.log_likelihoods)
    slack = 1e-13 * (np.abs(values[0]) + tally.n)
    assert (np.diff(values) >= -slack).all(), f"L falls by {-np.diff(values).min():.3g}"
    for theta in seen.distributions:
        assert (theta > 0).all(), "a secret without mass could not come back"
        assert abs(theta.sum() - 1) <= 1e-12


def hard(family, cases):
    """Tallies of a family, each with a start whose entries go down to e^-tiny."""
    rng = np.random.default_rng(FAMILIES.index(family))
    for number in range(cases):
        matrix, counts = draw(family, rng)
        tally = ik.MatrixMechanism(matrix).tally_counts(counts * matrix.any(axis=0))
        start = np.exp(-rng.uniform(0, TINY_STARTS[number % 3] or 1e-9, tally.k))
        start /= start.sum()
        possible = tally.forward(start).min() > 1e-290
        yield tally, (start if possible else None)


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_agrees_with_mle_in_every_channel(instance):
    estimate = accelerated(instance.tally, strict=True)
    assert estimate.gap == ik.gap(instance.tally, estimate.distribution) <= 1e-8
    assert estimate.status is ik.Status.CONVERGED
    assert estimate.method == "ibu, accelerated, Gap(tol=1e-08)"
    assert_agrees_with_mle(instance.tally, estimate)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_agrees_with_mle_on_hard_problems_from_any_start(family):
    for tally, start in hard(family, 9):
        estimate = accelerated(tally, 1e-6, start=start, max_iter=3000, strict=True)
        assert_agrees_with_mle(tally, estimate)


@given(data=st.data(), tally=tallies())
def test_agrees_with_mle_on_anything_small(data, tally):
    start = data.draw(distributions(tally.k, full_support=True))
    assert_agrees_with_mle(tally, accelerated(tally, 1e-6, start=start, max_iter=3000, strict=True))


@pytest.mark.parametrize("instance", INSTANCES, ids=NAMES)
def test_the_likelihood_never_falls_in_any_channel(instance):
    assert_never_falls(instance.tally)


@pytest.mark.parametrize("many", [3, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_the_likelihood_never_falls_on_hard_problems_from_any_start(family, many):
    for tally, start in hard(family, many):
        assert_never_falls(tally, start=start)


def test_the_law_sees_a_step_that_is_taken_though_it_falls(monkeypatch):
    def credulous(self, x, theta, p):
        weights = np.exp(np.maximum(x - x.max(), -600))
        return self._at(weights / weights.sum())

    monkeypatch.setattr(anderson.Anderson, "_try", credulous)
    with pytest.raises(AssertionError, match="L falls"):
        assert_never_falls(ages())


def ages():
    data = ik.datasets.load_adult_ages()
    return ik.TruncatedGeometric(data.alphabet, 0.05).simulate(
        data.counts, np.random.default_rng(3)
    )


def test_needs_a_few_hundred_evaluations_on_ages():
    tally = ages()
    plain, fast = ik.ibu(tally, strict=True), accelerated(tally, 1e-6, strict=True)
    assert plain.n_iter > 100_000
    # With other noise 394 to 637 were seen.
    assert fast.n_iter < 1000


def test_a_fixed_point_stays():
    rng = np.random.default_rng(5)
    matrix, theta = (
        (np.eye(5, 8) + rng.dirichlet(np.ones(8), 5)) / 2,
        rng.dirichlet(np.full(5, 5.0)),
    )
    counts = np.rint(1e15 * theta @ matrix).astype(np.int64)
    tally = ik.MatrixMechanism(matrix).tally_counts(counts)
    for point in path(tally, 60, start=theta).distributions:
        # a move by d changes the likelihood by d^2: up to a root of the rounding it may pass for no
        # loss
        assert np.abs(point - theta).max() <= 1e-7
    moved = np.roll(theta, 1)
    assert np.abs(path(tally, 60, start=moved).distributions[-1] - theta).max() <= 1e-7, (
        "no other point stays"
    )


def test_many_maximisers_and_any_of_them_is_kept():
    twins = ik.MatrixMechanism([[0.45, 0.10, 0.45], [0.05, 0.90, 0.05], [0.45, 0.10, 0.45]])
    tally = twins.tally([1, 1, 1, 1, 0, 2])
    for share in (0.1, 0.5, 0.9):
        theta = np.array([share * 7 / 24, 17 / 24, (1 - share) * 7 / 24])
        # nothing holds it along the flat direction: rounding of 1e-15 a step is carried along, and
        # extrapolated
        assert np.abs(path(tally, 30, start=theta).distributions[-1] - theta).max() <= 1e-10


@pytest.mark.parametrize("mass", [1e-20, 1e-100, 1e-300, 1e-310])
def test_a_secret_with_next_to_no_mass_comes_back(mass):
    tally = ik.RandomizedResponse(4, 0.1).tally_counts([40, 30, 20, 10])
    start = np.array([mass, 0.5, 0.3, 0.2])
    estimate = accelerated(tally, start=start, max_iter=200, strict=True)
    assert estimate.distribution[0] > 0.9
    assert_agrees_with_mle(tally, estimate)


def test_it_is_the_lift_that_brings_it_back(monkeypatch):
    tally = ik.RandomizedResponse(4, 0.1).tally_counts([40, 30, 20, 10])
    monkeypatch.setattr(anderson, "LIFT", 0.0)
    start = np.array([1e-300, 0.5, 0.3, 0.2])
    assert accelerated(tally, start=start, max_iter=200).status is ik.Status.MAX_ITER


def test_secrets_that_explain_nothing_that_was_seen():
    matrix = np.array(
        [[0.5, 0.3, 0.2, 0.0], [0.2, 0.3, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0], [0.1, 0.8, 0.1, 0.0]]
    )
    tally = ik.MatrixMechanism(matrix).tally_counts([30, 30, 40, 0])
    assert_never_falls(tally)
    estimate = accelerated(tally, 1e-10, max_iter=300, strict=True)
    assert estimate.distribution[2] < 1e-9


def test_n_iter_counts_evaluations_beyond_the_one_at_the_start():
    calls = []

    def count(p):
        calls.append(1)
        return p

    tally = ages()
    watched = with_operator(tally, Bent(tally.operator, forward=count))
    estimate = ik.ibu(watched, stop=Path(100), accelerate=True)
    assert 100 <= estimate.n_iter <= 102
    assert len(calls) == 1 + estimate.n_iter + 1  # and one for the certificate


@pytest.mark.parametrize("family", FAMILIES[:4], ids=lambda family: family.__name__)
def test_max_iter_is_kept(family):
    (tally, _), *_ = hard(family, 1)
    for most in range(30):
        estimate = accelerated(tally, 1e-15, max_iter=most)
        assert estimate.n_iter <= most
        if estimate.status is ik.Status.MAX_ITER:
            assert estimate.n_iter == most


def test_the_last_evaluation_allowed_is_a_step():
    # a proposal may be refused: one that leaves no evaluation for the plain update would leave the
    # point where it is
    (tally, _), *_ = hard(FAMILIES[3], 1)
    for most in range(1, 40):
        first, second = path(tally, most).distributions[-2:]
        # where doubles end, a plain update may leave it there as well
        assert not np.array_equal(first, second) or ik.gap(tally, first) < 1e-12
    assert (
        ik.gap(tally, path(tally, 3).distributions[-1]) > 1e-6
    )  # so the first three were held to it


def test_twice_the_same():
    tally = ages()
    one, two = (accelerated(tally, 1e-7) for _ in range(2))
    assert np.array_equal(one.distribution, two.distribution)
    assert one.n_iter == two.n_iter


def test_other_rules_that_aim_at_the_maximum():
    tally = ages()
    for of in ("log_likelihood", "mean_log_likelihood", "distribution"):
        estimate = ik.ibu(tally, stop=ik.Change(1e-9, of=of), accelerate=True)
        assert estimate.status is ik.Status.CONVERGED
        assert estimate.method.startswith("ibu, accelerated, Change(")


def test_gibu_passes_it_on():
    groups = [ik.RandomizedResponse(4, eps).tally_counts([40, 30, 20, 10]) for eps in (0.5, 2.0)]
    estimate = ik.gibu(groups, accelerate=True)
    assert estimate.method == "ibu, accelerated, Gap(tol=1e-06)"
    assert np.array_equal(estimate.distribution, ik.ibu(sum(groups), accelerate=True).distribution)


def test_one_secret():
    tally = ik.MatrixMechanism([[0.5, 0.5]]).tally_counts([3, 4])
    assert path(tally, 10).distributions[-1] == pytest.approx([1.0], rel=1e-13)


class Early:
    """A stranger's rule that stops on purpose."""

    def met(self, now, before):
        return True

    def out_of_reach(self, now):
        return False


@pytest.mark.parametrize(
    "rule", [ik.Steps(10), ik.Discrepancy(), Early()], ids=lambda rule: type(rule).__name__
)
def test_rules_that_stop_early_on_purpose_are_refused(rule):
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2])
    with pytest.raises(
        ValueError, match=r"accelerate must be False with stop=.*stops early on purpose"
    ):
        ik.ibu(tally, stop=rule, accelerate=True)
    ik.ibu(tally, stop=rule, accelerate=False)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_what_is_no_yes_or_no(value):
    with pytest.raises(TypeError, match=f"accelerate must be True or False, got {value!r}"):
        ik.ibu(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2]), accelerate=value)


def test_a_gap_that_is_met_exactly_is_met(monkeypatch):
    """The first point is the last where its largest ratio is 1 + tol."""
    monkeypatch.setattr(anderson, "MAX_EVALUATIONS", 50)
    monkeypatch.setattr(
        anderson, "evaluate", lambda *asked: (np.array([0.5, 0.5]), np.array([0.75, 1.5]))
    )
    channel, q = DenseChannel(np.array([[0.75, 0.25], [0.25, 0.75]])), np.array([0.25, 0.75])
    assert anderson.maximise(channel, q, 0.5, 2)[1] == 0
    assert anderson.maximise(channel, q, 0.4375, 2)[1] > 0
