"""Exact posteriors: recursion, enumeration and quadrature agree;
the mean is the estimate of least squared error.
"""

import math

import numpy as np
import pytest
from scipy import special, stats

import ibukit as ik
from ibukit._ground.compositions import compositions
from ibukit.bayes import _count_recursion, _enumeration
from ibukit.bayes._marginals import from_frequencies
from tests.oracles import posterior as oracle

CASES = [
    # secrets, kinds of reports, reports
    (2, 2, 9),
    (2, 3, 8),
    (2, 4, 7),
    (3, 2, 6),
    (3, 3, 7),
    (3, 4, 6),
]
FALSE_ALARM = 1e-6
PRIORS = [0.5, 1.0, "uneven", 0.01, 30.0]


def instance(k, b, n, prior, seed=0):
    rng = np.random.default_rng([k, b, n, seed])
    mechanism = ik.MatrixMechanism(rng.dirichlet(np.ones(b), k))
    counts = rng.multinomial(n, rng.dirichlet(np.ones(b)))
    alpha = np.arange(1, k + 1) * 0.7 if prior == "uneven" else np.full(k, prior)
    return mechanism, counts, alpha


@pytest.mark.ledger("D-T3.1", "D-P3.2", "D-PA.3")
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("k", "b", "n"), CASES)
@pytest.mark.parametrize("method", ["exact", "enumerate"])
def test_mean_error_and_evidence_are_the_integrals(method, k, b, n, prior):
    mechanism, counts, alpha = instance(k, b, n, prior)
    tally = mechanism.tally_counts(counts)
    expected = oracle.by_quadrature(mechanism.matrix(), counts, alpha)
    for of in ("distribution", "frequencies"):
        found = ik.posterior(tally, alpha, of, method=method)
        np.testing.assert_allclose(found.mean, expected[of], atol=1e-12)
        assert abs(found.mean.sum() - 1) <= 1e-14
        variances = expected[f"{of} squared"] - expected[of] ** 2
        np.testing.assert_allclose(found.standard_deviations**2, variances, atol=1e-12)
        assert math.exp(found.log_evidence) == pytest.approx(expected["evidence"], rel=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("k", "b", "n"), CASES)
def test_the_law_of_the_totals_is_that_of_all_secrets_listed(k, b, n, prior):
    mechanism, counts, alpha = instance(k, b, n, prior, 1)
    tally = mechanism.tally_counts(counts)
    law, evidence = oracle.by_listing(mechanism.matrix(), counts, alpha)
    expected = np.zeros((k, n + 1))
    for totals, probability in law.items():
        expected[range(k), totals] += probability
    for found in (
        _count_recursion.posterior_of_totals(tally, alpha),
        _enumeration.posterior_by_splits(tally, alpha),
    ):
        np.testing.assert_allclose(found.shares, expected, atol=1e-13)
        assert math.exp(found.log_evidence) == pytest.approx(evidence, rel=1e-12)


# The error, and that none is smaller


def bayes_error(mechanism, alpha, n, of, estimator=None):
    """(87): the error of an estimator, by default the posterior mean;
    and the sum of all counts' probabilities.
    """
    total, error = 0.0, 0.0
    for counts in oracle.report_counts(n, mechanism.m):
        tally = mechanism.tally_counts(counts)
        found = ik.posterior(tally, alpha, of)
        probability = oracle.orders(counts) * math.exp(found.log_evidence)
        total += probability
        error += probability * (found.standard_deviations**2).sum()
        if estimator is not None:
            error += probability * ((estimator(tally).distribution - found.mean) ** 2).sum()
    return error, total


@pytest.mark.ledger("D-PA.3")
@pytest.mark.parametrize(("k", "b", "n"), [(2, 2, 12), (2, 4, 6), (3, 3, 6)])
def test_the_probabilities_of_all_report_counts_sum_to_one(k, b, n):
    mechanism, _, alpha = instance(k, b, n, "uneven")
    assert bayes_error(mechanism, alpha, n, "distribution")[1] == pytest.approx(1, abs=1e-12)


def simulated_errors(matrix, alpha, n, means, repetitions, rng):
    """Squared errors of the means, shape (repetitions, 2): one column for P, one for F."""
    errors = np.empty((repetitions, 2))
    for row in errors:
        p, f, counts = oracle.one_world(matrix, alpha, n, rng)
        mean_p, mean_f = means(counts)
        row[:] = ((mean_p - p) ** 2).sum(), ((mean_f - f) ** 2).sum()
    return errors


def assert_errors(errors, expected):
    z = np.abs(errors.mean(axis=0) - expected) / errors.std(axis=0) * np.sqrt(len(errors))
    assert z.max() <= stats.norm.isf(FALSE_ALARM / 4), f"{z.max():.1f} standard errors off"


@pytest.mark.ledger("D-PA.3")
def test_the_error_is_that_of_simulated_worlds(rng):
    mechanism, _, alpha = instance(3, 3, 5, "uneven")
    known = {}
    for counts in oracle.report_counts(5, 3):
        tally = mechanism.tally_counts(counts)
        known[counts] = tuple(
            ik.posterior(tally, alpha, of).mean for of in ("distribution", "frequencies")
        )
    matrix = mechanism.matrix()
    errors = simulated_errors(
        matrix, alpha, 5, lambda counts: known[tuple(counts.tolist())], 20_000, rng
    )
    expected = [bayes_error(mechanism, alpha, 5, of)[0] for of in ("distribution", "frequencies")]
    assert_errors(errors, expected)
    # the check sees a prior that is not the worlds'
    wrong = [
        bayes_error(mechanism, 1.2 * alpha, 5, of)[0] for of in ("distribution", "frequencies")
    ]
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_errors(errors, wrong)


def no_post(tally):
    return ik.inv(tally, post="none")


@pytest.mark.ledger("D-T3.1", "D-PA.3")
@pytest.mark.parametrize(
    ("of", "bayes", "mle", "oracle_error"),
    [("distribution", 0.10944, 0.13226, 0.20913), ("frequencies", 0.10492, 0.11825, 0.18413)],
)
def test_no_other_estimate_has_as_small_an_error(of, bayes, mle, oracle_error):
    mechanism, errors = ik.RandomizedResponse(2, 1.0), {}
    for name, estimator in {
        "bayes": None,
        "mle": ik.mle,
        "norm-sub": ik.inv,
        "oracle": no_post,
    }.items():
        errors[name], total = bayes_error(mechanism, 0.5, 10, of, estimator)
        assert total == pytest.approx(1, abs=1e-12)
    assert errors["bayes"] == pytest.approx(bayes, abs=5e-6)
    # two secrets: all that the MLE and Norm-Sub can do is to clip
    assert errors["mle"] == pytest.approx(mle, abs=5e-6)
    assert errors["norm-sub"] == pytest.approx(errors["mle"], abs=1e-12)
    # (65) and (66)
    assert errors["oracle"] == pytest.approx(oracle_error, abs=5e-6)
    assert errors["bayes"] < errors["mle"] < errors["oracle"]


@pytest.mark.ledger("D-T3.1")
def test_the_error_grows_with_the_square_of_the_way_from_the_mean(rng):
    # by simulation, where bayes_error knows it by algebra: the mean, and the mean moved
    mechanism, _, alpha = instance(2, 3, 4, 1.0)
    shift = np.array([0.1, -0.1])
    known = {}
    for counts in oracle.report_counts(4, 3):
        found = [
            ik.posterior(mechanism.tally_counts(counts), alpha, of).mean
            for of in ("distribution", "frequencies")
        ]
        known[counts] = found
    moved = simulated_errors(
        mechanism.matrix(),
        alpha,
        4,
        lambda counts: [m + shift for m in known[tuple(counts.tolist())]],
        20_000,
        rng,
    )
    least = np.array(
        [bayes_error(mechanism, alpha, 4, of)[0] for of in ("distribution", "frequencies")]
    )
    assert_errors(moved, least + (shift**2).sum())


# How many terms


@pytest.mark.ledger("D-P3.2")
@pytest.mark.parametrize(("n", "terms"), [(3, 165), (6, 3003), (9, 24310)])
def test_how_many_splits_there_are(n, terms):
    listed = 0
    for counts in oracle.report_counts(n, 3):
        here = math.prod(len(compositions(s, 3)) for s in counts)
        assert _enumeration.n_splits(np.array(counts), 3) == here
        listed += here
    assert listed == terms == math.comb(n + 8, 8)


def test_compositions_are_all_there_are():
    found = compositions(4, 3)
    assert (found.sum(axis=1) == 4).all()
    assert (found >= 0).all()
    assert len({tuple(row) for row in found.tolist()}) == len(found) == math.comb(6, 2)


@pytest.mark.ledger("D-P3.2")
@pytest.mark.erratum("D6")
@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_recursion_takes_as_many_steps_however_many_kinds_of_reports_there_are(k, monkeypatch):
    n, taken = 8, []
    add_user = _count_recursion.add_user

    def counted(mantissas, exponents, steps, m, states, column, alpha):
        before = mantissas.copy()
        add_user(mantissas, exponents, steps, m, states, column, alpha)
        # what it writes is one number for each way in which m + 1 users can be
        assert np.array_equal(mantissas[states:], before[states:])
        assert (mantissas[:states] > 0).all()
        taken[-1] += k * states

    monkeypatch.setattr(_count_recursion, "add_user", counted)
    rng = np.random.default_rng(3)
    for b in (2, 8):
        taken.append(0)
        mechanism = ik.MatrixMechanism(rng.dirichlet(np.ones(b), k))
        tally = mechanism.tally_counts(np.full(b, n // b))
        assert len(tally.counts) == b
        _count_recursion.posterior_of_totals(tally, np.full(k, 0.5))
    assert taken == [_count_recursion.cost(n, k)[0]] * 2
    # O(k n^k), for a fixed k, with 1/k! before it; of the splits there are O(n^(b (k - 1)))
    assert _count_recursion.cost(10**4, k)[0] == pytest.approx(
        k * 10 ** (4 * k) / math.factorial(k), rel=0.01
    )
    many, few = (_enumeration.n_splits(np.full(8, size), k) for size in (10**4, 10**3))
    assert math.log10(many / few) == pytest.approx(8 * (k - 1), rel=0.01)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("known", [True, False])
def test_many_reports_neither_under_nor_overflow(order, known):
    # those of one kind first: on the way the totals that matter in the end have 1e-900 of what
    # others have
    n, eps, alpha = 1500, 4.0, np.array([0.5, 1.5])
    mechanism = ik.RandomizedResponse(2, eps)
    mechanism = (
        mechanism if known else ik.MatrixMechanism(mechanism.matrix())
    )  # by the integrals, by the recursion
    tally = mechanism.tally_counts([n, n][::order])
    found = ik.posterior(tally, alpha)
    assert found.log_evidence < -1500  # no double holds its exponential
    p, weights = oracle.simplex_rule(alpha, n + 3)
    log_density = n * np.log(p @ mechanism.matrix()).sum(axis=1)
    highest = log_density.max()
    density = weights * np.exp(log_density - highest)
    assert found.log_evidence == pytest.approx(highest + math.log(density.sum()), abs=1e-9)
    density /= density.sum()
    np.testing.assert_allclose(found.mean, density @ p, atol=1e-11)
    np.testing.assert_allclose(
        found.standard_deviations**2, density @ p**2 - (density @ p) ** 2, atol=1e-11
    )


@pytest.mark.parametrize("method", ["exact", "enumerate"])
def test_reports_too_improbable_for_a_double_keep_their_logarithm(method):
    # a far integer: e^-3000 under either secret; the factor that both share changes the evidence
    # alone
    mechanism = ik.LinearGeometric(2, 1.0)
    near, far = (ik.posterior(mechanism.tally([z, 0]), 0.5, method=method) for z in (10, 3000))
    np.testing.assert_allclose(far.mean, near.mean, atol=1e-13)
    assert far.log_evidence - near.log_evidence == pytest.approx(-2990, abs=1e-9)


# Intervals


@pytest.mark.parametrize("method", ["exact", "enumerate"])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_a_credible_interval_holds_what_it_says(method, level):
    # two secrets: the density of P_0 by quadrature on [0, q]
    mechanism, counts, alpha = instance(2, 3, 8, 1.0)
    found = ik.posterior(mechanism.tally_counts(counts), alpha, method=method)
    u, w = np.polynomial.legendre.leggauss(20)

    def mass(q):
        p = q * (1 + u) / 2
        return (
            (
                w * np.prod((np.stack([p, 1 - p], axis=1) @ mechanism.matrix()) ** counts, axis=1)
            ).sum()
            * q
            / 2
        )

    for q, tail in zip(found.interval(level), ((1 - level) / 2, (1 + level) / 2), strict=True):
        assert mass(q[0]) / mass(1.0) == pytest.approx(tail, abs=1e-12)
    lower, upper = found.interval(level)
    np.testing.assert_allclose(lower + upper[::-1], 1, atol=1e-12)  # P_1 = 1 - P_0


def test_a_credible_interval_reaches_tiny_quantiles():
    # a prior that puts nearly all on one secret, and reports that say little: P_0 is Beta(0.01,
    # 0.01) or near it
    tally = ik.MatrixMechanism([[0.5, 0.5], [0.5, 0.5]]).tally_counts([3, 2])
    lower, upper = ik.posterior(tally, 0.01).interval(0.5)
    assert special.betainc(0.01, 0.01, lower[0]) == pytest.approx(0.25, abs=1e-12)
    assert 0 < lower[0] < 1e-20
    assert upper[0] == pytest.approx(1, abs=1e-15)


def test_a_credible_interval_of_frequencies_is_of_frequencies():
    mechanism, counts, alpha = instance(3, 3, 7, 0.5, 1)
    law, _ = oracle.by_listing(mechanism.matrix(), counts, alpha)
    lower, upper = ik.posterior(mechanism.tally_counts(counts), alpha, "frequencies").interval(0.8)
    for x in range(3):
        ends = [round(float(7 * q[x])) for q in (lower, upper)]
        np.testing.assert_allclose([lower[x], upper[x]], np.array(ends) / 7, atol=1e-15)
        below = sum(share for totals, share in law.items() if totals[x] < ends[0])
        above = sum(share for totals, share in law.items() if totals[x] > ends[1])
        assert max(below, above) <= 0.1
        # and no end could be nearer
        assert below + sum(share for totals, share in law.items() if totals[x] == ends[0]) >= 0.1
        assert above + sum(share for totals, share in law.items() if totals[x] == ends[1]) >= 0.1


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, float("nan")])
def test_a_level_is_between_0_and_1(level):
    posterior = ik.posterior(ik.RandomizedResponse(2, 1.0).tally_counts([3, 2]), 0.5)
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\)"):
        posterior.interval(level)


# Identities and invariances


@pytest.mark.ledger("D-T3.1")
@pytest.mark.parametrize("prior", PRIORS)
def test_either_mean_gives_the_other(prior):
    mechanism, counts, alpha = instance(3, 4, 6, prior)
    n, tally = sum(counts), mechanism.tally_counts(counts)
    expected = oracle.by_quadrature(mechanism.matrix(), counts, alpha)
    np.testing.assert_allclose(
        from_frequencies(expected["frequencies"], alpha, n), expected["distribution"], atol=1e-12
    )
    backwards = ((alpha.sum() + n) * expected["distribution"] - alpha) / n
    np.testing.assert_allclose(backwards, expected["frequencies"], atol=1e-12)
    p, f = (
        ik.posterior_mean(tally, alpha, of).distribution for of in ("distribution", "frequencies")
    )
    np.testing.assert_allclose(p, (alpha + n * f) / (alpha.sum() + n), atol=1e-15)


@pytest.mark.parametrize("method", ["exact", "enumerate"])
def test_names_of_secrets_and_ways_of_tallying_do_not_matter(method):
    mechanism, counts, alpha = instance(3, 4, 6, "uneven")
    tally = mechanism.tally_counts(counts)
    once = ik.posterior(tally, alpha, method=method)
    order = [2, 0, 1]
    renamed = ik.MatrixMechanism(mechanism.matrix()[order][:, ::-1]).tally_counts(counts[::-1])
    other = ik.posterior(renamed, alpha[order], method=method)
    np.testing.assert_allclose(other.mean, once.mean[order], atol=1e-14)
    np.testing.assert_allclose(
        other.interval(0.9), np.array(once.interval(0.9))[:, order], atol=1e-13
    )
    assert other.log_evidence == pytest.approx(once.log_evidence, abs=1e-12)
    first = np.minimum(counts, 1)
    again = ik.posterior(
        mechanism.tally_counts(first) + mechanism.tally_counts(counts - first), alpha, method=method
    )
    assert np.array_equal(again.mean, once.mean)


@pytest.mark.parametrize("method", ["exact", "enumerate"])
def test_a_pool_is_its_reports_one_after_the_other(method):
    # as if each user had taken one of the mechanisms by a coin whose side is part of the report
    careful, careless = (instance(3, 3, 4, 0.5, seed)[:2] for seed in (5, 6))
    pool = careful[0].tally_counts(careful[1]) + careless[0].tally_counts(careless[1])
    both = np.hstack([careful[0].matrix(), careless[0].matrix()]) / 2
    coin = ik.MatrixMechanism(both).tally_counts(np.concatenate([careful[1], careless[1]]))
    found, expected = (ik.posterior(tally, 0.5, method=method) for tally in (pool, coin))
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-14)
    assert found.log_evidence == pytest.approx(expected.log_evidence + 8 * math.log(2), abs=1e-12)


def test_one_secret_and_reports_that_say_nothing():
    alone = ik.posterior(ik.MatrixMechanism([[0.25, 0.75]]).tally_counts([2, 1]), 0.5)
    assert (alone.mean.tolist(), alone.standard_deviations.tolist()) == ([1.0], [0.0])
    assert [end.tolist() for end in alone.interval(0.9)] == [[1.0], [1.0]]
    assert alone.log_evidence == pytest.approx(math.log(0.25**2 * 0.75))
    alpha = np.array([0.5, 1.0, 2.5])
    nothing = ik.posterior(ik.MatrixMechanism(np.full((3, 2), 0.5)).tally_counts([4, 3]), alpha)
    np.testing.assert_allclose(nothing.mean, alpha / 4, atol=1e-15)
    np.testing.assert_allclose(
        nothing.standard_deviations, stats.dirichlet(alpha).var() ** 0.5, atol=1e-15
    )


def test_one_secret_has_one_split_of_any_number_of_reports():
    assert compositions(2**53, 1).tolist() == [[2**53]]
    tally = ik.MatrixMechanism([[1.0]]).tally_counts([2**53])
    with pytest.raises(ik.errors.TooLarge, match=r"1 splits .* bytes \(at most 1.1e\+09\)"):
        ik.posterior_mean(tally, 1.0, method="enumerate")


def test_few_splits_of_many_secrets_are_refused_if_they_take_too_much_memory():
    tally = ik.RandomizedResponse(700, 1.0).tally([0, 1])
    assert _enumeration.n_splits(tally.counts, 700) < _enumeration.MAX_SPLITS
    with pytest.raises(
        ik.errors.TooLarge, match=r"splits of n = 2 reports of 700 .* bytes \(at most 1.1e\+09\)"
    ):
        ik.posterior(tally, 1.0, method="enumerate")
