"""The problem that a solver gets: a channel, and how often each of its reports was seen."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from functools import cached_property

from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel, StackedChannel


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Maximise :math:`\sum_z\mathrm{counts}_z\log(\theta M)_z` over the simplex.

    Parameters
    ----------
    channel : Channel
        M, on the reports seen.
    counts : ndarray, shape (s,)
        How often each report was seen, or any positive weights.
    total : float, optional
        The sum of the counts, if it is known already: for k-RR, summing takes a tenth as long as
        solving.

    Examples
    --------
    >>> import numpy as np
    >>> from ibukit.channels import ResponseChannel
    >>> problem = Problem(ResponseChannel(2, np.arange(2), 0.75, 0.25), np.array([60, 40]))
    >>> problem.q, round(problem.gap(np.array([0.5, 0.5])), 4)
    (array([0.6, 0.4]), 0.0953)
    """

    channel: Channel
    counts: Ints | Floats
    total: InitVar[float | None] = None

    def __post_init__(self, total: float | None) -> None:
        # A known total takes the place of the cached property.
        if total is not None:
            vars(self)["n"] = total

    @property
    def k(self) -> int:
        """Number of secrets."""
        return self.channel.k

    @cached_property
    def n(self) -> float:
        """Number of reports, or the sum of their weights."""
        return self.counts.sum().item()

    @cached_property
    def q(self) -> Floats:
        """Frequencies of the reports."""
        return self.counts / self.n

    @cached_property
    def parts(self) -> tuple[tuple[Channel, Ints | Floats], ...]:
        """Each channel of a stack with its counts; small channels of one kind are joined."""
        if type(self.channel) is not StackedChannel:
            return ((self.channel, self.counts),)
        return tuple(self.channel.split(self.counts))

    def gap(self, theta: Floats) -> float:
        r"""The certificate, :math:`\log \max g`, nats per report.

        It is inf if a report seen has probability 0.
        """
        return self.channel.certificate(theta, self.counts, self.n)[1]
