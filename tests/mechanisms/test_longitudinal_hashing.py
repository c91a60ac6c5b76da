"""Memoised local hashing: one report is local hashing's."""

import pickle

import numpy as np
import pytest

import ibukit as ik
from ibukit.testing import check_mechanism
from test_local_hashing import p_value_of_steps

MECHANISM = ik.LongitudinalHashing(9, 1.0, 2.0)


def test_one_report_has_the_law_of_local_hashing(rng):
    same = ik.LocalHashing(9, 1.0)
    assert (MECHANISM.g, MECHANISM.truth, MECHANISM.ideal) == (same.g, same.truth, same.ideal)
    np.testing.assert_allclose(
        MECHANISM.rounds.matrix(), ik.RandomizedResponse(MECHANISM.g, 1.0).matrix(), rtol=1e-12
    )
    check_mechanism(MECHANISM, rng=rng, n=3000)
    for secret in (0, 8):
        assert p_value_of_steps(MECHANISM, secret, rng) > 1e-6
    assert p_value_of_steps(ik.LongitudinalHashing(9, 1.5, 2.0, 4), 0, rng) > 1e-6
    reports = MECHANISM.draw(np.arange(9), rng)
    theta = ik.uniform(9)
    np.testing.assert_allclose(
        MECHANISM.tally(reports).forward(theta), same.tally(reports).forward(theta)
    )


def test_it_travels():
    assert pickle.loads(pickle.dumps(MECHANISM)) == MECHANISM
    assert ik.LongitudinalHashing(9, 1.0, 3.0) != MECHANISM


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 2.0, 1.0), "epsilon must be below epsilon_inf"),
        ((5, 1.0, 2.0, 1), "g must be"),
        ((5, -1.0, 2.0), "epsilon must be"),
        ((5, 1.0, "x"), "epsilon_inf must be"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ik.LongitudinalHashing(*arguments)
