"""Intervals of unfolded numbers, and of their shares where there is a background."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import LinearFunctionals, normal_quantile
from ibukit.estimators.unfolding.poisson import maximise_signal
from ibukit.intervals.poisson.boxes import GarwoodRegion
from ibukit.intervals.poisson.model import (
    PoissonModel,
    PoissonRegion,
    cut_at_zero,
    number_ends,
    share_ends,
)
from ibukit.intervals.poisson.profile import PoissonProfile
from ibukit.intervals.request import Ends
from ibukit.intervals.resampling import enough_draws, rank_of, seeded

METHODS = ("auto", "profile", "wald", "guaranteed", "bootstrap")


class PoissonIntervals:
    """Intervals of one Poisson model: of the numbers lambda or of their shares.

    Parameters
    ----------
    model : PoissonModel
    numbers : ndarray, shape (k,)
        The estimate, from which the bootstrap draws.
    errors_of_numbers : callable
        Returns the standard errors of functionals of the numbers.
    """

    def __init__(
        self,
        model: PoissonModel,
        numbers: Floats,
        errors_of_numbers: Callable[[LinearFunctionals], Floats],
    ):
        self._model, self._numbers = model, numbers
        self._errors_of_numbers = errors_of_numbers

    def of_numbers(
        self, functionals: LinearFunctionals, level: float, method: str, options: dict[str, Any]
    ) -> Ends:
        """Return the ends of the numbers w . lambda of each functional."""
        if method == "wald":
            _refuse_options(method, options)
            middle = functionals.values(self._numbers)
            margin = normal_quantile(level) * self._errors_of_numbers(functionals)
            return cut_at_zero(middle - margin, middle + margin, functionals)
        if method == "bootstrap":
            drawn = np.array(
                [functionals.values(lam) for lam in self._draws(level, method, **options)]
            )
            return _quantiles(drawn, drawn, level)
        return number_ends(self._region(level, method, options), functionals)

    def of_shares(
        self, functionals: LinearFunctionals, level: float, method: str, options: dict[str, Any]
    ) -> Ends:
        """Return the ends of the shares w . lambda / sum lambda, by a method other than Wald's."""
        if method == "bootstrap":
            low, high = [], []
            for lam in self._draws(level, method, **options):
                # Without a signal no share is determined, and the draw leaves all possible values.
                some = lam.sum() > 0
                shares = functionals.values(lam / lam.sum()) if some else None
                low.append(functionals.least if shares is None else shares)
                high.append(functionals.most if shares is None else shares)
            return _quantiles(np.array(low), np.array(high), level)
        return share_ends(self._region(level, method, options), functionals)

    def _region(self, level: float, method: str, options: dict[str, Any]) -> PoissonRegion:
        if not arguments.is_one_of(method, METHODS):
            raise ValueError(
                "method must be one of "
                f"{', '.join(map(repr, METHODS))} for numbers of events and over a background, got "
                f"{method!r}"
                + (
                    ": a posterior would need a prior of the number of events"
                    if arguments.is_one_of(method, ("credible",))
                    else ""
                )
            )
        if method == "guaranteed" and options.get("by") in (None, "region", "boxes"):
            options = {name: value for name, value in options.items() if name not in ("by", "seed")}
        _refuse_options(method, options)
        model = self._model.check_whole(method)
        return (PoissonProfile if method == "profile" else GarwoodRegion)(model, level)

    def _draws(self, level: float, method: str, draws: int = 1000, seed: int = 0) -> list[Floats]:
        """Return the most likely numbers behind drawn counts, for the bootstrap."""
        draws, rng = enough_draws(draws, (1 + level) / 2), seeded(seed)
        model = self._model.check_whole(method)
        expected = self._numbers @ model.response + model.background
        # Rounded, so that the same draws are made on every machine.
        expected = np.round(expected, 12 - _digits(expected))
        with one_thread():
            return [
                maximise_signal(model.among_seen, drawn, model.background).seen / model.efficiency
                for drawn in tqdm(
                    rng.poisson(expected, (draws, len(expected))).astype(np.float64),
                    desc="bootstrap",
                    disable=None,
                    leave=False,
                )
            ]


def _digits(expected: Floats) -> int:
    """Return the number of digits before the point of the largest mean."""
    return max(0, math.ceil(math.log10(max(float(expected.max()), 1.0))))


def _refuse_options(method: str, options: dict[str, Any]) -> None:
    if options:
        raise ValueError(
            f"method={method!r} takes no option {next(iter(options))!r} for numbers of events and "
            "over a background"
        )


def _quantiles(low: Floats, high: Floats, level: float) -> Ends:
    """Return the order statistics that leave equally many draws on both sides."""
    rank = rank_of(len(low), (1 + level) / 2)
    return np.sort(low, axis=0)[len(low) - rank], np.sort(high, axis=0)[rank - 1]
