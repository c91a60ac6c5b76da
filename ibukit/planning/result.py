"""Results of `plan`: numbers of reports, widths and errors for other numbers, table and plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.linear_functionals import normal_quantile
from ibukit.mechanisms import Mechanism
from ibukit.planning.expected_error import MEAN_SQUARES, mean_square

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Numbers of reports up to which widths and errors are told: more do not fit 64 bits.
MAX_REPORTS = 2**63 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Plan(arguments.ReadOnlyArrays):
    r"""Number of reports of one mechanism that `plan` has found.

    Attributes
    ----------
    mechanism : Mechanism
    n : int
        Reports needed: with this number no interval is wider than `target`.
    target : float
        The requested width, upper end minus lower end.
    level : float
        Confidence level of the intervals.
    variance : float
        Variance of the least certain answer, for one report: its standard error from n reports is
        :math:`\sqrt{\mathrm{variance}/n}`. In the worst case it is an upper bound for all
        distributions.
    gap : float
        Share by which `variance` may be too large: some distribution needs at least :math:`(1 -
        \mathrm{gap})\,n` reports. It is 0 if `near` was given, or if a closed form gives the worst
        case. Otherwise it is nearly 0, or larger if there are too many questions to look at each of
        them.
    question : int
        Index of the least certain answer: a row of `of`, or the code of a secret.
    distribution : ndarray, shape (k,)
        The distribution at which the variance was computed: `near`, or the worst one that was
        found.
    worst_case : bool
        Whether the plan holds for all distributions.
    noise : float
        Relative standard error of `variance`, and of `n`, if it was found from simulated reports;
        else 0.

    Examples
    --------
    >>> import ibukit as ik
    >>> plan = ik.plan(ik.RandomizedResponse(["yes", "no"], epsilon=1.0), width=0.02)
    >>> plan.n, plan.distribution
    (44971, array([0.5, 0.5]))
    """

    mechanism: Mechanism
    n: int
    target: float
    level: float
    variance: float
    gap: float
    question: int
    distribution: Floats
    worst_case: bool
    noise: float = 0.0

    @property
    def name(self) -> str:
        """Short description of the mechanism, without its labels."""
        epsilon = getattr(self.mechanism, "epsilon", None)
        parameter = "" if epsilon is None else f", epsilon={epsilon:.4g}"
        return f"{type(self.mechanism).__name__}(k={self.mechanism.k}{parameter})"

    @overload
    def width(self, n: int) -> float: ...
    @overload
    def width(self, n: Sequence[int] | NDArray[Any]) -> Floats: ...

    def width(self, n: ArrayLike) -> float | Floats:
        r"""Width of the widest interval from n reports.

        It is :math:`2z\sqrt{\mathrm{variance}/n}`.

        Parameters
        ----------
        n : int or array_like of int
            Number of reports, at least 1.

        Returns
        -------
        float or ndarray
            One number for each n, in the shape of `n`; z is the normal quantile at (1 + level) / 2.

        Examples
        --------
        >>> import ibukit as ik
        >>> ik.plan(ik.RandomizedResponse(2, epsilon=1.0)).width([1000, 10_000, 100_000]).round(3)
        array([0.134, 0.042, 0.013])
        """
        users = arguments.users(n, least=1)
        widths = np.asarray(2 * normal_quantile(self.level) * np.sqrt(self.variance / users))
        return float(widths) if widths.ndim == 0 else widths

    @overload
    def error(self, n: int, estimator: str = "mle") -> float: ...
    @overload
    def error(self, n: Sequence[int] | NDArray[Any], estimator: str = "mle") -> Floats: ...

    def error(self, n: ArrayLike, estimator: str = "mle") -> float | Floats:
        r"""Root mean square error of the whole distribution.

        It is :math:`\sqrt{\mathbb E\lVert\mathrm{estimate}-\theta\rVert_2^2}`. The expectation is
        over the secrets, drawn independently from :math:`\theta`, and the noise. In the worst case
        it is the error for the :math:`\theta` for which it is largest, which is mostly not
        `distribution`.

        Parameters
        ----------
        n : int or array_like of int
            Number of reports, at least 1.
        estimator : {"mle", "inv"}
            `mle`, in the limit of many reports and without the effect of the boundary
            (`theory.asymptotic_mse`); or raw matrix inversion, at every n
            (`theory.inv_squared_error`).

        Returns
        -------
        float or ndarray
            One number for each n, in the shape of `n`.

        Raises
        ------
        ValueError
            If `n` is not a whole number or is below 1, or if the estimator is not known.
        NotInvertible
            If the reports do not identify the distribution, though they answer the questions.
        TooLarge
            If the error would need a matrix that is too large.

        Examples
        --------
        >>> import ibukit as ik
        >>> plan = ik.plan(ik.OptimizedUnaryEncoding(10, epsilon=1.0), near=ik.uniform(10))
        >>> round(plan.error(10_000), 4), round(plan.error(10_000, "inv"), 4)
        (0.0585, 0.0622)
        """
        if not arguments.is_one_of(estimator, MEAN_SQUARES):
            raise ValueError(
                f"estimator must be one of {', '.join(map(repr, MEAN_SQUARES))}, got {estimator!r}"
            )
        users = arguments.users(n, least=1)
        if estimator not in self._mean_squares:
            theta = None if self.worst_case else self.distribution
            self._mean_squares[estimator] = mean_square(estimator, self.mechanism, theta)
        errors = np.asarray(np.sqrt(self._mean_squares[estimator] / users))
        return float(errors) if errors.ndim == 0 else errors

    @cached_property
    def _mean_squares(self) -> dict[str, float]:
        # Mean squares by estimator, each computed when it is first asked for.
        return {}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the width against the number of reports, on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import ibukit as ik
        >>> ik.plan(ik.RandomizedResponse(2, epsilon=1.0)).plot().get_xlabel()
        'reports'
        """
        return _draw((self,), ax)

    def __repr__(self) -> str:
        where = "worst case" if self.worst_case else "near the given distribution"
        simulated = f", ± {100 * self.noise:.1g} %" if self.noise else ""
        goal = f"width {self.target:g} at level {self.level:g}"
        return f"Plan({self.name}, n={self.n:,} for {goal}, {where}{simulated})"


@dataclass(frozen=True, eq=False, repr=False)
class Plans:
    """Plans for several mechanisms, from which to choose one.

    Attributes
    ----------
    plans : tuple of Plan
        In the order of the mechanisms. ``plans[0]`` is the first, and the object can be iterated
        over.

    Examples
    --------
    >>> import ibukit as ik
    >>> kinds = ik.RandomizedResponse, ik.OptimizedUnaryEncoding
    >>> plans = ik.plan([kind(20, epsilon=1.0) for kind in kinds], near=ik.uniform(20))
    >>> plans.best.name, plans.best.n
    ('OptimizedUnaryEncoding(k=20, epsilon=1)', 545818)
    """

    plans: tuple[Plan, ...]

    @property
    def best(self) -> Plan:
        """The plan with the fewest reports; the first of equal ones."""
        return min(self.plans, key=lambda each: each.n)

    def to_frame(self, at: int | None = None, estimator: str | None = "mle") -> pd.DataFrame:
        """Return a table with a row for each mechanism: reports needed, width and error.

        Parameters
        ----------
        at : int, optional
            A number of reports; by default the number that the `best` plan needs, or 2^63 - 1 if
            that is less.
        estimator : {"mle", "inv"} or None
            Estimator whose `Plan.error` is added; None for no such column.

        Returns
        -------
        DataFrame
            Columns ``mechanism``, ``epsilon``, ``n`` (reports needed), ``at``, ``width`` and
            ``error`` (from `at` reports).

        Raises
        ------
        ValueError
            If `at` is not a whole number or is below 1, or if `Plan.error` raises it.

        Examples
        --------
        >>> import ibukit as ik
        >>> mechanisms = [ik.RandomizedResponse(20, epsilon=eps) for eps in (1.0, 2.0)]
        >>> plans = ik.plan(mechanisms, width=0.02)
        >>> plans.to_frame(at=100_000).round(4)
                    mechanism  epsilon       n      at   width   error
        0  RandomizedResponse      1.0  671979  100000  0.0518  0.0390
        1  RandomizedResponse      2.0  132120  100000  0.0230  0.0127
        """
        # pandas takes a second to import.
        import pandas as pd

        users = (
            min(self.best.n, MAX_REPORTS)
            if at is None
            else arguments.whole("at", at, 1, MAX_REPORTS)
        )
        rows: list[dict[str, Any]] = []
        for each in self.plans:
            kind = type(each.mechanism).__name__
            epsilon = getattr(each.mechanism, "epsilon", np.nan)
            row = {
                "mechanism": kind,
                "epsilon": epsilon,
                "n": each.n,
                "at": users,
                "width": each.width(users),
            }
            if estimator is not None:
                row["error"] = each.error(users, estimator)
            rows.append(row)
        return pd.DataFrame(rows)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw width against number of reports for each mechanism, on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import ibukit as ik
        >>> plans = ik.plan([ik.RandomizedResponse(20, epsilon=eps) for eps in (1.0, 2.0)])
        >>> for line in plans.plot().get_legend().get_texts():
        ...     print(line.get_text())
        RandomizedResponse(k=20, epsilon=1): 2,687,915
        RandomizedResponse(k=20, epsilon=2): 528,477
        """
        return _draw(self.plans, ax)

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.plans)

    def __getitem__(self, place: int) -> Plan:
        return self.plans[place]

    def __repr__(self) -> str:
        return "Plans(\n" + "".join(f"  {each},\n" for each in self.plans) + ")"


def _draw(plans: tuple[Plan, ...], ax: Axes | None) -> Axes:
    # matplotlib takes a second to import.
    from ibukit.plotting.interval_widths import draw

    return draw(
        [each.name for each in plans],
        [each.n for each in plans],
        [each.width(1) for each in plans],
        plans[0].target,
        plans[0].level,
        ax,
    )
