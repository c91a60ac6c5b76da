"""The base of survey designs with one sample, and checks of arguments that all designs share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibukit import privacy
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, as_alphabet
from ibukit.errors import AlphabetMismatch, UselessDesign
from ibukit.mechanisms.base import FiniteMechanism


@dataclass(frozen=True)
class SurveyDesign(FiniteMechanism):
    """A survey question about a sensitive attribute, with one report from each person.

    The designs of `ibukit.surveys` with one sample inherit from it. They are mechanisms with two
    secrets: everything that takes a mechanism takes them.

    Parameters
    ----------
    labels : sequence of two labels
        The label of people without the sensitive attribute, then the label of people with it,
        such as ("no", "yes").

    Raises
    ------
    AlphabetMismatch
        If there are not two labels.
    ValueError
        If a number of the design is out of its range.

    See Also
    --------
    TwoSampleDesign : Designs that ask two samples of people in two ways.

    Examples
    --------
    >>> import ibukit as ik
    >>> isinstance(ik.surveys.Warner(["no", "yes"], p=0.75), SurveyDesign)
    True
    """

    labels: Any

    def __post_init__(self) -> None:
        """Check and convert the labels; subclasses also check their own parameters."""
        self._keep(labels=two_labels(self.labels))

    @property
    def alphabet(self) -> Alphabet:  # type: ignore[override]
        """The two secrets."""
        return self.labels

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        """The tight local-DP level of the design.

        It is inf if some report rules a secret out.
        """
        return privacy.epsilon_ldp(self)

    @property
    @override
    def m(self) -> int:
        return 2

    @property
    def sensitive(self) -> dict[Any, float]:
        """The sensitive attribute with the weight 1, for an interval's `of=`."""
        return {self.labels.values.tolist()[1]: 1.0}


def two_labels(labels: Any) -> Alphabet:
    """Return the alphabet of the labels (no, yes)."""
    alphabet = as_alphabet(labels)
    # The labels of a grid are rows of two numbers, which `sensitive` cannot use as keys.
    if len(alphabet) != 2 or alphabet.values.ndim != 1:
        raise AlphabetMismatch(
            "labels must be two, that of people without the sensitive attribute and that of people "
            f"with it, in this order, as ('no', 'yes'), got {alphabet!r}"
        )
    return alphabet


def two_fractions(name: str, values: ArrayLike, ends: str) -> tuple[float, float]:
    """Return the probabilities of two samples, which must differ."""
    pair = arguments.numbers(name, values, "a pair of numbers, one for each sample")
    if pair.shape != (2,):
        raise ValueError(
            f"{name} must be a pair of numbers, one for each sample, got {arguments.brief(values)}"
        )
    first, second = (arguments.fraction(name, each, ends) for each in pair.tolist())
    if first == second:
        raise UselessDesign(
            f"{name} must differ between the two samples, got {first:g} in both, which then tell "
            "no more than one: take values far apart, such as (0.2, 0.8)"
        )
    return first, second


def matrix_of_yes(yes: Any) -> Floats:
    """Return the matrix of the reports (no, yes) from the probability of yes for each secret."""
    return np.stack([1 - np.asarray(yes, dtype=float), yes], axis=1)
