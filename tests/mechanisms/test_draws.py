"""What draws are made from:
probabilities rounded to 32 bits, and noise on a map that goes to every side alike.
"""

from fractions import Fraction

import numpy as np
import pytest

from ibukit.errors import TooLarge
from ibukit.mechanisms import draws
from ibukit.mechanisms.draws import drawable, signed_offset_counts


def test_probabilities_keep_32_bits_whatever_their_size(rng):
    parts = np.array([2.0**-3 + 2.0**-35, 2.0**-3 + 2.0**-34, 2.0**-3])
    rounded = drawable(np.append(parts, 1 - parts.sum()))
    # the first is a tie, which goes to the even neighbour below; half a unit more stays
    assert [Fraction(p / rounded[2]) for p in rounded[:2]] == [1, 1 + Fraction(1, 2**31)]
    p = rng.dirichlet(np.full(1000, 0.01)) + 1e-290
    q = drawable(p)
    assert np.abs(q / p - q.sum() / p.sum()).max() <= 2.0**-31


def test_noise_on_a_map_goes_to_every_side_alike(rng):
    people = np.zeros((4, 3), dtype=np.int64)
    people[1, 2] = 40_000
    shares = np.array([[0.1, 0.2, 0.1], [0.3, 0.2, 0.1]])
    reports = signed_offset_counts(people, shares, rng)
    assert reports.sum() == 40_000
    north, east = np.meshgrid(np.arange(-1, 2), np.arange(-2, 3), indexing="ij")
    expected = (
        shares[abs(north), abs(east)] / np.where(north == 0, 1, 2) / np.where(east == 0, 1, 2)
    )
    found = reports[1:4, 2:7] / 40_000
    assert reports[1:4, 2:7].sum() == 40_000
    np.testing.assert_allclose(found, expected, atol=5 * np.sqrt(0.2 / 40_000))


@pytest.mark.parametrize("people", [np.array([[3, 0], [0, 2]]), np.array([[0, 7]])])
def test_without_noise_all_stay_where_they_are(people, rng):
    assert np.array_equal(signed_offset_counts(people, np.ones((1, 1)), rng), people)


def test_just_as_many_users_as_may_be_are_drawn_one_by_one(monkeypatch):
    monkeypatch.setattr(draws, "MAX_USERS", 5)
    assert draws.secrets_of_users(np.array([2, 0, 3]), None).tolist() == [0, 0, 2, 2, 2]
    with pytest.raises(TooLarge, match=r"at most 5 for NoneType.* got 6 users"):
        draws.secrets_of_users(np.array([2, 1, 3]), None)
