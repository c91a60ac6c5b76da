"""Alphabets: the possible values of a secret, their order, and the distances between them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.bins import Bins, bins_of
from ibukit.domain.label_arrays import (
    array_of_labels,
    categories_of,
    codes_by_label,
    dates_of,
    has_code,
    refuse_missing,
    refuse_twice_or_missing,
    require_sequence,
    shown_labels,
    without_numpy,
)
from ibukit.errors import AlphabetMismatch, TooLarge

# Largest number of elements that an estimate is made over: one vector of doubles takes 512 MB.
# Unbounded alphabets whose reports span more raise TooLarge.
MAX_LABELS = 2**26
# Largest number of integers of a line, which are listed when it is made and then take 2 GB.
MAX_ON_A_LINE = 2**28


@dataclass(frozen=True, eq=False)
class Alphabet(arguments.ReadOnlyArrays):
    r"""A finite set of labels with distances between them.

    The metric d is the discrete one, :math:`d(x, y) = [x \ne y]`, unless distances are given. For
    labels that are intervals of numbers, as `pandas.cut` makes them, it is the distance between
    their midpoints.

    Parameters
    ----------
    values : sequence
        The labels in the order of their codes, all different: code i stands for ``values[i]``.
    distances : array_like, shape (k, k), optional
        Symmetric, and zero exactly on the diagonal. The caller must make sure that they satisfy the
        triangle inequality.
    unit : str
        The unit of the distances, for labels of plots and tables.

    Raises
    ------
    ValueError
        If there is no label, if two labels are equal, or if the distances are not symmetric or not
        zero exactly on the diagonal.

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

    bounded: ClassVar[bool] = True
    """False for a line or a grid without an end, whose labels cannot be listed."""

    # The argument is called `distances`; the field cannot be, because a method has that name.
    @arguments.field_is("_distances", "distances")
    def __init__(self, values: Any, distances: ArrayLike | None = None, unit: str = ""):
        self._keep(values=values, _distances=distances, unit=arguments.text("unit", unit))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check and convert the fields; also called by subclasses that are dataclasses."""
        require_sequence(self.values)
        labels = array_of_labels(self.values)
        if labels.ndim != 1 or labels.size == 0:
            several = (
                "; join labels of several parts into one, as f'{a}/{b}'" if labels.ndim > 1 else ""
            )
            raise ValueError(
                f"values must be a non-empty sequence of labels, got shape {labels.shape}{several}"
            )
        refuse_twice_or_missing(labels)
        # None stands for the discrete metric, which takes no memory.
        distances = None if self._distances is None else _metric(self._distances, labels.size)
        self._keep(values=arguments.frozen(labels.copy()), _distances=distances)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        unit = f", unit={self.unit!r}" if self.unit else ""
        return f"{type(self).__name__}({shown_labels(self.values)}{unit})"

    def _key(self) -> tuple[Any, ...]:
        return (
            tuple(self.values.tolist()),
            None if self._distances is None else self._distances.tobytes(),
        )

    def __eq__(self, other: object) -> bool:
        # The unit only labels axes; alphabets with the same values and distances are equal.
        return (
            isinstance(other, Alphabet)
            and type(self) is type(other)
            and self._key() == other._key()
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def distances(self) -> Floats:
        """Distances d(x, y) between all pairs, shape (k, k), in `unit`."""
        if self._distances is not None:
            return self._distances
        limits.require_dense("the matrix of distances", len(self), len(self))
        if (places := self.places) is not None:
            return np.abs(places[:, None] - places)
        return 1.0 - np.eye(len(self))

    @property
    def places(self) -> Floats | None:
        """Midpoints of bins, whose differences are the distances; else None.

        It is also None for bins without an end, and if the distances were given.
        """
        return None if self.bins is None or self._distances is not None else self.bins.places

    @cached_property
    def bins(self) -> Bins | None:
        """Ends of labels that are all intervals of numbers, or None."""
        return bins_of(self.values.tolist()) if type(self) is Alphabet else None

    @cached_property
    def _code_of(self) -> dict[Any, int]:
        return codes_by_label(self.values)

    def codes(self, labels: Any, *, name: str = "labels") -> Ints:
        """Codes of labels, shape (n,).

        Parameters
        ----------
        labels : sequence
            A list, an array, a Series, a categorical, an Arrow array.
        name : str
            Name of the argument in error messages.

        Raises
        ------
        AlphabetMismatch
            If a label is not in the alphabet.
        ValueError
            If a label is missing (None, NaN, NA, masked): a missing value is never treated as a
            label, unless None is one.
        """
        # A categorical column has its labels once and an index for each row, so k look-ups suffice.
        categories, indices = categories_of(labels)
        if categories is not None and indices is not None:
            refuse_missing(indices < 0, name)
            # Each category that occurs is looked up once; one that does not occur need not be a
            # label.
            occurring = np.unique(indices)
            codes = self.codes([categories[index] for index in occurring], name=name)
            return codes[np.searchsorted(occurring, indices)]
        wanted = arguments.listed(name, labels)
        try:
            return np.array([self._code_of[label] for label in wanted], dtype=np.int64)
        # TypeError: a value without a hash, such as a list, cannot be a label.
        except (KeyError, TypeError):
            refuse_missing([arguments.is_missing(label) for label in wanted], name)
            if any(isinstance(label, np.datetime64) for label in wanted):
                return self.codes(without_numpy(wanted), name=name)
            if (dates := dates_of(labels)) is not None:
                return self.codes(dates, name=name)
            # Only after a failure is the first bad label looked for.
            other = next(label for label in wanted if not has_code(self._code_of, label))
            raise AlphabetMismatch(
                f"{name} contains {arguments.brief(other)}, which is not in the alphabet"
                f"{self._alike(other)}"
            ) from None

    def _alike(self, label: Any) -> str:
        """Return a note if a label looks like one of the alphabet's labels, but is another text."""
        if not isinstance(label, str):
            return ""
        form = unicodedata.normalize("NFC", label)
        for own in self.values.tolist():
            if isinstance(own, str) and unicodedata.normalize("NFC", own) == form:
                return (
                    f": {label!a} and the alphabet's {own!a} differ in their Unicode "
                    'form only; unicodedata.normalize("NFC", text) gives all strings one form'
                )
        return ""

    def are_codes(self, labels: Any) -> bool:
        """Return whether the values can only be codes.

        On a grid single numbers are codes, because the label of a cell is a pair.
        """
        return False

    def labels_of(self, secrets: ArrayLike) -> NDArray[Any]:
        """Labels of secrets given as codes.

        If the alphabet is unbounded, secrets are labels already.
        """
        return self.values[arguments.codes("secrets", secrets, len(self))]

    def window(self, labels: NDArray[Any]) -> Alphabet:
        """The bounded alphabet over which to estimate from reports with these labels.

        If this alphabet is bounded, it is this one.
        """
        return self


@dataclass(frozen=True, eq=False)
class Line(Alphabet):
    r"""The integers first..last with :math:`d(x,y)=|x-y|`.

    Parameters
    ----------
    first, last : int or None
        Both ends belong to the line; None for a line that has no such end. On such a line secrets
        are labels, not codes, and the mechanism is one that allows this, such as `LinearGeometric`.
        Estimates cover only the part of the line from the least to the largest report, because
        every maximum likelihood estimate is 0 outside this part.
    unit : str
        What a distance of 1 is, e.g. ``"year"``.

    Raises
    ------
    ValueError
        If an end is not a whole number or `last` is below `first`.
    TooLarge
        If a line with ends has more than :math:`2^{28}` integers, or if the length, values, codes
        or distances of a line without an end are asked for.

    Examples
    --------
    >>> ages = Line(17, 90, unit="year")
    >>> len(ages), ages.codes([17, 38])
    (74, array([ 0, 21]))
    >>> Line(0, None).bounded
    False
    """

    # Fields that every alphabet has: the values follow from the ends, the unit comes last.
    values: NDArray[Any] = field(init=False, repr=False)
    _distances: Floats | None = field(init=False, default=None, repr=False)
    unit: str = field(default="", kw_only=True)
    first: int
    last: int

    def __init__(self, first: int | None, last: int | None, unit: str = ""):
        if type(self) is Line and (first is None or last is None):
            # `Line(0, None)` is public, so the constructor has to change the class. A `__new__`
            # with two arguments would break unpickling, which calls it with none, and subclasses
            # with other arguments; one with *args would hide the arguments from inspect.signature.
            object.__setattr__(self, "__class__", UnboundedLine)
            # This is now the __init__ of UnboundedLine.
            self.__init__(first, last, unit)  # type: ignore[misc]
            return
        self._keep(first=first, last=last, unit=arguments.text("unit", unit))
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the ends and list the integers between them."""
        # Beyond 2^53 neighbouring integers are equal as doubles; labels are integers of 64 bits.
        first = arguments.whole("first", self.first, -(2**53), 2**63 - 1)
        last = arguments.whole("last", self.last, -(2**53), 2**63 - 1)
        if last < first:
            raise ValueError(f"last must not be below first, got first={first}, last={last}")
        # The values are stored, so that a line can be used as any other alphabet.
        if last - first >= MAX_ON_A_LINE:
            raise TooLarge(
                f"last must lie closer to first: {arguments.readable(last - first + 1)} "
                f"integers are more than can be listed ({MAX_ON_A_LINE}), got first={first}, "
                f"last={last}; count in larger units"
            )
        self._keep(first=first, last=last, values=arguments.frozen(_integers(first, last)))

    def __repr__(self) -> str:
        return f"Line({self.first}, {self.last}" + (f", unit={self.unit!r})" if self.unit else ")")

    @override
    def _key(self) -> tuple[Any, ...]:
        return (self.first, self.last)

    @override
    def distances(self) -> Floats:
        limits.require_dense("the matrix of distances", len(self), len(self))
        return np.abs(self.values[:, None] - self.values[None, :]).astype(np.float64)

    @override
    def codes(self, labels: Any, *, name: str = "labels") -> Ints:
        """Return codes of integers, shape (n,).

        An integer outside first..last raises `AlphabetMismatch`; a missing one raises ValueError.
        """
        array = arguments.integers(name, labels)
        if array.size and (array.min() < self.first or array.max() > self.last):
            bad = (array < self.first) | (array > self.last)
            raise AlphabetMismatch(
                f"{name} contains {array[bad][0]}, which is not in {self.first}..{self.last}, at "
                f"index {bad.argmax()}"
            )
        # The usual line from 0 needs no copy.
        return array - self.first if self.first else array


class Unbounded:
    """Mixin of unbounded alphabets: no length, codes or distances; labels are used directly."""

    bounded = False
    lacking: ClassVar[Mapping[str, str]] = {}
    """Attributes that an instance may lack, with their names for messages."""

    def __getattr__(self, name: str) -> NoReturn:
        # Python calls __getattr__ only for attributes that are missing.
        if name in self.lacking:
            self._refuse(self.lacking[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _refuse(self, what: str) -> NoReturn:
        raise TooLarge(
            f"{self!r} has no end, and so no {what}: take a bounded alphabet. Only "
            "LinearGeometric, DiscreteGaussian and PlanarGeometric work without an end, by "
            "randomize(labels, rng) and tally(reports); estimates are over tally.alphabet"
        )

    def __len__(self) -> int:
        return self._refuse("length")

    @property
    def values(self) -> NDArray[Any]:
        """Raise TooLarge: the values cannot be listed."""
        return self._refuse("list of values")

    def distances(self) -> Floats:
        """Raise TooLarge: the distances cannot be listed."""
        return self._refuse("matrix of distances")

    def codes(self, labels: Any, *, name: str = "labels") -> Ints:
        """Raise TooLarge: there are no codes, labels are used directly."""
        return self._refuse("codes: the labels themselves are the secrets")


@dataclass(frozen=True, eq=False, repr=False)
class UnboundedLine(Unbounded, Line):
    """A line without a first or a last element, as ``Line(0, None)`` makes it."""

    first: int = field(init=False)
    last: int = field(init=False)
    ends: tuple[int | None, int | None]

    lacking = {"first": "first element", "last": "last element"}  # noqa: RUF012

    def __init__(
        self,
        first: int | None = None,
        last: int | None = None,
        unit: str = "",
        ends: tuple[int | None, int | None] | None = None,
    ):
        # `dataclasses.replace` reads and passes the field `ends`; `first` or `last` is missing
        # here.
        self._keep(
            ends=(first, last) if ends is None else tuple(ends), unit=arguments.text("unit", unit)
        )
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the ends, and set `first` or `last` if there is one."""
        ends: tuple[Any, ...] = self.ends
        if len(ends) != 2 or None not in ends:
            raise ValueError(
                f"ends must be a pair with None in it, got {ends!r}; a line with both is "
                "Line(first, last)"
            )
        known = {
            name: end for name, end in zip(("first", "last"), ends, strict=True) if end is not None
        }
        # Larger integers would not be exact as doubles.
        known = {name: arguments.whole(name, end, -(2**53), 2**53) for name, end in known.items()}
        self._keep(ends=(known.get("first"), known.get("last")), **known)

    def __repr__(self) -> str:
        return f"Line({self.ends[0]}, {self.ends[1]}" + (
            f", unit={self.unit!r})" if self.unit else ")"
        )

    @override
    def _key(self) -> tuple[Any, ...]:
        return self.ends

    @override
    def labels_of(self, secrets: ArrayLike) -> Ints:
        labels = arguments.integers("secrets", secrets)
        # The line has at most one end; clipping to it moves exactly the labels beyond it.
        bad = self._clipped(labels) != labels
        if bad.any():
            raise AlphabetMismatch(f"secrets contains {labels[bad][0]}, which is not in {self!r}")
        return labels

    @override
    def window(self, labels: NDArray[Any]) -> Line:
        # Reports may lie beyond an end of the line, where noise has put them; secrets may not.
        nearest = self._clipped(labels)
        first, last = int(nearest.min()), int(nearest.max())
        refuse_if_too_wide(last - first + 1, self)
        return Line(first, last, self.unit)

    def _clipped(self, labels: Ints) -> Ints:
        # np.clip needs at least one end.
        return labels if self.ends == (None, None) else np.clip(labels, *self.ends)


def refuse_if_too_wide(cells: int, alphabet: Alphabet) -> None:
    """Raise TooLarge if the reports of an unbounded alphabet span too many elements."""
    if cells > MAX_LABELS:
        raise TooLarge(
            f"reports must not lie so far apart: between them are {cells:.3g} elements of "
            f"{alphabet!r}, more than {MAX_LABELS}; look at the farthest, and count in larger "
            "units only before reports are made"
        )


# What `as_alphabet` reads: an alphabet, labels in whatever holds them, or the number of secrets.
AlphabetLike: TypeAlias = Alphabet | Sequence[Any] | ArrayLike


def as_alphabet(alphabet: AlphabetLike) -> Alphabet:
    """Return a bounded alphabet from one, from a list of labels or from an int k.

    The int k stands for Line(0, k - 1), and labels that are consecutive integers stand for their
    line.
    """
    if isinstance(alphabet, Alphabet):
        return require_bounded(alphabet)
    # A list is a list of labels, an integer a number of secrets.
    if isinstance(alphabet, (Set, Mapping, str, bytes)):
        require_sequence(alphabet, "alphabet")
    if isinstance(alphabet, (list, tuple)) or arguments.ndim(alphabet) == 1:
        return consecutive(alphabet) or Alphabet(alphabet)
    return Line(0, arguments.whole("alphabet", alphabet, 1, 2**63) - 1)


def consecutive(labels: Any) -> Line | None:
    """Return the line of labels that are consecutive integers, whatever holds them; else None.

    This is the one rule for labels that are mere numbers: consecutive integers are a `Line`, whose
    distances are differences; all other labels are an `Alphabet`, which has the discrete distance
    unless it is given another.

    Examples
    --------
    >>> consecutive([3, 4, 5]), consecutive([3, 5]), consecutive(["3", "4"])
    (Line(3, 5), None, None)
    """
    if isinstance(labels, (list, tuple)) and not all(
        arguments.is_whole(kind) for kind in set(map(type, labels))
    ):
        return None
    integers = np.asarray(labels)
    # Falling unsigned integers have huge steps, because these wrap round, and so not 1 either.
    if integers.dtype.kind not in "iu" or not integers.size or (np.diff(integers) != 1).any():
        return None
    first, last = int(integers[0]), int(integers[-1])
    # A line begins where doubles tell integers apart, and ends where 64 bits end.
    return Line(first, last) if first >= -(2**53) and last < 2**63 else None


def require_bounded(alphabet: Alphabet) -> Alphabet:
    """Return a bounded alphabet; raise TooLarge for one without an end."""
    # The length of an unbounded alphabet raises the error, which says what to do.
    len(alphabet)
    return alphabet


def refuse_bins_without_distances(alphabet: Alphabet) -> None:
    """Raise AlphabetMismatch for bins whose distances are not known, such as those without end."""
    bins = alphabet.bins
    if alphabet._distances is None and bins is not None and (reason := bins.why_no_distances()):
        raise AlphabetMismatch(
            f"alphabet must have bins with distances, got {alphabet!r}: {reason}; close the bins, "
            "or give Alphabet(values, distances)"
        )


def _integers(first: int, last: int) -> Ints:
    # The end of np.arange would be a float beyond 2^63 - 1.
    return first + np.arange(last - first + 1, dtype=np.int64)


def _metric(distances: Any, k: int) -> Floats:
    """Return distances as a symmetric matrix that is zero exactly on the diagonal."""
    if callable(distances):
        raise ValueError(
            f"distances must be an array of shape ({k}, {k}), got {type(distances).__name__}; a "
            "function becomes one by [[d(x, y) for y in values] for x in values]"
        )
    arguments.refuse_labelled_frame("distances", distances)
    # Adding 0.0 turns -0.0 into 0.0: equality and hashes of alphabets compare bytes.
    d = arguments.numbers("distances", distances, f"an array of shape ({k}, {k})") + 0.0
    if d.shape != (k, k):
        raise ValueError(f"distances must have shape ({k}, {k}), got {d.shape}")
    # The triangle inequality is not checked, which would take k^3 operations.
    off_diagonal = d[~np.eye(k, dtype=bool)]
    if not (
        np.isfinite(d).all()
        and (np.diag(d) == 0).all()
        and (off_diagonal > 0).all()
        and (d == d.T).all()
    ):
        raise ValueError(
            "distances must be finite, symmetric, zero on the diagonal and above zero elsewhere"
        )
    return arguments.frozen(d)
