"""`ibu` and `gibu`: the iterative Bayesian update, for one mechanism and for several."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import overload

import numpy as np
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.efficiency import to_seen
from ibukit.domain.vectors import VectorLike, positive_distribution_over
from ibukit.errors import ConvergenceError, InvalidDistribution
from ibukit.estimate import Estimate, Status
from ibukit.estimate.estimate_groups import EstimateGroups
from ibukit.estimators.certificate import certified, gap_among_seen
from ibukit.estimators.groups import each_group
from ibukit.estimators.stopping import EarlyRule, Gap, Iterate, Steps, StoppingRule, check_rule
from ibukit.solvers.anderson import Anderson
from ibukit.solvers.em import BatchedSteps, evaluate, updates_of
from ibukit.tally.tally import Tally, check_tally, pool
from ibukit.tally.tally_groups import TallyGroups

# Nats per report: a thousandth of a nat in all for a thousand reports.
DEFAULT_STOP = Gap(1e-6)
# exp of a larger number overflows.
MAX_EXPONENT = 700.0


@overload
def ibu(
    tally: Tally,
    start: VectorLike | None = ...,
    stop: StoppingRule | EarlyRule = ...,
    max_iter: int = ...,
    strict: bool = ...,
    accelerate: bool = ...,
) -> Estimate: ...


@overload
def ibu(
    tally: TallyGroups,
    start: VectorLike | None = ...,
    stop: StoppingRule | EarlyRule = ...,
    max_iter: int = ...,
    strict: bool = ...,
    accelerate: bool = ...,
) -> EstimateGroups: ...


def ibu(
    tally: Tally | TallyGroups,
    start: VectorLike | None = None,
    stop: StoppingRule | EarlyRule = DEFAULT_STOP,
    max_iter: int = 1_000_000,
    strict: bool = False,
    accelerate: bool = False,
) -> Estimate | EstimateGroups:
    r"""The iterative Bayesian update, with a bound on what is left to gain.

    Maximise

    .. math:: L(\theta)=\sum_z\mathrm{counts}_z\,\log(\theta M)_z

    over the simplex. Each step is

    .. math:: \theta_x\leftarrow\sum_z q_z\,\frac{\theta_x M_{xz}}{(\theta M)_z}:

    the average posterior of a user's secret. L never falls, and from a start with full support the
    iteration tends to a maximiser, but slowly. The number of steps is therefore a smoothing
    parameter, so record it with every result. For the maximiser itself `mle` is faster.

    With `accelerate` the steps are extrapolated (Anderson acceleration of :math:`\log \theta`,
    damped and safeguarded). The fixed points are the same and L still never falls. For the ages of
    `load_adult_ages` under strong geometric noise, a few hundred evaluations of the step's formula
    do what takes the plain iteration more than a hundred thousand; but the distributions on the way
    are no longer those of IBU.

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled over several (then this is GIBU).
    start : array_like or labelled, shape (k,), optional
        A distribution without zeros; uniform by default.
    stop : Gap, Change, Steps or Discrepancy
        The rule to stop by. By default the iteration stops when the mean log-likelihood is
        certified within 1e-6 nats of the maximum.
    max_iter : int
        Give up after this many steps.
    strict : bool
        Raise instead of returning an estimate that does not meet the rule.
    accelerate : bool
        Extrapolate the steps. This is only for rules that aim at the maximum: where stopping early
        is the point (Steps, Discrepancy), a number of extrapolated steps would mean something else.

    Returns
    -------
    Estimate
        ``status`` is CONVERGED (STOPPED for the rules that stop early on purpose), MAX_ITER or
        OUT_OF_REACH. ``n_iter`` is the number of steps, accelerated or not, which is the number of
        evaluations of the step's formula after the one at the start. ``gap`` is that of the
        returned vector.

    Raises
    ------
    InvalidDistribution
        If `start` is not on the simplex; if it has a zero, which no step could ever change; or if
        it gives a seen report a probability too small for a double.
    TypeError
        If `stop` is not a stopping rule, or `accelerate` is not a bool.
    ValueError
        If `accelerate` is asked for with a rule that stops early on purpose.
    ConvergenceError
        If `strict` and the rule was not met; carries ``.estimate``.

    Notes
    -----
    Steps run on one thread, and on n threads inside ``with scipy.fft.set_workers(n)``; the digits
    are the same. On two cores a million rows of bits or 512 x 512 cells gain a factor of 1.6 or
    more, but smaller problems gain nothing: see ``benchmarks/README.md``.

    References
    ----------
    .. [agrawal] Agrawal and Aggarwal, "On the design and quantification of privacy preserving data
       mining algorithms", PODS 2001.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, Algorithm 1.
    .. [walker] Walker and Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer.
       Anal. 49, 2011.
    .. [daarem] Henderson and Varadhan, "Damped Anderson acceleration with restarts and monotonicity
       control for accelerating EM and EM-like algorithms", J. Comput. Graph. Stat. 28, 2019.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 4), epsilon=1.0)
    >>> tally = mechanism.simulate([1000, 3000, 3000, 2000, 1000], np.random.default_rng(1))
    >>> ik.ibu(tally).distribution.round(2)
    array([0.1 , 0.3 , 0.29, 0.22, 0.09])
    >>> plain, fast = ik.ibu(tally), ik.ibu(tally, accelerate=True)
    >>> fast.gap <= 1e-6, fast.n_iter < plain.n_iter / 5
    (True, True)
    """
    if isinstance(tally, TallyGroups):
        return each_group(tally, lambda one: ibu(one, start, stop, max_iter, strict, accelerate))
    theta = _start(start, check_tally(tally, lossy=True, weighted=True))
    max_iter = arguments.whole("max_iter", max_iter, 0)
    check_rule(stop)
    # Only rules that stop early on purpose have the method `out_of_reach`.
    out_of_reach = getattr(stop, "out_of_reach", None)
    if arguments.flag("accelerate", accelerate) and out_of_reach is not None:
        raise ValueError(
            f"accelerate must be False with stop={stop}: that rule stops early on purpose, and "
            "extrapolated steps are not IBU's; take Gap or Change, or leave accelerate out"
        )
    before: Iterate | None = None
    step = 0
    # `Steps` needs no look in between: the whole number of steps is one batch.
    last = min(max_iter, stop.n) if type(stop) is Steps else max_iter
    with (
        one_thread(),
        tqdm(desc="ibu", unit=" steps", leave=False, disable=None, delay=1, miniters=1000) as bar,
    ):
        # Compiled updates in batches, or accelerated ones; both return p and g at the new theta.
        updates = updates_of(tally.operator, tally.frequencies)
        walk = (
            Anderson(updates, tally.frequencies, tally.k)
            if accelerate
            else BatchedSteps(updates, _sufficient_ratio(stop))
        )
        p, g = evaluate(updates, theta, len(tally.counts))
        while True:
            now = Iterate(tally, step, theta, p, g)
            met = stop.met(now, before)
            if isinstance(stop, Gap) and (met or step == max_iter):
                # The gap that will be reported comes from another summation, and may differ in its
                # last digits: the rule has to hold for the reported gap.
                met = gap_among_seen(tally, theta) <= stop.tol
            # A certificate that no distribution meets the rule ends the iteration early.
            hopeless = not met and out_of_reach is not None and out_of_reach(now)
            if met or hopeless or step == max_iter:
                break
            before = now
            theta, p, g, taken = walk.move(theta, p, g, last - step)
            step += taken
            bar.update(taken)
    if met:
        status = Status.STOPPED if out_of_reach is not None else Status.CONVERGED
    else:
        status = Status.OUT_OF_REACH if hopeless else Status.MAX_ITER
    estimate = certified(
        tally, theta, status, step, f"ibu, {'accelerated, ' if accelerate else ''}{stop}"
    )
    if arguments.flag("strict", strict) and not met:
        why = (
            "cannot be met by any distribution"
            if hopeless
            else f"was not met within max_iter={max_iter} steps"
        )
        raise ConvergenceError(
            f"stop={stop} {why} (gap {estimate.gap:.3g}); "
            f"{'' if hopeless else 'raise max_iter, '}loosen the rule, or use mle(tally), which "
            "needs few steps",
            estimate,
        )
    return estimate


def gibu(
    tallies: Iterable[Tally],
    start: VectorLike | None = None,
    stop: StoppingRule | EarlyRule = DEFAULT_STOP,
    max_iter: int = 1_000_000,
    strict: bool = False,
    accelerate: bool = False,
) -> Estimate:
    r"""Generalised IBU: one estimate from the reports of several mechanisms.

    Maximise

    .. math:: \sum_A\sum_z\mathrm{counts}^A_z\,\log(\theta M^A)_z

    over the simplex, with one term for each mechanism. The result is that of
    ``ibu(t1 + t2 + ...)``.

    Parameters
    ----------
    tallies : iterable of Tally
        Over the same secrets, of any mechanisms.
    start, stop, max_iter, strict, accelerate
        As `ibu` takes them.

    Returns
    -------
    Estimate
        Of the distribution that all groups of users share.

    Raises
    ------
    ValueError
        If there is no tally.
    AlphabetMismatch
        If the tallies are over different secrets.
    ConvergenceError
        If `strict` and the rule was not met; carries ``.estimate``.

    References
    ----------
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2208.11268, Algorithm 1.

    Examples
    --------
    >>> import ibukit as ik
    >>> careful, careless = ik.RandomizedResponse(2, 0.5), ik.RandomizedResponse(2, 4.0)
    >>> ik.gibu([careful.tally_counts([50, 40]), careless.tally_counts([8, 2])]).n_iter > 0
    True
    """
    if isinstance(tallies, Tally):
        raise TypeError(
            "tallies must be an iterable of tallies, got one tally: pass [tally], or call "
            "ibu(tally)"
        )
    many = arguments.items("tallies", tallies, "an iterable of tallies")
    checked = [check_tally(tally, lossy=True, weighted=True) for tally in many]
    if not checked:
        raise ValueError("tallies must hold at least one tally, got none")
    return ibu(pool(checked), start, stop, max_iter, strict, accelerate)


def _sufficient_ratio(stop: StoppingRule | EarlyRule) -> float | None:
    """Return the largest ratio max g at which a batch of steps pauses for the rule to decide.

    It is None for rules that must see every step, and -inf for those that need to see none.
    """
    if type(stop) is Gap:
        # Rounded up, because a pause too early costs little and one too late breaks the rule.
        return math.exp(min(stop.tol, MAX_EXPONENT)) * (1 + 4 * np.finfo(float).eps)
    return -math.inf if type(stop) is Steps else None


def _start(start: VectorLike | None, tally: Tally) -> Floats:
    if start is None:
        return to_seen(np.full(tally.k, 1 / tally.k), tally.efficiency)
    theta = to_seen(
        positive_distribution_over(
            "start", start, tally.alphabet, "and would stay 0; mix it with the uniform distribution"
        ),
        tally.efficiency,
    )
    least = tally.operator.forward(theta).min()
    # Below the smallest normal double q / p would overflow.
    if least < np.finfo(float).tiny:
        raise InvalidDistribution(
            "start must leave every seen report a probability that a double can hold, the least "
            f"is {least:.3g}; mix it with the uniform distribution"
        )
    return theta.copy()
