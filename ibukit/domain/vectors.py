"""Vectors from outside over an alphabet: aligned by labels if they have some, else by position.

Series, mappings, frames of one column and estimates have labels. A Series with pandas' default
index 0, 1, ... has none. But if a label of the alphabet is a number or the text of one, and the
labels are not 0, 1, ... in this order, such a Series could be read in two ways, and is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Alphabet, Line
from ibukit.domain.distributions import EstimatedDistribution, is_estimate
from ibukit.domain.labels import ALIGNED_HINT, codes_of_index, name_of_alphabet
from ibukit.errors import AlphabetMismatch

# What `aligned` reads: "array_like or labelled" in docstrings.
VectorLike: TypeAlias = ArrayLike | Mapping[Any, Any] | EstimatedDistribution


def aligned(name: str, values: Any, alphabet: Alphabet) -> Any:
    """Return what has labels as an array in the alphabet's order, and anything else unchanged.

    Labels of the alphabet that are left out get a 0. The distribution of an estimate over the
    integers from 0 is taken as one over the codes of any alphabet with as many labels.

    Raises
    ------
    AlphabetMismatch
        If a label is a missing value (NaN or None), is not in the alphabet or occurs twice; if
        labels only number the entries, but the alphabet's labels are other numbers; or if an
        estimate has other secrets.

    Examples
    --------
    >>> aligned("p", {"b": 0.25, "a": 0.75}, Alphabet(["a", "b"]))
    array([0.75, 0.25])
    """
    if is_estimate(values):
        return _of_estimate(name, values, alphabet)
    found = arguments.labelled(name, values)
    if found is None:
        return values
    labels, numbers = found
    if labels is None:
        if _has_other_numbers(alphabet):
            raise AlphabetMismatch(
                f"{name} must have the labels of {name_of_alphabet(alphabet)} as its index, or be "
                f"an array, got the default index 0 to {len(numbers) - 1}, which may be labels or "
                f"positions: give {name}.to_numpy() if its entries are in the alphabet's order, "
                f"{name}.to_dict() if the index has its labels"
            )
        return numbers
    if not labels:
        raise AlphabetMismatch(f"{name} must have an entry for a label, got none")
    for at, label in enumerate(labels):
        if arguments.is_missing(label):
            raise AlphabetMismatch(
                f"{name} must have a label for each entry, got {label!r} at index {at}: name it as "
                "the alphabet does"
            )
    codes = codes_of_index(name, labels, alphabet, ALIGNED_HINT)
    entries = arguments.numbers(name, numbers)
    result = np.zeros(len(alphabet))
    result[codes] = entries
    return result


def _of_estimate(name: str, estimate: EstimatedDistribution, alphabet: Alphabet) -> Floats:
    own = estimate.alphabet
    if own == alphabet:
        return estimate.distribution
    # The same labels in another order, or with other distances.
    if len(own) == len(alphabet) and {type(own), type(alphabet)} <= {Alphabet, Line}:
        with contextlib.suppress(AlphabetMismatch, ValueError):
            result = np.zeros(len(own))
            result[alphabet.codes(own.values, name=name)] = estimate.distribution
            return result
    if len(own) == len(alphabet) and Line(0, len(own) - 1) in (own, alphabet):
        return estimate.distribution
    wanted, got = name_of_alphabet(alphabet), name_of_alphabet(own)
    raise AlphabetMismatch(
        f"{name} must be over {wanted}, got an estimate over {got if got != wanted else 'others'}"
    )


def _has_other_numbers(alphabet: Alphabet) -> bool:
    """Return whether a label is a whole number or its text, and not all are 0, 1, ... in order.

    If so, an index 0, 1, ... may mean labels in another order as well as positions.
    """
    if type(alphabet) is Line:
        return alphabet.first != 0
    if type(alphabet) is not Alphabet:
        # The labels of cells are pairs.
        return False
    numbers = [_number(label) for label in alphabet.values]
    return numbers != list(range(len(numbers))) and any(number is not None for number in numbers)


def _number(label: Any) -> float | None:
    """Return a label as a whole number, as a column of a table may hold it; or None."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(label)
        return number if number.is_integer() else None
    return None


def aligned_pair(
    names: Sequence[str], values: Sequence[Any], alphabet: Alphabet | None = None
) -> tuple[Any, Any]:
    """Return two vectors in one order: an alphabet's, or that of the labels of the first.

    Where no alphabet is known, that of an estimate is taken. Two vectors with labels are aligned
    with each other, and a label that one of them lacks has a 0 there.
    """
    estimates = [each for each in values if is_estimate(each)]
    space = estimates[0].alphabet if alphabet is None and estimates else alphabet
    if space is None:
        own = [alphabet_of(name, each) for name, each in zip(names, values, strict=True)]
        if own[0] is None and own[1] is None:
            return values[0], values[1]
        if own[0] is None or own[1] is None:
            odd, other = names if own[1] is None else names[::-1]
            raise AlphabetMismatch(
                f"{other} must have labels, because {odd} has: give both as Series with labels or "
                "as mappings (.to_dict() where a default index has the labels), or both as arrays "
                "in one order"
            )
        labels = [own[0].values.tolist(), own[1].values.tolist()]
        if set(labels[0]).isdisjoint(labels[1]):
            raise AlphabetMismatch(
                f"{names[1]} must share labels with {names[0]}, got {labels[1][0]!r} and others, "
                f"where {names[0]} has {labels[0][0]!r} and others: name them alike in both"
            )
        space = Alphabet(list(dict.fromkeys([*labels[0], *labels[1]])))
    first, second = (aligned(name, each, space) for name, each in zip(names, values, strict=True))
    return first, second


def distribution_over(name: str, values: Any, alphabet: Alphabet) -> Floats:
    """Return a distribution in the alphabet's order; it is never clipped or renormalised."""
    return arguments.distribution(name, aligned(name, values, alphabet), len(alphabet))


def positive_distribution_over(name: str, values: Any, alphabet: Alphabet, why: str) -> Floats:
    """Return a distribution without zeros; `why` ends the message: what a 0 does, what helps."""
    return arguments.positive_distribution(
        name, aligned(name, values, alphabet), len(alphabet), why
    )


def vector_over(name: str, values: Any, alphabet: Alphabet) -> Floats:
    """Return finite numbers in the alphabet's order, shape (k,)."""
    return arguments.vector(name, aligned(name, values, alphabet), len(alphabet))


def dirichlet_alpha_over(alpha: Any, alphabet: Alphabet) -> Floats:
    """Return the parameter of a Dirichlet prior in the alphabet's order, or one for all secrets."""
    return arguments.dirichlet_alpha(aligned("alpha", alpha, alphabet), len(alphabet))


def alphabet_of(name: str, values: Any) -> Alphabet | None:
    """Return the alphabet that a vector has itself, if it is an estimate or has labels."""
    if is_estimate(values):
        return values.alphabet
    found = arguments.labelled(name, values)
    return None if found is None or found[0] is None else Alphabet(found[0])
