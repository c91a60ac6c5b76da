"""Budgets that several rooms share, and a context manager that changes them.

Each budget bounds memory or time of one dense computation. The defaults suit a machine with 8 GB:
a computation that would exceed its budget takes a structured method instead, or raises `TooLarge`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ibukit._ground import arguments


@dataclass(frozen=True)
class _Limits:
    # 2**26 doubles take 512 MB; a matrix with more entries is not written out.
    dense_entries: int = 2**26
    # A Cholesky factor of order 5000 takes 200 MB and about a second on one core; the eigenvectors
    # of such a matrix take a minute.
    factorised_order: int = 5000


_CURRENT: ContextVar[_Limits] = ContextVar("ibukit limits", default=_Limits())  # noqa: B039 (frozen)


def max_dense_entries() -> int:
    """Number of entries up to which a matrix of doubles is written out."""
    return _CURRENT.get().dense_entries


def max_factorised_order() -> int:
    """Order up to which a dense matrix is factorised or decomposed."""
    return _CURRENT.get().factorised_order


@contextmanager
def limits(
    *, dense_entries: int | None = None, factorised_order: int | None = None
) -> Iterator[None]:
    """Change the budgets of dense computations inside a ``with`` block.

    On a machine with more memory larger problems can be solved by the dense methods, which are
    often the most exact ones. What is computed does not change otherwise.

    Parameters
    ----------
    dense_entries : int, optional
        Number of doubles that a matrix may hold; 2**26, which are 512 MB, by default. A matrix and
        its copies may take several times as much.
    factorised_order : int, optional
        Order of the largest dense matrix that is factorised, 5000 by default. Time grows with its
        third power.

    Raises
    ------
    ValueError
        If a budget is not a whole number from 1.

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
        )
        if value is not None
    }
    token = _CURRENT.set(replace(_CURRENT.get(), **changes))
    try:
        yield
    finally:
        _CURRENT.reset(token)
