"""The probabilities of the secret behind each report, under an estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, readable
from ibukit._ground.limits import max_dense_entries
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.efficiency import efficiency_of, to_seen
from ibukit.domain.labels import name_of_alphabet
from ibukit.errors import AlphabetMismatch, ImpossibleReport, TooLarge
from ibukit.mechanisms.base import require_mechanism
from ibukit.tally.likelihood_rows import LikelihoodRows
from ibukit.tally.part import on_alphabet
from ibukit.tally.tally import Tally

if TYPE_CHECKING:
    import pandas as pd


def secrets_of_reports(
    reports: Any,
    mechanism: Any,
    tally: Tally | None,
    theta: Floats,
    alphabet: Alphabet,
    index_of: Callable[[Alphabet], pd.Index],
    background: Floats | None = None,
) -> pd.DataFrame:
    """Return P(secret | report) for each report; `Estimate.given` documents it.

    Over a background, which has a number for each report, `theta` holds numbers of secrets.
    """
    import pandas as pd

    mechanism = _mechanism_of(mechanism, tally, alphabet)
    if isinstance(mechanism, LikelihoodRows):
        codes = arguments.whole_array("reports", reports)
        rows = len(mechanism.log_factors)
        if codes.size and not (codes.min() >= 0 and codes.max() < rows):
            raise AlphabetMismatch(
                f"reports must be numbers of rows of the likelihoods, 0 to {rows - 1}, got "
                f"{codes.min()} to {codes.max()}"
            )
    else:
        codes = mechanism.check_reports(mechanism.code_reports(reports))
    n, k = len(codes), len(theta)
    if n * k > max_dense_entries():
        raise TooLarge(
            f"the table of {readable(n)} reports and {readable(k)} secrets would have "
            f"{readable(n * k)} entries: pass each distinct report once, or a part of them at a "
            "time"
        )
    index = reports.index if isinstance(reports, pd.Series) else None
    distinct, places = np.unique(codes, axis=0, return_inverse=True)
    # A report that arrived was not lost, so its secret is one of those seen.
    if background is None:
        probabilities = _posteriors(mechanism, distinct, to_seen(theta, efficiency_of(mechanism)))
    else:
        efficiency = efficiency_of(mechanism)
        seen = theta if efficiency is None else theta * efficiency
        probabilities = _posteriors(mechanism, distinct, seen, background[distinct])
    return pd.DataFrame(probabilities[places.reshape(-1)], index, columns=index_of(alphabet))


def _mechanism_of(mechanism: Any, tally: Tally | None, alphabet: Alphabet) -> Any:
    if mechanism is None:
        if tally is None:
            raise ValueError("mechanism must be given: the estimate has no tally that knows it")
        if len(tally.parts) > 1:
            raise ValueError(
                f"mechanism must be given: the tally pools the reports of {len(tally.parts)} "
                "mechanisms, and a report means something else under each; pass the one that made "
                "these reports"
            )
        return tally.parts[0].mechanism
    mechanism = require_mechanism(mechanism)
    if not mechanism.alphabet.bounded:
        # The estimate has that part of the endless alphabet outside which all probabilities are 0.
        return on_alphabet(mechanism, alphabet)
    if mechanism.alphabet != alphabet:
        raise AlphabetMismatch(
            f"mechanism must have the secrets of the estimate, {name_of_alphabet(alphabet)} of "
            f"{len(alphabet)}, got {mechanism}"
        )
    return mechanism


def _posteriors(
    mechanism: Any, reports: NDArray[Any], theta: Floats, background: Floats | float = 0.0
) -> Floats:
    """Return a row for each of the distinct reports."""
    k = len(theta)
    if not len(reports):
        return np.empty((0, k))
    channel = mechanism.channel(reports)
    joint = theta[:, None] * channel.rows(np.arange(k))
    total = joint.sum(axis=0) + background
    if not total.all():
        raise ImpossibleReport(
            f"reports has {reports[int(np.argmin(total))]}, to which the estimate gives no "
            "probability: nothing is known about the secret behind it"
        )
    return np.ascontiguousarray((joint / total).T)
