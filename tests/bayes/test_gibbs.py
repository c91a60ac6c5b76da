"""Posteriors by simulation:
the law of the draws is that of the recursion, and what has not converged says so.

The seeds are fixed; FALSE_ALARM is the rate at which a comparison would fail a correct program if
they were not.
"""

import pickle
import sys

import numpy as np
import pytest
from scipy import special, stats

import ibukit as ik
from ibukit._ground.arguments import frozen
from ibukit.bayes import _data_augmentation, _gibbs, _gibbs_kernels, _surrogate_metropolis
from ibukit.bayes._data_augmentation import sampler_of
from ibukit.bayes._dirichlet import dirichlet
from ibukit.bayes._gibbs import sample
from ibukit.bayes._surrogate_metropolis import SurrogateMoves, walk_end
from tests.oracles import posterior as oracle

FALSE_ALARM = 1e-6


def pooled(rng):
    parts = [
        ik.RandomizedResponse(3, 1.0),
        ik.OptimizedUnaryEncoding(3, 2.0),
        ik.TruncatedGeometric(3, 0.5),
    ]
    return sum(mechanism.simulate([9, 4, 1], rng) for mechanism in parts)


def rare(rng):
    """Reports that one secret alone can make, next to such as all can."""
    return ik.MatrixMechanism(
        [[0.5, 0.5, 0, 0], [0.5, 0, 0.4, 0.1], [0.2, 0, 0.4, 0.4]]
    ).tally_counts([20, 1, 3, 7])


def of(mechanism, *counts):
    return lambda rng: mechanism.simulate(counts, rng)


TALLIES = {
    "k-RR": of(ik.RandomizedResponse(3, 1.0), 20, 9, 1),
    "k-RR, many": of(ik.RandomizedResponse(3, 1.0), 200, 90, 1),
    "k-RR, two secrets of thousands": of(ik.RandomizedResponse(2, 0.5), 4000, 1000),
    "RAPPOR": of(ik.Rappor(4, 2.0), 20, 9, 1, 0),
    "OUE": of(ik.OptimizedUnaryEncoding(3, 1.0), 15, 9, 1),
    "OUE, many": of(ik.OptimizedUnaryEncoding(3, 1.0), 150, 90, 3),
    "subset selection": of(ik.SubsetSelection(4, 2.0), 20, 9, 1, 0),
    "geometric on all integers": of(ik.LinearGeometric(3, 1.0), 15, 9, 1),
    "planar geometric": of(ik.PlanarGeometric(ik.Grid(2, 2), 1.0), 15, 9, 1, 0),
    "a matrix": of(ik.MatrixMechanism([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]]), 20, 9),
    "zeros": rare,
    "a pool": pooled,
    "a prior that wants few secrets": of(ik.RandomizedResponse(4, 1.0), 40, 20, 1, 0),
}
PRIORS = {
    "k-RR, many": 3.0,
    "RAPPOR": 0.05,
    "a matrix": [0.3, 4.0],
    "a prior that wants few secrets": 0.02,
}


def assert_law(tally, alpha, of, draws):
    """Mean, variance and quartiles of the draws,
    each within its own Monte-Carlo error of the exact one.
    """
    exact = ik.posterior(tally, alpha, of)
    frequencies = ik.posterior(tally, alpha, "frequencies").mean
    lower, upper = exact.interval(0.5)
    series = [draws.frequencies - frequencies, draws.values - exact.mean]
    series += [(draws.values - exact.mean) ** 2 - exact.standard_deviations**2]
    if of == "distribution":
        # where doubles tell the quartiles from 0 and 1
        inside = (lower > 1e-290) & (upper < 1 - 1e-10)
        values = draws.values[:, :, inside]
        series += [(values <= lower[inside]) - 0.25, (values <= upper[inside]) - 0.75]
    misses = np.concatenate(series, axis=2).astype(float)
    errors = _gibbs._arviz().mcse(misses, chain_axis=0, draw_axis=1)
    z = np.abs(misses.mean(axis=(0, 1))) / errors
    assert z.max() <= stats.norm.isf(FALSE_ALARM / 2 / len(z)), f"{z.max():.1f} standard errors off"


def law_of(name, of, rng):
    tally = TALLIES[name](rng)
    alpha = np.broadcast_to(PRIORS.get(name, 0.5), tally.k).astype(float)
    return tally, alpha, of, sample(tally, alpha, of, rng, 50_000)


# of every tally P is quick; so are F and P without long steps where secrets are told one by one, by
# bits, by columns
VARIANTS = {
    "P": ("distribution", True),
    "P without long steps": ("distribution", False),
    "F": ("frequencies", True),
}
QUICK = {"k-RR", "RAPPOR", "zeros"}
LAWS = [
    pytest.param(
        name,
        *which,
        id=f"{name}-{words}",
        marks=[] if words == "P" or name in QUICK else pytest.mark.slow,
    )
    for name in TALLIES
    for words, which in VARIANTS.items()
]


@pytest.mark.parametrize(("name", "of", "long"), LAWS)
def test_the_draws_have_the_law_of_the_recursion(name, of, long, monkeypatch, rng):
    if not long:
        monkeypatch.setattr(_surrogate_metropolis, "MAX_SECRETS", 1)
    assert_law(*law_of(name, of, rng))


# The check sees what is wrong


def test_a_teller_that_knows_no_silence_is_seen(monkeypatch, rng):
    truths = _data_augmentation._RandomizedResponseSampler.__call__
    monkeypatch.setattr(_surrogate_metropolis, "MAX_SECRETS", 1)
    monkeypatch.setattr(
        _data_augmentation._RandomizedResponseSampler,
        "__call__",
        lambda self, p, rng: np.maximum(truths(self, p, rng), 1),
    )
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_law(*law_of("k-RR", "distribution", rng))


@pytest.mark.parametrize(
    ("kernel", "name"), [("assign_by_bits", "RAPPOR"), ("assign_by_columns", "zeros")]
)
def test_uniforms_that_are_not_uniform_are_seen(kernel, name, monkeypatch, rng):
    told = getattr(_gibbs_kernels, kernel)
    monkeypatch.setattr(_surrogate_metropolis, "MAX_SECRETS", 1)
    monkeypatch.setattr(_gibbs_kernels, kernel, lambda *args: told(*args[:-1], args[-1] ** 1.5))
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_law(*law_of(name, "distribution", rng))


def test_a_long_step_that_is_always_accepted_is_seen(monkeypatch, rng):
    monkeypatch.setattr(SurrogateMoves, "_surrogate_error", lambda self, p: 0.0)
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_law(*law_of("zeros", "distribution", rng))


def test_a_prior_that_is_a_little_off_is_seen(rng):
    tally, alpha, of, draws = law_of("k-RR", "distribution", rng)
    assert_law(tally, alpha, of, draws)
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_law(tally, 1.2 * alpha, of, draws)


# The kernels, with uniforms that leave nothing to chance


ONE_BY_ONE = {name: TALLIES[name] for name in ("RAPPOR", "OUE", "subset selection", "zeros")}
ONE_BY_ONE["three bytes"] = of(ik.Rappor(21, 2.0), *np.ones(21, dtype=int))


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_report_tells_each_secret_as_often_as_it_should(name, rng):
    tally = ONE_BY_ONE[name](rng)
    p = rng.dirichlet(np.ones(tally.k))
    matrix = tally.matrix()
    n = 10_000
    uniforms = (np.arange(n) + 0.5) / n
    excess = np.ascontiguousarray((matrix - matrix.min(axis=0)).T)
    for z in range(matrix.shape[1]):
        # what is left of a row's least entry is 0 for RAPPOR and OUE only where some bit is not set
        expected = n * p * excess[z] / (p @ matrix[:, z])
        one = frozen(np.array([n]))
        drawn = _gibbs_kernels.assign_by_columns(
            excess[z : z + 1], matrix.min(axis=0)[z : z + 1], one, p, uniforms
        )
        np.testing.assert_allclose(drawn, expected, atol=1)
        if name != "zeros":
            channel = tally.operator
            padded = np.pad(p, (0, -tally.k % 8))
            contrast = channel.one - channel.zero
            drawn = _gibbs_kernels.assign_by_bits(
                channel.packed[z : z + 1], one, channel.zero, contrast, padded, uniforms
            )
            held = np.unpackbits(channel.packed[z], count=tally.k)
            expected = n * p * contrast * held / (channel.zero + contrast * p @ held)
            np.testing.assert_allclose(drawn[: tally.k], expected, atol=1)
            assert drawn[tally.k :].sum() == 0


def test_the_walk_has_the_law_of_prior_and_parabola(rng):
    alpha = np.array([0.5, 1.0, 2.5])
    centre, slope = np.array([0.3, 0.3, 0.4]), np.array([3.0, -4.0, 1.0])
    root = rng.normal(size=(3, 3))
    hessian = 20 * root @ root.T
    nodes, weights = oracle.simplex_rule(alpha, 60)
    off = nodes - centre
    weights = weights * np.exp(off @ slope - (off @ hessian * off).sum(axis=1) / 2)
    weights /= weights.sum()
    ends = np.empty((4000, 3))
    start = np.full(3, 1 / 3)
    for end in ends:
        end[:] = walk_end(start, slope - hessian @ (start - centre), hessian, alpha, 40, rng)
    for power in (1, 2):
        misses = ends**power - weights @ nodes**power
        z = misses.mean(axis=0) / misses.std(axis=0) * np.sqrt(len(ends))
        assert np.abs(z).max() <= stats.norm.isf(FALSE_ALARM / 2 / 6)


@pytest.mark.parametrize("alpha", [1e-3, 0.5, 40.0])
def test_dirichlet_draws(alpha, rng):
    draws = dirichlet(np.full((20_000, 3), alpha), rng)
    assert (draws > 0).all()
    np.testing.assert_allclose(draws.sum(axis=1), 1, atol=1e-14)
    if alpha > 0.1:  # below, what counts is the logarithm
        levels = special.betainc(alpha, 2 * alpha, draws[:, 0])
        assert stats.kstest(levels, "uniform").pvalue > FALSE_ALARM
    else:
        # all mass is on one of the three, so that each has it a third of the time
        assert (draws.max(axis=1) > 0.99).mean() > 0.98
        assert stats.binomtest(int((draws[:, 0] > 0.5).sum()), 20_000, 1 / 3).pvalue > FALSE_ALARM


def test_a_step_of_bits_is_one_of_columns(monkeypatch, rng):
    tally = TALLIES["OUE, many"](rng)
    part = tally.parts[0]
    p = np.tile(rng.dirichlet(np.ones(3)), (4000, 1))
    kinds, totals = [], []
    for limit, equal in ((2, 64), (0, 64), (0, 0)):
        # k = 3 and 8 rows: some thirty reports of a kind
        monkeypatch.setattr(_data_augmentation, "MIN_EQUAL_REPORTS", equal)
        tell = sampler_of(tally) if limit else None
        if tell is None:
            monkeypatch.setattr(_data_augmentation, "BitChannel", ())
            tell = _data_augmentation._sampler(part, 3)
        kinds.append(type(tell).__name__)
        totals.append(tell(p, rng))
    expected = totals[0].mean(axis=0)
    for each in totals[1:]:
        error = np.sqrt((each.var(axis=0) + totals[0].var(axis=0)) / len(p))
        assert (np.abs(each.mean(axis=0) - expected) / error).max() <= stats.norm.isf(
            FALSE_ALARM / 2 / 6
        )
    assert kinds[1:] == ["_ColumnSampler", "_MultinomialSampler"]


# What is reported of it


def slow_case(rng):
    """Noisy bits of many users, without long steps:
    an estimate that needs some ten thousand sweeps.
    """
    return ik.OptimizedUnaryEncoding(8, 0.5).simulate(rng.multinomial(1000, np.full(8, 1 / 8)), rng)


def test_chains_that_have_not_converged_say_so(monkeypatch, rng):
    monkeypatch.setattr(_surrogate_metropolis, "MAX_SECRETS", 1)
    tally = slow_case(rng)
    found = ik.posterior(tally, 0.5, method="gibbs", rng=rng, max_sweeps=1250)
    assert found.status is ik.Status.MAX_ITER
    assert found.r_hat.max() > 1.01 or found.effective_sample_size.min() < 400
    assert "MAX_ITER" in repr(found)
    estimate = ik.posterior_mean(tally, 0.5, method="gibbs", rng=rng, max_sweeps=1250)
    assert (estimate.status, estimate.n_iter) == (ik.Status.MAX_ITER, 1250)
    with pytest.raises(
        ik.ConvergenceError, match=r"max_sweeps=1250 .* R-hat .* effective sample size"
    ) as error:
        ik.posterior_mean(tally, 0.5, method="gibbs", rng=rng, max_sweeps=1250, strict=True)
    assert error.value.estimate.distribution.shape == (8,)


def test_it_goes_on_until_it_has_converged(monkeypatch, rng):
    monkeypatch.setattr(_surrogate_metropolis, "MAX_SECRETS", 1)
    found = ik.posterior(slow_case(rng), 0.5, method="gibbs", rng=rng)
    assert found.status is ik.Status.CONVERGED
    assert 1250 < found.n_iter <= 100_000
    assert found.r_hat.max() <= 1.01
    assert found.effective_sample_size.min() >= 400


def test_a_posterior_without_doubt(rng):
    # the reports are the secrets: F is known, and its draws never move
    tally = ik.MatrixMechanism(np.eye(3)).tally_counts([5, 3, 2])
    found = ik.posterior(tally, 0.5, "frequencies", method="gibbs", rng=rng)
    np.testing.assert_allclose(found.mean, [0.5, 0.3, 0.2], atol=1e-15)
    assert (found.r_hat == 1).all()
    assert (found.standard_errors() == 0).all()
    assert (found.standard_deviations <= 1e-13).all()
    assert (ik.posterior(tally, 0.5, method="gibbs", rng=rng).standard_deviations > 0.1).all()


def test_the_same_seed_draws_the_same_digits(monkeypatch, rng):
    monkeypatch.setattr(_gibbs, "WARM_UP", 50)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 200)
    tally = TALLIES["a pool"](rng)
    once, again = (
        ik.posterior(tally, 0.5, method="gibbs", rng=np.random.default_rng(5)) for _ in range(2)
    )
    assert np.array_equal(once.mean, again.mean)
    assert not np.array_equal(once.mean, ik.posterior(tally, 0.5, method="gibbs", rng=rng).mean)
    back = pickle.loads(pickle.dumps(once))
    assert np.array_equal(back.standard_errors(), once.standard_errors())
    assert np.array_equal(back.interval(0.9), once.interval(0.9))
    assert not back.mean.flags.writeable


@pytest.mark.slow
def test_standard_errors_are_those_of_the_mean(monkeypatch, rng):
    monkeypatch.setattr(_gibbs, "WARM_UP", 50)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 200)
    # of an average of (alpha + n F) / (alpha_0 + n), and so as large as means scatter
    tally = ik.RandomizedResponse(2, 1.0).tally_counts([4, 2])
    exact = ik.posterior(tally, 3.0).mean
    found = [ik.posterior(tally, 3.0, method="gibbs", rng=rng) for _ in range(30)]
    z = np.array([(each.mean - exact)[0] / each.standard_errors()[0] for each in found])
    assert stats.chi2.isf(1 - FALSE_ALARM, 30) <= (z**2).sum() <= stats.chi2.isf(FALSE_ALARM, 30)
    law = found[0]._law
    np.testing.assert_allclose(found[0].mean, (3 + 6 * law.mean()) / 12, atol=1e-15)
    np.testing.assert_allclose(found[0].standard_errors(), law.standard_errors() / 2, rtol=1e-12)


def test_drawn_frequencies_have_ends_that_frequencies_can_have(monkeypatch):
    monkeypatch.setattr(_gibbs, "WARM_UP", 50)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 200)
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([4, 2, 1])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        found = ik.posterior(tally, 1.0, "frequencies", method="gibbs", rng=rng)
        draws = np.sort(found.draws()[:, 0])
        # Levels whose upper end lies between two draws that differ.
        (jumps,) = np.nonzero(np.diff(draws) > 0)
        for place in jumps[jumps > len(draws) / 2]:
            level = 2 * (place + 0.5) / (len(draws) - 1) - 1
            ends = 7 * np.array(found.interval(level))
            np.testing.assert_allclose(ends, np.rint(ends), atol=1e-9)


def test_an_end_where_the_draws_are_dense_has_the_smaller_error(monkeypatch):
    monkeypatch.setattr(_gibbs, "WARM_UP", 50)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 200)
    tally = ik.RandomizedResponse(3, 2.0).tally_counts([60, 30, 0])
    found = ik.posterior(tally, 1.0, method="gibbs", rng=np.random.default_rng(1))
    # The third secret's probability is near 0, where its density is the highest.
    lower, upper = found.interval_errors(0.9, of=[0, 0, 1])
    assert 0 < lower < upper / 3
    lower, upper = found.interval_errors(0.9, of=[1, 1, 0])
    assert 0 < upper < lower / 3


def test_errors_of_the_mean_shrink_as_the_mean_does(monkeypatch):
    monkeypatch.setattr(_gibbs, "WARM_UP", 50)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 200)
    tally, alpha = ik.RandomizedResponse(3, 1.0).tally_counts([4, 2, 1]), [3.0, 1.0, 0.5]
    one, other = (
        ik.posterior(tally, alpha, method="gibbs", rng=np.random.default_rng(seed))
        for seed in (1, 2)
    )
    # The draws are of the frequencies, of which the mean is a linear function.
    slope = (one.mean - other.mean) / (one._law.mean() - other._law.mean())
    assert (slope < 0.7).all()
    np.testing.assert_allclose(one.standard_errors(), slope * one._law.standard_errors(), rtol=1e-9)


def test_the_chains_start_apart(monkeypatch, rng):
    # where they start together R-hat would be 1 before they have seen anything
    monkeypatch.setattr(_gibbs, "WARM_UP", 0)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 4)
    monkeypatch.setattr(_surrogate_metropolis, "MAX_SECRETS", 1)
    draws = sample(TALLIES["k-RR, many"](rng), np.full(3, 50.0), "distribution", rng, 4)
    assert not draws.converged
    firsts = draws.values[:, 0]
    assert np.abs(firsts[:, None] - firsts[None]).max() > 0.2
    assert draws.values[:, 1:].std(axis=0).max() < 0.1


def test_gibbs_needs_a_generator():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([3, 2, 1])
    for rng in (None, 7):
        with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
            ik.posterior(tally, 0.5, method="gibbs", rng=rng)
    with pytest.raises(ValueError, match="max_sweeps must be at least 1250, got 10"):
        ik.posterior(tally, 0.5, method="gibbs", rng=np.random.default_rng(1), max_sweeps=10)


def test_a_missing_extra_is_named_with_the_command_that_installs_it(monkeypatch, rng):
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([3, 2, 1])
    monkeypatch.setitem(
        sys.modules, "arviz_stats", None
    )  # what Python then does is what it does without the package
    with pytest.raises(
        ik.errors.MissingExtra, match=r'arviz-stats.* pip install "ibukit\[bayes\]"'
    ) as caught:
        ik.posterior(tally, 0.5, method="gibbs", rng=rng)
    assert isinstance(caught.value, ImportError)
    assert ik.posterior(tally, 0.5).mean.sum() == pytest.approx(1)


def test_columns_that_do_not_fit_are_refused(monkeypatch, rng):
    monkeypatch.setattr(_data_augmentation, "MAX_BYTES", 100)
    with pytest.raises(ik.errors.TooLarge, match=r"9 x 9 numbers .* 648 bytes \(at most 100\)"):
        ik.posterior(
            ik.TruncatedGeometric(ik.Line(0, 8), 1.0).tally(np.arange(9)),
            0.5,
            method="gibbs",
            rng=rng,
        )


def test_chains_that_stay_apart_have_a_large_r_hat():
    """A coordinate that does not move has 1, and as many effective samples as draws."""
    rng = np.random.default_rng(1)
    draws = np.stack([rng.normal(center, 1, (200, 1)) for center in (0.0, 3.0)])
    still = np.concatenate([draws, np.full((2, 200, 1), 0.5)], axis=2)
    ess, r_hat = _gibbs._diagnostics(still)
    assert r_hat[0] > 1.5
    assert ess[0] < 20
    assert (ess[1], r_hat[1]) == (400, 1)


def test_stages_go_on_until_both_diagnostics_are_good(monkeypatch, rng):
    """Nearly enough is not enough:
    neither two thirds of the effective draws nor half as much again of R-hat - 1.
    """
    enough, near = _gibbs.MIN_ESS, _gibbs.MAX_R_HAT - 1
    stages = [(enough / 1.5, 1.0), (enough, 1 + 1.5 * near), (enough, 1 + near * (1 - 1e-9))]
    told = iter(stages)
    monkeypatch.setattr(_gibbs, "N_DRAWS", 20)
    monkeypatch.setattr(
        _gibbs, "_diagnostics", lambda frequencies: [np.full(3, value) for value in next(told)]
    )
    draws = sample(TALLIES["k-RR"](rng), np.ones(3), "distribution", rng, 10_000)
    assert next(told, None) is None
    assert draws.converged
    told = iter(stages)
    assert not sample(
        TALLIES["k-RR"](rng), np.ones(3), "distribution", rng, _gibbs.WARM_UP + 20
    ).converged
