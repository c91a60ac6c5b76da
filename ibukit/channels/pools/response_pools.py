"""Reports of many small k-ary randomised responses as one channel, so that a pass is one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels.base import Channel, Score, score_in_slices, summed_in_slices
from ibukit.channels.response import ResponseChannel

# Secrets up to which a channel is pooled: a pass over their reports takes at most as long as the
# calls for one mechanism. With more, a mechanism's own loop is faster and rounds less.
MAX_SECRETS_POOLED = 1024


@dataclass(frozen=True, eq=False)
class ResponsePoolChannel(Channel):
    r"""k-ary randomized responses of many mechanisms, each report with its own entries.

    :math:`M_{xz}=\mathrm{diagonal}_z` if report z names secret x, else :math:`\mathrm{off}_z`.

    Parameters
    ----------
    k : int
        Number of secrets.
    reports : ndarray of int, shape (s,)
        The secret that each report names.
    diagonal, off : ndarray, shape (s,)
        For each report the entry of the secret that it names, and that of all others, which may not
        be larger: the bound on rounding needs sums without cancellation.

    Raises
    ------
    ValueError
        If an entry of `off` is larger than that of `diagonal`.

    Examples
    --------
    >>> import numpy as np
    >>> two = [ResponseChannel(3, np.array([0, 2]), each, 0.1) for each in (0.8, 0.4)]
    >>> ResponsePoolChannel.of(two).forward(np.array([0.5, 0.5, 0.0]))
    array([0.45, 0.1 , 0.25, 0.1 ])
    """

    k: int
    reports: Ints
    diagonal: Floats
    off: Floats

    def __post_init__(self) -> None:
        if not (self.diagonal >= self.off).all():
            raise ValueError("off is larger than diagonal for a report, so it cannot be pooled")

    @classmethod
    def of(cls, channels: Sequence[ResponseChannel]) -> ResponsePoolChannel:
        """Pool the reports of some channels over the same secrets, one after the other."""
        sizes = [channel.size for channel in channels]
        return cls(
            channels[0].k,
            np.concatenate([channel.reports for channel in channels]),
            np.repeat([channel.diagonal for channel in channels], sizes),
            np.repeat([channel.off for channel in channels], sizes),
        )

    @property
    @override
    def size(self) -> int:
        return len(self.reports)

    @override
    def forward(self, theta: Floats) -> Floats:
        return self.off * theta.sum() + (self.diagonal - self.off) * theta[self.reports]

    @override
    def adjoint(self, w: Floats) -> Floats:
        return self._of_named((self.diagonal - self.off) * w) + float(self.off @ w)

    def _of_named(self, values: Floats) -> Floats:
        """Sum of the values of the reports that name each secret."""
        # np.bincount of no reports has whole numbers.
        return np.bincount(self.reports, values, self.k).astype(np.float64, copy=False)

    @override
    def score(self, theta: Floats, counts: Floats | Ints) -> Score:
        return score_in_slices(self, theta, counts)

    @property
    @override
    def n_roundings(self) -> float:
        # The sum of theta may take k additions. A term also goes through two products, two sums and
        # the rounded contrast, on its way into p and on its way into g.
        return self.k + summed_in_slices(self.size) + 8

    @override
    def rows(self, secrets: Ints) -> Floats:
        return np.where(secrets[:, None] == self.reports, self.diagonal, self.off)

    @override
    def add_gram(self, total: Floats, weights: Floats) -> None:
        # This is the gram of `ResponseChannel`, with sums over the reports that name a secret.
        contrast = self.diagonal - self.off
        own = self._of_named(self.off * contrast * weights)
        total += own + (own + float(self.off**2 @ weights))[:, None]
        total.flat[:: self.k + 1] += self._of_named(contrast**2 * weights)

    @override
    def take(self, reports: slice | Ints) -> ResponsePoolChannel:
        return replace(
            self,
            reports=self.reports[reports],
            diagonal=self.diagonal[reports],
            off=self.off[reports],
        )

    @override
    def unit_columns(self) -> ResponsePoolChannel:
        return replace(self, diagonal=np.ones(self.size), off=self.off / self.diagonal)


def can_be_pooled(channel: Channel) -> bool:
    """True if the channel is a k-RR of few secrets, and of the package's own class.

    A class that inherits from `ResponseChannel` may mean something else by its entries.
    """
    return (
        type(channel) is ResponseChannel
        and channel.k <= MAX_SECRETS_POOLED
        and channel.diagonal >= channel.off
        and channel.diagonal > 0
    )


def pooled(channels: list[ResponseChannel]) -> list[Channel]:
    """The channels as one, if there are several."""
    return [ResponsePoolChannel.of(channels)] if len(channels) > 1 else list[Channel](channels)
