"""Base classes of unary encodings: bits that are flipped independently of each other."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import BitChannel
from ibukit.channels.line import MIN_LOG_FACTOR, split_factor
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.errors import AlphabetMismatch, LikelihoodUnknown, TooLarge
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.categorical import bit_reports
from ibukit.mechanisms.categorical.bit_reports import BitReports, Bits
from ibukit.mechanisms.categorical.bit_sums import BitSums
from ibukit.mechanisms.categorical.subset_selection import SubsetSelection
from ibukit.mechanisms.epsilon_range import MIN_PROBABILITY, level_of_equal_pairs
from ibukit.privacy import closed_forms
from ibukit.tally.tally import Tally, make_tally_part

# Number of secrets up to which the 2^k reports are listed: with 16, the matrix takes 8 MB.
MAX_LISTED = 16


class IndependentBits(BitReports):
    """Bit x of the report is 1 with probability `p_one`, every other bit with probability `p_zero`.

    The tally keeps only the distinct bit rows seen, packed. For k <= 16 the 2^k reports are listed
    (``m``, ``matrix()``, ``forward``, ``tally_counts``); the code of a report is its row read as a
    binary number, bit 0 first.

    If this is the whole law of a class, the class sets `bits_are_independent` in its own body. What
    is proved of unary encodings is then said of it, and not of the classes that inherit from it,
    which may have another law.
    """

    bits_are_independent: ClassVar[bool] = False
    """True if the bits are independent; asked of the exact class only, see `is_unary`."""

    @property
    @abstractmethod
    def p_hidden(self) -> float:
        r"""Probability that the secret's own bit is reported as 0, free of cancellation."""

    def tally_sums(self, sums: Any, n: int) -> Tally:
        r"""Make the tally of reports of which only the sums of the bits are known.

        The sums are enough for `inv`, with all its repairs, and for
        ``combine_results(tally, inv)``. Standard errors, covariances and Wald's intervals are those
        of the unbiased estimate, without repairs. The likelihood depends on which bits were
        reported together, so `mle`, `ibu` and profile intervals are refused, and the estimate's gap
        is NaN.

        Parameters
        ----------
        sums : array_like of int, shape (k,), or mapping or Series
            The number of reports, from 0 to n, in which each secret's bit was 1: in the alphabet's
            order, or by label, for all secrets.
        n : int
            The number of reports.

        Raises
        ------
        AlphabetMismatch
            If a label is unknown or missing, or if an array does not have one sum for each secret.
        LikelihoodUnknown
            If the class inherits from a unary encoding, and so may have another law.
        ValueError
            If a sum is not a whole number from 0 to n, or if a label occurs twice.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanism = ik.Rappor(["a", "b"], epsilon=2.0)
        >>> tally = mechanism.tally_sums({"b": 400, "a": 600}, n=1000)
        >>> estimate = ik.inv(tally, post="none")
        >>> estimate.distribution.round(3), estimate.standard_errors().round(3)
        (array([0.716, 0.284]), array([0.034, 0.034]))
        """
        if not is_unary(self):
            raise LikelihoodUnknown(
                f"mechanism must be a unary encoding itself for sums, got {type(self).__name__}, "
                "which may have another law: use tally(reports)"
            )
        people = arguments.whole("n", n, 1)
        found = arguments.labelled("sums", sums)
        if found is not None and len(found[1]) < self.k:
            raise AlphabetMismatch(
                f"sums must have one for each of the {self.k} secrets, got {len(found[1])}: a bit "
                "that was never 1 has the sum 0"
            )
        totals = aligned_counts("sums", sums, self.alphabet)
        if (totals > people).any():
            first = int(np.argmax(totals > people))
            raise ValueError(
                f"sums must be at most n = {people}, got {totals[first]} at index {first}: n is "
                "the number of reports, not of ones"
            )
        counts = np.append(totals, people)
        return Tally((make_tally_part(BitSums(self), np.arange(self.k + 1), counts),))

    @override
    def tally_counts(self, counts: CountsLike, *, weighted: bool = False) -> Tally:
        try:
            return super().tally_counts(counts, weighted=weighted)
        except AlphabetMismatch as error:
            raise AlphabetMismatch(
                f"{error}; counts here are of whole reports: for sums of the bits, one for each "
                "secret, use tally_sums(sums, n)"
            ) from None

    @property
    @override
    def m(self) -> int:
        return int(2**self.k)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Bits:
        # All bits are drawn as those of other secrets first; then the secret's own is overwritten.
        rows = (rng.random((len(secrets), self.k)) < self.p_zero).astype(np.uint8)
        rows[np.arange(len(secrets)), secrets] = rng.random(len(secrets)) < self.p_one
        return rows

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        # If many users have few bits, each of the 2^k rows occurs so often that one multinomial
        # draw for each secret is far less work than a row for each user.
        if (
            is_unary(self)
            and self.k <= MAX_LISTED
            and int(counts.sum()) > bit_reports.BITS_AT_ONCE // self.k
        ):
            return FiniteMechanism.simulate(self, counts, rng)
        return super().simulate(counts, rng)

    def _coins(
        self, own: exact.ExactProbability, other: exact.ExactProbability
    ) -> exact.ExactSampler:
        """Return the sampler of bits with these exact probabilities, whose level is `epsilon`."""
        return exact.ExactSampler(
            lambda secrets, random_bits: exact.independent_bits(
                secrets, self.k, own, other, random_bits
            ),
            lambda: self.epsilon,
        )

    @override
    def channel(self, reports: NDArray[Any]) -> BitChannel:
        # P(row | x) is the probability of a row in which no bit is the secret's, times the ratio of
        # bit x: p_one / p_zero if it is 1, (1 - p_one) / (1 - p_zero) if it is 0.
        scale, _ = split_factor(self._log_no_secret(reports))
        one, zero = self.p_one / self.p_zero, self.p_hidden / (1 - self.p_zero)
        return BitChannel(self.k, reports, one, zero, scale)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of what `channel` leaves out where a probability would underflow.

        This happens with k in the thousands.
        """
        if self.k * np.log(min(self.p_zero, 1 - self.p_zero)) > MIN_LOG_FACTOR:
            return None  # not even the least probable row underflows
        return split_factor(self._log_no_secret(reports))[1]

    def _log_no_secret(self, reports: Bits) -> Floats:
        """Log-probability of each row if no bit is the secret's, shape (s,)."""
        ones = np.bitwise_count(reports).sum(axis=1, dtype=np.int64)
        return ones * np.log(self.p_zero) + (self.k - ones) * np.log1p(-self.p_zero)

    @cached_property
    @override
    def _all_reports(self) -> Bits:
        if self.k > MAX_LISTED:
            raise TooLarge(
                f"the 2^{self.k} reports are too many to list (k must be at most {MAX_LISTED}); "
                "use tally(rows), or tally_sums(sums, n) where only the sums of the bits are known"
            )
        # Row i spells i as a binary number, bit 0 first.
        codes = np.arange(self.m)[:, None] >> np.arange(self.k)[::-1] & 1
        return np.packbits(codes.astype(np.uint8), axis=1)

    @override
    def _refuse_large_matrix(self) -> None:
        # The list of all reports refuses first, and says what to use instead.
        _ = self._all_reports

    @override
    def make_matrix(self) -> Floats:
        bits = np.unpackbits(self._all_reports, axis=1, count=self.k).T
        matrix = np.empty((self.k, self.m))
        for x in range(self.k):
            own = (np.arange(self.k) == x)[:, None]
            one = np.where(own, self.p_one, self.p_zero)
            zero = np.where(own, self.p_hidden, 1 - self.p_zero)
            matrix[x] = np.where(bits, one, zero).prod(axis=0)
        return matrix


class BitsOfGivenProbabilities(IndependentBits):
    """Independent bits whose probabilities are given; the level `epsilon` follows from them."""

    @override
    def _check_level(self) -> None:
        self._check_probabilities()
        # Two rare events hide the secret, and the draws must be able to make both of them.
        least = min(self.p_zero, self.p_hidden)
        if not least > MIN_PROBABILITY:
            event = "the secret's own bit is 0"
            if self.p_zero <= self.p_hidden:
                event = "another bit is 1"
            raise ValueError(
                f"the chance that {event} must be above 2^-53, got {least:g} for "
                f"{self._shown_fields}: in doubles it would never be drawn, and a report with it "
                "would rule secrets out"
            )
        if not self.contrast > 0:
            raise ValueError(
                f"the secret's own bit must be reported as 1 more often than another bit, got "
                f"{self.p_one:g} and {self.p_zero:g} for {self._shown_fields}"
            )

    @abstractmethod
    def _check_probabilities(self) -> None:
        """Check and convert the fields that the probabilities come from."""

    @property
    def _shown_fields(self) -> str:
        """The fields that the probabilities come from, for error messages."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        names.remove("alphabet")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        r"""Tight level in nats, the same for all pairs of secrets.

        It is :math:`\ln\frac{p\,(1 - q)}{(1 - p)\,q}`.
        """
        # p / q = 1 + (p - q) / q and (1 - q) / (1 - p) = 1 + (p - q) / (1 - p): for close p and q
        # the logarithms are computed without cancellation.
        return math.log1p(self.contrast / self.p_zero) + math.log1p(self.contrast / self.p_hidden)


def is_unary(mechanism: Mechanism) -> TypeGuard[IndependentBits]:
    """True if theorems about unary encodings hold: the class itself declares independent bits.

    A class that inherits from it may have another law, so it must declare independent bits itself.
    """
    return isinstance(mechanism, IndependentBits) and bool(
        vars(type(mechanism)).get("bits_are_independent")
    )


def is_bits(mechanism: Mechanism) -> TypeGuard[IndependentBits | SubsetSelection]:
    """True if a mechanism is a unary encoding (see `is_unary`) or subset selection."""
    return is_unary(mechanism) or type(mechanism) is SubsetSelection


def _information(mechanism: IndependentBits, prior: Floats) -> float | None:
    if not closed_forms.is_uniform(prior):
        return None
    return closed_forms.unary_information(
        mechanism.k, mechanism.p_one, mechanism.p_zero, mechanism.p_hidden
    )


# Two secrets differ in two bits, and the ratio is the same for every pair.
UNARY_FORMS = closed_forms.ClosedForms(level_of_equal_pairs, _information)
