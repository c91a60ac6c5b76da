"""`smooth` of the frequencies is what the reports say of the users,
if these are drawn from the smooth distribution.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from instances import INSTANCES, tallies

OF_PLACES = [
    instance for instance in INSTANCES if isinstance(instance.tally.alphabet, (ik.Line, ik.Grid))
]


@pytest.fixture(scope="module")
def ages():
    return ik.datasets.load_adult_ages()


def posteriors_mean(instance, theta):
    """What each report says of its sender's secret, averaged over the reports, one at a time."""
    mean = np.zeros(len(theta))
    for z, count in enumerate(instance.counts):
        if count:
            joint = theta * instance.matrix[:, z]
            mean += count * joint / joint.sum()
    return mean / sum(instance.counts)


@pytest.mark.parametrize("instance", OF_PLACES, ids=lambda instance: instance.name)
@pytest.mark.parametrize("penalty", [30.0, None])
def test_the_frequencies_are_the_mean_of_what_the_reports_say(instance, penalty):
    theta = ik.smooth(instance.tally, penalty)
    found = ik.smooth(instance.tally, penalty, of="frequencies")
    assert found.distribution == pytest.approx(
        posteriors_mean(instance, theta.distribution), abs=1e-12
    )
    assert ik.check_distribution(found.distribution).min() >= 0
    assert found.gap == ik.gap(instance.tally, found.distribution)
    assert found.log_likelihood >= theta.log_likelihood - 1e-12 * abs(theta.log_likelihood)
    assert (found.status, found.n_iter) == (theta.status, theta.n_iter)
    assert found.method == theta.method.replace("smooth, ", "smooth, of the frequencies, ")
    # what the reports say to somebody who believes in another distribution is something else
    other = posteriors_mean(
        instance, ik.normalize(np.arange(1.0, len(theta.distribution) + 1) ** 2)
    )
    assert np.abs(found.distribution - other).max() > 1e-3


def test_it_is_the_expectation_over_all_secrets_of_users_drawn_from_the_estimate():
    matrix, reports = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]), [0, 0, 1, 2, 0]
    tally = ik.MatrixMechanism(matrix, ik.Line(0, 2)).tally(np.array(reports))
    theta = ik.smooth(tally, 3.0).distribution
    total, mean = 0.0, np.zeros(3)
    for secrets in itertools.product(range(3), repeat=len(reports)):
        weight = math.prod(theta[x] * matrix[x, z] for x, z in zip(secrets, reports, strict=True))
        total += weight
        mean += weight * np.bincount(secrets, minlength=3) / len(reports)
    found = ik.smooth(tally, 3.0, of="frequencies").distribution
    assert found == pytest.approx(mean / total, abs=1e-14)
    assert np.abs(found - theta).max() > 0.02


@given(tallies(), st.sampled_from([1e-2, 1.0, 100.0, 1e6]))
@settings(max_examples=35)
def test_any_tally_gives_frequencies(tally, penalty):
    found = ik.smooth(tally, penalty, of="frequencies")
    assert ik.check_distribution(found.distribution).min() >= 0
    assert 0 <= found.gap < math.inf
    assert found.gap == ik.gap(tally, found.distribution)


def test_reports_that_tell_all_or_nothing(rng):
    counts = rng.integers(0, 50, 8)
    whole = ik.MatrixMechanism(np.eye(8), ik.Line(0, 7)).tally_counts(counts)
    assert ik.smooth(whole, 40.0, of="frequencies").distribution == pytest.approx(
        counts / counts.sum(), abs=1e-15
    )
    assert np.abs(ik.smooth(whole, 40.0).distribution - counts / counts.sum()).max() > 0.01
    deaf = ik.MatrixMechanism(np.tile([0.2, 0.5, 0.3], (8, 1)), ik.Line(0, 7)).tally_counts(
        [20, 40, 30]
    )
    assert ik.smooth(deaf, 40.0, of="frequencies").distribution == pytest.approx(
        ik.uniform(8), abs=1e-15
    )


def test_without_penalty_the_frequencies_are_the_maximum_likelihood_too(rng):
    # v = q M^-1 is positive here, and the MLE
    theta = ik.normalize(np.arange(3.0, 11.0))
    tally = ik.TruncatedGeometric(8, 1.5).simulate(rng.multinomial(10**6, theta), rng)
    best = ik.mle(tally).distribution
    assert best.min() > 0.01
    light, heavy = (
        ik.smooth(tally, penalty, of="frequencies").distribution for penalty in (1e-3, 1e6)
    )
    assert np.abs(light - best).max() < 1e-5 < 1e-3 < np.abs(heavy - best).max()


def off_by(people, epsilon, repetitions, rng):
    """Mean EMD of each to the people's own frequencies."""
    channel = ik.TruncatedGeometric(people.alphabet, epsilon)
    estimators = {
        "theta": ik.smooth,
        "F": lambda t: ik.smooth(t, of="frequencies"),
        "MLE": ik.mle,
    }
    errors = {name: [] for name in (*estimators, "reports")}
    for _ in range(repetitions):
        tally = channel.simulate(people.counts, rng)
        found = {name: estimator(tally).distribution for name, estimator in estimators.items()}
        found["reports"] = np.bincount(tally.parts[0].reports, tally.frequencies, tally.k)
        for name, p in found.items():
            errors[name].append(ik.emd(p, people.distribution, people.alphabet))
    return {name: np.mean(off) for name, off in errors.items()}


def test_with_weak_noise_the_frequencies_follow_the_people_and_the_distribution_does_not(ages, rng):
    # 10 tallies: the standard errors are 3 %
    off = off_by(ages, 3.0, 10, rng)
    assert off["theta"] > 1.5 * off["F"]
    assert off["theta"] > 1.5 * off["reports"]  # doing nothing is better
    assert 0.9 < off["F"] / off["MLE"] < 1.1
    off = off_by(ages, 8.0, 10, rng)
    assert off["theta"] > 10 * off["reports"]
    assert 0.8 < off["F"] / off["reports"] < 1.25


def test_with_strong_noise_the_two_are_nearly_the_same(ages):
    tally = ik.TruncatedGeometric(ages.alphabet, 0.05).simulate(
        ages.counts, np.random.default_rng(5)
    )
    theta, frequencies = (
        ik.smooth(tally, of=of).distribution for of in ("distribution", "frequencies")
    )
    assert (
        0
        < ik.total_variation(theta, frequencies)
        < 0.005
        < ik.total_variation(theta, ik.mle(tally).distribution)
    )


@pytest.mark.parametrize("of", ["people", "F", None, 1])
def test_of_is_one_of_two_words(of):
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([3, 2, 1])
    with pytest.raises(ValueError, match=f"of must be 'distribution' or 'frequencies', got {of!r}"):
        ik.smooth(tally, of=of)
