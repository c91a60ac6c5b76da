"""What an estimate promises: intervals, a band over all secrets, and a summary in words."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import Any

from ibukit import _validate
from ibukit._validate import Floats
from ibukit.estimate._labelled import Labelled
from ibukit.estimate.questions import asked


class Inferred(Labelled):
    """Intervals from the reports, found by a room further down the stream."""

    @abstractmethod
    def _refuse_off_simplex(self) -> None:
        """ValueError where the numbers are no distribution."""

    def interval(
        self,
        level: float = 0.95,
        of: Any = None,
        method: str = "profile",
        target: str = "distribution",
        **options: Any,
    ) -> tuple[Any, Any]:
        """Intervals of the probabilities, or of weighted sums.

        - ``"wald"``: w . theta -+ c standard errors, which cover with probability about `level` at distributions
          without zeros. Cut at what any distribution can have, 0 and 1 for a probability.
        - ``"profile"``: the range of w . theta over {theta : L(theta) >= max L - z^2 / 2}, z the normal quantile. Each
          end has a bound by duality, and the range that is returned is proved to contain that of the set. Covers with
          probability about `level` in the limit; with less where the truth is at the boundary.
        - ``"guaranteed"``: the range over all theta whose reports are as probable as their Clopper-Pearson intervals
          say, taken together. Covers with probability at least `level` at any number of reports, for any mechanism
          whose reports can be listed, and for all questions at once.

        All but the first are of the reports, not of this estimate, and hold where reports leave directions open.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        of : optional
            Questions, as `standard_errors` takes them.
        method : {"profile", "wald", "guaranteed"}
        target : {"distribution", "frequencies"}
            What is to be covered, as `standard_errors` takes it; the frequencies by "wald" and "guaranteed".
        **options
            Of the method.

        Returns
        -------
        (lower, upper) : floats, or ndarrays of shape (k,) or (r,)

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or the method is not known or not for this target; and as
            `standard_errors`.
        TooLarge
            If the method would take a matrix that is too large.

        References
        ----------
        .. [clopper] Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
           binomial", Biometrika 26, 1934.

        Examples
        --------
        >>> import ibukit as ik
        >>> estimate = ik.mle(ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0).tally_counts([500, 300, 200]))
        >>> lower, upper = estimate.interval(0.95)
        >>> lower.round(3), upper.round(3)
        (array([0.533, 0.243, 0.102]), array([0.624, 0.327, 0.175]))
        >>> for method in ("wald", "profile", "guaranteed"):
        ...     lower, upper = estimate.interval(0.95, of={"b": 1, "c": 1}, method=method)
        ...     print(f"{lower:.3f} to {upper:.3f}")
        0.376 to 0.467
        0.376 to 0.467
        0.365 to 0.478
        """
        questions, level = asked(of, self.alphabet), _validate.fraction("level", level, "()")
        self._refuse_off_simplex()
        # found by a room further down the stream, which is asked for when it is needed and not before
        found = import_module("ibukit.intervals").interval(self, questions, level, method, target, options)
        lower, upper = (questions.answer(ends) for ends in found)
        return lower, upper

    def band(
        self, level: float = 0.95, method: str = "profile", target: str = "distribution", **options: Any
    ) -> tuple[Floats, Floats]:
        """Intervals of all probabilities that hold together.

        All k contain what they are for with probability `level`, about or at least, as `method` has it. The boxes of
        "guaranteed" hold together as they are. By other methods each interval has the level 1 - (1 - level) / k: the
        chances that one of them fails add up to 1 - level at most (Bonferroni).

        Parameters
        ----------
        level : float
            Strictly between 0 and 1, of the band.
        method, target, **options
            As `interval` takes them.

        Returns
        -------
        (lower, upper) : ndarrays, shape (k,)

        Raises
        ------
        ValueError, TooLarge
            As `interval`.

        Examples
        --------
        >>> import ibukit as ik
        >>> estimate = ik.mle(ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0).tally_counts([500, 300, 200]))
        >>> lower, upper = estimate.band(0.95)
        >>> lower.round(3), upper.round(3)
        (array([0.523, 0.235, 0.095]), array([0.634, 0.336, 0.184]))
        """
        level = _validate.fraction("level", level, "()")
        each = import_module("ibukit.intervals").level_of_each(level, len(self), method, options)
        lower, upper = self.interval(each, method=method, target=target, **options)
        return lower, upper

    def summary(self, level: float = 0.95, of: Any = None, method: str | None = None) -> Any:
        """A table to be read: estimate, interval, and in words what to be careful about.

        Parameters
        ----------
        level : float
            Of the intervals, strictly between 0 and 1.
        of : optional
            Questions, as `standard_errors` takes them; a row for each.
        method : str, optional
            As `to_frame` takes it.

        Returns
        -------
        Summary
            With the attributes `table`, a DataFrame, and `warnings`; prints both.

        Raises
        ------
        ValueError, TooLarge
            As `interval`.

        Examples
        --------
        >>> import ibukit as ik
        >>> tally = ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0).tally_counts([430, 310, 80])
        >>> print(ik.mle(tally).summary())
        820 reports; mle, closed form by water-filling: k-RR, k = 3; intervals of level 0.95 by method "profile"
               estimate  lower  upper
        label
        a        0.6065 0.5595 0.6527
        b        0.3935 0.3473 0.4405
        c             0      0 0.0215
        - 1 interval ends at a bound, for c: there its level is not exactly 0.95.
        """
        return import_module("ibukit.intervals").summary(self, level, of, method)
