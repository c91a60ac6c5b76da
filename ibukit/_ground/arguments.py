"""Checks of arguments: each returns the clean value or raises an error that names the argument.

Messages have three parts: the argument, the value that was refused, and what to do instead. numpy
silently converts many values (texts to numbers, True to 1, masked values to whatever the mask
hides), so each check looks at the types before it converts.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Container, Sequence, Sized
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.array_arguments import Floats as Floats
from ibukit._ground.array_arguments import Ints as Ints
from ibukit._ground.array_arguments import first_index
from ibukit._ground.array_arguments import integers as integers
from ibukit._ground.array_arguments import is_missing as is_missing
from ibukit._ground.array_arguments import labelled as labelled
from ibukit._ground.array_arguments import listed as listed
from ibukit._ground.array_arguments import numbers as numbers
from ibukit._ground.array_arguments import refuse_labelled_frame as refuse_labelled_frame
from ibukit._ground.array_arguments import refuse_labels as refuse_labels
from ibukit._ground.array_arguments import refuse_text as refuse_text
from ibukit._ground.array_arguments import whole_array as whole_array
from ibukit._ground.frozen import ReadOnlyArrays as ReadOnlyArrays
from ibukit._ground.frozen import field_is as field_is
from ibukit._ground.frozen import frozen as frozen
from ibukit.errors import AlphabetMismatch, InvalidDistribution, TooLarge

# Characters of a value that a message shows.
MAX_SHOWN = 100

# Absolute tolerance for the sum of probabilities. Rounding in a sum of a few thousand doubles stays
# below it; a table printed with six decimals exceeds it, and the caller has to normalise it.
SUM_TOLERANCE = 1e-9
# Range of Dirichlet parameters. Sums and ratios of 10^8 of them neither overflow nor underflow.
MIN_ALPHA, MAX_ALPHA = 1e-300, 1e300
# Sums of counts from here on are refused. The sum is computed in doubles, whose rounding could hide
# an overflow of 64 bits, so the limit lies a little below 2^63.
MIN_TOO_MANY = 2.0**63 * (1 - 2.0**-20)
# More processes than this are a slip.
MAX_PROCESSES = 4096


def as_float(value: Real) -> float:
    """Return the nearest double; infinity if an int or a Fraction is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def readable(number: int) -> str:
    """Format an int with three digits."""
    # A Decimal holds any int; converted to a float, one of 400 digits would raise OverflowError.
    return f"{Decimal(number):.3g}"


def brief(value: Any) -> str:
    """Represent a value in a message: a long one by its beginning and its length."""
    text = repr(value)
    if len(text) <= MAX_SHOWN:
        return text
    size = f"{len(value)} items" if isinstance(value, Sized) else f"{len(text)} characters"
    return f"{text[:MAX_SHOWN]}... ({size})"


def positive(name: str, value: Any) -> float:
    """Return a finite number above zero as a float."""
    return _not_negative(name, value, zero=False)


def from_zero(name: str, value: Any) -> float:
    """Return a finite number that is not negative as a float."""
    # Adding 0.0 turns -0.0 into 0.0.
    return _not_negative(name, value, zero=True) + 0.0


def _not_negative(name: str, value: Any, *, zero: bool) -> float:
    # float() alone would accept "2" and True.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {brief(value)}")
    number = as_float(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        which = "of 0 or more" if zero else "above 0"
        raise ValueError(f"{name} must be a finite number {which}, got {brief(value)}")
    return number


def fraction(name: str, value: Any, ends: str) -> float:
    """Return a number between 0 and 1; `ends` is "[)" for 0 <= value < 1, "()" for both open."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number between 0 and 1, got {brief(value)}")
    number = as_float(value)
    if not (0 < number < 1 or (number == 0 and ends[0] == "[") or (number == 1 and ends[1] == "]")):
        raise ValueError(f"{name} must be in {ends[0]}0, 1{ends[1]}, got {brief(value)}")
    return number


def ndim(value: Any) -> int:
    """Return the number of dimensions of an array-like; -1 for lists of different lengths.

    numpy refuses such lists without saying which argument they are.
    """
    try:
        return np.ndim(value)
    except ValueError:
        return -1


def sides(name: str, value: Any) -> float | tuple[float, float]:
    """Return the side of a square as a number, other rectangles as (height, width)."""
    if not isinstance(value, (tuple, list, np.ndarray)):
        return positive(name, value)
    if ndim(value) != 1 or len(value) != 2:
        raise ValueError(f"{name} must be a number or a pair (height, width), got {value!r}")
    height, width = (positive(name, side) for side in value)
    return height if height == width else (height, width)


def is_whole(kind: type) -> bool:
    """Return whether values of this type are whole numbers; bools are not."""
    # numpy derives its durations from its integers.
    return issubclass(kind, (int, np.integer)) and not issubclass(kind, (bool, np.timedelta64))


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return an int of at least `least` and at most `most`; floats and bools are refused."""
    if not is_whole(type(value)):
        raise ValueError(f"{name} must be a whole number, got {brief(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(int(value))}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {shown(int(value))}")
    return int(value)


def shown(number: int) -> str:
    """Format an int with all its digits, or with three if it has more than 20."""
    return str(number) if abs(number) < 10**20 else readable(number)


def users(n: ArrayLike, least: int) -> Ints:
    """Return numbers of users, an array of any shape (also 0-dimensional), all at least `least`."""
    if not isinstance(n, (list, tuple)) and ndim(n) == 0:
        return np.array(whole("n", n, least, 2**63 - 1))
    array = whole_array("n", n)
    numbers_of_users = integers("n", array, ndim=array.ndim)
    if (numbers_of_users < least).any():
        raise ValueError(f"n must be at least {least}, got {numbers_of_users.min()}")
    return numbers_of_users


def flag(name: str, value: Any) -> bool:
    """Return a bool; refuse strings, which would all be true, and arrays."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def text(name: str, value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r}")
    return value


def items(name: str, values: Any, what: str) -> tuple[Any, ...]:
    """Return `values` as a tuple; TypeError if it is not iterable."""
    try:
        return tuple(values)
    except TypeError:
        raise TypeError(f"{name} must be {what}, got {values!r}") from None


def takes(function: Callable[..., Any], number: int) -> bool:
    """Return whether a function can be called with `number` arguments.

    True for builtins without a signature.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return True
    try:
        signature.bind(*range(number))
    except TypeError:
        return False
    return True


def path(name: str, value: Any) -> Path:
    """Return the path of a file; "" is refused, because it would mean the current folder."""
    if (
        not isinstance(value, (str, os.PathLike))
        or not os.fspath(value)
        or isinstance(os.fspath(value), bytes)
    ):
        raise TypeError(f"{name} must be a path to a file, got {value!r}")
    if "\0" in os.fspath(value):
        raise ValueError(f"{name} must be a path without null characters, got {brief(value)}")
    return Path(value)


def choices(words: Sequence[str]) -> str:
    """Return words in quotes as a sentence lists them: "raise", "keep" or "drop"."""
    quoted = [f'"{word}"' for word in words]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[:-1] else quoted)


def is_one_of(value: Any, known: Container[str]) -> bool:
    """Return whether a value is one of some strings."""
    # `in` alone would hash an array, or compare it element by element.
    return isinstance(value, str) and value in known


def processes(name: str, number: int) -> int:
    """Return a number of processes in joblib's convention: not 0, and -1 for one on each core."""
    if whole(name, number, -(2**31)) == 0 or number > MAX_PROCESSES:
        raise ValueError(
            f"{name} must be a number of processes up to {MAX_PROCESSES}, or -1 for one on each "
            f"core, got {number}"
        )
    return number


def codes(name: str, values: ArrayLike, size: int) -> Ints:
    """Return integer codes, each from 0 to size - 1."""
    array = integers(name, values)
    if array.size and (array.min() < 0 or array.max() >= size):
        bad = (array < 0) | (array >= size)
        raise AlphabetMismatch(
            f"{name} must be codes 0..{size - 1}, got {array[bad][0]} at index {first_index(bad)}; "
            "labels become codes by alphabet.codes(labels)"
        )
    return array


def weights(name: str, values: Any, size: int) -> Floats:
    """Return a vector of `size` weights: finite and not negative."""
    refuse_labels(name, values)
    array = numbers(name, whole_array(name, values), "numbers").copy()
    if array.shape != (size,):
        raise AlphabetMismatch(
            f"{name} must have one number for each of the {size} elements, got shape {array.shape}"
        )
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        raise ValueError(
            f"{name} must be finite and not negative, got {array[bad][0]} at index"
            f" {first_index(bad)}"
        )
    return array


def counts(name: str, values: ArrayLike, size: int) -> Ints:
    """Return a vector of `size` counts: integers, not negative."""
    array = integers(name, values)
    if array.shape != (size,):
        raise AlphabetMismatch(
            f"{name} must have one count for each of the {size} elements, got {array.size} counts"
        )
    if (array < 0).any():
        raise ValueError(
            f"{name} must not be negative, got {array.min()} at index {int(array.argmin())}"
        )
    refuse_too_many(name, array)
    return array


def refuse_too_many(name: str, many: NDArray[Any]) -> None:
    """Raise TooLarge if counts sum to 2^63 or more, or weights to more than the largest double."""
    # A sum of 64-bit integers beyond 2^63 would wrap round to a negative number.
    with np.errstate(over="ignore"):
        total = float(many.sum(dtype=np.float64))
    refuse_total(name, total, whole=many.dtype.kind == "i")


def refuse_total(name: str, total: float, whole: bool = True) -> None:
    """Raise TooLarge if a sum of counts or weights, as a double, is too large for their type."""
    if not total < (MIN_TOO_MANY if whole else math.inf):
        raise TooLarge(
            f"{name} must sum to less than {'2^63' if whole else '1.8e308'}, got {total:.3g} "
            "in total: divide all of them by the same number (and round counts to whole numbers); "
            "estimates stay as they are, but standard errors must be divided by its root"
        )


def distribution(name: str, values: ArrayLike, size: int | None = None) -> Floats:
    """Return a probability vector: finite, not negative, with sum 1 within 1e-9.

    It is never clipped or renormalised.
    """
    refuse_labels(name, values)
    array = numbers(name, values, error=InvalidDistribution)
    if array.ndim != 1 or array.size == 0:
        raise InvalidDistribution(f"{name} must be a non-empty vector, got shape {array.shape}")
    if size is not None and array.size != size:
        raise AlphabetMismatch(
            f"{name} must have one probability for each of the {size} elements, got {array.size}"
        )
    # Written with a negation, because every comparison with NaN is false.
    bad = ~(array >= 0)
    if bad.any():
        raise InvalidDistribution(
            f"{name} must not have negative or NaN entries, got {array[bad][0]} at"
            f" {first_index(bad)}"
        )
    if not abs(array.sum() - 1) <= SUM_TOLERANCE:
        raise InvalidDistribution(
            f"{name} must sum to 1 (within {SUM_TOLERANCE:g}), but sums to {array.sum():.12g}; "
            "if these are weights, pass ibukit.normalize(weights)"
        )
    return array


def positive_distribution(name: str, values: ArrayLike, size: int, why: str) -> Floats:
    """Return a distribution without zeros; `why` ends the message: what a 0 does, what helps."""
    p = distribution(name, values, size)
    if not p.all():
        raise InvalidDistribution(
            f"{name} must not have zeros, but entry {int(np.argmin(p > 0))} is 0 {why}"
        )
    return p


def vector(name: str, values: ArrayLike, size: int) -> Floats:
    """Return a vector of `size` finite numbers."""
    refuse_labels(name, values)
    array = numbers(name, values)
    if array.shape != (size,):
        raise AlphabetMismatch(f"{name} must have shape ({size},), got {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{name} must be finite, got {array[bad][0]} at index {first_index(bad)}")
    return array


def losses(name: str, values: ArrayLike, k: int, columns: int | None = None) -> Floats:
    """Return a matrix of losses, shape (k, answers): finite and not negative."""
    refuse_labelled_frame(name, values)
    array = numbers(name, values)
    wanted = f"({k}, {'at least 1' if columns is None else columns})"
    if (
        array.ndim != 2
        or len(array) != k
        or array.shape[1] == 0
        or columns not in (None, array.shape[1])
    ):
        raise AlphabetMismatch(
            f"{name} must have one row for each of the {k} secrets, shape {wanted}, got "
            f"{array.shape}"
        )
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        raise ValueError(
            f"{name} must be finite and not negative, got {array[bad][0]} at {first_index(bad)}"
        )
    return array


def dirichlet_alpha(alpha: ArrayLike, k: int) -> Floats:
    """Return the parameter alpha of a Dirichlet prior as a vector, shape (k,)."""
    refuse_labels("alpha", alpha)
    array = numbers("alpha", alpha, f"a number or {k} numbers")
    if array.shape not in ((), (k,)):
        raise AlphabetMismatch(
            f"alpha must be a number or have shape ({k},), got shape {array.shape}"
        )
    bad = ~((array > 0) & np.isfinite(array))
    if bad.any():
        where = f" at index {int(np.argmax(bad))}" if array.ndim else ""
        raise ValueError(
            f"alpha must be finite and above 0, got {array[bad].ravel()[0]}{where}; "
            "0.5 is Jeffreys' prior, 1 is uniform"
        )
    bad = (array < MIN_ALPHA) | (array > MAX_ALPHA)
    if bad.any():
        raise ValueError(
            f"alpha must be from {MIN_ALPHA:g} to {MAX_ALPHA:g}, or the result would overflow, got "
            f"{array[bad].ravel()[0]}"
        )
    return np.array(np.broadcast_to(array, (k,)))


def generator(rng: Any) -> np.random.Generator:
    """Return a numpy random generator; seeds and None are refused."""
    # A seed or None would hide in the call where the randomness comes from.
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            "rng must be a numpy.random.Generator, as numpy.random.default_rng(seed) makes it, "
            f"got {rng!r}"
        )
    return rng
