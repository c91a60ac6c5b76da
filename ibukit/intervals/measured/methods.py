"""The interval methods that allow for the trials of a measured matrix; the others are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.threads import one_thread
from ibukit.errors import MatrixUncertain
from ibukit.intervals.design_effects import wald
from ibukit.intervals.measured.boxes import boxes
from ibukit.intervals.measured.profile import applies, profile
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.tally.trials import refuse_trials

# "wald" and "bootstrap" look at the trials themselves.
ALWAYS = ("wald", "bootstrap")


def method_of(
    request: IntervalRequest, name: str, usual: Callable[..., Ends]
) -> Callable[..., Ends]:
    """Return the method of this name that allows for the trials; `usual` if it does so itself.

    Raises
    ------
    MatrixUncertain
        If none does; the message says what to take instead.
    """
    if name in ALWAYS:
        return usual
    if name == "guaranteed":
        return guaranteed
    if name == "auto":
        return auto
    assert request.tally is not None, "trials are those of a tally"
    if name != "profile":
        refuse_trials(
            [part.mechanism for part in request.tally.parts],
            f"method={name!r}",
            f"take method={_instead(request)}",
        )
    if not applies(request.tally):
        raise MatrixUncertain(
            'method="profile" knows the trials of a measured matrix only for two secrets and two '
            f"reports of one mechanism, got {request.tally!r}: over more matrices the likelihood "
            f"has maxima that no search is proved to find; take method={_instead(request)}"
        )
    return profile


def auto(request: IntervalRequest, **options: Any) -> Ends:
    """Return the joint profile for two secrets with two reports, else Wald's interval."""
    assert request.tally is not None, "trials are those of a tally"
    return profile(request) if applies(request.tally) else wald(request)


def _instead(request: IntervalRequest) -> str:
    assert request.tally is not None, "trials are those of a tally"
    others = '"wald", "bootstrap" or "guaranteed", which know the trials'
    return f'"profile", {others}' if applies(request.tally) else others


def guaranteed(
    request: IntervalRequest, by: str | None = None, seed: int = 0, **options: Any
) -> Ends:
    """Return the ends by boxes; other constructions would take the matrix for exactly known."""
    if by is not None and not arguments.is_one_of(by, ("boxes", "region")):
        raise MatrixUncertain(
            f"by must be 'boxes' where the matrix of a mechanism was measured, got {by!r}: it "
            "alone knows the trials"
        )
    with one_thread():
        return boxes(request, **options)


def default_ends(request: IntervalRequest) -> tuple[Ends, NDArray[Any]]:
    """Return ends for tables and pictures, and the method of each row: "profile" or "wald"."""
    try:
        joint = applies(request.checked_tally())
    except ValueError:
        joint = False
    found, name = (profile(request), "profile") if joint else (wald(request), "wald")
    return found, np.full(len(request.functionals), name, dtype=object)
