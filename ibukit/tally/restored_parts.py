"""Parts of a tally as a file holds them, which anybody may have written.

A file whose checksum is right may still hold what no tally has: reports that the mechanism does not
make, counts that are no counts, or mechanisms over different secrets. Numbers that are read from
such a file would not mean what they seem to mean, so the file is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit.domain.alphabet import Alphabet
from ibukit.tally.likelihood_rows import LikelihoodRows
from ibukit.tally.part import TallyPart, has_likelihood, make_tally_part
from ibukit.tally.survey import Survey

# Number of reports whose form is checked at a time; bits take eight times the room meanwhile.
BLOCK = 2**14


def restored_part(mechanism: Any, reports: Any, counts: Any) -> TallyPart:
    """Return the part, or raise ValueError if no tally can have such a part."""
    # Mechanisms are in a higher layer, so they are recognised by what a tally asks of them.
    if not isinstance(mechanism, LikelihoodRows) and not hasattr(mechanism, "restore_reports"):
        raise ValueError(f"mechanism must be one, got {type(mechanism).__name__}")
    if not isinstance(reports, np.ndarray) or not isinstance(counts, np.ndarray):
        raise ValueError("reports and counts must be arrays")
    if counts.dtype not in (np.int64, np.float64) or counts.shape != reports.shape[:1]:
        raise ValueError(
            f"counts must be one whole number or weight for each of {len(reports)} reports, got "
            f"{counts.dtype} of shape {counts.shape}"
        )
    if not ((counts > 0) & np.isfinite(counts)).all():
        raise ValueError("counts must be finite and above 0")
    _refuse_other_reports(mechanism, reports)
    part = make_tally_part(mechanism, reports, counts)
    if len(part.counts) != len(reports):
        raise ValueError("reports must be distinct")
    return part


def refuse_other_secrets(parts: Sequence[TallyPart], full: Any) -> None:
    """Raise ValueError for parts over different alphabets, or if the full alphabet has an end."""
    first = parts[0].mechanism.alphabet
    if any(part.mechanism.alphabet != first for part in parts):
        raise ValueError("parts must be over one alphabet")
    if full is not None and (not isinstance(full, Alphabet) or full.bounded):
        raise ValueError(f"the full alphabet must have no end, got {full!r}")


def refuse_other_surveys(parts: Sequence[TallyPart], surveys: Sequence[Any]) -> None:
    """Raise ValueError for sums of weights that are not those of the reports."""
    for part, survey in zip(parts, surveys, strict=True):
        if survey is None:
            continue
        if not isinstance(survey, Survey) or (survey.at >= len(part.counts)).any():
            raise ValueError("surveys must be of the reports of each part")
        sums = np.bincount(survey.at, survey.weights, len(part.counts))
        if not np.allclose(sums, part.counts, rtol=1e-9, atol=0):
            raise ValueError("weights of a survey must sum to those of the reports")


def _refuse_other_reports(mechanism: Any, reports: NDArray[Any]) -> None:
    """Raise ValueError for reports that are not in the form in which the mechanism keeps them."""
    if isinstance(mechanism, LikelihoodRows):
        n = len(mechanism.entries)
        if reports.dtype != np.int64 or not ((reports >= 0) & (reports < n)).all():
            raise ValueError(f"reports must be from 0 to {n - 1}")
        return
    # The reports behind sums are not known, so there is nothing to check.
    if not has_likelihood(mechanism):
        return
    for start in range(0, len(reports), BLOCK):
        kept = reports[start : start + BLOCK]
        again = mechanism.check_reports(mechanism.restore_reports(kept))
        if again.dtype != kept.dtype or not np.array_equal(again, kept):
            raise ValueError(f"reports must be those of {mechanism!r}, in the form that it keeps")
