"""Sums of the bits of a unary encoding: all that is left where only totals were kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Alphabet
from ibukit.errors import LikelihoodUnknown
from ibukit.mechanisms.base import Mechanism


@dataclass(frozen=True)
class BitSums(Mechanism):
    r"""Sums of the bits of n reports of a unary encoding, without the reports themselves.

    In a tally, codes 0..k-1 stand for the bits, with their sums as counts, and code k has the count
    n. Let :math:`s_y` be the share of reports in which bit y was 1, and :math:`p_0` and c the
    `p_zero` and the `contrast` of the mechanism. The debiased shares :math:`v_y = (s_y - p_0) / c`
    have the covariances :math:`(s_y (1 - s_y) / c^2) / n` for y = z, and :math:`-v_y v_z / n`
    otherwise.

    Parameters
    ----------
    mechanism : Mechanism
        The unary encoding that made the reports.
    """

    mechanism: Any

    has_likelihood = False

    def __post_init__(self) -> None:
        """Leave the checks to the mechanism, which has made them."""

    @property
    def alphabet(self) -> Alphabet:  # type: ignore[override]
        """The secrets of the mechanism."""
        secrets: Alphabet = self.mechanism.alphabet
        return secrets

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """The level of one report."""
        return float(self.mechanism.epsilon)

    def _totals(self, codes: NDArray[Any], counts: NDArray[Any]) -> NDArray[Any]:
        """The sums and n, shape (k + 1,); bits that were never 1 have no code."""
        totals = np.zeros(self.k + 1, dtype=counts.dtype)
        totals[codes] = counts
        return totals

    def number_of_people(self, codes: NDArray[Any], counts: NDArray[Any]) -> int:
        """Return n, the number of reports."""
        return int(self._totals(codes, counts)[-1])

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        ones = self._totals(reports, frequencies)[:-1]
        return (ones - self.mechanism.p_zero) / self.mechanism.contrast

    def covariance(self, reports: NDArray[Any], counts: NDArray[Any]) -> Floats:
        """Return the estimated covariances of the debiased shares, shape (k, k)."""
        # Given the secret the bits are independent, so two bits covary through the secret alone.
        *sums, n = self._totals(reports, counts)
        share = np.array(sums) / n
        v = (share - self.mechanism.p_zero) / self.mechanism.contrast
        matrix = -np.outer(v, v)
        np.fill_diagonal(matrix, share * (1 - share) / self.mechanism.contrast**2)
        return matrix / n

    @override
    def channel(self, reports: NDArray[Any]) -> NoReturn:
        raise self._unknown()

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NoReturn:
        raise self._unknown()

    @override
    def check_reports(self, reports: ArrayLike) -> NoReturn:
        raise self._unknown()

    def _unknown(self) -> LikelihoodUnknown:
        return LikelihoodUnknown(
            "tally holds sums of bits only, whose likelihood is unknown, because it depends on "
            "which bits were reported together: take inv or combine_results(tally, inv) and "
            "intervals with method='wald', or keep the reports and use mechanism.tally(reports)"
        )
