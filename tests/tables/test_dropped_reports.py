"""Reports that a mechanism refuses, left out of a table on request:
rows of numbers, real numbers, seeds.
"""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch

REFUSED = [
    (ik.SquareWave(5, 1.0), [99.0, -3.0]),
    (ik.LocalHashing(5, 1.0), [[3, 99], [-1, 0]]),
    (ik.HadamardCountMeanSketch(5, 1.0, rows=4, width=4), [[0, 0, 7], [4, 0, 1]]),
    (ik.CountMeanSketch(5, 1.0, rows=4, width=4), [[9, 0, 0, 0, 0], [0, 2, 0, 0, 0]]),
    (ik.HadamardMechanism(5, 1.0), [[1, 0], [99, 1]]),
]
EACH = pytest.mark.parametrize(
    ("mechanism", "refused"), REFUSED, ids=lambda value: type(value).__name__
)


def column(reports):
    return pd.DataFrame({"report": [np.asarray(report).tolist() for report in reports]})


@EACH
def test_the_others_are_counted(mechanism, refused, rng):
    good = mechanism.randomize(np.repeat(np.arange(5), 9), rng).tolist()
    mixed = [refused[0], *good[:20], refused[1], *good[20:], refused[1]]
    tally = ik.Tally.from_table(column(mixed), mechanism, "report", unknown="drop")
    assert tally.dropped == {"unknown": 3}
    assert tally.n == 45
    np.testing.assert_array_equal(
        tally.parts[0].reports, mechanism.tally(np.array(good)).parts[0].reports
    )


@EACH
def test_unless_asked_for_they_are_refused(mechanism, refused, rng):
    mixed = [*mechanism.randomize(np.arange(5), rng).tolist(), refused[0]]
    with pytest.raises(AlphabetMismatch, match="must"):
        ik.Tally.from_table(column(mixed), mechanism, "report")


def test_the_tally_of_the_secrets_seen_left_out_the_same_reports():
    lossy = ik.MatrixMechanism([[0.6, 0.2], [0.1, 0.7]], efficiency=True)
    tally = ik.Tally.from_table(pd.DataFrame({"report": [0, 1, 7]}), lossy, unknown="drop")
    assert dict(tally.among_seen.dropped) == {"unknown": 1}
