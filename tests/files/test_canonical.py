"""What files are tied to:
the same text in every session, and another one where something differs.
"""

from functools import partial

import numpy as np

import ibukit as ik
from ibukit.files.canonical_text import fingerprint as digest


def test_a_file_is_tied_to_the_last_bit_of_a_matrix():
    M = ik.RandomizedResponse(5, 1.0).matrix()
    near = [ik.MatrixMechanism(rows) for rows in (M, M * (1 + 1e-15), M * (1 - 1e-15))]
    assert len({digest(mechanism) for mechanism in near}) == 3


def test_what_a_function_closes_over_belongs_to_the_question():
    def steps(n):
        return lambda tally: ik.ibu(tally, stop=ik.Steps(n))

    assert digest(steps(5)) == digest(steps(5)) != digest(steps(6))
    assert digest(partial(steps, 5)) != digest(partial(steps, 6))
    assert digest(lambda tally, n=5: n) != digest(lambda tally, n=6: n)
    assert digest(lambda tally, *, n=5: n) != digest(lambda tally, *, n=6: n)
    assert digest(lambda tally: tally.k) != digest(lambda tally: tally.n)
    assert digest(lambda tally: [5 for _ in tally]) != digest(lambda tally: [6 for _ in tally])
    assert digest(ik.Steps(5).met) != digest(ik.Steps(6).met)
    assert digest(print) == digest(print) != digest(len)
    assert digest(object()) == digest(object())  # nothing of an address


def test_a_function_may_close_over_itself():
    def halve(n):
        return lambda m: halve(n + m // 2)

    assert digest(halve) == digest(halve)
    assert digest(halve(5)) == digest(halve(5)) != digest(halve(6))


def test_numbers_are_compared_to_the_last_bit():
    assert digest(np.array([0.1])) != digest(np.array([np.nextafter(0.1, 1)]))
