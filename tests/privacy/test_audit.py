"""An audit bounds what a sampler gives away from below:
it catches one that leaks, and blames none that does not.
"""

import math

import numpy as np
import pytest

import ibukit as ik
from bit_trees import Seeded
from ibukit.errors import TooLarge
from ibukit.mechanisms import FiniteMechanism, Mechanism
from ibukit.mechanisms.exact_samplers import registered_sampler
from ibukit.mechanisms.points import PointReports
from ibukit.privacy import audit, auditing

LINE = ik.Line(0, 3)
MECHANISMS = [
    ik.RandomizedResponse(4, 1.0),
    ik.Rappor(4, 1.0),
    ik.OptimizedUnaryEncoding(4, 1.0),
    ik.UnaryEncoding(4, 0.6, 0.2),
    ik.SubsetSelection(4, 1.0, 2),
    ik.LinearGeometric(LINE, 0.5),
    ik.TruncatedGeometric(LINE, 0.5),
    ik.LinearLaplace(LINE, 0.5),
    ik.Exponential(LINE, 1.0),
    ik.TightConstraints(LINE, 1.0),
    ik.PlanarGeometric(ik.Grid(2, 2), 0.5),
    ik.TruncatedPlanarGeometric(ik.Grid(2, 2), 0.5),
    ik.PlanarLaplace(ik.Grid(2, 2), 0.5),
    ik.MatrixMechanism([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]),
    ik.LinearLaplace(LINE, 0.5).of_points,
    ik.PlanarLaplace(ik.Grid(2, 2), 0.5).of_points,
]


def released(mechanism, rng, leak=0.0):
    """`release` with bits that have a seed;
    a share of the reports is the secret itself, of points its centre.
    """
    source = Seeded(rng)

    def draw(secrets):
        reports = mechanism._release_from(secrets, False, source)
        points = isinstance(mechanism, PointReports)
        if leak:
            truthful = rng.random(len(secrets)) < leak
            truth = mechanism.places()[mechanism.alphabet.codes(secrets)] if points else secrets
            reports[truthful] = truth[truthful]
        return in_quarters(reports) if points else reports

    return draw


def in_quarters(points):
    """Quarters of a cell or a unit, of which some are seen again;
    what is made of a report tells no more than it.
    """
    return np.floor(4 * points).astype(np.int64)


# Their `release` takes kept answers, and is audited below.
MEMOISED = [
    ik.LongitudinalResponse(3, 0.5, 1.0),
    ik.LongitudinalUnaryEncoding(3, (0.75, 0.25), (0.7, 0.3)),
    ik.LongitudinalHashing(3, 0.5, 1.0),
]


def test_every_mechanism_with_a_sampler_is_audited():
    public = {value for name in ik.__all__ if isinstance(value := getattr(ik, name), type)}
    public |= {
        type(mechanism.of_points) for mechanism in MECHANISMS if hasattr(mechanism, "of_points")
    }
    kinds = {kind for kind in public if issubclass(kind, Mechanism)} - {Mechanism, FiniteMechanism}
    by_matrix = {
        kind
        for kind in kinds
        if issubclass(kind, FiniteMechanism) and kind.draw is FiniteMechanism.draw
    }
    assert {kind for kind in kinds if registered_sampler(kind)} | by_matrix == {
        type(one) for one in [*MECHANISMS, *MEMOISED]
    }


@pytest.mark.parametrize("mechanism", MEMOISED[:1], ids=lambda mechanism: type(mechanism).__name__)
def test_one_report_of_a_kept_answer_is_audited(mechanism):
    found = audit(
        mechanism,
        lambda secrets: mechanism.release(mechanism.keep(secrets)),
        n=40_000,
        confidence=1 - 1e-6,
    )
    assert 0.2 * mechanism.epsilon < found.epsilon <= mechanism.epsilon


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_no_sampler_is_blamed(mechanism, rng):
    found = audit(mechanism, released(mechanism, rng), n=40_000, confidence=1 - 1e-6)
    assert 0.2 * mechanism.release_epsilon < found.epsilon <= mechanism.release_epsilon
    assert found.n == 20_000 // mechanism.k


def test_a_sampler_that_leaks_is_caught(rng):
    mechanism = ik.RandomizedResponse(4, 1.0)
    assert (
        audit(mechanism, released(mechanism, rng, leak=0.1), n=100_000, confidence=0.999).epsilon
        > 1.05
    )
    assert audit(mechanism, released(mechanism, rng), n=100_000, confidence=0.999).epsilon <= 1


def test_points_that_leak_are_caught(rng):
    """Three in a hundred are the centre of their cell."""
    mechanism = MECHANISMS[-1]
    assert (
        audit(mechanism, released(mechanism, rng, leak=0.03), n=40_000, confidence=0.999).epsilon
        > 0.6
    )
    assert audit(mechanism, released(mechanism, rng), n=40_000, confidence=0.999).epsilon <= 0.5


def test_noise_drawn_in_doubles_is_not_blamed_by_so_few(rng):
    """What it gives away happens too seldom to be seen: an audit is no proof."""
    mechanism = ik.LinearGeometric(LINE, 1.0)
    assert (
        audit(
            mechanism, lambda x: mechanism.randomize(x, rng), n=20_000, confidence=1 - 1e-6
        ).epsilon
        <= 1
    )


def test_it_finds_the_secret_that_is_betrayed(rng):
    mechanism = ik.Rappor(6, 0.5)

    def draw(secrets):
        rows = mechanism._release_from(secrets, False, Seeded(rng))
        rows[secrets == 3] = np.eye(6, dtype=np.uint8)[3]
        return rows

    found = audit(mechanism, draw, n=24_000)
    assert 3 in found.secrets
    assert found.epsilon > 1


def test_the_bound_is_that_of_clopper_and_pearson():
    """Of secrets that are reported as they are, none of n is seen under the other:
    the bounds are in closed form.
    """
    found = audit(ik.RandomizedResponse(2, 1.0), lambda secrets: secrets, n=4000, confidence=0.9)
    assert (found.seen, found.n) == ((1000, 0), 1000)
    assert found.epsilon == pytest.approx(math.log(0.05**0.001 / (1 - 0.05**0.001)), rel=1e-9)


def test_reports_that_choose_the_event_are_not_those_that_judge_it():
    # by quarters: how many A, C and B. The second one's best event is {A}, that of the second and
    # third {A, C}
    quarters = {
        0: [(60, 30, 10), (50, 0, 50), (0, 100, 0), (7, 0, 93)],
        1: [(10, 20, 70), (5, 10, 85)] + 2 * [(3, 0, 97)],
    }
    reports = [np.concatenate([np.repeat([0, 2, 1], each) for each in quarters[x]]) for x in (0, 1)]
    found = audit(
        ik.RandomizedResponse(3, 1.0),
        lambda secrets: np.concatenate(reports),
        n=800,
        secrets=[0, 1],
    )
    assert (found.secrets, found.seen, found.n) == ((0, 1), (7, 6), 200)


def test_an_event_that_is_never_seen_again_bounds_nothing():
    """It was chosen for {A}; of the reports that judge it the first secret has none there."""
    quarters = {0: [(90, 10)] * 2 + [(0, 100)] * 2, 1: [(10, 90)] * 2 + [(3, 97)] * 2}
    reports = [np.concatenate([np.repeat([0, 1], each) for each in quarters[x]]) for x in (0, 1)]
    found = audit(ik.RandomizedResponse(2, 1.0), lambda secrets: np.concatenate(reports), n=800)
    assert found.seen[0] == 0
    assert found.epsilon == 0


def test_the_bound_is_per_unit_of_distance():
    far = ik.Line(0, 10)
    found = audit(
        ik.TruncatedGeometric(far, 1.0),
        lambda secrets: secrets,
        n=4000,
        confidence=0.9,
        secrets=[0, 10],
    )
    assert set(found.secrets) == {0, 10}
    assert found.epsilon == pytest.approx(math.log(0.05**0.001 / (1 - 0.05**0.001)) / 10, rel=1e-9)


def test_it_holds_as_often_as_it_says(rng):
    """A coin of level log 3:
    bounds of 60 % confidence are too high in at most 40 of 100, but for chance.
    """
    coin = ik.MatrixMechanism([[0.75, 0.25], [0.25, 0.75]])
    source = Seeded(rng)
    too_high = [
        audit(coin, lambda x: coin._release_from(x, False, source), n=400, confidence=0.6).epsilon
        > math.log(3)
        for _ in range(100)
    ]
    assert sum(too_high) <= 40 + 6 * math.sqrt(100 * 0.24)
    # negative control: without the bounds the quotient itself is too high about every second time
    plain = [
        audit(coin, lambda x: coin._release_from(x, False, source), n=400, confidence=1e-9)
        for _ in range(100)
    ]
    assert sum(found.epsilon > math.log(3) for found in plain) > sum(too_high)


@pytest.mark.parametrize("labels", [[1, "a"], [None, "a"], [("a", 1), "b"]])
def test_labels_need_no_order(labels, rng):
    mechanism = ik.RandomizedResponse(labels, 3.0)
    found = audit(mechanism, released(mechanism, rng), n=4000)
    assert 2 < found.epsilon < 3
    assert set(found.secrets) == set(labels)


def test_bad_input_is_named():
    mechanism = ik.RandomizedResponse(3, 1.0)
    for arguments, match in (
        ({"confidence": 1.0}, "confidence"),
        ({"n": 11}, "n must be at least 12"),
        ({"secrets": [1]}, "secrets must be at least two different ones"),
        ({"secrets": [1, 1]}, "secrets must be at least two different ones"),
        ({"secrets": [1, 5]}, "secrets"),
    ):
        with pytest.raises(ValueError, match=match):
            audit(mechanism, mechanism.release, **arguments)
    with pytest.raises(
        ValueError, match=r"release must return one report for each of 24 secrets.* \(23,\)"
    ):
        audit(mechanism, lambda secrets: secrets[1:], n=24)
    with pytest.raises(ValueError, match=r"mechanism must have an alphabet with an end"):
        audit(ik.LinearGeometric(ik.Line(0, None), 1.0), lambda secrets: secrets)


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr("ibukit.privacy.auditing.MAX_COUNTS", 10)
    with pytest.raises(
        TooLarge, match=r"3 pairs of secrets with 3 different reports.*secrets=\.\.\."
    ):
        audit(ik.RandomizedResponse(3, 1.0), lambda secrets: secrets, n=24)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_ten_million_reports_blame_no_sampler(mechanism, rng):
    """With a seed: an unlucky one would be seen once in a thousand, and then every time."""
    found = audit(mechanism, released(mechanism, rng), n=10_000_000, confidence=0.999)
    assert 0.5 * mechanism.release_epsilon < found.epsilon <= mechanism.release_epsilon


@pytest.mark.slow
def test_ten_million_reports_find_a_leak_of_one_in_a_hundred(rng):
    mechanism = ik.RandomizedResponse(4, 1.0)
    found = audit(mechanism, released(mechanism, rng, leak=0.01), n=10_000_000, confidence=0.999)
    assert found.epsilon > mechanism.release_epsilon


@pytest.mark.slow
def test_ten_million_reports_by_the_operating_systems_bits():
    mechanism = ik.RandomizedResponse(4, 1.0)  # false alarms: 1e-6
    found = audit(mechanism, mechanism.release, n=10_000_000, confidence=1 - 1e-6)
    assert 0.9 < found.epsilon <= mechanism.release_epsilon


def test_of_many_bits_those_of_the_two_secrets_are_looked_at(rng):
    mechanism = ik.Rappor(40, 2.0)
    found = audit(mechanism, released(mechanism, rng), n=40_000, secrets=[0, 39])
    assert 0.75 * 2 < found.epsilon <= 2
    assert found.secrets in {(0, 39), (39, 0)}


def test_what_an_event_promises_is_what_it_bounds_where_the_reports_are_the_same(rng):
    counts = rng.multinomial(100_000, [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    pair = auditing._Pair((0, 1), counts, counts, counts)
    for confidence in (0.5, 0.95, 0.999):
        event = auditing._best_event(pair, [0, 1], 1.0, confidence)
        assert auditing._bound(event, 100_000, confidence) == pytest.approx(event.score, rel=5e-3)
