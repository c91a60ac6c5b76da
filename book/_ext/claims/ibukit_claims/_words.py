"""Set sentences of a paper beside our findings: one set of margins, and tested verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ibukit._ground import arguments
from ibukit_claims._comparison import Comparison
from ibukit_claims._published import AGREES, WITH_NOTE, InvalidClaim
from ibukit_claims._setting import is_published, say

# margins for the ratio of two estimators' errors, chosen once for the whole book; the margins for
# "same" and "similar" are two-sided
MARGINS = {
    "same": (1 / 1.05, 1.05),
    "similar": (1 / 1.25, 1.25),
    "slightly larger": (1.0, 1.25),
    "larger": (1.0, math.inf),
    "substantially larger": (1.25, math.inf),
}


def agrees(word: str, ratio: float, standard_error: float = 0.0) -> bool:
    """Tell if a ratio of two errors is what a word of comparison says.

    The book has one set of margins for these words. ``low <= ratio <= high`` within two standard
    errors, with (low, high) = `MARGINS` [word]: "same" 5 %, "similar" 25 % either way, "slightly
    larger" up to 25 %, "larger" above 1, "substantially larger" above 1.25.

    Parameters
    ----------
    word : str
        One of `MARGINS`.
    ratio : float
        The error said to be larger over the other error; in any order for "same" and "similar".
    standard_error : float
        Standard error of the ratio; 0 if the ratio does not depend on chance.

    Returns
    -------
    bool
        False only if the ratio is outside the margin by more than chance explains.

    Raises
    ------
    ValueError
        If the word has no margin, or a number is not finite or negative.

    Examples
    --------
    >>> agrees("same", 1.08, 0.02), agrees("same", 1.13, 0.02)
    (True, False)
    >>> agrees("substantially larger", 3.0, 0.1)
    True
    """
    if not arguments.is_one_of(word, MARGINS):
        raise ValueError(f"word must be one of {', '.join(MARGINS)}, got {word!r}")
    ratio = arguments.positive("ratio", ratio)
    chance = 2 * arguments.from_zero("standard_error", standard_error)
    low, high = MARGINS[word]
    return low - chance <= ratio <= high + chance


def statements(rows: Iterable[tuple[str, bool | None, str, str]]) -> Comparison:
    """A table of published sentences beside what we find.

    The columns are the sentence of the paper, what we find, and the verdict; sentences that deviate
    come first. Each verdict is checked against its test.

    Parameters
    ----------
    rows : iterable of (sentence, held, found, verdict)
        The paper's sentence with its place; whether our test of it holds, None where there is none;
        what we find, in words; the verdict. *Reproduced*, *fitted* and *holds with a condition*
        need a test that holds, *deviates* one that does not, *not checkable* none.

    Returns
    -------
    Comparison
        Draws itself in a notebook and in print, the same every time.

    Raises
    ------
    AssertionError
        Where a verdict and its test disagree, or where what we find is not said and the verdict
        needs it. Outside the published setting (see `published`) such a verdict is replaced by "not
        in this setting".
    InvalidClaim
        If a verdict is none of these words.

    Examples
    --------
    >>> said, found = "the bound is almost one (Fig. 4)", "0.993 at n = 25"
    >>> statements([(said, 0.9927 > 0.99, found, "reproduced")])
                      the paper says         we find    verdict
    the bound is almost one (Fig. 4) 0.993 at n = 25 reproduced
    """
    table = []
    wrong: list[str] = []
    for said, held, found, verdict in rows:
        if verdict not in (*AGREES, "deviates", "not checkable"):
            known = ", ".join((*AGREES, "deviates", "not checkable"))
            raise InvalidClaim(f"the verdict on {said!r} must be one of {known}, got {verdict!r}")
        faults = len(wrong)
        wanted = None if verdict == "not checkable" else verdict in AGREES
        if (None if held is None else bool(held)) is not wanted:
            wrong.append(f"{said}: the test says {held}, the verdict is {verdict}")
        if verdict in WITH_NOTE and not found:
            wrong.append(f"{said}: {verdict}, but what we find is not said")
        shown = verdict if is_published() or len(wrong) == faults else "not in this setting"
        table.append({"the paper says": said, "we find": found, "verdict": shown})
    if not is_published():
        for text in wrong:
            say(text)
    elif wrong:
        raise AssertionError("\n".join(wrong))
    return Comparison(table)
