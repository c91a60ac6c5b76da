"""Alphabets: what a secret can be, in which order, and how far apart its values are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.errors import AlphabetMismatch


@dataclass(frozen=True, eq=False)
class Alphabet(_validate.ReadOnlyArrays):
    """A finite set of labels with a metric d; the discrete one, d(x, y) = [x != y], unless distances are given.

    Parameters
    ----------
    values : sequence
        The labels in code order, all different: code i stands for ``values[i]``.
    distances : array_like, shape (k, k), optional
        Symmetric, zero exactly on the diagonal, satisfying the triangle inequality is up to the caller.
    unit : str
        The unit of the distances, for labels of plots and tables.

    Raises
    ------
    ValueError
        If the labels are fewer than one or not all different, or the distances are not a metric's.

    Examples
    --------
    >>> colours = Alphabet(["red", "green", "blue"])
    >>> len(colours), colours.codes(["blue", "red"])
    (3, array([2, 0]))
    >>> colours.distances()[0]
    array([0., 1., 1.])
    """

    values: NDArray[Any]
    _distances: Floats | None = field(default=None, repr=False)
    unit: str = ""

    def __init__(self, values: Any, distances: ArrayLike | None = None, unit: str = ""):
        labels = np.asarray(values)
        if labels.dtype.kind == "U" and not all(isinstance(label, str) for label in values):
            labels = np.array(list(values), dtype=object)  # numpy would turn 1 into "1" beside "a"
        if labels.ndim != 1 or labels.size == 0:
            raise ValueError(f"values must be a non-empty sequence of labels, got shape {labels.shape}")
        if len(set(labels.tolist())) != labels.size or any(label != label for label in labels.tolist()):
            raise ValueError("values must all be different and equal to themselves (not NaN): each label has one code")
        object.__setattr__(self, "values", _validate.frozen(labels.copy()))
        object.__setattr__(self, "_distances", None if distances is None else _metric(distances, labels.size))
        object.__setattr__(self, "unit", unit)

    def __len__(self) -> int:
        return len(self.values)

    def _key(self) -> tuple[Any, ...]:
        return (tuple(self.values.tolist()), None if self._distances is None else self._distances.tobytes())

    def __eq__(self, other: object) -> bool:
        # the unit is a label on the axes; two alphabets with the same values and distances are the same set
        return isinstance(other, Alphabet) and type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def distances(self) -> Floats:
        """Distances d(x, y) between all pairs, shape (k, k), in `unit`."""
        if self._distances is not None:
            return self._distances
        return 1.0 - np.eye(len(self))

    @cached_property
    def _code_of(self) -> dict[Any, int]:
        return {label: code for code, label in enumerate(self.values.tolist())}

    def codes(self, labels: Any) -> Ints:
        """Codes of labels, shape (n,); a label outside the alphabet raises `AlphabetMismatch`."""
        wanted = np.asarray(labels)
        if wanted.ndim != 1:
            raise ValueError(f"labels must have 1 dimension, got shape {wanted.shape}")
        try:
            return np.array([self._code_of[label] for label in wanted.tolist()], dtype=np.int64)
        except KeyError as missing:
            raise AlphabetMismatch(f"labels contains {missing.args[0]!r}, which is not in the alphabet") from None


@dataclass(frozen=True, eq=False)
class Line(Alphabet):
    """The integers first..last with d(x, y) = |x - y|.

    Parameters
    ----------
    first, last : int
        Both ends belong to the line.
    unit : str
        What a distance of 1 is, e.g. ``"year"``.

    Raises
    ------
    ValueError
        If an end is not a whole number or `last` is below `first`.

    Examples
    --------
    >>> ages = Line(17, 90, unit="year")
    >>> len(ages), ages.codes([17, 38])
    (74, array([ 0, 21]))
    """

    first: int = 0
    last: int = 0

    def __init__(self, first: int, last: int, unit: str = ""):
        first, last = (_validate.whole(name, end, -(2**53)) for name, end in (("first", first), ("last", last)))
        if last < first:
            raise ValueError(f"last must not be below first, got first={first}, last={last}")
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "last", last)
        object.__setattr__(self, "values", _validate.frozen(np.arange(first, last + 1)))
        object.__setattr__(self, "_distances", None)
        object.__setattr__(self, "unit", unit)

    def __repr__(self) -> str:
        return f"Line({self.first}, {self.last}" + (f", unit={self.unit!r})" if self.unit else ")")

    def _key(self) -> tuple[Any, ...]:
        return (self.first, self.last)

    def distances(self) -> Floats:
        """Distances |x - y|, shape (k, k), in `unit`."""
        return np.asarray(np.abs(self.values[:, None] - self.values[None, :]), dtype=np.float64)

    def codes(self, labels: Any) -> Ints:
        """Codes of integers, shape (n,); one outside first..last raises `AlphabetMismatch`."""
        array = _validate.integers("labels", labels)
        bad = (array < self.first) | (array > self.last)
        if bad.any():
            raise AlphabetMismatch(f"labels contains {array[bad][0]}, which is not in {self.first}..{self.last}")
        return np.asarray(array - self.first)


def as_alphabet(alphabet: Alphabet | int) -> Alphabet:
    """The alphabet itself; an int k means Line(0, k - 1)."""
    if isinstance(alphabet, Alphabet):
        return alphabet
    return Line(0, _validate.whole("alphabet", alphabet, 1) - 1)


def _metric(distances: ArrayLike, k: int) -> Floats:
    d = np.array(distances, dtype=np.float64)
    if d.shape != (k, k):
        raise ValueError(f"distances must have shape ({k}, {k}), got {d.shape}")
    off_diagonal = d[~np.eye(k, dtype=bool)]
    if not (np.isfinite(d).all() and (np.diag(d) == 0).all() and (off_diagonal > 0).all() and (d == d.T).all()):
        raise ValueError("distances must be finite, symmetric, zero on the diagonal and above zero elsewhere")
    frozen: Floats = _validate.frozen(d)
    return frozen
