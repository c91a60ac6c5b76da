"""Budgets that several subpackages share, and a context manager that changes them.

Each budget bounds memory or time of one dense computation. The defaults suit a machine with 8 GB:
a computation that would exceed its budget takes a structured method instead, or raises `TooLarge`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ibukit._ground import arguments
from ibukit.errors import TooLarge


@dataclass(frozen=True)
class _Limits:
    # 2**26 doubles take 512 MB; a matrix with more entries is not written out.
    dense_entries: int = 2**26
    # A Cholesky factor of order 5000 takes 200 MB and about a second on one core; the eigenvectors
    # of such a matrix take a minute.
    factorised_order: int = 5000
    # The channel of the reports seen is as large as the data; 2**29 doubles take 4 GB.
    channel_entries: int = 2**29


_CURRENT: ContextVar[_Limits] = ContextVar("ibukit limits", default=_Limits())  # noqa: B039 (frozen)


def max_dense_entries() -> int:
    """Number of entries up to which a matrix of doubles is written out."""
    return _CURRENT.get().dense_entries


def max_factorised_order() -> int:
    """Order up to which a dense matrix is factorised or decomposed."""
    return _CURRENT.get().factorised_order


def require_dense(what: str, rows: int, columns: int, instead: str = "") -> None:
    """Raise TooLarge if a matrix that depends on the alphabet alone would exceed its budget.

    Parameters
    ----------
    what : str
        Name of the matrix in the message.
    rows, columns : int
    instead : str
        Advice: a clause that follows a semicolon.
    """
    _require("dense_entries", what, rows, columns, instead)


def require_channel(what: str, rows: int, columns: int) -> None:
    """Raise TooLarge if the dense channel of the reports seen would exceed its budget."""
    _require(
        "channel_entries", what, rows, columns, "round the reports, so that fewer are different"
    )


def _require(budget: str, what: str, rows: int, columns: int, instead: str) -> None:
    most = getattr(_CURRENT.get(), budget)
    if rows * columns > most:
        shape = " x ".join(arguments.readable(n) if n >= 10**9 else str(n) for n in (rows, columns))
        raise TooLarge(
            f"{what} would have {shape} entries, more than {most}; "
            + (f"{instead}, or " if instead else "")
            + f"allow more with ibukit.solvers.limits({budget}=...)"
        )


@contextmanager
def limits(
    *,
    dense_entries: int | None = None,
    factorised_order: int | None = None,
    channel_entries: int | None = None,
) -> Iterator[None]:
    """Change the budgets of dense computations inside a ``with`` block.

    On a machine with more memory larger problems can be solved by the dense methods, which are
    often the most exact ones. Otherwise the results do not change.

    Parameters
    ----------
    dense_entries : int, optional
        Number of doubles that a matrix may hold; 2**26, which are 512 MB, by default. A matrix and
        its copies may take several times as much.
    factorised_order : int, optional
        Order of the largest dense matrix that is factorised, 5000 by default. Time grows with its
        third power.
    channel_entries : int, optional
        Number of doubles that the dense channel of the reports seen may hold, secrets times
        different reports; 2**29, which are 4 GB, by default.

    Raises
    ------
    ValueError
        If a budget is not a whole number of at least 1.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(4, epsilon=1.0)
    >>> with ik.solvers.limits(dense_entries=2**28):
    ...     estimate = ik.mle(mechanism.tally_counts([40, 30, 20, 10]))
    >>> estimate.gap <= 1e-9
    True
    """
    changes = {
        name: arguments.whole(name, value, 1)
        for name, value in (
            ("dense_entries", dense_entries),
            ("factorised_order", factorised_order),
            ("channel_entries", channel_entries),
        )
        if value is not None
    }
    token = _CURRENT.set(replace(_CURRENT.get(), **changes))
    try:
        yield
    finally:
        _CURRENT.reset(token)
