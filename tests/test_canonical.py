"""What seeds and files are tied to: the same text in every session, and another one where something differs."""

from functools import partial

import numpy as np

import ibukit as ik
from ibukit.evaluation._canonical import digest, spawn_key
from replicate_cases import LINE


def test_the_words_of_a_mechanism_stay_what_they_are():
    # published numbers hang on these: they may not depend on the session, the machine or the version
    recorded = {
        (798138855, 2620792316, 626930279, 186468570): ik.TruncatedGeometric(ik.Line(0, 99), 0.05),
        (987799807, 312969275, 922865863, 741204631): ik.Exponential(ik.Grid(3, 4, cell_size=0.5), 1),
        (2788558394, 2545065315, 3074841483, 1737832026): ik.MatrixMechanism([[0.75, 0.25], [0.5, 0.5]]),
        (2898910108, 3188655869, 3248651032, 2908892425): ik.Rappor(ik.Alphabet(["a", "b"]), 2.0),
    }
    for words, mechanism in recorded.items():
        assert spawn_key(mechanism) == words


def test_a_seed_forgives_the_last_digits_of_a_matrix_and_a_file_does_not():
    M = ik.RandomizedResponse(5, 1.0).matrix()
    near = [ik.MatrixMechanism(rows) for rows in (M, M * (1 + 1e-15), M * (1 - 1e-15))]
    assert len({spawn_key(mechanism) for mechanism in near}) == 1
    assert len({digest(mechanism) for mechanism in near}) == 3
    assert spawn_key(ik.MatrixMechanism(M[::-1])) != spawn_key(near[0])
    assert spawn_key(ik.TruncatedGeometric(LINE, 0.3)) == spawn_key(ik.TruncatedGeometric(ik.Line(0, 7), 0.3))
    assert spawn_key(ik.TruncatedGeometric(ik.Line(1, 8), 0.3)) != spawn_key(ik.TruncatedGeometric(LINE, 0.3))


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
