"""Scrambled numbers: a number of one's own, disguised by a random one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ibukit import privacy
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet, AlphabetLike, as_alphabet
from ibukit.errors import UselessDesign
from ibukit.mechanisms.base import FiniteMechanism

# Largest absolute value of a number. Products of numbers above 1e154 overflow.
MAX_NUMBER = 1e150
# A report is made of the user's own number x and a random number s.
SCRAMBLES = {
    "replace": lambda x, s: s + 0 * x,
    "add": lambda x, s: s + x,
    "multiply": lambda x, s: s * x,
}


@dataclass(frozen=True)
class ScrambledResponse(FiniteMechanism):
    r"""Scrambled numbers: the true number with a probability, or else a disguised one.

    With probability p the number x is reported. Otherwise a person draws a number s, which is
    ``numbers[j]`` with probability ``shares[j]``, and reports

    - s itself, for "replace": Eriksson's cards with printed numbers [eriksson]_. With a mean
      :math:`\bar s` of s, the mean of the secrets is
      :math:`\frac{\mathbb E[z]-(1-p)\,\bar s}{p}`.
    - x + s, for "add" [pollock]_; the mean is :math:`\mathbb E[z]-(1-p)\,\bar s`.
    - x times s, for "multiply" [pollock]_ [eichhorn]_; the mean is
      :math:`\frac{\mathbb E[z]}{p+(1-p)\,\bar s}`.

    These moments do not determine the distribution of the secrets; the likelihood of all reports
    mostly does (see `theory.identifiable`), and in large samples the mean of its estimate is no
    less precise. To get an interval of the mean, give the secrets' numbers as ``of=``. Reports at
    the ends mostly rule secrets out, so that `epsilon` is inf, unless numbers are replaced and
    every secret can be the replacement.

    Parameters
    ----------
    alphabet : Line, int or sequence of numbers
        The k secrets, numbers that are all different; an int k means 0 to k - 1.
    numbers : sequence of numbers
        The numbers s that disguise, all different.
    shares : sequence of float, optional
        The probabilities of these numbers, equal by default.
    scramble : {"replace", "add", "multiply"}
        How these numbers disguise the secret.
    p : float
        Probability of reporting x as it is, from 0 to 1.

    Raises
    ------
    UselessDesign
        If reports do not depend on the secret.
    InvalidDistribution
        If `shares` is not on the simplex.
    ValueError
        If `p` is not a number from 0 to 1, if the secrets or the `numbers` are not finite numbers
        that are all different, or if `scramble` is another word.

    Notes
    -----
    The reports are the sums or products in ascending order, rounded to 12 significant digits, so
    that 0.1 + 0.2 is 0.3.

    References
    ----------
    .. [eriksson] Eriksson, "A new model for randomized response", International Statistical Review
       41(1), 1973.
    .. [pollock] Pollock and Bek, "A comparison of three randomized response models for quantitative
       data", JASA 71(356), 1976.
    .. [eichhorn] Eichhorn and Hayre, "Scrambled randomized response methods for obtaining sensitive
       quantitative data", Journal of Statistical Planning and Inference 7(4), 1983.

    Examples
    --------
    How often did you cheat? With a coin tell the truth, or else draw one of the numbers 0 to 3:

    >>> import ibukit as ik
    >>> design = ik.surveys.ScrambledResponse(4, [0, 1, 2, 3], scramble="replace", p=0.5)
    >>> estimate = ik.mle(design.tally_counts([375, 275, 225, 125]))
    >>> estimate.distribution.round(3)
    array([0.5, 0.3, 0.2, 0. ])
    >>> ik.surveys.ScrambledResponse(2, [1, 3], scramble="add").report_alphabet.values
    array([1, 2, 3, 4])
    """

    alphabet: Alphabet
    numbers: tuple[float, ...]
    shares: tuple[float, ...] = None  # type: ignore[assignment]  # until it is made
    scramble: Literal["replace", "add", "multiply"] = "add"
    p: float = 0.0

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            alphabet: AlphabetLike,
            numbers: ArrayLike,
            shares: ArrayLike | None = None,
            scramble: Literal["replace", "add", "multiply"] = "add",
            p: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(
            alphabet=as_alphabet(self.alphabet),
            numbers=tuple(_different_numbers("numbers", self.numbers).tolist()),
            p=arguments.fraction("p", self.p, "[]"),
        )
        _different_numbers("alphabet", self.alphabet.values)
        shares: Any = self.shares
        many = len(self.numbers)
        shares = np.full(many, 1 / many) if shares is None else shares
        self._keep(shares=tuple(arguments.distribution("shares", shares, many).tolist()))
        if not arguments.is_one_of(self.scramble, SCRAMBLES):
            raise ValueError(
                f"scramble must be {arguments.choices(list(SCRAMBLES))}, got {self.scramble!r}"
            )
        if not np.ptp(self.matrix(), axis=0).any():
            raise UselessDesign(
                f"reports do not depend on the secret with scramble={self.scramble!r}, "
                f"p={self.p:g} and these numbers; raise p, or disguise by numbers other than 0"
            )

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        """The tight local-DP level of the design.

        It is inf if some report rules a secret out.
        """
        return privacy.epsilon_ldp(self)

    @cached_property
    def _values(self) -> tuple[Floats, Ints]:
        """The possible reports in ascending order, and the places of each secret's among them.

        The places have a column for each number and one for the truth, but none for what has
        probability 0.
        """
        secrets = np.asarray(self.alphabet.values, dtype=float)[:, None]
        disguised = SCRAMBLES[self.scramble](secrets, np.array(self.numbers))
        every = np.hstack([disguised, secrets])[:, self._weights > 0]
        values, places = np.unique(every, return_inverse=True)
        if not (values == np.rint(values)).all():
            rounded = [float(f"{value:.12g}") for value in values]
            values, merged = np.unique(rounded, return_inverse=True)
            places = merged[places]
        return values, places.reshape(every.shape)

    @property
    def _weights(self) -> Floats:
        """Probabilities of a disguise by each number, and of the truth, shape (numbers + 1,)."""
        return np.append((1 - self.p) * np.array(self.shares), self.p)

    @property
    @override
    def m(self) -> int:
        return len(self._values[0])

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        values = self._values[0]
        whole = (values == np.rint(values)).all() and np.abs(values).max() < 2**53
        return as_alphabet((values.astype(np.int64) if whole else values).tolist())

    @override
    def make_matrix(self) -> Floats:
        values, places = self._values
        matrix = np.zeros((self.k, len(values)))
        weights = self._weights[self._weights > 0]
        np.add.at(matrix, (np.arange(self.k)[:, None], places), weights)
        return matrix


def _different_numbers(name: str, values: Any) -> Floats:
    """Return finite numbers that all differ, shape (n,)."""
    array = arguments.numbers(name, arguments.whole_array(name, values), "numbers")
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite numbers, got {arguments.brief(values)}")
    if np.abs(array).max() > MAX_NUMBER:
        raise ValueError(
            f"{name} must be at most {MAX_NUMBER:g}, got {arguments.brief(values)}: take a larger "
            "unit"
        )
    if len(np.unique(array)) < len(array):
        raise ValueError(f"{name} must all be different, got {arguments.brief(values)}")
    return array
