"""Stopping rules of iterations, with names because published figures depend on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.efficiency import to_all
from ibukit.estimators._expected_deviance import expected_deviance_term
from ibukit.tally.likelihood import gap_of, log_likelihood_of
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.tally import Tally, check_tally


class Iterate:
    """One iterate: theta, the probabilities p of the seen reports under it, and the ratios g."""

    def __init__(self, tally: Tally, n_iter: int, distribution: Floats, p: Floats, g: Floats):
        self.tally = tally
        self.n_iter = n_iter
        # If reports get lost, the iteration runs among the secrets seen; rules are about all.
        self.distribution = to_all(distribution, tally.efficiency)
        self.p = p
        self.g = g

    @property
    def gap(self) -> float:
        """The certificate at theta, in nats per report."""
        return gap_of(self.p, self.g)

    @cached_property
    def log_likelihood(self) -> float:
        """The log-likelihood L at theta, in nats, of all reports together."""
        return log_likelihood_of(self.tally, self.p)

    @cached_property
    def deviance(self) -> float:
        """G^2 = 2 sum_z counts_z log(q_z / P(z)), q the frequencies within each mechanism."""
        require_law((part.mechanism for part in self.tally.parts), "a deviance")
        # Each mechanism's reports are a multinomial sample of their own.
        total = 0.0
        for part, log_probability in self.tally.split(self._log_p):
            total += part.counts @ (np.log(part.counts / part.counts.sum()) - log_probability)
        return 2 * float(total)

    @cached_property
    def expected_deviance(self) -> float:
        """Unbiased estimate of the mean deviance of reports drawn from theta."""
        # Chance moves people, so counts that are weights are refused.
        check_tally(self.tally, lossy=True)
        # Each mechanism's probabilities sum to 1, which takes one degree of freedom.
        total = -float(len(self.tally.parts))
        for part, log_probability in self.tally.split(self._log_p):
            total += expected_deviance_term(math.log(part.counts.sum()) + log_probability).sum()
        return total

    @cached_property
    def _log_p(self) -> Floats:
        return np.log(self.p) + self.tally.log_scale


class StoppingRule(Protocol):
    """Decides whether to stop, from this iterate and the one before (None at the start).

    This is a protocol: any object with the method `met` is a rule for `ibu` and `gibu`, and need
    not inherit from this class. An iterate has `n_iter`, `distribution` (k,), `gap` and
    `log_likelihood`, and `tally`. A frozen dataclass has the repr by which the tables of
    `replicate` tell rules apart.

    Examples
    --------
    Stop when no probability moves by more than a thousandth in a step:

    >>> from dataclasses import dataclass
    >>> import numpy as np, ibukit as ik
    >>> @dataclass(frozen=True)
    ... class Settled:
    ...     tol: float
    ...
    ...     def met(self, now, before):
    ...         if before is None:
    ...             return False
    ...         return abs(now.distribution - before.distribution).max() <= self.tol
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 300, 200])
    >>> estimate = ik.ibu(tally, stop=Settled(1e-3))
    >>> estimate.status.name, estimate.n_iter, estimate.gap < 0.01
    ('CONVERGED', 34, True)
    """

    def met(self, now: Iterate, before: Iterate | None) -> bool:
        """Return True to stop here."""


def check_rule(stop: StoppingRule | EarlyRule) -> None:
    """Raise TypeError unless `stop` is a rule: a rule's class or its number is not enough."""
    if isinstance(stop, type) or not callable(getattr(stop, "met", None)):
        raise TypeError(
            "stop must be a rule such as Gap(1e-6), Change(1e-6), Steps(10), Discrepancy(), got "
            f"{stop!r}"
        )


class EarlyRule(StoppingRule, Protocol):
    """A rule meant to stop before the maximum; perhaps no distribution meets it."""

    def out_of_reach(self, now: Iterate) -> bool:
        """True if no distribution at all can meet the rule."""


@dataclass(frozen=True)
class Gap:
    """Stop when the likelihood is certified to be near its maximum.

    No distribution can then have a mean log-likelihood that is higher by more than `tol`.

    Parameters
    ----------
    tol : float
        Nats per report.

    Examples
    --------
    >>> Gap(1e-6)
    Gap(tol=1e-06)
    """

    tol: float

    def __post_init__(self) -> None:
        arguments.positive("tol", self.tol)

    def met(self, now: Iterate, before: Iterate | None) -> bool:
        r"""True if :math:`\mathrm{gap} \le \mathrm{tol}`."""
        # Compared as logarithms: exp(tol) overflows for a large tol, and is 1 for a tiny one.
        return now.gap <= self.tol


@dataclass(frozen=True)
class Change:
    r"""Stop when a step changes little, as the papers do.

    The size of a step says nothing about how far away the maximum is.

    Parameters
    ----------
    tol : float
        The papers' :math:`\delta`.
    of : {"log_likelihood", "mean_log_likelihood", "distribution"}
        :math:`|L(\theta^t)-L(\theta^{t-1})|` in nats, total over the reports (ElSalamouny and
        Palamidessi, consistency, Algorithm 1); the same per report (their free-will paper,
        Algorithm 1); or :math:`\max_x|\theta^t_x-\theta^{t-1}_x|`.

    Examples
    --------
    >>> Change(1e-6)
    Change(tol=1e-06, of='log_likelihood')
    """

    tol: float
    of: Literal["log_likelihood", "mean_log_likelihood", "distribution"] = "log_likelihood"

    def __post_init__(self) -> None:
        arguments.positive("tol", self.tol)
        if not arguments.is_one_of(
            self.of, ("log_likelihood", "mean_log_likelihood", "distribution")
        ):
            raise ValueError(
                'of must be "log_likelihood", "mean_log_likelihood" or "distribution", '
                f"got {self.of!r}"
            )

    def met(self, now: Iterate, before: Iterate | None) -> bool:
        """True if the last step changed less than tol."""
        if before is None:
            return False
        if self.of == "distribution":
            return bool(np.abs(now.distribution - before.distribution).max() < self.tol)
        change = abs(now.log_likelihood - before.log_likelihood)
        return change < self.tol * (now.tally.n if self.of == "mean_log_likelihood" else 1)


@dataclass(frozen=True)
class Steps:
    """Stop after exactly `n` steps: early on purpose, like PRIVIC's 5 or 10 steps.

    Parameters
    ----------
    n : int
        0 returns the start.

    Examples
    --------
    >>> Steps(10)
    Steps(n=10)
    """

    n: int

    def __post_init__(self) -> None:
        arguments.whole("n", self.n, 0)

    def met(self, now: Iterate, before: Iterate | None) -> bool:
        """True if n steps are done."""
        return now.n_iter >= self.n

    def out_of_reach(self, now: Iterate) -> bool:
        """Always False: further steps can always be taken."""
        return False


@dataclass(frozen=True)
class Discrepancy:
    r"""Stop when the estimate fits as well as the truth would on average.

    The rule is met as soon as the deviance has fallen to its degrees of freedom. The deviance is
    :math:`2\sum_z\mathrm{counts}_z\,\log\frac{q_z}{P(z)}` over the reports seen. If the reports are
    drawn from P and each is expected often, its mean is the number of distinct reports less one for
    each mechanism. Where some reports are expected seldom, such as those far from all secrets under
    unbounded noise, its mean is larger: it is the mean of :math:`\sum_{z} t(n\,P(z))` over the
    reports seen, again less one for each mechanism, with
    :math:`t(\mu)=\mathbb E\bigl[2C\log\tfrac C\mu\mid C\ge1\bigr]` for a Poisson C of mean
    :math:`\mu`. The rule takes this sum, computed at the current fit, for the degrees of freedom; t
    is 1 for large :math:`\mu`.

    These means hold where the secrets are themselves a sample. For the distribution of these n
    users alone they are too large by :math:`\sum_{xz} \theta_x\,M_{xz}^{2} / P(z) - 1`: usually a
    little, but a great deal where the mechanism hardly hides anything. Where nearly every report is
    different (RAPPOR with many bits) the deviance says nothing about the fit.

    Parameters
    ----------
    factor : float
        Stop at the degrees of freedom plus (`factor` - 1) times the simple count of them, which
        holds if each report is expected often: distinct reports less one for each mechanism.

    Notes
    -----
    Even the best fit can have a larger deviance: `ibu` then stops, with status OUT_OF_REACH, as
    soon as the gap proves that no fit reaches the degrees of freedom of the current fit. This need
    not mean that the model is wrong: chance makes the deviance of the truth itself larger than its
    mean nearly half of the time, and the deviance of the MLE is lower than that only to the extent
    that the MLE fits the noise.

    References
    ----------
    .. [morozov] Morozov's discrepancy principle, for counts: Bardsley and Goldes, Inverse Problems
       25, 2009.
    .. [williams] Williams, "Improved likelihood ratio tests for complete contingency tables",
       Biometrika 63, 1976 (the mean deviance where counts are small).

    Examples
    --------
    >>> Discrepancy()
    Discrepancy(factor=1.0)
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        arguments.positive("factor", self.factor)

    def met(self, now: Iterate, before: Iterate | None) -> bool:
        """True if the deviance is down to the degrees of freedom."""
        # The target comes first: it refuses weights, of which even a deviance may not be computed.
        return self._target(now) >= now.deviance

    def out_of_reach(self, now: Iterate) -> bool:
        """True if even the maximum likelihood estimate misses the target.

        Its deviance is at most 2 n gap below this one.
        """
        # L can rise by n gap at most, and the deviance falls by twice the rise of L.
        return self._target(now) < now.deviance - 2 * now.tally.n * now.gap

    def _target(self, now: Iterate) -> float:
        # For factor 1 this is the expected deviance; the rest scales the usual degrees of freedom.
        return now.expected_deviance + (self.factor - 1) * (
            len(now.tally.counts) - len(now.tally.parts)
        )
