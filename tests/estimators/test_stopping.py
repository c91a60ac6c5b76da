"""Each rule stops exactly where a loop written by hand stops; and what happens when it does not."""

import io
import math
import pickle
import sys
import time

import numpy as np
import pytest

import ibukit as ik
from instances import INSTANCES, Instance
from oracles import chance, naive

SOME = {instance.name: instance for instance in INSTANCES}
KINDS = ["dense with zeros", "truncated geometric", "RAPPOR", "k-RR, geometric, truncated, RAPPOR"]
MAX_STEPS = 3000


def by_hand(instance, met, most=MAX_STEPS):
    """The first step at which `met(now, before)` holds, on the oracle's iterates,
    and how near the decisions were.

    `met` returns (value, bound): stop when value is below the bound. The margin tells that no
    decision hangs on the last digits, in which two correct programs may differ.
    """
    theta, before, margin = np.full(len(instance.matrix), 1 / len(instance.matrix)), None, np.inf
    for step in range(most + 1):
        decision = met(theta, before)
        if decision is not None:
            value, bound = decision
            margin = min(margin, abs(value - bound) / bound)
            if value < bound:
                assert margin > 1e-9, "choose another tolerance: the decision hangs on rounding"
                return step
        before, theta = theta, naive.ibu_step(instance.matrix, instance.counts, theta)
    raise AssertionError("the rule is never met: the instance is no test")


def likelihood_at(instance, theta):
    return naive.log_likelihood(instance.matrix, instance.counts, theta)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_gap(name, tol):
    instance = SOME[name]
    expected = by_hand(
        instance, lambda now, _: (naive.gap(instance.matrix, instance.counts, now), tol)
    )
    estimate = ik.ibu(instance.tally, stop=ik.Gap(tol))
    assert estimate.n_iter == expected > 0
    assert estimate.gap <= tol
    assert ik.ibu(instance.tally, stop=ik.Steps(expected - 1)).gap > tol


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_change_of_the_log_likelihood(name, tol):
    instance = SOME[name]

    def met(now, before):
        return (
            None
            if before is None
            else (likelihood_at(instance, now) - likelihood_at(instance, before), tol)
        )

    expected = by_hand(instance, met)
    assert expected > 1
    assert ik.ibu(instance.tally, stop=ik.Change(tol)).n_iter == expected
    assert ik.ibu(instance.tally, stop=ik.Change(tol, of="log_likelihood")).n_iter == expected


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_change_of_the_mean_log_likelihood(name, tol):
    instance, n = SOME[name], sum(SOME[name].counts)

    def met(now, before):
        return (
            None
            if before is None
            else ((likelihood_at(instance, now) - likelihood_at(instance, before)) / n, tol)
        )

    expected = by_hand(instance, met)
    assert ik.ibu(instance.tally, stop=ik.Change(tol, of="mean_log_likelihood")).n_iter == expected
    # a mean over n reports is a change n times as small: the two kinds differ
    assert ik.ibu(instance.tally, stop=ik.Change(tol, of="log_likelihood")).n_iter > expected


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("tol", [1e-3, 1e-4])
def test_change_of_the_distribution(name, tol):
    instance = SOME[name]

    def met(now, before):
        return (
            None
            if before is None
            else (max(abs(a - b) for a, b in zip(now, before, strict=True)), tol)
        )

    assert ik.ibu(instance.tally, stop=ik.Change(tol, of="distribution")).n_iter == by_hand(
        instance, met
    )


def deviance(matrix, counts, theta):
    """2 sum over the reports seen of N log(observed share / fitted probability)."""
    n, total = sum(counts), 0.0
    for z, count in enumerate(counts):
        if count:
            total += count * math.log(
                count / n / math.fsum(theta[x] * matrix[x, z] for x in range(len(theta)))
            )
    return 2 * total


@pytest.mark.parametrize("factor", [1.0, 2.0])
@pytest.mark.parametrize("k", [6, 12])
def test_discrepancy(factor, k):
    eps = 0.5
    matrix = naive.truncated_geometric(k, eps)
    theta = np.exp(-(((np.arange(k) - k / 3) / 1.5) ** 2))
    theta /= theta.sum()
    # frequencies a little off the model's, as chance makes them
    counts = np.rint(20_000 * theta @ matrix * (1 + 0.02 * (-1.0) ** np.arange(k))).astype(int)
    instance = Instance("", ik.TruncatedGeometric(k, eps).tally_counts(counts), matrix, counts)
    freedom = len(counts) - 1

    def met(now, _):
        target = chance.expected_deviance(matrix, counts, now) + (factor - 1) * freedom
        return deviance(matrix, counts, now), target

    expected = by_hand(instance, met)
    assert ik.ibu(instance.tally, stop=ik.Discrepancy(factor)).n_iter == expected > 0


def test_discrepancy_of_a_pool_adds_the_mechanisms_and_what_chance_makes_of_each(rng):
    k = 6
    theta = np.array([0.4, 0.3, 0.15, 0.1, 0.04, 0.01])
    mechanisms = [
        ik.RandomizedResponse(k, 1.0),
        ik.TruncatedGeometric(k, 0.5),
        ik.LinearGeometric(k, 1.0),
    ]
    tallies = [mechanism.simulate(rng.multinomial(5000, theta), rng) for mechanism in mechanisms]
    reports = tallies[2].parts[0].reports.tolist()
    columns = [
        naive.k_rr(k, 1.0),
        naive.truncated_geometric(k, 0.5),
        naive.geometric(range(k), reports, 1.0),
    ]
    pooled = sum(tallies)
    instance = Instance("", pooled, np.concatenate(columns, axis=1), pooled.counts)

    def met(now, _):
        parts = [
            (matrix, tally.counts, now) for matrix, tally in zip(columns, tallies, strict=True)
        ]
        return sum(deviance(*part) for part in parts), sum(
            chance.expected_deviance(*part) for part in parts
        )

    expected = by_hand(instance, met)
    assert ik.ibu(pooled, stop=ik.Discrepancy()).n_iter == expected > 0


def test_discrepancy_counts_the_factor_that_far_reports_leave_out(rng):
    # e^-eps|x - z| of the farthest report is below what a double holds: its deviance must still be
    # finite and right
    mechanism = ik.LinearGeometric(3, 5.0)
    counts = {0: 50, 1: 40, 2: 30, 150: 1}
    tally = mechanism.tally(np.repeat(list(counts), list(counts.values())))
    trace = []

    class Deviance:
        def met(self, now, before):
            trace.append(now.deviance)
            return True

    ik.ibu(tally, stop=Deviance())
    log_p = [
        math.log((1 - math.exp(-5)) / (1 + math.exp(-5))) + math.log(1 / 3) + far
        for far in (0, 0, 0, -5 * 148)
    ]
    log_p[0] += math.log(1 + math.exp(-5) + math.exp(-10))
    log_p[1] += math.log(1 + 2 * math.exp(-5))
    log_p[2] += math.log(1 + math.exp(-5) + math.exp(-10))
    log_p[3] += math.log(1 + math.exp(-5) + math.exp(-10))
    expected = 2 * sum(
        c * (math.log(c / 121) - p) for c, p in zip(counts.values(), log_p, strict=True)
    )
    assert trace == [pytest.approx(expected, rel=1e-12)]


@pytest.mark.parametrize("n", [0, 1, 17])
def test_steps(n):
    estimate = ik.ibu(SOME["k-RR"].tally, stop=ik.Steps(n))
    assert (estimate.n_iter, estimate.status) == (n, ik.Status.STOPPED)
    if n == 0:
        assert np.array_equal(estimate.distribution, ik.uniform(5))


def test_max_iter_ends_it_and_says_so():
    tally = SOME["truncated geometric"].tally
    estimate = ik.ibu(tally, stop=ik.Gap(1e-12), max_iter=40)
    assert (estimate.n_iter, estimate.status) == (40, ik.Status.MAX_ITER)
    assert estimate.gap == ik.gap(tally, estimate.distribution) > 1e-12
    assert np.array_equal(estimate.distribution, ik.ibu(tally, stop=ik.Steps(40)).distribution)
    nothing = ik.ibu(tally, stop=ik.Gap(1e-12), max_iter=0)
    assert (nothing.n_iter, nothing.status) == (0, ik.Status.MAX_ITER)


def test_the_rule_met_in_the_last_step_allowed_is_met():
    tally = SOME["k-RR"].tally
    steps = ik.ibu(tally, stop=ik.Gap(1e-3)).n_iter
    assert (
        ik.ibu(tally, stop=ik.Gap(1e-3), max_iter=steps, strict=True).status is ik.Status.CONVERGED
    )
    with pytest.raises(ik.ConvergenceError):
        ik.ibu(tally, stop=ik.Gap(1e-3), max_iter=steps - 1, strict=True)


def test_strict_raises_with_the_estimate_and_travels():
    tally = SOME["truncated geometric"].tally
    with pytest.raises(
        ik.ConvergenceError, match=r"stop=Gap\(tol=1e-12\) was not met within max_iter=5 steps"
    ) as caught:
        ik.ibu(tally, stop=ik.Gap(1e-12), max_iter=5, strict=True)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is ik.ConvergenceError
    assert str(again) == str(caught.value)
    for error in (caught.value, again):
        lax = ik.ibu(tally, stop=ik.Gap(1e-12), max_iter=5)
        assert np.array_equal(error.estimate.distribution, lax.distribution)
        assert (error.estimate.gap, error.estimate.status) == (lax.gap, ik.Status.MAX_ITER)


def test_a_discrepancy_that_no_distribution_meets_is_given_up_with_a_proof():
    # two secrets cannot give these reports: the fit stays bad at the maximum
    tally = ik.MatrixMechanism([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]]).tally_counts([100, 800, 100])
    estimate = ik.ibu(tally, stop=ik.Discrepancy())
    assert estimate.status is ik.Status.OUT_OF_REACH
    assert estimate.n_iter < 1000
    q = tally.frequencies
    best = 2 * tally.counts @ np.log(q / tally.forward(ik.mle(tally).distribution))
    here = 2 * tally.counts @ np.log(q / tally.forward(estimate.distribution))
    assert best > here - 2 * tally.n * estimate.gap > 2  # degrees of freedom
    with pytest.raises(ik.ConvergenceError, match="cannot be met by any distribution"):
        ik.ibu(tally, stop=ik.Discrepancy(), strict=True)


def test_a_discrepancy_within_reach_is_never_given_up(rng):
    mechanism = ik.TruncatedGeometric(30, 0.2)
    for _ in range(20):
        tally = mechanism.simulate(rng.multinomial(5000, ik.uniform(30)), rng)
        best = (
            2 * tally.counts @ np.log(tally.frequencies / tally.forward(ik.mle(tally).distribution))
        )
        status = ik.ibu(tally, stop=ik.Discrepancy()).status
        within = best <= len(tally.counts) - 1
        assert status is (ik.Status.STOPPED if within else ik.Status.OUT_OF_REACH)


def test_strict_does_not_raise_when_the_rule_is_met():
    assert ik.ibu(SOME["k-RR"].tally, strict=True).status is ik.Status.CONVERGED


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ik.Gap(0), "tol must be a finite number above 0, got 0"),
        (lambda: ik.Gap(math.nan), "tol must be a finite number above 0, got nan"),
        (lambda: ik.Gap("small"), "tol must be a number, got 'small'"),
        (lambda: ik.Change(-1e-6), "tol must be a finite number above 0, got -1e-06"),
        (lambda: ik.Change(1e-6, of="likelihood"), "of must be .* got 'likelihood'"),
        (lambda: ik.Steps(-1), "n must be at least 0, got -1"),
        (lambda: ik.Steps(2.5), "n must be a whole number, got 2.5"),
        (lambda: ik.Steps(True), "n must be a whole number, got True"),
        (lambda: ik.Discrepancy(math.inf), "factor must be a finite number above 0, got inf"),
        (lambda: ik.ibu(SOME["k-RR"].tally, max_iter=-1), "max_iter must be at least 0, got -1"),
        (
            lambda: ik.ibu(SOME["k-RR"].tally, max_iter=1e3),
            "max_iter must be a whole number, got 1000.0",
        ),
    ],
)
def test_bad_rules(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_number_is_not_a_rule():
    with pytest.raises(TypeError, match=r"stop must be a rule such as Gap\(1e-6\).*got 1e-06"):
        ik.ibu(SOME["k-RR"].tally, stop=1e-6)


class Slow:
    """Long enough for the progress bar to want to appear."""

    def met(self, now, before):
        time.sleep(0.0006)
        return now.n_iter == 2500


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_progress_bar_is_silent_off_a_terminal(monkeypatch):
    for screen, speaks in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", screen)
        ik.ibu(SOME["k-RR"].tally, stop=Slow())
        assert ("ibu" in screen.getvalue()) is speaks
