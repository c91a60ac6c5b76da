"""Base class `Channel`, the linear operator of a likelihood, and the channels derived from one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.rounding import UNIT_ROUNDOFF, gamma, underflow
from ibukit._ground.typing import override
from ibukit.channels._gram_kernels import mirror

# Gap, in nats per report, below which a sharper bound on rounding is worth its work.
NEAR_MAXIMUM = 1e-7


class Score(NamedTuple):
    r"""Log-likelihood, gradient and smallest probability at a distribution.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import DenseChannel
    >>> channel = DenseChannel(np.array([[0.9, 0.1], [0.3, 0.7]]))
    >>> score = channel.score(np.array([0.5, 0.5]), np.array([60, 40]))
    >>> score.g, score.gap(n=100)
    (array([100., 100.]), 0.0)
    """

    log_likelihood: float
    """sum_z counts_z log p_z, p = theta M; -inf where a report has no probability."""
    g: Floats
    """sum_z counts_z M_xz / p_z, shape (k,): the gradient of the log-likelihood."""
    least: float
    """The smallest p, or 0 if it is not positive."""

    def gap(self, n: float) -> float:
        r"""The certificate for n reports: :math:`\log \max g / n`, nats per report."""
        return gap_between(self.least, float(self.g[self.g.argmax()]) / n)

    def raised(self, error: float) -> Score:
        """The same score with each g larger by this relative error, rounded upwards.

        A score whose gap is infinite, as off the simplex, has no error to bound.
        """
        if not self.least > 0:
            return self
        if not error < math.inf:
            return self._replace(g=np.full_like(self.g, math.inf))
        # The sum 1 + (...) and the product are rounded once each.
        return self._replace(g=self.g * (1 + (error + 3 * UNIT_ROUNDOFF)))


def gap_between(least: float, largest: float) -> float:
    """Log of the largest g if the smallest probability `least` is positive; inf otherwise.

    By concavity L(phi) - L(theta) <= n log max g for every phi, so this bounds how far theta is
    below the maximum, in nats per report, up to the rounding of g.
    """
    # A subnormal p overflows q / p, and infinity times 0 is NaN: neither certifies anything.
    if not least > 0 or not 0 < largest < math.inf:
        return math.inf
    # The mean of g under theta is 1, so its maximum is below 1 by rounding only.
    return max(0.0, math.log(largest))


def upper_gap(least: float, largest: float, counts: Floats | Ints, n: float) -> float:
    """Log of the largest g / n, rounded upwards; `largest` is not below the exact g.

    The number n is the sum of the counts, which is exact if they are whole. It may be rounded to a
    double, the quotient is rounded once more, and the logarithm errs by less than two units in its
    last place.
    """
    if gap_between(least, largest) == math.inf:
        return math.inf
    log = math.log(largest / n)
    of_total = 0.0 if counts.dtype.kind in "iu" else gamma(len(counts))
    return max(0.0, log + of_total + 4 * UNIT_ROUNDOFF * (1 + abs(log)))


class Channel(ABC):
    """The probabilities :math:`M_{xz}` of the reports seen, as an operator.

    They are the columns of a mechanism's matrix that belong to these reports. A factor that depends
    on the report alone may be left out, because it moves neither a maximiser nor its gap; the
    mechanism states it as its `log_scale`.

    A subclass is a small frozen dataclass that pickles. It has `k` and `size`, and defines
    `forward` and `adjoint`. It overrides whatever else it can do better than by means of these two;
    `testing.check_channel` compares each override with them.

    Examples
    --------
    A report that says nothing except that somebody reported:

    >>> import numpy as np
    >>> class Blind(Channel):
    ...     k, size = 3, 1
    ...
    ...     def forward(self, theta):
    ...         return np.array([theta.sum()])
    ...
    ...     def adjoint(self, w):
    ...         return np.full(3, w[0])
    >>> Blind().gram(np.array([2.0]))
    array([[2., 2., 2.],
           [2., 2., 2.],
           [2., 2., 2.]])
    """

    k: int
    """Number of secrets."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # `forward` and `adjoint` define a channel. A class that defines them anew must not inherit
        # shortcuts that compute another channel's numbers: it gets the defaults back.
        if {"forward", "adjoint"} & vars(cls).keys():
            for name in SHORTCUTS - vars(cls).keys():
                setattr(cls, name, getattr(Channel, name))
        elif "score" in vars(cls):
            for name in ("n_roundings", "upper_score", "sharper_score", "certificate"):
                if name not in vars(cls):
                    setattr(cls, name, getattr(Channel, name))

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of reports, s."""

    @abstractmethod
    def forward(self, theta: Floats) -> Floats:
        r"""Probability of each seen report, :math:`\sum_{x} \theta_x\,M_{xz}`, shape (s,)."""

    @abstractmethod
    def adjoint(self, w: Floats) -> Floats:
        r"""Carry weights on the reports to the secrets: :math:`\sum_{z} M_{xz}\,w_{z}`.

        Shape (s,) in, shape (k,) out.
        """

    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        r"""Log-likelihood and its gradient at :math:`\theta`.

        A subclass may compute it in one pass, without a vector as long as the reports.
        """
        p = self.forward(theta)
        # This is faster than p.min(), which goes through a Python wrapper.
        least = float(p[p.argmin()])
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            g = self.adjoint(counts / p)
        return Score(
            float(counts @ np.log(p)) if least > 0 else -math.inf, g, least if least > 0 else 0.0
        )

    @property
    def n_roundings(self) -> float:
        """Largest number of roundings that a term of g in `score` goes through.

        The count includes the roundings of theta_x M_xz on its way into p_z, and of M_xz counts_z /
        p_z on its way into g_x, but not that of the quotient itself. By default there are as many
        as secrets and reports together, which holds for sums of non-negative products in any order.
        A subclass that multiplies powers, or adds up in blocks, states its own number; a subclass
        that subtracts overrides `upper_score`.
        """
        return self.k + self.size

    def upper_score(self, theta: Floats, counts: Floats | Ints) -> Score:
        r"""The score with each g no less than its exact value at :math:`\theta \ge 0`.

        "Exact" refers to real arithmetic on the doubles in which the channel and :math:`\theta` are
        held. It is this bound that makes a certificate a proof.
        """
        score = self.score(theta, counts)
        # A count may be rounded to a double and divided by p_z, perhaps as a product with 1 / p_z.
        error = gamma(self.n_roundings + 3) + 2 * underflow(self.k, score.least)
        return score.raised(error)

    def sharper_score(self, theta: Floats, counts: Floats | Ints) -> Score | None:
        """A bound nearer to the exact score, for more work; by default None.

        It is for channels whose `upper_score` is too coarse near a maximum.
        """
        return None

    def certificate(self, theta: Floats, counts: Floats | Ints, n: float) -> tuple[float, float]:
        r"""Log-likelihood at :math:`\theta`, and its gap for n reports, nats per report.

        The gap is no less than its exact value, see `upper_score`. A subclass may compute it
        without a vector as long as the secrets.
        """
        score = self.upper_score(theta, counts)
        gap = upper_gap(score.least, float(score.g.max()), counts, n)
        if gap < NEAR_MAXIMUM and (sharper := self.sharper_score(theta, counts)) is not None:
            gap = upper_gap(sharper.least, float(sharper.g.max()), counts, n)
        return score.log_likelihood, gap

    def rows(self, secrets: Ints) -> Floats:
        """Rows :math:`M_{xz}` of some secrets, shape (len(secrets), s)."""
        # The channel of a distribution with all mass on x is row x.
        rows, unit = np.empty((len(secrets), self.size)), np.zeros(self.k)
        for row, x in zip(rows, secrets, strict=True):
            unit[x] = 1.0
            row[:] = self.forward(unit)
            unit[x] = 0.0
        return rows

    def gram(self, weights: Floats) -> Floats:
        r"""Gram matrix M diag(weights) :math:`M^{\top}`, shape (k, k)."""
        # LAPACK works in Fortran order, so it factorises this matrix without a copy.
        total = np.zeros((self.k, self.k), order="F")
        self.add_gram(total, weights)
        mirror(total)
        return total

    def add_gram(self, total: Floats, weights: Floats) -> None:
        r"""Add the lower triangle of M diag(weights) :math:`M^{\top}` to `total`.

        `total` is in Fortran order; what is above its diagonal is not read.
        """
        unit = np.zeros(self.k)
        # Column by column: only one vector as long as the reports is in memory.
        for x in range(self.k):
            unit[x] = 1.0
            total[x:, x] += self.adjoint(weights * self.forward(unit))[x:]
            unit[x] = 0.0

    def unit_columns(self) -> Channel:
        """Scale each report so that its largest entry is 1.

        This changes neither a maximiser nor its gap.
        """
        return self.scaled(1 / self.rows(np.arange(self.k)).max(axis=0))

    def scaled(self, factor: Floats) -> Channel:
        r"""Multiply the entries of report z by :math:`\mathrm{factor}_{z}`, shape (s,)."""
        return ScaledChannel(self, factor)

    def take(self, reports: slice | Ints) -> Channel:
        """Channel of some of the reports, by their indices."""
        return SubsetChannel(self, np.arange(self.size)[reports])

    def with_one_more(self, row: Floats) -> Channel:
        """Add a secret, the last, whose entries are `row`, shape (s,)."""
        return AugmentedChannel(self, row[None])


# Methods that have a default through `forward` and `adjoint`.
SHORTCUTS = frozenset(
    {
        "score",
        "n_roundings",
        "upper_score",
        "sharper_score",
        "certificate",
        "rows",
        "gram",
        "add_gram",
        "take",
        "unit_columns",
        "scaled",
        "with_one_more",
    }
)


@dataclass(frozen=True, eq=False)
class SubsetChannel(Channel):
    """Some of another channel's reports, by their indices."""

    channel: Channel
    reports: Ints

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return self.channel.k

    @property
    @override
    def size(self) -> int:
        return len(self.reports)

    @override
    def forward(self, theta: Floats) -> Floats:
        return self.channel.forward(theta)[self.reports]

    @override
    def adjoint(self, w: Floats) -> Floats:
        # A report may be taken several times, so its weights are added up.
        weights = np.zeros(self.channel.size)
        np.add.at(weights, self.reports, w)
        return self.channel.adjoint(weights)

    @property
    @override
    def n_roundings(self) -> float:
        # Weights of a report that was taken several times are added up.
        return self.channel.n_roundings + len(self.reports)

    @override
    def rows(self, secrets: Ints) -> Floats:
        return self.channel.rows(secrets)[:, self.reports]


@dataclass(frozen=True, eq=False)
class ScaledChannel(Channel):
    """Another channel's reports, each times a factor."""

    channel: Channel
    factor: Floats

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets."""
        return self.channel.k

    @property
    @override
    def size(self) -> int:
        return self.channel.size

    @override
    def forward(self, theta: Floats) -> Floats:
        return self.channel.forward(theta) * self.factor

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self.channel.adjoint(w * self.factor)

    @property
    @override
    def n_roundings(self) -> float:
        return self.channel.n_roundings + 2

    @override
    def rows(self, secrets: Ints) -> Floats:
        return self.channel.rows(secrets) * self.factor


@dataclass(frozen=True, eq=False)
class AugmentedChannel(Channel):
    """Another channel with more secrets, the last ones."""

    channel: Channel
    more: Floats
    """Their entries, shape (secrets added, s)."""

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of secrets, the added ones among them."""
        return self.channel.k + len(self.more)

    @property
    @override
    def size(self) -> int:
        return self.channel.size

    @override
    def forward(self, theta: Floats) -> Floats:
        own = self.channel.k
        return self.channel.forward(theta[:own]) + theta[own:] @ self.more

    @override
    def adjoint(self, w: Floats) -> Floats:
        return np.concatenate([self.channel.adjoint(w), self.more @ w])

    @property
    @override
    def n_roundings(self) -> float:
        # The sums over a new secret's row, and over the new secrets, may be in any order.
        own = max(self.channel.n_roundings, self.size)
        return own + self.size + len(self.more) + 1

    @override
    def rows(self, secrets: Ints) -> Floats:
        # Row 0 of the other channel is a placeholder for the new secrets' rows, set below.
        own = self.channel.k
        rows = self.channel.rows(np.where(secrets < own, secrets, 0))
        rows[secrets >= own] = self.more[secrets[secrets >= own] - own]
        return rows

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # The other channel's own way to its Gram matrix may be far shorter than a column at a time.
        own = self.channel.k
        others = np.zeros((own, own), order="F")
        self.channel.add_gram(others, weights)
        total[:own, :own] += others
        for x, row in enumerate(self.more, own):
            total[x] += self.adjoint(weights * row)

    @override
    def take(self, reports: slice | Ints) -> AugmentedChannel:
        return AugmentedChannel(self.channel.take(reports), self.more[:, reports])

    @override
    def scaled(self, factor: Floats) -> AugmentedChannel:
        return AugmentedChannel(self.channel.scaled(factor), self.more * factor)

    @override
    def with_one_more(self, row: Floats) -> AugmentedChannel:
        return AugmentedChannel(self.channel, np.vstack([self.more, row]))


def sum_scores(scores: Iterable[Score]) -> Score:
    """Score of all reports, from the scores of their parts."""
    each = list(scores)
    total = np.sum([score.g for score in each], axis=0)
    return Score(
        sum(score.log_likelihood for score in each), total, min(score.least for score in each)
    )


def score_in_slices(channel: Channel, theta: Floats, counts: Floats | Ints) -> Score:
    """Score from `forward` and `adjoint` of each of `slices_of` the reports.

    Its temporary vectors are short, and its sums round less than one sum over all reports.
    """
    return sum_scores(
        Channel.score(channel.take(rows), theta, counts[rows]) for rows in slices_of(channel.size)
    )


def summed_in_slices(length: int, at_least: int = 0) -> int:
    """Additions that a term goes through in sums over each of `slices_of` and over all of them."""
    slices = list(slices_of(length, at_least))
    return max((part.stop - part.start for part in slices), default=0) + len(slices)


def slices_of(length: int, at_least: int = 0) -> Iterator[slice]:
    """Cut `length` into 32 slices, or fewer: all but the last have `at_least` or 2048 elements.

    Temporary arrays of a pass by slices are then 1/32 of the reports. The number does not depend on
    the machine, so sums over slices have the same digits everywhere.
    """
    size = max(2048, at_least, -(-length // 32))
    return (slice(start, min(start + size, length)) for start in range(0, length, size))
