"""Weights of a tally in the words of a summary: effective numbers, and what to be careful with."""

from __future__ import annotations

from collections.abc import Iterator

from ibukit.tally.tally import Tally

# Degrees of freedom below which the standard errors themselves are rough, by a quarter or more.
FEW_DEGREES_OF_FREEDOM = 10


def reports_in_words(tally: Tally | None, n: float) -> str:
    """Return how many reports there are, and how many of equal weight they are worth.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    >>> tally = mechanism.tally(["no", "yes"], counts=[1.5, 4.5], weighted=True)
    >>> reports_in_words(tally, tally.n)
    '2 reports with weights that sum to 6, effectively 1.6'
    """
    if tally is None or not tally.weighted:
        return f"{n:,} reports"
    if tally.survey is None:
        return f"reports with weights that sum to {n:,.6g}"
    survey = tally.survey
    return (
        f"{survey.n_reports:,} reports with weights that sum to {n:,.6g}, effectively "
        f"{survey.effective_n:,.4g}"
    )


def about_weights(tally: Tally | None) -> Iterator[str]:
    """Yield what a reader of intervals of weighted reports should know."""
    if tally is None or not tally.weighted:
        return
    survey = tally.survey
    if survey is None:
        yield (
            f"Only sums of weights are known, and {tally.n:,.6g}, their total, stands for the "
            "number of reports: intervals and standard errors are too narrow if weights differ or "
            "are not 1 on average. Make the tally by Tally.from_table(..., weighted=True) of a row "
            "for each report, or scale the weights to sum to their effective number, "
            "(sum w)^2 / (sum w^2)."
        )
        return
    if survey.degrees_of_freedom < 1:
        yield (
            "No stratum has two clusters, so the reports do not tell how much estimates vary: "
            "intervals are void. Join strata that are alike."
        )
    elif survey.degrees_of_freedom < FEW_DEGREES_OF_FREEDOM:
        what = "replicates" if len(survey.replicates) else "clusters"
        yield (
            f"Intervals rest on few {what}, {survey.degrees_of_freedom} degree"
            f"{'s' * (survey.degrees_of_freedom > 1)} of freedom: their level is rough."
        )
    if survey.n_lonely and survey.degrees_of_freedom >= 1:
        some = "1 stratum has" if survey.n_lonely == 1 else f"{survey.n_lonely} strata have"
        yield (
            f"{some} one cluster only, which is compared with 0 and widens the intervals; join "
            "strata that are alike."
        )
