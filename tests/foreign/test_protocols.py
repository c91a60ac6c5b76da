"""multi-freq-ldpy and pure-ldp on the same reports;
benchmarks/results/library_errors.csv has what they get wrong.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from foreign.inputs import BITS, EPSILON, REPORTS, SECRETS, SUBSET, TWO, TWO_FREQUENCIES
from foreign.record import read

N = len(REPORTS)
ERRORS = pd.read_csv(Path(__file__).parents[2] / "benchmarks" / "results" / "library_errors.csv")
RESPONSE = ik.RandomizedResponse(SECRETS, EPSILON)
BITWISE = BITS.astype(np.uint8)
SETS = (np.subtract.outer(REPORTS, np.arange(SECRETS)) == 0).astype(np.uint8)
TALLIES = {
    "GRR": RESPONSE.tally(REPORTS),
    "SUE": ik.Rappor(SECRETS, EPSILON).tally(BITWISE),
    "OUE": ik.OptimizedUnaryEncoding(SECRETS, EPSILON).tally(BITWISE),
    "SS": ik.SubsetSelection(SECRETS, EPSILON, SUBSET).tally(SETS),
    "L-OSUE": ik.LongitudinalUnaryEncoding.osue(SECRETS, EPSILON, 2 * EPSILON).tally(BITWISE),
    "SHE": ik.HistogramEncoding(SECRETS, EPSILON).tally(2.0 * BITS - 0.5),
}


def second_round():
    """L-GRR's two rounds of k-RR:
    the second with the chance that it computes, p in the first and q beside it.
    """
    e, first = np.exp(EPSILON), np.exp(2 * EPSILON)
    p1 = first / (first + SECRETS - 1)
    q1 = (1 - p1) / (SECRETS - 1)
    p2 = (q1 - e * p1) / (-p1 * e + SECRETS * q1 * e - q1 * e - p1 * (SECRETS - 1) + q1)
    q2 = (1 - p2) / (SECRETS - 1)
    return p1, q1, p2, q2


@pytest.mark.parametrize("name", ["GRR", "SUE", "OUE", "SS", "L-OSUE"])
def test_multi_freq_ldpy_clips_what_we_debias_and_divides_by_the_sum(name):
    ours = ik.inv(TALLIES[name], post="norm-mul").distribution
    np.testing.assert_allclose(read("multi_freq_ldpy")[f"{name} MI"], ours, atol=1e-13)


@pytest.mark.parametrize(
    ("theirs", "ours"), [("DE", "GRR"), ("SUE", "SUE"), ("OUE", "OUE"), ("SHE", "SHE")]
)
def test_pure_ldp_debiases_as_we_do(theirs, ours):
    np.testing.assert_allclose(
        read("pure_ldp")[theirs], N * ik.inv(TALLIES[ours], post="none").distribution, rtol=1e-10
    )


def test_the_ibu_of_multi_freq_ldpy_is_the_maximum_for_k_rr():
    theta = read("multi_freq_ldpy")["GRR IBU"]
    assert ik.gap(TALLIES["GRR"], theta) < 1e-10
    np.testing.assert_allclose(theta, ik.mle(TALLIES["GRR"]).distribution, atol=1e-9)


def test_its_ibu_of_bits_is_not_their_maximum():
    """It takes the frequencies of the bits for those of reports;
    bits of one user say more together.
    """
    theta = read("multi_freq_ldpy")["OUE IBU"]
    assert ik.gap(TALLIES["OUE"], theta) > 0.01
    # each one a report of k-RR, with 1/2 for the secret and 1 / (e^eps + 1) for any other, up to a
    # factor
    alone = ik.RandomizedResponse(SECRETS, float(np.log((np.exp(EPSILON) + 1) / 2)))
    np.testing.assert_allclose(
        theta, ik.mle(alone.tally_counts(BITS.sum(axis=0))).distribution, atol=1e-8
    )


def test_its_longitudinal_k_rr_has_another_level_than_the_one_asked_for():
    """Its estimates fit its own reports.
    The matrix of its IBU leaves out the paths by a third value.
    """
    theirs = read("multi_freq_ldpy")
    p1, q1, p2, q2 = second_round()
    own, other, paths = p1 * p2 + (1 - p1) * q2, p1 * q2 + q1 * p2, (SECRETS - 2) * q1 * q2
    level = float(np.log(own / (other + paths)))
    assert 1.38 < level < 1.4  # 1.5 was asked for
    fits = ik.RandomizedResponse(SECRETS, level).tally(REPORTS)
    np.testing.assert_allclose(
        theirs["L-GRR MI"], ik.inv(fits, post="norm-mul").distribution, atol=1e-13
    )
    asked = ik.LongitudinalResponse(SECRETS, EPSILON, 2 * EPSILON).tally(REPORTS)
    assert abs(ik.inv(asked, post="norm-mul").distribution - theirs["L-GRR MI"]).max() > 0.01
    assert ik.gap(fits, theirs["L-GRR IBU"]) > 0.005
    without = ik.RandomizedResponse(SECRETS, float(np.log(own / other))).tally(REPORTS)
    np.testing.assert_allclose(theirs["L-GRR IBU"], ik.mle(without).distribution, atol=1e-8)


def printed(library, part):
    """What an example of the book's page of errors printed."""
    (row,) = ERRORS[
        (ERRORS.library == library) & ERRORS.what.str.contains(part, regex=False)
    ].itertuples()
    return float(row.printed), row.right


def test_its_ibu_takes_the_matrix_for_its_transpose():
    """So it solves A theta = q where the reports have A^T theta = q:
    its numbers are no distribution.
    """
    theirs = read("multi_freq_ldpy")["IBU of a matrix that is not symmetric"]
    np.testing.assert_allclose(theirs, np.linalg.solve(TWO, TWO_FREQUENCIES), atol=1e-9)
    assert round(theirs[0], 2) == printed("multi-freq-ldpy", "IBU multiplies by the matrix")[0]
    assert abs(sum(theirs) - 1) > 0.1
    ours = ik.mle(ik.MatrixMechanism(TWO).tally_counts(np.rint(100 * TWO_FREQUENCIES).astype(int)))
    np.testing.assert_allclose(ours.distribution, 1 / 2, atol=1e-12)


def test_its_variance_does_not_depend_on_the_frequency():
    theirs, (shown, right) = read("multi_freq_ldpy"), printed("multi-freq-ldpy", "VAR_Long_Pure")
    assert theirs["VAR_Long_Pure at 0"] == theirs["VAR_Long_Pure at 1"]
    assert round(theirs["VAR_Long_Pure at 1"], 2) == shown
    protocol = ik.LongitudinalUnaryEncoding.osue(5, 1.0, 2.0)
    own, other = protocol.tally([[1, 0, 0, 0, 0]]).parts[0].mechanism.p_one, 1 - protocol.p_zero
    assert float(right) == pytest.approx(
        own * (1 - own) / (own - min(other, 1 - other)) ** 2, abs=5e-3
    )


def test_the_rappor_of_pure_ldp_spends_more_than_was_asked_for():
    """Its own level counts the hash functions, its choice of f does not;
    and two digits round to no noise at all.
    """
    theirs = read("pure_ldp")
    f, none = theirs["RAPPOR f of 3 and 12"]
    assert f == round(2 / (1 + np.exp(3 / 2)), 2)
    assert 2 * 2 * np.log((1 - f / 2) / (f / 2)) > 6 > 3  # of two hash functions
    assert theirs["RAPPOR epsilon of f = 1/2, 2 hash functions"] == pytest.approx(4 * np.log(3))
    assert none == printed("pure-ldp", "rounds to two digits")[0] == 0


def test_opendp_debiases_bits_as_inversion_does_and_has_the_last_bit_first():
    kept = read("opendp_debias")
    f = kept["f"]
    padded = np.pad(BITWISE, ((0, 0), (0, 8 - SECRETS)))
    tally = ik.UnaryEncoding(8, 1 - f / 2, f / 2).tally(padded)
    debiased = np.array(kept["debiased"])[::-1] / N
    np.testing.assert_allclose(debiased, ik.inv(tally, "none").distribution, atol=1e-12)
    assert debiased.min() < 0  # neither repaired nor a likelihood
