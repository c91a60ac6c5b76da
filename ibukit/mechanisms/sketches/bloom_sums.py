"""Sums of the bits of Bloom filters, by cohort: all that is left where only totals were kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms.categorical.bit_sums import BitSums


@dataclass(frozen=True)
class BloomSums(BitSums):
    r"""Sums of the bits of `BloomRappor` reports in each cohort, without the reports.

    In a tally, codes 0..cohorts * bits - 1 stand for the bits, cohort by cohort, with their sums as
    counts; the codes that follow stand for the cohorts, with their numbers of reports as counts.
    The estimate is the least squares fit of `inv`. Its covariances come from those of the bits,
    which are independent given the secret.
    """

    def number_of_people(self, codes: NDArray[Any], counts: NDArray[Any]) -> int:
        """Return the number of reports of all cohorts together."""
        return int(self._sums(codes, counts)[1].sum())

    def _sums(self, codes: NDArray[Any], counts: NDArray[Any]) -> tuple[Floats, Floats]:
        """Return the sums, shape (cohorts, bits), and the numbers of reports, shape (cohorts,)."""
        cohorts, bits = self.mechanism.cohorts, self.mechanism.bits
        totals = np.zeros(cohorts * (bits + 1))
        totals[codes] = counts
        return totals[: cohorts * bits].reshape(cohorts, bits), totals[cohorts * bits :]

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        ones, people = self._sums(reports, frequencies)
        (seen,) = people.nonzero()
        estimate: Floats = self.mechanism.fit_filters(seen.tolist(), people[seen], ones[seen])
        return estimate

    @override
    def covariance(self, reports: NDArray[Any], counts: NDArray[Any]) -> Floats:
        mechanism = self.mechanism
        ones, people = self._sums(reports, counts)
        theta = self.invert(reports, counts)
        contrast = mechanism.p_set - mechanism.p_clear
        normal, spread = np.zeros((self.k, self.k)), np.zeros((self.k, self.k))
        for cohort in people.nonzero()[0].tolist():
            filters, n = mechanism.filters(cohort), people[cohort]
            share = ones[cohort] / n
            given = mechanism.p_clear + contrast * filters
            # Two bits of a report depend on each other through the secret alone.
            of_bits = (given.T * theta) @ given - np.outer(share, share)
            np.fill_diagonal(of_bits, share * (1 - share))
            normal += n * filters @ filters.T
            spread += n * filters @ of_bits @ filters.T / contrast**2
        half = np.linalg.solve(normal, spread)
        found: Floats = np.linalg.solve(normal, half.T)
        return (found + found.T) / 2


def read_sums(sums: ArrayLike, n: ArrayLike, cohorts: int, bits: int) -> tuple[Any, Any]:
    """Check and return the sums, shape (cohorts, bits), and the cohorts' numbers of reports."""
    table = np.asarray(sums)
    if table.shape != (cohorts, bits):
        raise AlphabetMismatch(
            f"sums must have a row for each of {cohorts} cohorts and a column for each of {bits} "
            f"bits, got shape {table.shape}"
        )
    table = arguments.counts("sums", table.ravel(), table.size).reshape(table.shape)
    people = arguments.counts("n", np.atleast_1d(n), cohorts)
    bad = table > people[:, None]
    if bad.any():
        cohort, bit = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"sums must be from 0 to the cohort's number of reports, {people[cohort]}, got "
            f"{table[cohort, bit]} for bit {bit} of cohort {cohort}: n has the numbers of reports, "
            "not of ones"
        )
    return table, people
