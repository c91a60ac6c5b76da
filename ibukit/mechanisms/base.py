"""What every mechanism offers: draw a report, count reports, and say how probable they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.alphabet import Alphabet
from ibukit.errors import AlphabetMismatch, NotInvertible
from ibukit.mechanisms._draws import drawable
from ibukit.mechanisms.channels import DenseChannel
from ibukit.tally import Channel, Part, Tally, check_tally, make_part


class Mechanism(_validate.ReadOnlyArrays, ABC):
    """A channel from secrets to reports: P(report z | secret x) = M_xz.

    What is said of its privacy is said of these probabilities. `randomize` and `simulate` are a *simulator*, for
    experiments. Do not run them on users' devices to release what they draw: they draw in doubles from a generator that
    can be predicted, and the reports that come out are not epsilon-private in the strict sense. The chapter on
    mechanisms says what they give away.

    A subclass is a frozen dataclass whose fields are the paper's parameters. It provides `randomize`,
    `check_reports` and `channel`; see `MatrixMechanism` for the shortest one.
    """

    alphabet: Alphabet
    epsilon: float

    metric: ClassVar[bool] = False
    """Whether `epsilon` is per unit of distance (d-privacy) or for all pairs of secrets (local DP)."""

    @property
    def k(self) -> int:
        """Number of secrets."""
        return len(self.alphabet)

    @abstractmethod
    def randomize(self, secrets: ArrayLike, rng: Generator) -> NDArray[Any]:
        """Simulate one report for each user; not for release, see the class.

        Parameters
        ----------
        secrets : array_like of int, shape (n,)
            Codes of the users' true values; their labels where the alphabet has no end.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, n reports
        """

    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population, same law as ``tally(randomize(secrets, rng))``.

        Parameters
        ----------
        secret_counts : array_like of int, shape (k,)
            Number of users with each secret.
        rng : numpy.random.Generator
        """
        rng = _validate.generator(rng)
        counts = _validate.counts("secret_counts", secret_counts, self.k)
        return self.tally(self.randomize(np.repeat(np.arange(self.k), counts), rng))

    @abstractmethod
    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        """Bring reports into the form the tally keeps; reports outside the alphabet raise `AlphabetMismatch`."""

    @abstractmethod
    def channel(self, reports: NDArray[Any]) -> Channel:
        """Forward and adjoint on the given reports (in the form of `check_reports`)."""

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of the factor that `channel` leaves out of each report's probability; None for none."""
        return None

    def tally(self, reports: ArrayLike) -> Tally:
        """Count the distinct reports.

        Where the alphabet has no end the tally is over its part from which alone the reports can best be explained
        (see `Tally.whole`).

        Parameters
        ----------
        reports : array_like, n reports

        Raises
        ------
        AlphabetMismatch
            If a report is not in the alphabet of reports.
        ImpossibleReport
            If no secret can produce a report.
        ValueError
            If there is no report at all.
        """
        seen = self.check_reports(reports)
        if self.alphabet.bounded or not len(seen):
            return Tally((make_part(self, seen),))
        here: Mechanism = replace(self, alphabet=self.alphabet.window(seen))  # type: ignore[type-var]
        return Tally((make_part(here, seen),), whole=self.alphabet)

    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        """The unbiased estimate v with E[v] = theta, shape (k,), from the frequencies of the reports seen."""
        raise NotInvertible(f"{self} has no square channel matrix, so matrix inversion does not apply; use mle or ibu")

    def __getstate__(self) -> dict[str, Any]:
        # only the parameters travel: matrices are computed again where they are needed
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class FiniteMechanism(Mechanism):
    """A mechanism whose reports can be listed: codes 0..m-1, and so a matrix M of shape (k, m)."""

    @property
    def m(self) -> int:
        """Number of possible reports."""
        return self.k

    @cached_property
    @abstractmethod
    def _matrix(self) -> Floats: ...

    def matrix(self) -> Floats:
        """The channel matrix M_xz = P(z given x), shape (k, m), read-only; rows sum to 1."""
        return _validate.frozen(self._matrix)

    def _row(self, secret: int) -> Floats:
        return np.asarray(self.matrix()[secret])

    @cached_property
    def _channel(self) -> Channel:
        return self.channel(np.arange(self.m))

    def forward(self, theta: ArrayLike) -> Floats:
        """Distribution of the reports if the secrets are distributed as `theta`: theta M, shape (m,)."""
        return self._channel.forward(_validate.vector("theta", theta, self.k))

    def adjoint(self, w: ArrayLike) -> Floats:
        """Weights on the reports carried back to the secrets: M w, shape (k,)."""
        return self._channel.adjoint(_validate.vector("w", w, self.m))

    def channel(self, reports: NDArray[Any]) -> Channel:
        """The matrix's columns of the given reports."""
        return DenseChannel(np.ascontiguousarray(self.matrix()[:, reports]))

    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        """Reports as integer codes 0..m-1."""
        return _validate.codes("reports", reports, self.m)

    def tally_counts(self, counts: ArrayLike) -> Tally:
        """The tally of reports that are already counted.

        Parameters
        ----------
        counts : array_like of int, shape (m,)
            How often each possible report was seen.
        """
        return Tally((make_part(self, np.arange(self.m), _validate.counts("counts", counts, self.m)),))

    def randomize(self, secrets: ArrayLike, rng: Generator) -> NDArray[Any]:
        """Draw one report for each user: codes 0..m-1, shape (n,)."""
        rng = _validate.generator(rng)
        x = _validate.codes("secrets", secrets, self.k)
        reports = np.empty(len(x), dtype=np.int64)
        order = np.argsort(x, kind="stable")
        for secret, users in zip(*_groups(x[order], order), strict=True):
            row = self._row(secret)
            reports[users] = rng.choice(self.m, size=len(users), p=row / row.sum())
        return reports

    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population: one multinomial per secret."""
        rng = _validate.generator(rng)
        counts = _validate.counts("secret_counts", secret_counts, self.k)
        present = np.flatnonzero(counts)
        rows = self.matrix()[present]
        drawn = rng.multinomial(counts[present], drawable(rows))
        return self.tally_counts(drawn.sum(axis=0))

    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        """The v with v M = q (by the pseudo-inverse where M has more columns than rows)."""
        q = np.zeros(self.m)
        q[reports] = frequencies
        return self._solve(q)

    def _solve(self, q: Floats) -> Floats:
        return np.asarray(q @ self._right_inverse)

    @cached_property
    def _right_inverse(self) -> Floats:
        u, s, vt = np.linalg.svd(self.matrix(), full_matrices=False)
        floor = s[0] * max(self.k, self.m) * np.finfo(float).eps
        if self.m < self.k or s[-1] <= floor:
            rank = int((s > floor).sum())
            raise NotInvertible(
                f"the channel matrix has rank {rank} for {self.k} secrets (singular values from {s[-1]:.3g} to "
                f"{s[0]:.3g}): different distributions give the same reports; mle and ibu still apply, not uniquely"
            )
        return np.asarray(vt.T @ (u / s).T)


def _groups(sorted_codes: Ints, order: Ints) -> tuple[list[int], list[Ints]]:
    starts = (
        np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]]) if len(sorted_codes) else np.array([], int)
    )
    return sorted_codes[starts].tolist(), np.split(order, starts[1:]) if len(starts) else []


def single_part(tally: Tally) -> Part:
    """The one part of a tally whose reports came through one mechanism."""
    if len(check_tally(tally).parts) != 1:
        raise ValueError(f"tally must hold reports of one mechanism, it pools {len(tally.parts)}; use mle, ibu or gibu")
    return tally.parts[0]


def over_the_same_secrets(mechanisms: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
    """The mechanisms, if there is one at least and all are over one alphabet."""
    if isinstance(mechanisms, Mechanism):
        raise TypeError(f"mechanisms must be a sequence of mechanisms, got one: pass [{mechanisms}]")
    many = tuple(mechanisms)
    if not many:
        raise ValueError("mechanisms must hold at least one mechanism, got none")
    for mechanism in many:
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"mechanisms must be a sequence of mechanisms, got {mechanism!r} in it")
        if mechanism.alphabet != many[0].alphabet:
            raise AlphabetMismatch(f"mechanisms must be over the same secrets, got {many[0]} and {mechanism}")
    return many
