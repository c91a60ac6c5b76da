"""How good is this distribution? Its likelihood, and a proof of how far that is from the best there is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._validate import Floats, Ints
from ibukit.estimate import Estimate, Status
from ibukit.estimators._certificate_kernels import read_responses
from ibukit.mechanisms.channels import BitChannel, DiagonalPlusConstantChannel
from ibukit.tally import Channel, Tally, check_tally


def gap(tally: Tally, distribution: ArrayLike) -> float:
    """Certify a distribution: max over phi of mean log-likelihood(phi) - mean log-likelihood(theta) <= gap.

    With g_x = sum_z q_z M_xz / (theta M)_z the gap is log max_x g_x, because for any phi on the simplex, by Jensen,
    sum_z q_z log((phi M)_z / (theta M)_z) <= log sum_x phi_x g_x <= log max_x g_x. Where the secrets' alphabet has no
    end it holds for all phi on the whole of it: see `Tally.whole`.

    Parameters
    ----------
    tally : Tally
    distribution : array_like, shape (k,)
        Any distribution of the secrets, wherever it came from.

    Returns
    -------
    float
        Nats per report, at least 0; 0 exactly at a maximiser, inf where a seen report has probability 0.
        It bounds the likelihood, not the distance to the truth.

    Raises
    ------
    InvalidDistribution
        If `distribution` is not on the simplex.
    AlphabetMismatch
        If it does not have one probability for each secret.

    References
    ----------
    .. [lindsay] Lindsay, "The geometry of mixture likelihoods", Annals of Statistics 11, 1983 (the gradient function).

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.MatrixMechanism([[0.9, 0.1], [0.3, 0.7]]).tally_counts([60, 40])
    >>> round(ik.gap(tally, [0.5, 0.5]), 12)  # 0.6 = (0.9 + 0.3) / 2: the uniform distribution fits exactly
    0.0
    >>> round(ik.gap(tally, [0.4, 0.6]), 4)
    0.0834
    """
    theta = _validate.distribution("distribution", distribution, check_tally(tally).k)
    return _read(tally, theta)[1]


def ratios(tally: Tally, theta: Floats) -> tuple[Floats, Floats]:
    """Probabilities p of the seen reports, and g_x = sum_z q_z M_xz / p_z."""
    pieces, g = [], np.zeros(tally.k)
    for block in _blocks(tally):
        p, share = block.ratios(theta, block.shares(tally.n))
        pieces.append(p)
        g += share
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces), g


def gap_of(p: Floats, g: Floats) -> float:
    """The gap from `ratios`."""
    return _gap(float(p.min()), float(g.max()))


def log_likelihood_of(tally: Tally, p: Floats) -> float:
    """L in nats from the probabilities p of the seen reports."""
    if not (p > 0).all():
        return -math.inf
    log_p = np.log(p)
    log_p += tally.log_scale
    return tally.n * float(tally.frequencies @ log_p)


def certified(tally: Tally, theta: Floats, status: Status, n_iter: int, method: str) -> Estimate:
    """The estimate with its likelihood and gap, both computed on the vector that is returned."""
    log_likelihood, excess = _read(tally, theta)
    off = status is Status.OFF_SIMPLEX
    return Estimate(
        distribution=_validate.frozen(theta),
        log_likelihood=log_likelihood,
        gap=math.inf if off else excess,
        status=status,
        n_iter=n_iter,
        method=method,
        alphabet=tally.alphabet,
        tally=tally,
    )


def certified_anywhere(tally: Tally, v: Floats, status: Status, n_iter: int, method: str) -> Estimate:
    """The same of a vector that may lie off the simplex; the status then says so."""
    on_simplex = (v >= 0).all() and abs(v.sum() - 1) <= _validate.SUM_TOLERANCE
    return certified(tally, v, status if on_simplex else Status.OFF_SIMPLEX, n_iter, method)


def as_estimate(found: Estimate | ArrayLike, tally: Tally, name: str, method: str) -> Estimate:
    """An estimate as it is; a bare distribution, called `name` where it is none, with its certificate."""
    if isinstance(found, Estimate):
        return found
    theta = _validate.distribution(name, found, tally.k)
    return certified(tally, theta.copy(), Status.CLOSED_FORM, 0, method)


@dataclass(frozen=True)
class _Block:
    """Some of the reports that came through one mechanism."""

    channel: Channel
    counts: Ints
    log_scale: Floats

    def shares(self, n: int) -> Floats:
        """What part of the n reports each is."""
        return np.asarray(self.counts / n)

    def ratios(self, theta: Floats, q: Floats) -> tuple[Floats, Floats]:
        """Probabilities, and these reports' share of g."""
        p = self.channel.forward(theta)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return p, self.channel.adjoint(q / p)


def _blocks(tally: Tally) -> Iterator[_Block]:
    """Rows of bits, of which there may be as many as users, in stretches, so that no vector is as long as they."""
    if type(tally.operator) is not BitChannel:
        yield _Block(tally.operator, tally.counts, tally.log_scale)
        return
    for stretch in stretches(len(tally.counts)):
        piece = replace(tally.operator, rows=tally.operator.rows[stretch], scale=tally.operator.scale[stretch])
        yield _Block(piece, tally.counts[stretch], tally.log_scale[stretch])


def stretches(length: int) -> Iterator[slice]:
    """Thirty-two slices, unless there is little to cut."""
    size = max(2048, -(-length // 32))
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _read(tally: Tally, theta: Floats) -> tuple[float, float]:
    """Log-likelihood and gap without keeping a number for each report."""
    operator = tally.operator
    if type(operator) is DiagonalPlusConstantChannel:
        extra = operator.diagonal - operator.off
        mean_log, least, largest = read_responses(
            theta, float(theta.sum()), operator.reports, tally.counts, float(tally.n), operator.off, extra
        )
        return tally.n * mean_log if least > 0 else -math.inf, _gap(least, largest)
    mean_log, least, g = 0.0, math.inf, np.zeros(tally.k)
    for block in _blocks(tally):
        q = block.shares(tally.n)
        p, share = block.ratios(theta, q)
        g += share
        least = min(least, float(p.min())) if p.min() > 0 else 0.0  # 0 for NaN, too
        if least > 0:
            log_p = np.log(p)
            log_p += block.log_scale
            mean_log += float(q @ log_p)
    return tally.n * mean_log if least > 0 else -math.inf, _gap(least, float(g.max()))


def _gap(least: float, largest: float) -> float:
    # a subnormal p overflows q / p, and infinity times 0 is NaN: neither certifies anything
    if not least > 0 or not 0 < largest < math.inf:
        return math.inf
    # g averages to 1 under theta, so its maximum is below 1 by rounding only
    return max(0.0, math.log(largest))
