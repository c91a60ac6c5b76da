"""`ems`: EM with smoothing, the update of IBU followed by a moving average, as a baseline."""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.domain.alphabet import Line
from ibukit.domain.efficiency import to_all, to_seen
from ibukit.estimate import Estimate, Status
from ibukit.estimators.certificate import certified
from ibukit.estimators.stopping import Change, Iterate, StoppingRule, check_rule
from ibukit.tally.likelihood import ratios
from ibukit.tally.tally import Tally, check_bounded

# Change of the log-likelihood, in nats of all reports, at which the authors' program stops.
DEFAULT_CHANGE = Change(1e-3)


def ems(tally: Tally, stop: StoppingRule = DEFAULT_CHANGE, max_iter: int = 10_000) -> Estimate:
    r"""EM with smoothing (EMS) on a line: IBU's update, then a moving average.

    .. math:: \theta_x\leftarrow\sum_z q_z\,\frac{\theta_x M_{xz}}{(\theta M)_z},

    then

    .. math:: \theta_x\leftarrow\frac{\theta_{x-1}+2\theta_x+\theta_{x+1}}{4},

    or, at the two ends, :math:`(2\theta_x+\theta_y)/3` with the neighbour y; the result is divided
    by its sum. The iteration begins at the uniform distribution. It is the estimator that came with
    the square wave mechanism. It is not known to maximise any function, and the likelihood may fall
    on the way; `gap` says how far from the maximum it ends. Unlike this estimator, `smooth` takes
    the amount of smoothing from the reports. If reports get lost, M holds the probabilities of the
    reports seen, the update is divided by the efficiencies, and the average is taken over all
    secrets.

    Parameters
    ----------
    tally : Tally
        Of secrets on a line, of one mechanism or pooled over several.
    stop : StoppingRule
        By default the iteration stops when a step changes the log-likelihood by less than 0.001
        nats in total.
    max_iter : int
        The largest number of steps.

    Returns
    -------
    Estimate
        ``status`` is STOPPED, or MAX_ITER where the rule was not met.

    Raises
    ------
    TypeError
        If the secrets are not on a line, or `stop` is not a stopping rule.
    ValueError
        If `max_iter` is not a whole number, the line has no end, or reports are weighted (the
        subclass `WeightsRefused`).

    References
    ----------
    .. [sw] Li, Wang, Lopuhaa-Zwakenberg, Skoric and Li, "Estimating numerical distributions under
       local differential privacy", SIGMOD 2020, Algorithm 1.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.TruncatedGeometric(ik.Line(0, 4), epsilon=1.0)
    >>> tally = mechanism.simulate([1000, 3000, 3000, 2000, 1000], np.random.default_rng(1))
    >>> ik.ems(tally).distribution.round(2)
    array([0.19, 0.22, 0.23, 0.2 , 0.16])
    """
    check_bounded(tally, "a moving average needs the ends of the line", lossy=True)
    if not isinstance(tally.alphabet, Line):
        raise TypeError(
            "tally must be of secrets on a Line, whose neighbours are averaged, got "
            f"{tally.alphabet!r}"
        )
    max_iter = arguments.whole("max_iter", max_iter, 0)
    check_rule(stop)
    efficiency = tally.efficiency
    # The update is made to phi, the distribution of the secrets seen, the average to that of all.
    phi = to_seen(np.full(tally.k, 1 / tally.k), efficiency)
    before: Iterate | None = None
    with one_thread(), tqdm(desc="ems", unit=" steps", leave=False, disable=None, delay=1) as bar:
        for step in range(max_iter + 1):
            p, g = ratios(tally, phi)
            now = Iterate(tally, step, phi, p, g)
            met = stop.met(now, before)
            if met or step == max_iter:
                break
            # phi g is the update of IBU.
            before = now
            phi = to_seen(moving_average(to_all(phi * g, efficiency)), efficiency)
            bar.update()
    return certified(tally, phi, Status.STOPPED if met else Status.MAX_ITER, step, f"ems, {stop}")


def moving_average(theta: Floats) -> Floats:
    """Average neighbours with the weights 1, 2, 1, at the ends 2, 1, and normalise."""
    if len(theta) == 1:
        return theta
    total, weight = 2 * theta, np.full(len(theta), 4.0)
    total[1:] += theta[:-1]
    total[:-1] += theta[1:]
    weight[[0, -1]] = 3
    means = total / weight
    return means / means.sum()
