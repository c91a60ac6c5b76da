"""Vectors over the secrets with labels, in another order: which parameters take them."""

import numpy as np
import pandas as pd

import ibukit as ik
from fuzz.right import RIGHT

# parameters that are one number for each secret, by the keys of their right values
OVER_SECRETS = {
    "alpha",
    "ba_start",
    "bayes_limits.alpha",
    "coarse_map.weights",
    "distribution",
    "MleSet.weights",
    "near",
    "of",
    "p",
    "poison_inputs.counts",
    "posterior_odds.of",
    "prior",
    "public",
    "q",
    "secret_counts",
    "start",
    "sums",
    "theta",
}
# vectors of as many numbers that are not over the secrets
OF_OTHERS = {
    "counts": "one for each report",
    "efficiency": "a property of the matrix, aligned with its rows by MatrixMechanism",
    "estimate": "optional: the estimate of a cycle, which `distribution` stands for",
    "secrets": "one for each person",
    "v": "any numbers: project_to_simplex knows no alphabet",
    "values": "labels",
    "Grid.values": "of any type, in the order of the cells",
    "w": "one for each report",
    "weights": "any numbers: normalize knows no alphabet",
}


def is_vector(key, world):
    """Whether the right value of a parameter is one number for each secret of this world."""
    try:
        right = RIGHT[key](world)
    except (TypeError, ValueError, AttributeError, ik.IbukitError):
        return False
    return isinstance(right, np.ndarray) and right.dtype.kind in "if" and right.shape == (world.k,)


def in_another_order(key, right, world):
    """The same numbers as a Series, labelled and shuffled; other parameters as they are."""
    vector = isinstance(right, np.ndarray) and right.ndim == 1
    if key not in OVER_SECRETS or not vector or len(right) < 2:
        return right
    try:
        alphabet = world.mechanism.alphabet
    except (ValueError, TypeError, ik.IbukitError):
        # A world whose mechanism is refused has no labels; what needs the mechanism is told so.
        return right
    if len(right) != len(alphabet):
        return right
    labels = alphabet.labels_of(np.arange(len(alphabet)))
    index = list(map(tuple, labels)) if labels.ndim == 2 else labels
    series = pd.Series(list(right), index=pd.Index(index, tupleize_cols=False))
    return series.iloc[np.roll(np.arange(len(right)), 1)]
