"""What an estimate promises: intervals, a band over all secrets, and a summary in words."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from typing import Any

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.domain.linear_functionals import asked
from ibukit.estimate._labelled import Labelled


class Inferred(Labelled):
    """Intervals from the reports, found by a room further down the stream."""

    @abstractmethod
    def _refuse_off_simplex(self) -> None:
        """ValueError where the numbers are no distribution."""

    @override
    def interval(
        self,
        level: float = 0.95,
        of: Any = None,
        method: str = "profile",
        target: str = "distribution",
        **options: Any,
    ) -> tuple[Any, Any]:
        r"""Intervals of the probabilities, or of weighted sums.

        - ``"wald"``: w . theta -+ c standard errors, which cover with probability about `level` at distributions
          without zeros. Cut at what any distribution can have, 0 and 1 for a probability; void
          where that happens.
        - ``"profile"``: the range of w . theta over {theta : L(theta) >= max L - z^2 / 2}, z the normal quantile. Each
          end has a bound by duality, and the range that is returned is proved to contain that of
          the set. Covers with probability about `level` in the limit; where many probabilities are
          0, with more, or under k-RR with less (.55 instead of .95 in the worst case that the
          chapter *How sure can we be?* measures).
        - ``"calibrated"``: the answers v whose likelihood ratio is at most the quantile of the ratios of `draws`
          tallies simulated from the most likely distribution with the answer v. Covers with
          probability about `level` at the boundary, too.
        - ``"guaranteed"``: covers with probability at least `level` at any number of reports, for any mechanism,
          without conditions. `by` says how: "boxes", the range over all :math:`\theta` whose
          reports are as probable as their Clopper-Pearson intervals say, for all questions at once;
          "betting", bets against each end that are designed from a tenth of the reports, narrower
          where reports are of many kinds; "split", "cross-fitted" and "averaged", likelihood ratios
          of halves of the reports (universal inference), also where reports cannot be listed.
        - ``"credible"``: holds w . theta with probability `level` under the posterior of the prior Dirichlet(`alpha`).
        - ``"bootstrap"``: quantiles of the estimates of `draws` tallies, simulated from this estimate or, with
          kind="reports", drawn from the reports. Covers too rarely at the boundary.

        All but Wald's and the parametric bootstrap are of the reports, not of this estimate.
        "wald", "profile", "calibrated", "guaranteed" and "credible" see where reports leave
        directions open.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        of : optional
            Questions, as `standard_errors` takes them.
        method : {"profile", "wald", "calibrated", "guaranteed", "credible", "bootstrap"}
        target : {"distribution", "frequencies"}
            What is to be covered, as `standard_errors` takes it. The frequencies by "wald",
            "credible", "bootstrap", and "guaranteed" by boxes or betting.
        **options
            Of the method. "calibrated": draws=400, seed=0. "guaranteed": by="boxes", seed=0, and
            share=0.1 (the pilot, "betting"), share=0.5 ("split") or splits=10 ("averaged").
            "credible": :math:`\alpha = 1.0`, seed=0. "bootstrap": draws=1000, seed=0,
            kind="parametric", n_jobs=1.

        Returns
        -------
        (lower, upper) : floats, or ndarrays of shape (k,) or (r,)

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1, or the method is not known or not for this target;
            and as `standard_errors`.
        TooLarge
            If the method would take a matrix that is too large, or hours.

        References
        ----------
        .. [clopper] Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
           binomial", Biometrika 26, 1934.
        .. [feldman] Feldman and Cousins, "Unified approach to the classical statistical analysis of small signals",
           Phys. Rev. D 57, 1998 (calibrated).
        .. [universal] Wasserman, Ramdas and Balakrishnan, "Universal inference", PNAS 117, 2020.
        .. [betting] Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", J. R. Statist.
           Soc. B 86, 2024.

        Examples
        --------
        >>> import ibukit as ik
        >>> estimate = ik.mle(ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0).tally_counts([100, 60, 40]))
        >>> lower, upper = estimate.interval(0.95)
        >>> lower.round(3), upper.round(3)
        (array([0.477, 0.195, 0.062]), array([0.68 , 0.381, 0.224]))
        >>> for method in ("wald", "profile", "guaranteed", "credible"):
        ...     lower, upper = estimate.interval(0.95, of={"b": 1, "c": 1}, method=method)
        ...     print(f"{lower:.3f} to {upper:.3f}")
        0.320 to 0.524
        0.320 to 0.523
        0.295 to 0.549
        0.325 to 0.526
        """
        questions, level = asked(of, self.alphabet), arguments.fraction("level", level, "()")
        self._refuse_off_simplex()
        # found by a room further down the stream, which is asked for when it is needed and not
        # before
        found = import_module("ibukit.intervals").interval(
            self, questions, level, method, target, options
        )
        lower, upper = (questions.answer(ends) for ends in found)
        return lower, upper

    def band(
        self,
        level: float = 0.95,
        method: str = "profile",
        target: str = "distribution",
        **options: Any,
    ) -> tuple[Floats, Floats]:
        """Intervals of all probabilities that hold together.

        All k contain what they are for with probability `level`, about or at least, as `method` has
        it. The boxes of "guaranteed" hold together as they are. By other methods each interval has
        the level 1 - (1 - level) / k: the chances that one of them fails add up to 1 - level at
        most (Bonferroni).

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
        level = arguments.fraction("level", level, "()")
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
        >>> tally = ik.RandomizedResponse(["a", "b", "c", "d", "e"], epsilon=2.0).tally_counts([430, 310, 160, 140, 75])
        >>> print(ik.mle(tally).summary())
        1,115 reports; mle, closed form by water-filling: k-RR, k = 5; intervals of level 0.95 by method "profile"
               estimate   lower   upper
        label
        a        0.5158  0.4675  0.5648
        b        0.3282  0.2838  0.3742
        c       0.09365 0.05939  0.1307
        d       0.06238 0.03012 0.09755
        e             0       0 0.01077
        - 1 interval ends at a bound, for e: there its level is not exactly 0.95.
        """
        return import_module("ibukit.intervals").summary(self, level, of, method)
