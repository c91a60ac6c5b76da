"""An estimate that leaves out reports which no honest population explains."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit.design.attack._adversary import Suspect, scan, with_adversaries
from ibukit.distributions import uniform
from ibukit.estimate import Estimate
from ibukit.estimators import Change, Discrepancy, Gap, Steps, ibu, mle
from ibukit.mechanisms.base import single_part
from ibukit.tally import Part, Tally

Report = int | tuple[int, ...]


@dataclass(frozen=True)
class RobustEstimate:
    """What `robust_mle` found.

    Attributes
    ----------
    estimate : Estimate
        Of the honest people. Its `log_likelihood` and `gap` are those of the model with adversaries, if there are any:
        no theta and gamma together with the same `report` fit better by more than `gap` nats per report. It has no
        tally, hence no standard errors, if adversaries were found.
    share : float
        gamma, the adversaries' share of the reports; 0 if none were found.
    report : int or tuple of int or None
        What they send, as the tally keeps it: a code, or a pair of coordinates or bytes of bits; None if none were
        found.
    likelihood_ratio : float
        2 (log-likelihood with adversaries - without), in nats, of the report where it is largest.
    threshold : float
        What the ratio had to exceed.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.attack.robust_mle(ik.RandomizedResponse(3, epsilon=1.0).tally_counts([500, 300, 200]))
    RobustEstimate(no adversaries: likelihood ratio 0.866 <= 20)
    """

    estimate: Estimate
    share: float
    report: Report | None
    likelihood_ratio: float
    threshold: float

    def __repr__(self) -> str:
        if self.report is None:
            return f"RobustEstimate(no adversaries: likelihood ratio {self.likelihood_ratio:.3g} <= {self.threshold:g})"
        return (
            f"RobustEstimate(a share of {self.share:.3g} sends {self.report}: likelihood ratio "
            f"{self.likelihood_ratio:.3g} > {self.threshold:g}; gap {self.estimate.gap:.2g})"
        )


def robust_mle(
    tally: Tally,
    threshold: float = 20.0,
    tol: float = 1e-9,
    stop: Gap | Change | Steps | Discrepancy | None = None,
    start: ArrayLike | None = None,
) -> RobustEstimate:
    """Maximise L(theta, gamma, y) = sum_z counts_z log((1 - gamma) (theta M)_z + gamma [z = y]).

    A share gamma of the reports comes from adversaries who skip the mechanism and all send the same report y, which is
    not known. They enter only if they explain the reports much better than honest people alone: if the likelihood ratio
    2 (max L - max_theta L(theta, 0, y)) exceeds `threshold`. Otherwise the estimate is that of `mle`.

    Parameters
    ----------
    tally : Tally
        Reports of one mechanism.
    threshold : float
        At least 0. If theta were known, honest people would exceed it with probability at most m exp(-threshold / 2),
        for m possible reports, by Chernoff's bound: below 1 % for m = 200 at the default of 20. For theta estimated
        that is a rule of thumb; `detect` has a level that is proven.
    tol : float
        How far each maximum is certified, in nats per report.
    stop : Gap, Change, Steps or Discrepancy, optional
        A rule of `ibu`, for a design that lives on early stopping: gamma and y are found by maximisation as always, and
        the estimate is then IBU's on theta and gamma together, begun at that gamma. None, the default: the maximiser.
    start : array_like, shape (k,), optional
        Where IBU starts, by default from the uniform distribution; only with `stop`.

    Returns
    -------
    RobustEstimate
        ``.estimate``, ``.share``, ``.report``, ``.likelihood_ratio``.

    Raises
    ------
    ConvergenceError
        If a maximum was not certified to `tol`.
    ValueError
        If the tally pools several mechanisms, a parameter is out of range, `start` comes without `stop`, or the best
        explanation leaves nobody honest.

    Notes
    -----
    For a given y the model is a mixture of k + 1 secrets, the last of which always sends y, and L is concave in
    ((1 - gamma) theta, gamma): the solvers and the gap of `mle` apply as they are. Not every y is tried: the dual of
    the honest problem bounds every ratio, and the search ends where the best one exceeds the bounds of all others.

    Adversaries who keep to the mechanism and lie about their secret are not found, here or in any other way: they are
    an honest population (`poison_inputs`).

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Section 7 (the attack).

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 9), epsilon=0.5)
    >>> honest = mechanism.simulate([1000] * 5 + [0] * 5, np.random.default_rng(1))
    >>> attacked = ik.attack.poison_outputs(honest, report=8, fraction=0.05)
    >>> found = ik.attack.robust_mle(attacked)
    >>> found.report, round(found.share, 3), found.estimate.distribution[6:].sum().round(3)
    (8, 0.052, np.float64(0.0))
    >>> ik.mle(attacked).distribution[6:].sum().round(3)
    np.float64(0.074)
    """
    part = single_part(tally)
    limit = 0.0 if threshold == 0 else _validate.positive("threshold", threshold)
    if start is not None and stop is None:
        raise ValueError("start needs a rule to stop by, as stop=ik.Steps(10): the maximiser does not depend on it")
    honest = mle(tally, tol)
    suspect = scan(part, honest, tol)
    ratio = suspect.likelihood_ratio if suspect else 0.0
    if suspect is None or ratio <= limit:
        estimate = honest if stop is None else ibu(tally, start, stop)
        return RobustEstimate(estimate, 0.0, None, ratio, limit)
    joint = suspect.estimate if stop is None else _stopped(part, suspect, stop, start)
    share = float(joint.distribution[-1])
    if share >= 1:
        raise ValueError(f"no honest report is left: adversaries who send {name_of(part, suspect.report)} explain all")
    estimate = replace(
        joint,
        distribution=_validate.frozen(joint.distribution[:-1] / joint.distribution[:-1].sum()),
        method=f"robust {joint.method}",
        alphabet=tally.alphabet,
        tally=None,
    )
    return RobustEstimate(estimate, share, name_of(part, suspect.report), ratio, limit)


def _stopped(
    part: Part, suspect: Suspect, stop: Gap | Change | Steps | Discrepancy, start: ArrayLike | None
) -> Estimate:
    k = len(part.mechanism.alphabet)
    first = uniform(k) if start is None else _validate.distribution("start", start, k)
    share = float(suspect.estimate.distribution[-1])
    return ibu(with_adversaries(part, suspect.report), np.append((1 - share) * first, share), stop)


def name_of(part: Part, report: int) -> Report:
    """A report that was seen, by its index, as the tally keeps it."""
    kept = part.reports[report].tolist()
    return tuple(kept) if isinstance(kept, list) else int(kept)
