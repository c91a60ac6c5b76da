"""RAPPOR with somebody else's hash functions, as a mechanism: the whole filter's likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

import ibukit as ik
from ibukit.channels import DenseChannel
from ibukit.domain.report_kind import ReportKind


def chances(f: float, p: float, q: float) -> tuple[float, float]:
    """The chance of a one after both responses, where the filter has a one, and elsewhere."""
    return f * (p + q) / 2 + (1 - f) * q, f * (p + q) / 2 + (1 - f) * p


@dataclass(frozen=True, eq=False)
class KnownFilters(ik.Mechanism):
    """Reports are the cohort and the bits; filters[j, x] is secret x's Bloom filter in cohort j."""

    alphabet: ik.Alphabet
    own: tuple[float, float]
    filters: NDArray[np.float64]

    report_kind = ReportKind.ROWS

    @property
    def epsilon(self) -> float:
        """The level if filters of two secrets are disjoint, each of the most bits that any has."""
        one, other = self.own
        return float(
            self.filters.sum(axis=2).max() * np.log(one * (1 - other) / (other * (1 - one)))
        )

    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[np.uint8]:
        cohorts = rng.integers(0, len(self.filters), len(secrets))
        one, other = self.own
        bits = (
            rng.random((len(secrets), self.filters.shape[2]))
            < other + (one - other) * self.filters[cohorts, secrets]
        )
        return np.column_stack([cohorts, bits]).astype(np.uint8)

    def check_reports(self, reports: ArrayLike) -> NDArray[np.uint8]:
        return np.asarray(reports, dtype=np.uint8)

    def channel(self, reports: NDArray[Any]) -> DenseChannel:
        """The likelihoods, divided by the largest of each report.

        A bit of a secret's filter multiplies its likelihood by one of two ratios.
        """
        one, other = self.own
        ratios = np.log([(1 - one) / (1 - other), one / other])
        logs = np.empty((self.k, len(reports)))
        for j, filters in enumerate(self.filters):
            here = reports[:, 0] == j
            logs[:, here] = filters @ ratios[reports[here, 1:]].T
        return DenseChannel(np.exp(logs - logs.max(axis=0)))
