"""What people hand in by mistake:
values of no use anywhere, a right value spoiled, a right value in another dress.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse


def numbers_of(right):
    """The right value as an array of doubles, or three of them where it is nothing of the kind."""
    try:
        array = np.array(right, dtype=float)
    except (TypeError, ValueError):
        return np.array([0.5, 0.25, 0.25])
    return array if array.ndim else array.reshape(1)


def with_one(right, value, dtype=float):
    array = numbers_of(right).astype(dtype)
    if array.size:
        array.flat[-1] = value
    return array


def in_half(array):
    return array.astype(np.float16) if np.abs(array).max(initial=0) < 1e4 else None


def masked(right):
    array = numbers_of(right)
    mask = np.zeros(array.shape, dtype=bool)
    mask.flat[-1:] = True
    return np.ma.array(array, mask=mask)


def read_only(array):
    array.setflags(write=False)
    return array


# wrong nearly everywhere; where it is right, the answer must be right as well
ANYTHING = {
    "None": lambda _: None,
    "NaN": lambda _: float("nan"),
    "infinite": lambda _: float("inf"),
    "minus infinite": lambda _: float("-inf"),
    "minus one": lambda _: -1,
    "zero": lambda _: 0,
    "minus zero": lambda _: -0.0,
    "a half": lambda _: 0.5,
    "true": lambda _: True,
    "beyond the doubles": lambda _: 10**400,
    "the largest": lambda _: 1.7e308,
    "the least": lambda _: 5e-324,
    "2^53": lambda _: 2**53,
    "2^63": lambda _: 2**63,
    "1e15": lambda _: 1e15,
    "text": lambda _: "x",
    "a number's text": lambda _: "0.5",
    "no text": lambda _: "",
    "bytes": lambda _: b"x",
    "imaginary": lambda _: 1j,
    "empty list": lambda _: [],
    "empty tuple": lambda _: (),
    "empty dict": lambda _: {},
    "set": lambda _: {0, 1},
    "generator": lambda _: (i for i in range(3)),
    "range": lambda _: range(3),
    "object": lambda _: object(),
    "function": lambda _: len,
    "class": lambda _: dict,
    "decimal": lambda _: Decimal("0.5"),
    "fraction": lambda _: Fraction(1, 2),
    "0-d": lambda _: np.array(0.5),
    "numpy's float": lambda _: np.float32(0.5),
    "empty array": lambda _: np.array([]),
    "no columns": lambda _: np.zeros((2, 0)),
    "3-d": lambda _: np.ones((2, 2, 2)),
    "days": lambda _: np.array(["1970-01-01", "NaT"], dtype="datetime64[D]"),
    "records": lambda _: np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]),
    "objects": lambda _: np.array([None, object(), "x"], dtype=object),
    "bytes array": lambda _: np.array([b"0.5", b"0.5"]),
    "ragged": lambda _: [[1.0], [0.5, 0.5]],
    "NA": lambda _: pd.NA,
    "NaT": lambda _: pd.NaT,
    "series with NA": lambda _: pd.Series([1, pd.NA, 2], dtype="Int64"),
    "categories": lambda _: pd.Series(["a", "b", None], dtype="category"),
    "frame": lambda _: pd.DataFrame({"report": [0, 1], "x": [0.5, None]}),
    "arrow": lambda _: pa.array([0, 1, 1]),
    "arrow with null": lambda _: pa.array([0, None, 1]),
    "arrow chunks": lambda _: pa.chunked_array([[0], [1, None]]),
    "arrow table": lambda _: pa.table({"report": [0, 1]}),
    "sparse": lambda _: sparse.csr_array(np.eye(3)),
    "a generator of numbers": lambda _: np.random.default_rng(1),
}

SPOILED = {
    "one is NaN": lambda right: with_one(right, np.nan),
    "one is infinite": lambda right: with_one(right, np.inf),
    "one is negative": lambda right: with_one(right, -1.0),
    "one is 1e15": lambda right: with_one(right, 1e15),
    "one is 2^63": lambda right: with_one(right, 2.0**63),
    "one is 1e300": lambda right: with_one(right, 1e300),
    "one is 1e-300": lambda right: with_one(right, 1e-300),
    "one is a half": lambda right: with_one(right, 0.5),
    "one is missing": lambda right: with_one(right, None, object),
    "one is NA": lambda right: with_one(right, pd.NA, object),
    "one is beyond the doubles": lambda right: with_one(right, 10**400, object),
    "one is imaginary": lambda right: with_one(right, 0.5j, complex),
    "one is masked": masked,
    "all zero": lambda right: np.zeros_like(numbers_of(right)),
    "halved": lambda right: numbers_of(right) / 2,
    "one too few": lambda right: numbers_of(right)[:-1],
    "one too many": lambda right: np.concatenate([numbers_of(right)] * 2)[
        : len(numbers_of(right)) + 1
    ],
    "a column": lambda right: numbers_of(right).reshape(-1, 1),
    "one row more": lambda right: numbers_of(right)[None],
    "first number": lambda right: numbers_of(right).ravel()[:1].sum(),
    "texts": lambda right: numbers_of(right).astype(str),
    "iterator": lambda right: iter(numbers_of(right).tolist()),
    "truths": lambda right: numbers_of(right) > 0,
    "huge integers": lambda right: np.full(numbers_of(right).shape, 2**62, dtype=np.int64),
    "unsigned": lambda right: np.full(numbers_of(right).shape, 2**64 - 1, dtype=np.uint64),
    "in single": lambda right: numbers_of(right).astype(np.float32),
    "in half": lambda right: in_half(numbers_of(right)),
}
WRONG = ANYTHING | SPOILED


def _numeric(right):
    return isinstance(right, np.ndarray) and right.dtype.kind in "iuf"


# the same numbers: what is said of them may not change
DRESSES = {
    "as it is": lambda right: right,
    "list": lambda right: right.tolist() if _numeric(right) else right,
    "tuple": lambda right: tuple(right.tolist()) if _numeric(right) and right.ndim == 1 else right,
    "read-only": lambda right: read_only(right.copy()) if _numeric(right) else right,
    "every second": lambda right: np.repeat(right, 2, axis=0)[::2] if _numeric(right) else right,
    "backwards": lambda right: right[::-1].copy()[::-1] if _numeric(right) else right,
    "other order": lambda right: np.asfortranarray(right) if _numeric(right) else right,
    "other bytes": lambda right: (
        right.astype(right.dtype.newbyteorder(">")) if _numeric(right) else right
    ),
    "objects": lambda right: right.astype(object) if _numeric(right) else right,
    "series": lambda right: pd.Series(right) if _numeric(right) and right.ndim == 1 else right,
    "arrow": lambda right: pa.array(right) if _numeric(right) and right.ndim == 1 else right,
    # see `labelled.in_another_order`, which needs to know the labels
    "shuffled labels": lambda right: right,
    "nothing masked": lambda right: np.ma.array(right) if _numeric(right) else right,
}
