"""Answers that users keep: drawn once, and reported on in every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments


@dataclass(frozen=True, eq=False)
class KeptAnswers(arguments.ReadOnlyArrays):
    """The memoised answers of users, as ``mechanism.keep(secrets)`` draws them.

    A device stores its answer for ever, and hands it to ``mechanism.release`` in each round. To
    store answers, pickle this object, or save `answers` and make the object again from them.

    Parameters
    ----------
    mechanism : Memoised
        The mechanism that drew the answers.
    answers : array_like, n answers
        Codes, rows of bits, or rows of a seed and a bucket.

    Raises
    ------
    TypeError
        If the mechanism keeps no answer.
    AlphabetMismatch
        If an answer is not one that the mechanism can draw.
    """

    mechanism: Any
    answers: NDArray[Any]

    def __post_init__(self) -> None:
        """Check the answers, and copy them."""
        if not hasattr(self.mechanism, "keep"):
            raise TypeError(
                "mechanism must be one that keeps answers, such as LongitudinalResponse, got "
                f"{self.mechanism!r}"
            )
        # Kept answers have the form of reports in all these mechanisms.
        mechanism = self.mechanism
        checked = np.array(mechanism.restore_reports(mechanism.check_reports(self.answers)))
        object.__setattr__(self, "answers", arguments.frozen(checked))

    def __len__(self) -> int:
        return len(self.answers)
