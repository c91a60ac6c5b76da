"""Credible intervals: the posterior's own,
sums against integrals over a grid, and how often they hold.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.bayes import _gibbs
from ibukit.bayes.sums import response

SMALL = ik.RandomizedResponse(3, 1.0).tally_counts([14, 9, 3])


@pytest.fixture
def short_chains(monkeypatch):
    """A thousand draws rather than four: enough for what holds of any number of them."""
    monkeypatch.setattr(_gibbs, "WARM_UP", 100)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 250)


@pytest.mark.parametrize("target", ["distribution", "frequencies"])
def test_single_probabilities_are_the_posteriors_own(target):
    for alpha in (1.0, 0.5, [0.3, 1.0, 2.0]):
        found = ik.mle(SMALL).interval(0.9, method="credible", target=target, alpha=alpha)
        np.testing.assert_allclose(
            found, ik.posterior(SMALL, alpha, target).interval(0.9), atol=1e-15
        )
    default = ik.mle(SMALL).interval(0.9, method="credible", target=target)
    np.testing.assert_allclose(default, ik.posterior(SMALL, 1.0, target).interval(0.9), atol=1e-15)
    assert not np.allclose(default, ik.posterior(SMALL, 0.5, target).interval(0.9), atol=1e-3)


@pytest.mark.parametrize("w", [[0, 1, 0], [1, 0, 1], [2, 2, -1], [-3, 0.5, 0.5]])
def test_sums_that_leave_out_one_secret_are_exact(w):
    (secret,) = (x for x in range(3) if np.ptp(np.delete(w, x)) == 0)
    base, slope = np.delete(w, secret)[0], w[secret] - np.delete(w, secret)[0]
    ends = [base + slope * end[secret] for end in ik.posterior(SMALL, 1.0).interval(0.9)]
    assert ik.mle(SMALL).interval(0.9, of=w, method="credible") == pytest.approx(
        sorted(ends), abs=1e-14
    )


def test_of_two_secrets_every_question_is_exact():
    tally = ik.RandomizedResponse(2, 1.0).tally_counts([14, 9])
    lower, upper = (ends[0] for ends in ik.posterior(tally, 1.0).interval(0.9))
    for w in ([3, 1], [1, 3], [2, 2]):
        ends = sorted(w[1] + (w[0] - w[1]) * end for end in (lower, upper))
        assert ik.mle(tally).interval(0.9, of=w, method="credible") == pytest.approx(
            ends, abs=1e-14
        )


def masses(tally, alpha, steps=400):
    """The posterior over a triangle of midpoints: distributions, and their probabilities."""
    first, second = np.meshgrid((np.arange(steps) + 0.5) / steps, (np.arange(steps) + 0.5) / steps)
    theta = np.stack([first, second, 1 - first - second], axis=-1)[first + second < 1]
    log_density = np.log(theta @ tally.matrix()) @ tally.counts + (alpha - 1) * np.log(theta).sum(
        axis=1
    )
    weights = np.exp(log_density - log_density.max())
    return theta, weights / weights.sum()


def tails(tally, alpha, w, ends):
    theta, weights = masses(tally, alpha)
    return weights[theta @ w < ends[0]].sum(), weights[theta @ w > ends[1]].sum()


@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_sums_have_the_tails_of_an_integral(alpha):
    w = np.array([0.0, 1.0, 3.0])
    ends = ik.mle(SMALL).interval(0.9, of=w, method="credible", alpha=alpha)
    # chains are accepted from 400 effective draws on; draws are nearly independent here, 4000
    margin = 4 * np.sqrt(0.05 * 0.95 / 1000)
    assert tails(SMALL, alpha, w, ends) == pytest.approx((0.05, 0.05), abs=margin)
    # the control: under another prior the same ends have other tails
    assert np.abs(np.array(tails(SMALL, 8.0, w, ends)) - 0.05).max() > margin


@pytest.mark.usefixtures("short_chains")
def test_in_one_call_each_question_has_what_it_has_alone():
    estimate = ik.mle(SMALL)
    both = estimate.interval(0.9, of=[[0, 1, 3], [1, 0, 0]], method="credible")
    for row, w in enumerate(([0, 1, 3], [1, 0, 0])):
        assert (both[0][row], both[1][row]) == estimate.interval(0.9, of=w, method="credible")
    assert estimate.interval(0.9, of=[0, 1, 3], method="credible", seed=1) != (
        both[0][0],
        both[1][0],
    )


@pytest.mark.usefixtures("short_chains")
def test_frequencies_are_whole_numbers_of_people():
    lower, upper = ik.mle(SMALL).interval(
        0.9, of=[0, 1, 3], method="credible", target="frequencies"
    )
    for end in (lower, upper):
        assert 26 * end == pytest.approx(round(26 * end), abs=1e-9)
    wide = ik.mle(SMALL).interval(0.9, of=[0, 1, 3], method="credible")
    assert upper - lower < wide[1] - wide[0]


@pytest.mark.usefixtures("short_chains")
def test_where_there_are_too_many_terms_they_are_drawn():
    tally = ik.TruncatedGeometric(5, 0.5).simulate(
        [500, 400, 300, 200, 100], np.random.default_rng(3)
    )
    with pytest.raises(ik.errors.TooLarge):
        ik.posterior(tally, 1.0)
    lower, upper = ik.mle(tally).interval(method="credible", seed=7)
    rng = np.random.Generator(np.random.PCG64(7))
    drawn = ik.posterior(tally, 1.0, method="gibbs", rng=rng).interval(0.95)
    np.testing.assert_allclose((lower, upper), drawn, atol=1e-12)
    assert ((lower < ik.mle(tally).distribution) & (ik.mle(tally).distribution < upper)).all()


def test_draws_are_of_all_probabilities_together():
    posterior = ik.posterior(SMALL, 1.0, method="gibbs", rng=np.random.default_rng(1))
    draws = posterior.draws()
    assert draws.shape == (4000, 3)
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    np.testing.assert_allclose(draws.std(axis=0, ddof=1), posterior.standard_deviations)
    theta, weights = masses(SMALL, 1.0)
    middle = weights @ theta
    exact = (weights[:, None] * (theta - middle)).T @ (theta - middle)
    # a standard error of a covariance is at most sqrt(2 / draws) of the variances
    margin = 4 * np.sqrt(2 / 1000) * exact.max()
    np.testing.assert_allclose(np.cov(draws.T), exact, atol=margin)
    assert (
        np.abs(np.cov(np.random.default_rng(1).permuted(draws, axis=0).T) - exact).max() > margin
    ), "the control"
    draws[:] = 0
    assert posterior.draws().sum() == pytest.approx(4000)
    with pytest.raises(
        ValueError,
        match=r"posterior must be drawn with method='gibbs' to have draws, got .*'exact'",
    ) as refused:
        ik.posterior(SMALL, 1.0).draws()
    advice = str(refused.value).rpartition(": call ")[2]
    given = {"ik": ik, "tally": SMALL, "prior": 1.0, "rng": np.random.default_rng(1)}
    assert eval(advice, given).draws().shape == draws.shape


def held(alpha, repetitions):
    """The share of intervals with the truth, which is drawn from the uniform prior."""
    rng, covers = np.random.default_rng(8), 0
    mechanism = ik.RandomizedResponse(2, 1.0)
    for _ in range(repetitions):
        theta = rng.dirichlet([1.0, 1.0])
        tally = mechanism.simulate(rng.multinomial(25, theta), rng)
        lower, upper = ik.mle(tally).interval(0.9, of=[1, 0], method="credible", alpha=alpha)
        covers += lower <= theta[0] <= upper
    return covers / repetitions


def test_it_holds_as_often_as_it_says_where_the_prior_is_right():
    margin = 3.5 * np.sqrt(0.9 * 0.1 / 200)
    assert abs(held(1.0, 200) - 0.9) <= margin
    assert held(30.0, 200) < 0.9 - margin


def test_bad_input_is_named():
    estimate = ik.mle(SMALL)
    for alpha, says in (
        (0, "finite and above 0, got 0"),
        (-1.0, "above 0, got -1"),
        ([1, 0, 1], "got 0.0 at index 1"),
    ):
        for of in (None, [0, 1, 3]):
            with pytest.raises(ValueError, match=f"alpha must be .*{says}"):
                estimate.interval(of=of, method="credible", alpha=alpha)
    with pytest.raises(ik.errors.AlphabetMismatch, match="alpha"):
        estimate.interval(method="credible", alpha=[1.0, 1.0])
    with pytest.raises(ValueError, match="seed must be at least 0, got -3"):
        estimate.interval(method="credible", seed=-3)
    with pytest.raises(ValueError, match="max_sweeps must be at least"):
        estimate.interval(of=[0, 1, 3], method="credible", max_sweeps=10)
    weak = ik.mle(ik.RandomizedResponse(3, 0.02).tally_counts([80, 60, 70]))
    assert weak.interval(of=[0, 1, 3], method="credible", max_sweeps=10**4)[0] >= 0


@pytest.mark.usefixtures("short_chains")
@pytest.mark.parametrize(
    "target", ["distribution", pytest.param("frequencies", marks=pytest.mark.slow)]
)
def test_the_ends_of_drawn_intervals_vary_as_their_errors_say(target):
    """Ten seeds: the spread of the ends, over the errors that each seed claims;
    3.5 deviations of a chi-squared.
    """
    of, seeds = [[0.0, 1.0, 3.0], [3.0, 0.0, 1.0]], range(10)
    drawn = [
        ik.posterior(SMALL, 1.0, target, method="gibbs", rng=np.random.default_rng(seed))
        for seed in seeds
    ]
    found, claimed = (
        [getattr(one, what)(0.8, of) for one in drawn] for what in ("interval", "interval_errors")
    )
    ratio = np.var(found, axis=0, ddof=1) / np.mean(np.square(claimed), axis=0)
    assert abs(ratio.mean() - 1) < 3.5 * np.sqrt(
        2 / 9 / 2
    )  # the two ends of a question are nearly independent
    assert ratio.mean() > 0.2


def test_what_is_exact_has_no_error():
    posterior = ik.posterior(SMALL, 1.0)
    for errors in (posterior.interval_errors(0.9), posterior.interval_errors(0.9, of=np.eye(3))):
        np.testing.assert_array_equal(errors, np.zeros((2, 3)))
    assert posterior.interval_errors(0.9, of=[0, 1, 0]) == (0.0, 0.0)
    with pytest.raises(ValueError, match="of must give all secrets except one the same weight"):
        posterior.interval(0.9, of=[[1, 0, 0], [0, 1, 3]])


@pytest.mark.usefixtures("short_chains")
def test_a_summary_says_so_where_an_exact_sum_had_to_be_drawn(monkeypatch):
    estimate = ik.mle(ik.RandomizedResponse(5, 1.0).tally_counts([60, 30, 20, 10, 5]))

    def drawn():
        warnings = estimate.summary(0.9, of=[[1, 1, 0, 0, 0]], method="credible").warnings
        return any("Gibbs" in warning for warning in warnings)

    assert not drawn()
    # As if the exact law of the sum took too much memory.
    monkeypatch.setattr(response, "MAX_BYTES", 0)
    assert drawn()


@pytest.mark.usefixtures("short_chains")
def test_a_summary_says_how_far_drawn_ends_may_be_off():
    exact, drawn = ([[1, 0, 0]], [[1, 0, 0], [0, 1, 3], [0, 1, 4]])
    summary = ik.mle(SMALL).summary(0.9, of=drawn, method="credible")
    (said,) = (warning for warning in summary.warnings if "Gibbs" in warning)
    assert said.startswith(
        "2 of 3 intervals are quantiles of Gibbs draws: their ends have Monte-Carlo standard errors"
    )
    assert not any(
        "Gibbs" in warning
        for warning in ik.mle(SMALL).summary(0.9, of=exact, method="credible").warnings
    )


def held_of_twenty(share, alpha):
    """How many of 40 intervals of a secret's share have it, under k-RR of 1,000 people."""
    rng, mechanism = np.random.default_rng(5), ik.RandomizedResponse(20, 1.0)
    law, found = np.r_[share, np.full(19, (1 - share) / 19)], 0
    for _ in range(40):
        tally = mechanism.simulate(rng.multinomial(1000, law), rng)
        lower, upper = ik.mle(tally).interval(of=np.eye(20)[0], method="credible", alpha=alpha)
        found += lower <= share <= upper
    return found


@pytest.mark.slow
def test_it_is_worth_little_near_corners_as_the_docstring_says():
    assert (held_of_twenty(1.0, 1.0), held_of_twenty(1.0, 0.5)) == (0, 0)
    assert (held_of_twenty(0.5, 1.0), held_of_twenty(0.5, 0.5)) == (3, 33)
