"""Linear functionals w . theta, for which intervals and standard errors are computed.

Users name them by the argument `of`, which is None for every single probability, or holds weights
in the alphabet's order, weights by label, or labels whose probabilities are added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.districts import are_districts, weights_of_districts
from ibukit.domain.labels import ALIGNED_HINT, codes_of_index
from ibukit.errors import AlphabetMismatch

# One weight for each secret, in order or by label: of a single functional, as type checkers see it.
OneFunctional = Mapping[Any, float] | Sequence[float] | Sequence[str]
# Largest absolute weight. The square of the difference of two weights must not overflow: beyond
# about 1e154 it would. Larger weights are refused.
MAX_WEIGHT = 1e150


@dataclass(frozen=True, eq=False)
class LinearFunctionals:
    """Linear functionals w . theta, one in each row.

    Attributes
    ----------
    k : int
        Number of probabilities.
    weights : ndarray, shape (r, k), or None
        None if each single probability is asked for: their weights are the unit vectors, and are
        not stored.
    single : bool
        Whether the user gave one functional, so that the answer is a number, not an array.
    """

    k: int
    weights: Floats | None
    single: bool = False

    def __len__(self) -> int:
        return self.k if self.weights is None else len(self.weights)

    def each(self) -> Iterator[Floats]:
        """Yield the weights of one functional after the other, shape (k,)."""
        for row in range(len(self)):
            if self.weights is not None:
                yield self.weights[row]
            else:
                unit = np.zeros(self.k)
                unit[row] = 1
                yield unit

    def values(self, theta: Floats) -> Floats:
        """Return W theta, shape (r,)."""
        return theta if self.weights is None else self.weights @ theta

    def part(self, which: NDArray[np.bool_]) -> LinearFunctionals:
        """Return the functionals that are marked in `which`, shape (r,)."""
        if which.all():
            return self
        weights = np.eye(self.k) if self.weights is None else self.weights
        return LinearFunctionals(self.k, weights[which])

    def of_one_secret(self) -> tuple[Ints, Floats, Floats]:
        """Write functionals as b + c theta_x, if all weights but that of x are equal.

        Returns
        -------
        x, b, c : ndarrays, shape (r,)
            x is -1 for a functional that depends on more than one probability.
        """
        if self.weights is None:
            return np.arange(self.k), np.zeros(self.k), np.ones(self.k)
        # If all weights but one are equal, the median is the common one.
        base = np.sort(self.weights, axis=1)[:, (self.k - 1) // 2]
        others = self.weights != base[:, None]
        secrets = others.argmax(axis=1)
        slope = self.weights[np.arange(len(self)), secrets] - base
        return np.where(others.sum(axis=1) <= 1, secrets, -1), base, slope

    def variances(self, theta: Floats) -> Floats:
        """Return the variances of w_x for a secret x drawn from theta, shape (r,)."""
        # E[w_x^2] - E[w_x]^2; for unit vectors w_x^2 = w_x.
        squares = theta if self.weights is None else self.weights**2 @ theta
        return squares - self.values(theta) ** 2

    def answer(self, values: Floats) -> float | Floats:
        """Return the values as the user expects them: a number for a single functional."""
        return float(values[0]) if self.single else values

    @property
    def ranges(self) -> Floats:
        """Differences between the largest and the least values, shape (r,)."""
        return self.most - self.least

    @property
    def least(self) -> Floats:
        """Least values over all distributions, shape (r,)."""
        if self.weights is None:
            # With a single secret its probability is 1.
            return np.full(self.k, float(self.k == 1))
        return self.weights.min(axis=1)

    @property
    def most(self) -> Floats:
        """Largest values over all distributions, shape (r,)."""
        return np.ones(self.k) if self.weights is None else self.weights.max(axis=1)


def parse_functionals(of: Any, alphabet: Alphabet) -> LinearFunctionals:
    """Read an argument `of`: None means every probability, else see `weights_of`.

    Labels that are texts, one or a list of them, stand for the sum of their probabilities; other
    labels go into a mapping, as in {20: 1, 21: 1}, because numbers are weights. Districts of a map,
    a GeoDataFrame, weigh the cells of a grid by the share of their area.
    """
    of = _with_weights(of)
    if are_districts(of):
        return LinearFunctionals(len(alphabet), weights_of_districts(of, alphabet))
    weights = weights_of(of, alphabet)
    # A mapping or a vector is one functional; a matrix has one in each row, even if it has one row.
    single = weights is not None and (isinstance(of, Mapping) or arguments.ndim(of) == 1)
    return LinearFunctionals(len(alphabet), weights, single)


def names_of_questions(of: Any, n: int) -> Any:
    """Return a name for each of the n questions of an argument `of` that is not None.

    Districts and the rows of a frame are named by their index, and labels by themselves, with plus
    signs between those of a sum; weights are numbered.
    """
    if are_districts(of) or _is_frame(of):
        return of.index
    weights = _with_weights(of)
    if isinstance(weights, Mapping) and all(weight == 1 for weight in weights.values()):
        return [" + ".join(map(str, weights))]
    return [f"question {row}" for row in range(n)]


def has_two_values(w: Floats) -> bool:
    """Return whether w . theta is a number plus a multiple of a sum of some probabilities."""
    return bool(((w == w.min()) | (w == w.max())).all())


def normal_quantile(level: float) -> float:
    """Return z, the half-width in standard errors of a normal interval of this level."""
    return float(ndtri((1 + arguments.fraction("level", level, "()")) / 2))


def weights_of(of: Any, alphabet: Alphabet) -> Floats | None:
    """Return the weights of the functionals, shape (r, k); None for each single probability.

    Parameters
    ----------
    of : None, array_like of shape (k,) or (r, k), mapping or Series
        Weights in the alphabet's order, of one functional or of one in each row; truth values are
        the weights 0 and 1. Mappings and Series have the weights of some labels, and frames a
        column for each of some labels; other labels have the weight 0.
    alphabet : Alphabet

    Raises
    ------
    ValueError
        If a weight is not finite or is above 1e150, or if a label occurs twice.
    AlphabetMismatch
        If there are not k weights, or a label is not in the alphabet.
    """
    if of is None:
        return None
    labels = _labels(of)
    if labels is not None:
        weights = _by_label(labels, list(of.values()) if isinstance(of, Mapping) else of, alphabet)
    else:
        weights = _numbers(of)
    k = len(alphabet)
    if weights.ndim not in (1, 2) or weights.size == 0 or weights.shape[-1] != k:
        raise AlphabetMismatch(
            f"of must have one weight for each of the {k} secrets, shape ({k},) or (questions, "
            f"{k}), got shape {weights.shape}{_hint(alphabet)}"
        )
    # The comparison is written so that NaN also counts as bad.
    bad = ~(np.abs(weights) <= MAX_WEIGHT)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        what = f"at most {MAX_WEIGHT:g}" if np.isfinite(weights[bad][0]) else "finite"
        raise ValueError(
            f"of must be {what}, got {weights[bad][0]} at index "
            f"{where[0] if len(where) == 1 else where}"
        )
    return np.atleast_2d(weights)


def _with_weights(of: Any) -> Any:
    """Return labels that stand for the sum of their probabilities as a mapping with weights 1."""
    if isinstance(of, str):
        return {of: 1.0}
    labels = _texts(of)
    if not labels or not all(isinstance(label, str) for label in labels):
        return of
    if len(set(labels)) < len(labels):
        raise ValueError(
            f"of must be weights, or labels that are all different, got {arguments.brief(labels)}"
        )
    return dict.fromkeys(labels, 1.0)


def _texts(of: Any) -> list[Any]:
    """Return a sequence that may have texts in it as a list; for anything else an empty list."""
    if isinstance(of, (list, tuple)):
        return list(of)
    # Arrays, Series and Index know their type, and those of numbers have no text to look for.
    kind = getattr(getattr(of, "dtype", None), "kind", "O")
    if isinstance(of, Mapping) or kind not in "OUT" or getattr(of, "ndim", 1) != 1:
        return []
    listed = getattr(of, "tolist", None) or getattr(of, "to_list", None)
    return list(listed()) if callable(listed) else []


def _is_frame(of: Any) -> bool:
    """Return whether an argument is a frame: an index of questions, and columns of labels."""
    return all(hasattr(of, name) for name in ("columns", "index", "to_numpy"))


def _hint(alphabet: Alphabet) -> str:
    """Return how a label that is no text is asked for; such labels would be taken for weights."""
    first = alphabet.labels_of(np.arange(1)).tolist()[0]
    label = tuple(first) if isinstance(first, list) else first
    return "" if isinstance(label, str) else f"; a label goes into a mapping: of={{{label!r}: 1}}"


def _labels(of: Any) -> Any:
    # Mappings have keys, a pandas Series an index, and a frame columns; nothing else has labels.
    names = "columns" if _is_frame(of) else "index"
    labels = list(of) if isinstance(of, Mapping) else getattr(of, names, None)
    # Lists have a method called index.
    return None if callable(labels) else labels


def _numbers(of: Any) -> Floats:
    return arguments.numbers("of", arguments.whole_array("of", of), "numbers").copy()


def _by_label(labels: Any, values: Any, alphabet: Alphabet) -> Floats:
    # Secrets that are not named have the weight 0.
    places = codes_of_index("of", list(labels), alphabet, ALIGNED_HINT)
    numbers = _numbers(values.to_numpy() if _is_frame(values) else values)
    weights = np.zeros((*numbers.shape[:-1], len(alphabet)))
    weights[..., places] = numbers
    return weights
