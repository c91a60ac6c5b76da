r"""Numbers of reports for tests: of two groups against each other, or of one against a value.

A difference :math:`\delta` of :math:`w \cdot \theta` is detected with the power

.. math:: \Phi\left(\frac{\delta\sqrt n - z\,\sigma_0}{\sigma_1}\right)

from n reports of each group, where z is the normal quantile of the level. :math:`\sigma_1^2` is the
sum of the variances of one report of each group, at their distributions, and :math:`\sigma_0^2` is
that sum if both groups have the distribution of the hypothesis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, softmax

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.planning.result import Plan
from ibukit.planning.variance_models import VarianceModel

# Share of the uniform distribution that is mixed in before a distribution is shifted, so that a
# share of 0 can grow. No number of reports changes by more than this share of itself.
UNIFORM_SHARE = 1e-9
# Largest tilt of weights from 0 to 1: it turns a share of 1e-9 into one of nearly 1.
MAX_TILT = 100.0


@dataclass(frozen=True, eq=False, repr=False)
class PowerPlan(Plan):
    r"""Number of reports of one mechanism for a test, that `plan` has found.

    It has all that a `Plan` has; `target` is the width of an interval from `n` reports.

    Attributes
    ----------
    n : int
        Reports needed of each group.
    difference : float
        The difference that is to be found.
    power : float
        Probability with which it is found.
    groups : int
        2 for groups compared with each other, 1 for a group compared with a value.
    deviations : tuple of float
        Standard deviations of the difference from one report of each group: without a difference,
        and with it.

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["yes", "no"], epsilon=1.0)
    >>> plan = ik.plan(mechanism, difference=0.05, near=[0.3, 0.7])
    >>> plan.n
    7158
    """

    difference: float = math.nan
    power: float = math.nan
    groups: int = 2
    deviations: tuple[float, float] = (math.nan, math.nan)

    @overload
    def power_at(self, n: int) -> float: ...
    @overload
    def power_at(self, n: Sequence[int] | NDArray[np.int64]) -> Floats: ...

    def power_at(self, n: ArrayLike) -> float | Floats:
        """Probability of finding the difference from n reports of each group.

        Parameters
        ----------
        n : int or array_like of int
            Number of reports, at least 1.

        Returns
        -------
        float or ndarray
            One number for each n, in the shape of `n`.

        Examples
        --------
        >>> import ibukit as ik
        >>> plan = ik.plan(ik.RandomizedResponse(2, epsilon=1.0), difference=0.05)
        >>> plan.power_at([1000, 10_000, 100_000]).round(3)
        array([0.177, 0.905, 1.   ])
        """
        users = arguments.users(n, least=1)
        quantiles = np.sqrt(users) * self.difference - self._z * self.deviations[0]
        powers = np.asarray(ndtr(quantiles / self.deviations[1]), dtype=np.float64)
        return float(powers) if powers.ndim == 0 else powers

    @overload
    def difference_at(self, n: int) -> float: ...
    @overload
    def difference_at(self, n: Sequence[int] | NDArray[np.int64]) -> Floats: ...

    def difference_at(self, n: ArrayLike) -> float | Floats:
        """Difference that is detected with the plan's power from n reports of each group.

        Parameters
        ----------
        n : int or array_like of int
            Number of reports, at least 1.

        Returns
        -------
        float or ndarray
            One number for each n, in the shape of `n`. The variances are those at the planned
            difference.

        Examples
        --------
        >>> import ibukit as ik
        >>> plan = ik.plan(ik.RandomizedResponse(2, epsilon=1.0), difference=0.05)
        >>> plan.difference_at([1000, 10_000, 100_000]).round(3)
        array([0.136, 0.043, 0.014])
        """
        users = arguments.users(n, least=1)
        needed = self._z * self.deviations[0] + float(ndtri(self.power)) * self.deviations[1]
        found = np.asarray(needed / np.sqrt(users))
        return float(found) if found.ndim == 0 else found

    @property
    def _z(self) -> float:
        return normal_quantile(self.level)

    @override
    def __repr__(self) -> str:
        where = "worst case" if self.worst_case else "near the given distribution"
        simulated = f", ± {100 * self.noise:.1g} %" if self.noise else ""
        each = "of each of two groups" if self.groups == 2 else "of one group"
        return (
            f"PowerPlan({self.name}, n={self.n:,} {each} for a difference of "
            f"{self.difference:g} with power {self.power:g} at level {self.level:g}, "
            f"{where}{simulated})"
        )


class PlannedTest(NamedTuple):
    """The test that is planned."""

    difference: float
    power: float
    groups: int

    @classmethod
    def checked(cls, difference: Any, power: Any, groups: Any) -> PlannedTest:
        """Return the test; ValueError if the difference is not positive, or the others invalid."""
        return cls(
            arguments.positive("difference", difference),
            arguments.fraction("power", power, "()"),
            arguments.whole("groups", groups, 1, 2),
        )

    def deviations_near(
        self, theta: Floats, w: Floats, model: VarianceModel
    ) -> tuple[float, float]:
        """Return the deviations from one report of each group, in the worse direction."""

        def variance(at: Floats) -> float:
            return max(0.0, float(model.variances(at, w[None])[0]))

        found = []
        for sign in (1, -1):
            there = shifted(theta, w, sign * self.difference)
            if there is None:
                continue
            if self.groups == 1:
                found.append((variance(theta), variance(there)))
            else:
                # If there is no difference, both groups have the value halfway between the two.
                halfway = 2 * variance((theta + there) / 2)
                found.append((halfway, variance(theta) + variance(there)))
        if not found:
            raise ValueError(
                f"difference must be smaller, got {self.difference:g}: from near the answer can "
                f"rise by less than {float(w.max() - w @ theta):.3g}, and fall by less than "
                f"{float(w @ theta - w.min()):.3g}"
            )
        null, other = max(found, key=sum)
        return math.sqrt(null), math.sqrt(other)

    def reports_needed(self, deviations: tuple[float, float], z: float) -> int:
        """Return the smallest number n >= 1 of reports of each group that has the power."""
        null, other = deviations
        root = max((z * null + float(ndtri(self.power)) * other) / self.difference, 0.0)
        if not math.isfinite(root * root):
            raise ValueError(
                f"difference must be larger, got {self.difference:g}: it takes more reports than a "
                "double can count"
            )
        return max(1, math.ceil(root * root))


def shifted(theta: Floats, w: Floats, difference: float) -> Floats | None:
    """Return the distribution nearest to theta whose w . theta is larger by a difference.

    It is the nearest by relative entropy: probabilities are multiplied by exp(t w). For the share
    of a region the odds of all secrets inside change alike. Return None if no distribution has such
    a value.

    Examples
    --------
    >>> shifted(np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, 0.0]), 0.25).round(3)
    array([0.75, 0.15, 0.1 ])
    """
    least, span = float(w.min()), float(np.ptp(w))
    unit = (w - least) / span
    logs = np.log((1 - UNIFORM_SHARE) * theta + UNIFORM_SHARE / len(theta))
    wanted = float(unit @ theta) + difference / span

    def miss(tilt: float) -> float:
        return float(unit @ softmax(logs + tilt * unit)) - wanted

    if miss(-MAX_TILT) >= 0 or miss(MAX_TILT) <= 0:
        return None
    tilted: Floats = softmax(logs + float(brentq(miss, -MAX_TILT, MAX_TILT)) * unit)
    return tilted
