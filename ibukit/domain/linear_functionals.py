"""What an interval is asked for: every probability, or weighted sums of them, and how surely."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import codes_of
from ibukit.errors import AlphabetMismatch

# the square of what lies between two of these is a double
MAX_WEIGHT = 1e150
HINT = (
    "; weights with labels are aligned by them: give an array for weights in the alphabet's order"
)


@dataclass(frozen=True, eq=False)
class LinearFunctionals:
    """Linear questions w . theta, one in each row.

    Attributes
    ----------
    k : int
        Number of probabilities.
    weights : ndarray, shape (r, k), or None
        None for each probability by itself, whose weights are the unit vectors and are not written
        out.
    single : bool
        Whether one question was asked, and the answer is a number.
    """

    k: int
    weights: Floats | None
    single: bool = False

    def __len__(self) -> int:
        return self.k if self.weights is None else len(self.weights)

    def each(self) -> Iterator[Floats]:
        """The weights of one question after the other, shape (k,)."""
        for row in range(len(self)):
            if self.weights is not None:
                yield self.weights[row]
            else:
                unit = np.zeros(self.k)
                unit[row] = 1
                yield unit

    def values(self, theta: Floats) -> Floats:
        """The answers W theta, shape (r,)."""
        return theta if self.weights is None else self.weights @ theta

    def part(self, which: NDArray[np.bool_]) -> LinearFunctionals:
        """Those that are marked."""
        if which.all():
            return self
        return LinearFunctionals(
            self.k, (np.eye(self.k) if self.weights is None else self.weights)[which]
        )

    def of_one_secret(self) -> tuple[Ints, Floats, Floats]:
        """Secrets x, and b and c with w . theta = b + c theta_x, shapes (r,); x = -1 where a question is of more."""
        if self.weights is None:
            return np.arange(self.k), np.zeros(self.k), np.ones(self.k)
        base = np.sort(self.weights, axis=1)[
            :, (self.k - 1) // 2
        ]  # the weight of all but one, if there is such a one
        others = self.weights != base[:, None]
        secrets = others.argmax(axis=1)
        slope = self.weights[np.arange(len(self)), secrets] - base
        return np.where(others.sum(axis=1) <= 1, secrets, -1), base, slope

    def variances(self, theta: Floats) -> Floats:
        """Of w_x with x drawn from theta, shape (r,)."""
        squares = theta if self.weights is None else self.weights**2 @ theta
        return squares - self.values(theta) ** 2

    def answer(self, found: Floats) -> Any:
        """A number if one question was asked."""
        return float(found[0]) if self.single else found

    @property
    def ranges(self) -> Floats:
        """How far apart the answers can be, shape (r,)."""
        return self.most - self.least

    @property
    def least(self) -> Floats:
        """The smallest value that any distribution gives, shape (r,)."""
        return (
            np.full(self.k, float(self.k == 1))
            if self.weights is None
            else self.weights.min(axis=1)
        )

    @property
    def most(self) -> Floats:
        """The largest."""
        return np.ones(self.k) if self.weights is None else self.weights.max(axis=1)


def parse_functionals(of: Any, alphabet: Alphabet) -> LinearFunctionals:
    """Read an argument `of`: None for every probability, else weights as `weights_of` reads them."""
    weights = weights_of(of, alphabet)
    single = weights is not None and (_labels(of) is not None or np.ndim(of) == 1)
    return LinearFunctionals(len(alphabet), weights, single)


def normal_quantile(level: float) -> float:
    """How many standard errors an interval reaches either way."""
    return float(ndtri((1 + arguments.fraction("level", level, "()")) / 2))


def weights_of(of: Any, alphabet: Alphabet) -> Floats | None:
    """Weights of the questions, shape (r, k); None for each single probability.

    Parameters
    ----------
    of : None, array_like of shape (k,) or (r, k), mapping or Series
        Weights in the alphabet's order, one question or one in each row; truth values are the
        weights 0 and 1. Mappings and Series have the weights of some labels, others have 0.
    alphabet : Alphabet

    Raises
    ------
    ValueError
        If a weight is not finite or above 1e150, or a label is there twice.
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
            f"{k}), got shape "
            f"{weights.shape}"
        )
    bad = ~(np.abs(weights) <= MAX_WEIGHT)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        what = f"at most {MAX_WEIGHT:g}" if np.isfinite(weights[bad][0]) else "finite"
        raise ValueError(
            f"of must be {what}, got {weights[bad][0]} at index "
            f"{where[0] if len(where) == 1 else where}"
        )
    return np.atleast_2d(weights)


def _labels(of: Any) -> Any:
    labels = list(of) if isinstance(of, Mapping) else getattr(of, "index", None)
    return None if callable(labels) else labels  # lists have a method of that name


def _numbers(of: Any) -> Floats:
    return arguments.numbers("of", arguments.whole_array("of", of), "numbers").copy()


def _by_label(labels: Any, values: Any, alphabet: Alphabet) -> Floats:
    if getattr(values, "ndim", 1) != 1:
        raise ValueError(
            "of must be an array, a Series or a mapping, got a frame: take frame.to_numpy(), in "
            "order"
        )
    places = codes_of("of", list(labels), alphabet, HINT)
    if len(np.unique(places)) < len(places):
        raise ValueError(f"of must have each label once, got {list(labels)!r}")
    weights = np.zeros(len(alphabet))
    weights[places] = _numbers(values)
    return weights
