"""Observations of which only the likelihood is known, with a row for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.channels import DenseChannel
from ibukit.domain.alphabet import Alphabet, Line, as_alphabet
from ibukit.domain.matrices import alphabet_of, order_of, read_matrix, refuse_entries
from ibukit.errors import AlphabetMismatch, ImpossibleReport, InvalidDistribution, MechanismUnknown
from ibukit.files.json_values import storable

# What a mechanism can say of all possible reports, but a row of likelihoods cannot.
LAW_OF_REPORTS = frozenset(
    {
        "as_finite",
        "check_reports",
        "code_reports",
        "draw",
        "epsilon",
        "forward",
        "invert",
        "label_reports",
        "m",
        "make_matrix",
        "matrix",
        "randomize",
        "release",
        "report_alphabet",
        "restore_reports",
        "simulate",
        "tally",
        "tally_counts",
    }
)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class LikelihoodRows(arguments.ReadOnlyArrays):
    r"""Rows :math:`L_{zx} \propto P(z\mid x)` of observations z, in place of their mechanism.

    Parameters
    ----------
    alphabet : Alphabet
        The secrets, k of them.
    entries : ndarray, shape (s, k)
        The rows, each divided by its largest entry.
    log_factors : ndarray, shape (s,)
        Logarithms of these largest entries.
    """

    alphabet: Alphabet
    entries: Floats
    log_factors: Floats

    has_law = False

    def __post_init__(self) -> None:
        """Check the shapes, because the rows may come from a file."""
        if self.entries.shape != (len(self.log_factors), len(self.alphabet)):
            raise InvalidDistribution(
                f"entries must have a row for each of {len(self.log_factors)} observations and a "
                f"column for each of {len(self.alphabet)} secrets, got shape {self.entries.shape}"
            )
        self._keep(
            entries=arguments.frozen(self.entries), log_factors=arguments.frozen(self.log_factors)
        )

    def _refuse_other_content(self) -> None:
        """Raise ValueError for rows that a file may hold, but no observation has."""
        largest = self.entries.max(axis=1, initial=0)
        good = (self.entries >= 0).all() and (largest > 0).all() and np.isfinite(largest).all()
        if not good or not np.isfinite(self.log_factors).all():
            raise ValueError("likelihoods must be finite, not negative, and above 0 in each row")

    @classmethod
    def read(cls, L: Any, alphabet: Any) -> tuple[LikelihoodRows, list[Any] | None]:
        """Return the rows of a matrix from outside, and the rows' labels if they have some."""
        table = read_matrix(L, "L", "one row for each observation and one column for each secret")
        rows = table.rows
        refuse_entries(rows, "L")
        secrets = _secrets(table.column_labels, rows.shape, alphabet)
        if alphabet is not None and table.column_labels is not None:
            rows = rows[:, order_of("L has a column", table.column_labels, secrets)]
        largest = rows.max(axis=1)
        if not np.isfinite(largest).all():
            raise InvalidDistribution(
                f"L must have finite entries, got inf in row {int(np.argmax(largest))}: if "
                "L comes from log-likelihoods, subtract the largest of each row before taking exp"
            )
        if not largest.all():
            raise ImpossibleReport(
                f"L must have an entry above 0 in each row, row {int(np.argmin(largest))} has none:"
                " no secret explains this observation; if it underflowed, subtract the largest "
                "log-likelihood of each row before taking exp"
            )
        return cls(secrets, rows / largest[:, None], np.log(largest)), table.row_labels

    def channel(self, reports: NDArray[Any]) -> DenseChannel:
        """Return the columns of these observations, each with the largest entry 1."""
        return DenseChannel(np.ascontiguousarray(self.entries[reports].T))

    def log_scale(self, reports: NDArray[Any]) -> Floats:
        """Return the logarithms of what `channel` leaves out."""
        return self.log_factors[reports]

    def __getattr__(self, name: str) -> NoReturn:
        if name in LAW_OF_REPORTS:
            raise unknown_law(f"`{name}` of its mechanism")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # Arrays are compared by content, which the comparison of dataclasses cannot do.
    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LikelihoodRows)
            and self.alphabet == other.alphabet
            and np.array_equal(self.entries, other.entries)
            and np.array_equal(self.log_factors, other.log_factors)
        )

    def __hash__(self) -> int:
        return hash((self.alphabet, self.entries.shape, self.entries.tobytes()))

    def __repr__(self) -> str:
        s, k = self.entries.shape
        return f"LikelihoodRows(<{s} x {k}>, {self.alphabet!r})"


def _secrets(labels: list[Any] | None, shape: tuple[int, ...], alphabet: Any) -> Alphabet:
    s, k = shape
    if alphabet is None:
        return Line(0, k - 1) if labels is None else alphabet_of("L has a column", labels)
    secrets = as_alphabet(alphabet)
    if len(secrets) != k:
        hint = "; is it transposed? Pass L.T" if len(secrets) == s else ""
        raise AlphabetMismatch(
            f"L must have one column for each of the {len(secrets)} secrets, got {k} columns{hint}"
        )
    return secrets


def has_law(mechanism: Any) -> bool:
    """Return False if only likelihoods of what was observed are known."""
    return bool(getattr(mechanism, "has_law", True))


def unknown_law(what: str) -> MechanismUnknown:
    """Return the error which says that `what` cannot be had from likelihoods."""
    return MechanismUnknown(
        "tally must hold reports of a known mechanism, but it holds likelihoods "
        f"(from_likelihoods), which do not say what else might have been observed: {what} cannot "
        "be had; mle, ibu, smooth, gap, intervals with method='profile', 'wald' or 'credible', and "
        "theory.mle_set take it"
    )


def require_law(mechanisms: Any, what: str) -> None:
    """Raise MechanismUnknown if a mechanism is not known; `what` names the thing that needs it."""
    if not all(map(has_law, mechanisms)):
        raise unknown_law(what)
