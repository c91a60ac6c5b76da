"""The test for adversaries: its level, term by term of the proof and measured, and its power."""

import math

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
from ibukit.attack import detection
from ibukit.attack.detection import _evidence
from ibukit.tally.tally import TallyPart

PLACES = ik.Grid(4, 5)
ISLAND = 19
HONEST = ik.normalize([5, 8, 2, 1, 0.1, 4, 9, 3, 0.2, 0.1, 6, 7, 2, 0.1, 0, 3, 4, 1, 0, 0.5])


def elastic():
    return ik.blahut_arimoto(HONEST, PLACES, beta=0.8)


def factors(mechanism, first):
    """What each possible report multiplies the evidence by,
    given the counts of the half that raised the suspicion.
    """
    m = mechanism.m
    result = np.empty(m)
    for z in range(m):
        one = (np.arange(m) == z).astype(int)
        part = TallyPart(mechanism, np.arange(m), first + one)
        result[z] = math.exp(_evidence(part, first).log_evidence)
    return result


@pytest.mark.parametrize("crude", [False, True])
@pytest.mark.parametrize("n", [12, 100, 2000])
@pytest.mark.parametrize("share", [0, 0.05])
def test_no_secret_is_expected_to_add_to_the_evidence(n, share, crude, rng, monkeypatch):
    # the step of the proof: E[factor | x] <= 1 for every x, whatever the first half was; with few
    # reports some that are possible were not seen, and count as one
    if crude:  # the level does not even need the maximiser
        monkeypatch.setattr(detection, "_nearest_honest", lambda channel, q: channel.mean(axis=0))
    mechanism = elastic()
    tally = mechanism.simulate(rng.multinomial(n, HONEST), rng)
    attacked = ik.attack.poison_outputs(tally, ISLAND, share)
    first = np.zeros(20, dtype=int)
    first[attacked.parts[0].reports] = attacked.counts
    factor = factors(mechanism, first)
    assert factor.max() > 1.001
    expected = mechanism.matrix() @ factor
    assert expected.max() == pytest.approx(1, abs=1e-9)
    # and adversaries are expected to
    assert factor[ISLAND] == factor.max() or share == 0 or crude


def test_the_evidence_is_a_product_over_the_reports(rng):
    mechanism = elastic()
    first = rng.multinomial(500, mechanism.forward(HONEST))
    second = rng.multinomial(400, mechanism.forward(HONEST))
    part = TallyPart(mechanism, np.arange(20), first + second)
    expected = second @ np.log(factors(mechanism, first))
    assert _evidence(part, first).log_evidence == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [40, 1000])
def test_honest_people_are_called_attacked_no_more_often_than_stated(n, rng):
    mechanism, runs = elastic(), 120
    p_values = np.array(
        [
            ik.attack.detect_poisoning(
                mechanism.simulate(rng.multinomial(n, HONEST), rng), rng=rng
            ).p_value
            for _ in range(runs)
        ]
    )
    for level in (0.02, 0.1, 0.3):
        assert stats.binomtest(int((p_values <= level).sum()), runs, level, "greater").pvalue > 1e-3
    assert p_values.min() < 0.9  # there is evidence to be weighed, the test is not asleep


def test_who_skips_the_mechanism_is_found(rng):
    mechanism = elastic()
    for _ in range(10):
        attacked = ik.attack.poison_outputs(
            mechanism.simulate(rng.multinomial(10_000, HONEST), rng), ISLAND, 0.01
        )
        found = ik.attack.detect_poisoning(attacked, rng=rng)
        assert found.attacked
        assert found.report == ISLAND
        assert found.share == pytest.approx(0.01, abs=0.006)
        assert found.p_value == pytest.approx(math.exp(-found.log_evidence), rel=1e-9)
        assert found.p_value <= 0.01


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_who_lies_and_keeps_to_the_mechanism_is_not_found_more_often_than_the_honest(share, rng):
    mechanism, runs = elastic(), 30
    alarms = 0
    for _ in range(runs):
        people = ik.attack.poison_inputs(rng.multinomial(5000, HONEST), ISLAND, share)
        alarms += ik.attack.detect_poisoning(
            mechanism.simulate(people, rng), 0.05, rng=rng
        ).attacked
    assert stats.binomtest(alarms, runs, 0.05, "greater").pvalue > 1e-3


def test_the_decision_is_that_of_the_evidence():
    tally = ik.attack.poison_outputs(
        elastic().simulate(np.full(20, 100), np.random.default_rng(4)), ISLAND, 0.005
    )
    found = ik.attack.detect_poisoning(tally, 0.5, rng=np.random.default_rng(5))
    level = math.exp(-found.log_evidence)
    assert 1e-200 < level < 0.5
    for alpha, attacked in ((level * 1.001, True), (level * 0.999, False)):
        again = ik.attack.detect_poisoning(tally, alpha, rng=np.random.default_rng(5))
        assert again.attacked is attacked
        assert again.log_evidence == found.log_evidence


def test_each_half_is_judged_by_the_other(monkeypatch):
    tally = ik.attack.poison_outputs(
        elastic().simulate(np.full(20, 100), np.random.default_rng(4)), ISLAND, 0.005
    )
    (part,) = tally.parts
    half = detection._half(part.counts, np.random.default_rng(5))
    evidence = [_evidence(part, one).log_evidence for one in (half, part.counts - half)]
    assert abs(evidence[0] - evidence[1]) > 0.1, "the halves differ"
    for first in (half, part.counts - half):
        monkeypatch.setattr(detection, "_half", lambda counts, rng, first=first: first)
        found = ik.attack.detect_poisoning(tally, rng=np.random.default_rng(5))
        # The mean of two e-values is one.
        expected = np.logaddexp(*evidence) - math.log(2)
        assert found.log_evidence == pytest.approx(expected, rel=1e-12)


def test_reports_that_all_secrets_explain_raise_no_suspicion(rng):
    # every frequency of the reports is that of some honest population, so no adversaries are needed
    tally = ik.MatrixMechanism(np.eye(4)).tally_counts([5, 90, 7, 1])
    found = ik.attack.detect_poisoning(tally, rng=rng)
    assert (found.attacked, found.report, found.share) == (False, None, 0)
    assert found.p_value == pytest.approx(1, rel=1e-12)


INFINITE = {
    "line": (ik.LinearGeometric(10, 0.5), 25, 25),
    "plane": (ik.PlanarGeometric(ik.Grid(3, 3), 0.5), (9, 9), (9, 9)),
    "bits": (ik.Rappor(12, 4.0), [1] * 11 + [0], (1,) * 11 + (0,)),
}


@pytest.mark.parametrize("name", INFINITE)
def test_reports_that_cannot_be_listed(name, rng):
    mechanism, report, kept = INFINITE[name]
    counts = np.zeros(mechanism.k, dtype=int)
    counts[:4] = 1000
    honest = mechanism.simulate(counts, rng)
    assert not ik.attack.detect_poisoning(honest, rng=rng).attacked
    attacked = ik.attack.poison_outputs(honest, report, 0.02)
    found = ik.attack.detect_poisoning(attacked, rng=rng)
    assert (found.attacked, found.report) == (True, kept)
    # what is told can be sent again
    (again,) = ik.attack.poison_outputs(honest, found.report, 0.02).parts
    np.testing.assert_array_equal(again.reports, attacked.parts[0].reports)


def test_a_report_that_honest_people_send_less_often_than_a_double_can_say(rng):
    mechanism = ik.LinearGeometric(10, 1.0)
    honest = mechanism.simulate([100] * 10, rng)
    found = ik.attack.detect_poisoning(honest + mechanism.tally([2000] * 50), rng=rng)
    assert found.attacked
    assert found.report == 2000
    assert found.log_evidence > 50 * 100  # e^-1990 each, of which a double holds e^-708
    assert not ik.attack.detect_poisoning(honest, rng=rng).attacked


def test_two_reports_are_enough_to_ask(rng):
    for reports in ([0, 0], [0, 6], [6, 6]):
        found = ik.attack.detect_poisoning(elastic().tally(reports), rng=rng)
        assert not found.attacked
        assert 0.05 < found.p_value <= 1


def test_adversaries_under_k_rr_are_found_by_the_pool_that_the_refusal_names(rng):
    # one mechanism explains them as honest people; several levels contradict each other
    counts = [5000, 5000, 5000, 1000]
    mechanisms = [ik.RandomizedResponse(4, epsilon) for epsilon in (0.5, 1, 2)]
    tallies = [ik.attack.poison_outputs(m.simulate(counts, rng), 3, 0.05) for m in mechanisms]
    for tally in tallies:
        found = ik.attack.detect_poisoning(tally, rng=rng)
        assert not found.attacked
        assert found.p_value == 1
    pooled = tallies[0] + tallies[1] + tallies[2]
    with pytest.raises(ValueError, match=r"each .* by itself, .*or ask mle\(tally\)\.pool_test\("):
        ik.attack.detect_poisoning(pooled, rng=rng)
    assert ik.mle(pooled).pool_test().p_value < 1e-6
