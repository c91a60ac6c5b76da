"""Reports of bits as files have them: texts of 0 and 1, hexadecimal ones, beside a number."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch

RAPPOR = ik.Rappor(6, 1.0)
BLOOM = ik.BloomRappor(
    [f"v{i}" for i in range(5)], bits=10, hashes=2, cohorts=4, f=0.25, p=0.25, q=0.75
)


def same(first, second):
    return all(
        a.mechanism == b.mechanism
        and np.array_equal(a.reports, b.reports)
        and np.array_equal(a.counts, b.counts)
        for a, b in zip(first.parts, second.parts, strict=True)
    )


def texts_of(bits):
    return ["".join(map(str, row)) for row in bits]


def hexadecimal(bits):
    digits = -(-bits.shape[1] // 4)
    return [f"0x{int(text, 2):0{digits}x}" for text in texts_of(bits)]


@pytest.mark.parametrize("write", [texts_of, hexadecimal])
def test_bits_alone(write, rng, tmp_path):
    rows = RAPPOR.randomize(rng.integers(0, 6, 200), rng)
    texts, right = write(rows), RAPPOR.tally(rows)
    frame = pd.DataFrame({"report": texts})
    frame.to_csv(tmp_path / "r.csv", index=False)
    for reports in (texts, np.array(texts), frame["report"]):
        assert same(RAPPOR.tally(reports), right)
    for table in (frame, pl.from_pandas(frame), tmp_path / "r.csv"):
        assert same(ik.Tally.from_table(table, RAPPOR), right)


@pytest.mark.parametrize("write", [texts_of, hexadecimal])
def test_bits_beside_a_cohort(write, rng, tmp_path):
    rows = BLOOM.randomize([f"v{i}" for i in rng.integers(0, 5, 300)], rng)
    frame = pd.DataFrame({"cohort": rows[:, 0], "bits": write(rows[:, 1:])})
    frame.to_csv(tmp_path / "r.csv", index=False)
    right, report = BLOOM.tally(rows), ["cohort", "bits"]
    pairs = list(frame.itertuples(index=False, name=None))
    for reports in (pairs, frame, frame.to_numpy()):
        assert same(BLOOM.tally(reports), right)
    for table in (frame, frame.astype({"cohort": str}), pl.from_pandas(frame), tmp_path / "r.csv"):
        assert same(ik.Tally.from_table(table, BLOOM, report=report), right)


BAD = ["01010", "0101010", "01012", "2f", "0x2", "0xzz", "0x0ff", "0xff", "٠١٠١٠١", "0b0101", ""]


@pytest.mark.parametrize("text", BAD)
def test_other_texts_are_refused(text):
    with pytest.raises(
        AlphabetMismatch, match=r'strings of 6 bits .* begin with "0x", got .* index 1'
    ):
        RAPPOR.tally(["010101", text])
    with pytest.raises(AlphabetMismatch, match=r'rows of 6 bits, as text .* begin with "0x"'):
        ik.Tally.from_table(pd.DataFrame({"report": ["010101", text]}), RAPPOR)
    table = pd.DataFrame({"cohort": [1, 1], "bits": ["0101010101", text + "0101"]})
    with pytest.raises(AlphabetMismatch, match="the second has strings of 10 bits"):
        ik.Tally.from_table(table, BLOOM, report=["cohort", "bits"])
    tally = ik.Tally.from_table(table, BLOOM, report=["cohort", "bits"], unknown="drop")
    assert (tally.n, tally.dropped) == (1, {"unknown": 1})


@pytest.mark.parametrize("cohort", [-1, 4, "x", 1.5])
def test_other_cohorts_are_refused(cohort):
    table = pd.DataFrame({"cohort": [1, cohort], "bits": ["0101010101"] * 2})
    with pytest.raises(AlphabetMismatch, match="cohort"):
        ik.Tally.from_table(table, BLOOM, report=["cohort", "bits"])
    tally = ik.Tally.from_table(table, BLOOM, report=["cohort", "bits"], unknown="drop")
    assert (tally.n, tally.dropped) == (1, {"unknown": 1})
