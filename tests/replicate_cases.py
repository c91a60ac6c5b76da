"""A small question for `replicate`, and how two tables of answers are compared."""

from functools import partial

import numpy as np

import ibukit as ik
from ibukit.datasets import Dataset

LINE = ik.Line(0, 7, unit="year")
PEOPLE = Dataset("people", np.array([5, 40, 0, 80, 30, 25, 10, 10]), LINE, "made up")
MECHANISMS = [
    ik.TruncatedGeometric(LINE, 0.3),
    ik.RandomizedResponse(LINE, 1.0),
    ik.TruncatedGeometric(LINE, 1.0),
]


def noisy(tally):
    return np.bincount(tally.parts[0].reports, tally.frequencies, tally.k)


ESTIMATORS = {
    "noisy": noisy,
    "INV": partial(ik.inv, post="none"),
    "INV-N": lambda tally: ik.inv(tally, post="normalize"),
    "IBU": partial(ik.ibu, stop=ik.Steps(20)),
    "MLE": ik.mle,
}
ask = partial(ik.replicate, PEOPLE, MECHANISMS, ESTIMATORS, 6, 11)


def numbers(table):
    """Every row but for its seconds under what it is the answer to; floats to their last bit."""
    rows = table.drop(columns="seconds").to_dict("records")
    assert not table.isna().drop(columns=["emd", "tv"]).any(axis=None)
    exact = [
        {name: v.hex() if isinstance(v, float) else v for name, v in row.items()} for row in rows
    ]
    keyed = {
        tuple(row[name] for name in ("mechanism", "epsilon", "estimator", "repetition")): row
        for row in exact
    }
    assert len(keyed) == len(rows)
    return keyed
