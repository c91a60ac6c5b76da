"""Any mechanism that can be written down as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit import _validate, privacy
from ibukit._validate import SUM_TOLERANCE, Floats
from ibukit.alphabet import Alphabet, as_alphabet
from ibukit.channels import DenseChannel
from ibukit.channels.line import SMALLEST_LOG_FACTOR
from ibukit.errors import AlphabetMismatch, InvalidDistribution
from ibukit.mechanisms.base import FiniteMechanism, Mechanism


@dataclass(frozen=True, eq=False)
class MatrixMechanism(FiniteMechanism):
    """P(z given x) = M_xz for any row-stochastic matrix M of shape (k, m).

    Parameters
    ----------
    matrix : array_like, shape (k, m)
        Entries not negative, each row summing to 1 within 1e-9; never renormalised.
    alphabet : Alphabet or int, optional
        The k secrets; by default Line(0, k - 1).

    Raises
    ------
    InvalidDistribution
        If an entry is negative or NaN, or a row does not sum to 1.
    AlphabetMismatch
        If the alphabet does not have k elements.

    Examples
    --------
    >>> mechanism = MatrixMechanism([[0.9, 0.1], [0.3, 0.7]])
    >>> mechanism.forward([0.5, 0.5])
    array([0.6, 0.4])
    >>> round(mechanism.epsilon, 4)  # log(0.7 / 0.1)
    1.9459
    """

    entries: Floats
    alphabet: Alphabet = None  # type: ignore[assignment]  # until it is made

    # the argument is called `matrix`, which the field cannot be: there is a method of that name
    @_validate.field_is("entries", "matrix")
    def __init__(self, matrix: ArrayLike, alphabet: Alphabet | int | None = None):
        self._keep(entries=matrix, alphabet=alphabet)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check and convert the fields, of classes that inherit, too."""
        try:
            rows = np.array(self.entries, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidDistribution(
                f"matrix must be a rectangular array of numbers, got {type(self.entries).__name__} with other entries "
                "or with rows of different lengths"
            ) from None
        if rows.ndim != 2 or 0 in rows.shape:
            raise InvalidDistribution(f"matrix must have two dimensions, got shape {rows.shape}")
        bad = ~(rows >= 0)
        if bad.any():
            x, z = np.argwhere(bad)[0]
            raise InvalidDistribution(
                f"matrix must not have negative or NaN entries, got {rows[x, z]} at row {x}, column {z}"
            )
        sums = rows.sum(axis=1)
        off = ~(np.abs(sums - 1) <= SUM_TOLERANCE)
        if off.any():
            x = int(np.argmax(off))
            raise InvalidDistribution(
                f"matrix must have rows that sum to 1 (within {SUM_TOLERANCE:g}), row {x} sums to {sums[x]:.12g}; "
                "if its entries are weights, divide each row by its sum first"
            )
        given: Any = self.alphabet
        secrets = as_alphabet(len(rows) if given is None else given)
        if len(secrets) != len(rows):
            raise AlphabetMismatch(
                f"matrix must have one row for each of the {len(secrets)} secrets, got {len(rows)} rows"
            )
        self._keep(entries=_validate.frozen(rows), alphabet=secrets)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MatrixMechanism)
            and self.alphabet == other.alphabet
            and np.array_equal(self.entries, other.entries)
        )

    def __hash__(self) -> int:
        return hash((self.alphabet, self.entries.shape, self.entries.tobytes()))

    def __repr__(self) -> str:
        return f"MatrixMechanism(<{self.k} x {self.m}>, {self.alphabet!r})"

    @property
    def m(self) -> int:
        """Number of possible reports."""
        return int(self.entries.shape[1])

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        """The tight local-DP level of the matrix.

        It is inf where some report rules some secret out.
        """
        return privacy.epsilon_ldp(self)

    def make_matrix(self) -> Floats:
        """The probabilities of all reports, shape (k, m)."""
        return self.entries

    def forward(self, theta: ArrayLike) -> Floats:
        """Distribution of the reports, theta M, shape (m,).

        The secrets are distributed as `theta`.
        """
        p = super().forward(theta)
        return p if self._left_out is None else p * self._left_out

    def adjoint(self, w: ArrayLike) -> Floats:
        """Weights on the reports carried back to the secrets: M w, shape (k,)."""
        return super().adjoint(w if self._left_out is None else _validate.vector("w", w, self.m) * self._left_out)

    @cached_property
    def _left_out(self) -> Floats | None:
        """What `channel` leaves out of all the columns."""
        return _factor(self.matrix())

    def channel(self, reports: NDArray[Any]) -> DenseChannel:
        """The matrix's columns of the given reports.

        Tiny columns keep their largest entry apart.
        """
        columns = np.ascontiguousarray(self.matrix()[:, reports])
        factor = _factor(columns)
        return DenseChannel(columns if factor is None else columns / factor)

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """What `channel` leaves out for the most improbable reports.

        They are so improbable under every secret that a quotient would overflow.
        """
        factor = _factor(self.matrix()[:, reports])
        return None if factor is None else np.log(factor)


def _factor(columns: Floats) -> Floats | None:
    """Largest entries of columns in which they are tiny, 1 for the others; None if there is no such column."""
    largest = columns.max(axis=0)
    tiny = (largest > 0) & (largest < np.exp(SMALLEST_LOG_FACTOR))
    return np.where(tiny, largest, 1.0) if tiny.any() else None


def as_mechanism(mechanism: Mechanism | ArrayLike) -> Mechanism:
    """The mechanism itself; a row-stochastic matrix as a `MatrixMechanism`."""
    return mechanism if isinstance(mechanism, Mechanism) else MatrixMechanism(mechanism)


def compose(mechanism: FiniteMechanism, channel: FiniteMechanism | ArrayLike) -> MatrixMechanism:
    """Post-process every report by another channel: (M C)_xw = sum_z M_xz C_zw.

    Post-processing never weakens the privacy of `mechanism`; it can destroy what makes the secrets' distribution
    identifiable, as when the reports of a 5 x 5 grid are truncated to 4 x 4 cells.

    Parameters
    ----------
    mechanism : FiniteMechanism
        With m possible reports.
    channel : FiniteMechanism or array_like, shape (m, l)
        Row-stochastic: what becomes of each report.

    Returns
    -------
    MatrixMechanism
        From the secrets of `mechanism` to l reports.

    Raises
    ------
    AlphabetMismatch
        If `channel` does not have one row for each report.
    InvalidDistribution
        If `channel` is not row-stochastic.

    Examples
    --------
    Randomized response over three values, of which the collector keeps only "first or not":

    >>> import ibukit as ik
    >>> ik.compose(ik.RandomizedResponse(3, epsilon=1.0), [[1, 0], [0, 1], [0, 1]]).matrix().round(4)
    array([[0.5761, 0.4239],
           [0.2119, 0.7881],
           [0.2119, 0.7881]])
    """
    second = channel if isinstance(channel, FiniteMechanism) else MatrixMechanism(channel)
    if second.k != mechanism.m:
        raise AlphabetMismatch(f"channel must have one row for each of the {mechanism.m} reports, got {second.k} rows")
    return MatrixMechanism(mechanism.matrix() @ second.matrix(), mechanism.alphabet)
