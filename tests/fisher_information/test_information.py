"""Standard errors: against finite differences, closed forms and repeated sampling."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.fisher_information import observed_information

TRUTH = np.array([0.4, 0.3, 0.2, 0.1])


def draw(mechanism, n, rng):
    return mechanism.simulate(rng.multinomial(n, TRUTH), rng)


def test_information_is_minus_the_hessian():
    rng = np.random.default_rng(3)
    tally = draw(ik.TruncatedGeometric(4, 0.7), 1000, rng) + draw(ik.Rappor(4, 1.0), 1000, rng)

    def log_likelihood(theta):
        return tally.counts @ np.log(tally.forward(theta))

    step, eye = 1e-4, np.eye(4)
    hessian = np.array(
        [
            [
                sum(
                    s * t * log_likelihood(TRUTH + step * (s * eye[x] + t * eye[y]))
                    for s in (1, -1)
                    for t in (1, -1)
                )
                for y in range(4)
            ]
            for x in range(4)
        ]
    ) / (4 * step**2)
    np.testing.assert_allclose(observed_information(tally, TRUTH), -hessian, rtol=1e-3)


def test_a_coin_has_its_textbook_standard_error():
    # warner's design: theta = (q - lie) / (truth - lie), so its error is that of q over (truth -
    # lie)
    mechanism = ik.RandomizedResponse(2, epsilon=1.0)
    estimate = ik.mle(mechanism.tally_counts([600, 400]))
    expected = np.sqrt(0.6 * 0.4 / 1000) / (mechanism.truth - mechanism.lie)
    np.testing.assert_allclose(estimate.standard_errors(), [expected, expected], rtol=1e-9)


def test_intervals_hold_their_level():
    # 300 draws: an exact 95 % interval is seen to cover in fewer than 272 with probability 4e-4 per
    # secret
    rng = np.random.default_rng(20260101)
    mechanism = ik.RandomizedResponse(4, epsilon=1.5)
    covered = np.zeros(4)
    for _ in range(300):
        lower, upper = ik.mle(draw(mechanism, 5000, rng)).interval(0.95, method="wald")
        covered += (lower <= TRUTH) & (upper >= TRUTH)
    assert (covered >= 272).all(), covered
    assert (covered <= 298).all(), covered


def test_intervals_stay_within_probabilities():
    lower, upper = ik.mle(ik.RandomizedResponse(3, epsilon=0.5).tally_counts([9, 1, 1])).interval()
    assert (lower >= 0).all()
    assert (upper <= 1).all()
    assert (lower <= upper).all()


def test_what_the_reports_do_not_determine_has_no_standard_error():
    # two secrets with the same row
    tally = ik.MatrixMechanism([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]]).tally_counts([5, 5])
    estimate = ik.mle(tally)
    errors = estimate.standard_errors()
    assert np.isinf(errors[:2]).all()
    # the third stands against the first two together: a coin with rows (0.9, 0.1) and (0.2, 0.8)
    assert errors[2] == pytest.approx(0.5 / np.sqrt(10) / 0.7, rel=1e-9)
    lower, upper = estimate.interval(method="wald")
    assert lower[:2].tolist() == [0, 0]
    assert upper[:2].tolist() == [1, 1]


def test_secrets_far_from_every_report_seen_are_undetermined():
    # one report seen of three: a single direction is determined, and no single secret
    tally = ik.TruncatedGeometric(3, 1.0).tally_counts([5, 0, 0])
    assert np.isinf(ik.ibu(tally, stop=ik.Steps(3)).standard_errors()).all()


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, float("nan")])
def test_a_level_must_be_a_probability(level):
    estimate = ik.mle(ik.RandomizedResponse(2, epsilon=1.0).tally_counts([6, 4]))
    with pytest.raises(ValueError, match="level"):
        estimate.interval(level)


def test_off_the_simplex_there_are_no_standard_errors():
    estimate = ik.inv(ik.RandomizedResponse(3, epsilon=1.0).tally_counts([9, 1, 0]), post="none")
    with pytest.raises(ValueError, match="off the simplex"):
        estimate.standard_errors()
