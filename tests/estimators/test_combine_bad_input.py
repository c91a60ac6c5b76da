"""What combining refuses, and what it says then."""

from functools import partial

import numpy as np
import pytest

import ibukit as ik

TIGHT = 1e-12
KRR, MORE, NOISE = (
    ik.RandomizedResponse(4, 1.0),
    ik.RandomizedResponse(4, 2.0),
    ik.LinearGeometric(4, 1.0),
)
BITS, OTHER_BITS = ik.Rappor(4, 1.0), ik.OptimizedUnaryEncoding(4, 1.0)
ROW = [[0, 1, 0, 1]]
TWO = KRR.tally([0, 1, 2, 3]) + MORE.tally([0, 1, 2, 3])


@pytest.mark.parametrize(
    ("tally", "options", "error", "said"),
    [
        (
            TWO,
            {"weights": "even"},
            ValueError,
            'weights must be "users" or "variance", got \'even\'',
        ),
        (
            TWO,
            {"weights": [0.5, 0.5]},
            ValueError,
            r'weights must be "users" or "variance", got \[0.5, 0.5\]',
        ),
        (
            TWO,
            {"weights": np.array([0.5, 0.5])},
            ValueError,
            'weights must be "users" or "variance", got array',
        ),
        (
            TWO,
            {"estimator": "inv"},
            TypeError,
            "estimator must be a function from a tally .* got 'inv'",
        ),
        (TWO, {"estimator": None}, TypeError, "estimator must be a function .* got None"),
        (
            TWO,
            {"estimator": lambda t: [1.0]},
            ik.errors.AlphabetMismatch,
            "what the estimator returns must have .* 4",
        ),
        (
            TWO,
            {"estimator": lambda t: [1, 1, 1, 1]},
            ik.errors.InvalidDistribution,
            "what the estimator returns must sum",
        ),
        (
            TWO,
            {"estimator": lambda t: None},
            ik.errors.InvalidDistribution,
            "what the estimator returns must be",
        ),
        (TWO, {"post": "clip"}, ValueError, "post must be .* got 'clip'"),
        (TWO, {"stop": ik.Steps(1)}, TypeError, "stop"),
        (KRR, {}, TypeError, "tally must be a Tally, .* got RandomizedResponse"),
        ([KRR.tally([1])], {}, TypeError, "tally must be a Tally, .* got list"),
        (
            KRR.tally([1]) + NOISE.tally([9]),
            {},
            ik.errors.NotInvertible,
            "LinearGeometric.*does not apply",
        ),
        (
            KRR.tally([1]) + NOISE.tally([9]),
            {"estimator": ik.mle, "weights": "variance"},
            ik.errors.NotInvertible,
            (
                'weights="variance" needs mechanisms that can be inverted: LinearGeometric.*; use'
                ' weights="users", or mle'
            ),
        ),
        (
            TWO + ik.MatrixMechanism(np.full((4, 4), 0.25)).tally([0]),
            {"estimator": ik.mle, "weights": "variance"},
            ik.errors.NotInvertible,
            'weights="variance" needs .* rank 1 for 4 secrets',
        ),
    ],
)
def test_bad_input_to_combine_results(tally, options, error, said):
    with pytest.raises(error, match=said):
        ik.combine_results(tally, **options)


def test_reports_without_end_can_be_combined_as_results(rng):
    tally = KRR.simulate([10, 20, 30, 40], rng) + NOISE.simulate([10, 20, 30, 40], rng)
    found = ik.combine_results(tally, ik.mle)
    each = [ik.mle(ik.Tally((part,))).distribution for part in tally.parts]
    assert np.abs(found.distribution - np.mean(each, axis=0)).max() <= TIGHT


@pytest.mark.parametrize(
    ("tally", "estimator", "error", "said"),
    [
        (TWO, "inv", TypeError, "estimator must be a function from a tally .* got 'inv'"),
        (
            BITS.tally(ROW) + ik.Rappor(4, 2.0).tally(ROW),
            "inv",
            TypeError,
            "estimator must be a function",
        ),
        (
            KRR.tally([1]) + NOISE.tally([9]),
            ik.ibu,
            ik.errors.AlphabetMismatch,
            "LinearGeometric.* does not; pool the tallies",
        ),
        (
            KRR.tally([1]) + BITS.tally(ROW),
            ik.inv,
            ik.errors.AlphabetMismatch,
            "4 reports of .* the bits of a Rappor",
        ),
        (
            BITS.tally(ROW) + OTHER_BITS.tally(ROW),
            ik.inv,
            ik.errors.AlphabetMismatch,
            "bits of a Rappor .* OptimizedUnary",
        ),
        (
            KRR.tally([1]) + ik.MatrixMechanism(np.full((4, 3), 1 / 3)).tally([1]),
            ik.inv,
            ik.errors.AlphabetMismatch,
            "got 4 reports of .* and 3 reports of .*; pool the tallies with \\+ and use ibu or mle",
        ),
        (
            TWO,
            lambda t: [0.5, 0.5],
            ik.errors.AlphabetMismatch,
            "what the estimator returns must have .* 4",
        ),
        (KRR, ik.inv, TypeError, "tally must be a Tally, .* got RandomizedResponse"),
    ],
)
def test_bad_input_to_combine_mechanisms(tally, estimator, error, said):
    with pytest.raises(error, match=said):
        ik.combine_mechanisms(tally, estimator)


@pytest.mark.ledger("C-E16")
@pytest.mark.parametrize(
    "estimator", [ik.ibu, ik.mle, partial(ik.mle), lambda tally: ik.uniform(4)]
)
def test_several_unary_encodings_have_no_average_with_a_likelihood(estimator):
    tally = BITS.tally(ROW) + ik.Rappor(4, 2.0).tally(ROW)
    with pytest.raises(
        ValueError, match=r"estimator must be inv, or call it, for several unary .*got .*mle\("
    ):
        ik.combine_mechanisms(tally, estimator)
    assert ik.combine_mechanisms(tally, partial(ik.inv, post="none")).method == "[RAP]_M"
    assert (
        ik.combine_mechanisms(tally, lambda tally: ik.inv(tally, post="none")).method == "[RAP]_M"
    )


@pytest.mark.parametrize(
    "nothing",
    [
        lambda: KRR.tally([]),
        lambda: KRR.tally_counts([0, 0, 0, 0]),
        lambda: BITS.tally(np.empty((0, 4))),
    ],
)
def test_a_mechanism_without_reports_is_refused_before_it_is_pooled(nothing):
    with pytest.raises(ValueError, match="the tally is empty: at least one report is needed"):
        TWO + nothing()


def test_different_secrets_do_not_pool():
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match=r"tallies can be added only over the same secrets, got Line\(0, 3\).*0, 4",
    ):
        TWO + ik.RandomizedResponse(5, 1.0).tally([0])
