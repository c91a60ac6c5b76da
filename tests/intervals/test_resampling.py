"""The bootstrap: against exact binomial laws, how often it holds, and where it does not."""

import numpy as np
import pytest
from scipy.stats import binom

import ibukit as ik
from ibukit.intervals.resampling import resampled, simulated, whole_people
from ibukit.solvers import Problem, interior_point, maximise_near, maximum

# of a share that should be the level: how many standard errors it may be off
SIGMAS = 3.5
TWO = ik.RandomizedResponse(2, 1.0)
TRUE = TWO.matrix()[0, 0]


def estimates(n):
    """Of the first of two secrets, from each number of reports of it."""
    return np.clip((np.arange(n + 1) / n - (1 - TRUE)) / (2 * TRUE - 1), 0, 1)


def has_tails(ends, values, chances, level, draws):
    """Whether each end leaves (1 - level) / 2 of a law with atoms outside,
    up to the luck of the draws.
    """
    tail = (1 - level) / 2
    margin = SIGMAS * np.sqrt(tail * (1 - tail) / draws) + 1 / draws
    lower, upper = ends
    sure = [
        (chances[values < lower - 1e-9].sum(), chances[values <= lower + 1e-9].sum()),
        (chances[values > upper + 1e-9].sum(), chances[values >= upper - 1e-9].sum()),
    ]
    return all(beyond <= tail + margin and with_it >= tail - margin for beyond, with_it in sure)


@pytest.mark.parametrize(
    ("seen", "kind"), [(80, "parametric"), (80, "reports"), (92, "parametric"), (92, "reports")]
)
def test_percentiles_are_those_of_the_exact_law(seen, kind):
    n, level, draws = 120, 0.9, 1500
    estimate = ik.mle(TWO.tally_counts([seen, n - seen]))
    theta = estimate.distribution[0]
    chance = seen / n if kind == "reports" else theta * TRUE + (1 - theta) * (1 - TRUE)
    ends = estimate.interval(level, of=[1, 0], method="bootstrap", draws=draws, kind=kind, seed=2)
    law = binom.pmf(np.arange(n + 1), n, chance)
    assert has_tails(ends, estimates(n), law, level, draws)
    # the controls: other people, and a higher level
    assert not has_tails(
        ends, estimates(n), binom.pmf(np.arange(n + 1), n, chance - 0.05), level, draws
    )
    assert not has_tails(ends, estimates(n), law, 0.98, draws)


def test_the_kinds_differ_where_the_reports_are_beyond_all_distributions():
    """Of 120 reports 105 name the first: more than if all had it. Its people make 88."""
    estimate = ik.mle(TWO.tally_counts([105, 15]))
    assert estimate.distribution[0] == 1
    drawn, again = (
        estimate.interval(method="bootstrap", kind=kind)[0][0] for kind in ("parametric", "reports")
    )
    assert drawn < again - 0.05


def test_the_basic_interval_is_of_the_errors_about_fixed_secrets():
    n, level, draws, seen = 120, 0.9, 1500, 70
    estimate = ik.mle(TWO.tally_counts([seen, n - seen]))
    first = whole_people(estimate.distribution, n)[0]
    truthful, liars = (
        binom.pmf(np.arange(m + 1), m, p) for m, p in ((first, TRUE), (n - first, 1 - TRUE))
    )
    law, errors = np.convolve(truthful, liars), estimates(n) - first / n
    lower, upper = estimate.interval(
        level, of=[1, 0], method="bootstrap", target="frequencies", draws=draws
    )
    middle = estimate.distribution[0]
    assert has_tails((middle - upper, middle - lower), errors, law, level, draws)
    # the control: secrets that are drawn, too
    wider = binom.pmf(np.arange(n + 1), n, 0.5)
    assert not has_tails(
        (middle - upper, middle - lower), (np.arange(n + 1) / n - 0.5) * 8, wider, level, draws
    )


def test_people_are_whole_and_all_there():
    rng = np.random.default_rng(1)
    for _ in range(200):
        k, n = rng.integers(1, 9), rng.integers(1, 60)
        theta = rng.dirichlet(np.full(k, 0.3))
        people = whole_people(theta, n)
        assert people.sum() == n
        assert np.abs(people - n * theta).max() < 1 + 1e-3
        assert (people[theta == 0] == 0).all()
    assert whole_people(np.array([0.46, 0.24, 0.3]), 10).tolist() == [5, 2, 3]
    assert whole_people(np.array([0.25, 0.75]), 8).tolist() == [2, 6]


def test_each_part_is_drawn_by_itself():
    rng = np.random.default_rng(1)
    tally = TWO.tally_counts([300, 200]) + ik.RandomizedResponse(2, 3.0).tally_counts([20, 40])
    for drawn in (simulated(tally, np.array([0.5, 0.5]), rng), resampled(tally, rng)):
        assert [(part.mechanism, part.n) for part in drawn.parts] == [
            (part.mechanism, part.n) for part in tally.parts
        ]
    seen = np.array([resampled(tally, rng).parts[1].counts for _ in range(400)])
    assert seen.mean(axis=0) == pytest.approx([20, 40], abs=SIGMAS * np.sqrt(60 * 2 / 9 / 400))
    bits = ik.Rappor(3, 2.0).simulate([20, 10, 5], rng)
    drawn = resampled(bits, rng)
    assert drawn.n == 35
    assert {tuple(row) for row in drawn.parts[0].reports} <= {
        tuple(row) for row in bits.parts[0].reports
    }


# How often it holds


def held(mechanism, theta, n, repetitions, level=0.9, truth=None, **options):
    """The share of tallies whose interval has the first probability;
    with `truth` the secrets are the same in each.
    """
    rng, covers = np.random.default_rng(8), 0
    for _ in range(repetitions):
        people = rng.multinomial(n, theta) if truth is None else truth
        lower, upper = ik.mle(mechanism.simulate(people, rng)).interval(
            level, of=np.eye(len(theta))[0], method="bootstrap", draws=199, **options
        )
        covers += lower <= theta[0] <= upper
    return covers / repetitions


def off(share, level, repetitions):
    """In standard errors, to which half a percent is added for the luck of 199 draws."""
    return (share - level) / (np.sqrt(level * (1 - level) / repetitions) + 0.005)


@pytest.mark.slow
def test_it_holds_inside():
    inside = (ik.RandomizedResponse(3, 2.0), [0.5, 0.3, 0.2], 600, 60)
    for kind in ("parametric", "reports"):
        assert abs(off(held(*inside, kind=kind), 0.9, 60)) <= SIGMAS
    assert abs(off(held(*inside, truth=[300, 180, 120], target="frequencies"), 0.9, 60)) <= SIGMAS


@pytest.mark.slow
def test_what_is_of_the_frequencies_does_not_hold_of_the_distribution():
    """The control: where reports are nearly the secrets,
    intervals of frequencies leave out the luck of the draw.
    """
    inside = (ik.RandomizedResponse(3, 4.0), [0.5, 0.3, 0.2], 600, 50)
    assert off(held(*inside, target="frequencies"), 0.9, 50) < -2 * SIGMAS


@pytest.mark.slow
def test_it_does_not_hold_at_a_vertex():
    share = held(ik.RandomizedResponse(5, 1.0), [1.0, 0, 0, 0, 0], 300, 60, level=0.95)
    assert off(share, 0.95, 60) < -2 * SIGMAS


# What is asked


def test_the_seed_decides():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([50, 30, 20]))
    first = estimate.interval(method="bootstrap", draws=99)
    np.testing.assert_array_equal(first, estimate.interval(method="bootstrap", draws=99, seed=0))
    assert (np.array(first) != estimate.interval(method="bootstrap", draws=99, seed=1)).any()
    one = estimate.interval(of=[1, 0, 0], method="bootstrap", draws=99)
    assert one == pytest.approx((first[0][0], first[1][0]), abs=1e-12)
    lower, upper = estimate.interval(method="bootstrap", target="frequencies", draws=99)
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()


def test_bad_input_is_named():
    tally = ik.RandomizedResponse(2, 1.0).tally_counts([9, 1])
    estimate = ik.mle(tally)
    for draws, level, least in ((38, 0.95, 39), (18, 0.9, 19), (198, 0.99, 199)):
        with pytest.raises(ValueError, match=f"draws must be at least {least}, got {draws}"):
            estimate.interval(level, method="bootstrap", draws=draws)
    with pytest.raises(ValueError, match="kind must be 'parametric' or 'reports', got 'wild'"):
        estimate.interval(method="bootstrap", kind="wild")
    with pytest.raises(
        ValueError, match="kind must be 'parametric' with target='frequencies', got 'reports'"
    ):
        estimate.interval(method="bootstrap", kind="reports", target="frequencies")
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 0\.5"):
        estimate.interval(method="bootstrap", seed=0.5)
    raw = ik.inv(tally, post="none")
    assert raw.status is ik.Status.OFF_SIMPLEX
    for method in ("bootstrap", "calibrated", "credible"):
        with pytest.raises(ValueError, match="estimate is off the simplex"):
            raw.interval(method=method)


def test_processes_share_the_draws_and_change_nothing():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([50, 30, 20])
    alone, together = (
        ik.mle(tally).interval(0.9, method="bootstrap", draws=40, n_jobs=n) for n in (1, 2)
    )
    np.testing.assert_array_equal(alone, together)
    with pytest.raises(ValueError, match="n_jobs must be a number of processes"):
        ik.mle(tally).interval(method="bootstrap", n_jobs=0)


@pytest.mark.parametrize("k", [2, 7, 16, 17])
def test_a_warm_start_leads_to_the_same_maximum(rng, k):
    """Right supports, wrong ones and channels that are not dense."""
    for mechanism in (
        ik.MatrixMechanism(rng.dirichlet(np.ones(k + 2), size=k)),
        ik.RandomizedResponse(k, 1.0),
    ):
        tally = mechanism.simulate(rng.multinomial(500, rng.dirichlet(np.full(k, 0.4))), rng)
        problem, best = Problem(tally.operator, tally.counts), ik.mle(tally).distribution
        for start in (best, rng.dirichlet(np.ones(k)), np.eye(k)[0]):
            np.testing.assert_allclose(maximise_near(problem, start), best, atol=1e-7)


def test_a_warm_start_that_leads_nowhere_is_left(monkeypatch):
    tally = ik.MatrixMechanism([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]).tally_counts(
        [40, 30, 30]
    )
    problem = Problem(tally.operator, tally.counts)
    monkeypatch.setattr(interior_point.DenseModel, "cross_over", lambda *_: (np.inf, np.zeros(3)))
    assert interior_point.from_support(tally.matrix(), problem.q, np.full(3, 1 / 3), 1e-9) is None
    monkeypatch.setattr(interior_point, "from_support", lambda *_: None)
    np.testing.assert_allclose(
        maximise_near(problem, np.eye(3)[0]), ik.mle(tally).distribution, atol=1e-9
    )


def test_a_warm_start_that_is_certified_needs_no_other_solver(monkeypatch):
    tally = ik.MatrixMechanism([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]).tally_counts(
        [40, 30, 30]
    )
    problem, best = Problem(tally.operator, tally.counts), ik.mle(tally).distribution
    monkeypatch.setattr(maximum, "best_found", None)
    np.testing.assert_allclose(maximise_near(problem, best), best, atol=1e-9)
