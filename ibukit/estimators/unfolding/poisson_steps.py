"""Steps of Richardson and Lucy's iteration with efficiencies and a background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

from tqdm import tqdm

from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.estimators.stopping import Discrepancy, check_rule
from ibukit.estimators.unfolding.poisson import Signal, gap, log_likelihood, possible_counts

# Number of steps after which a rule that is not met gives up, the same as for `ibu`.
MAX_STEPS = 1_000_000


class Stopped(NamedTuple):
    """The last iterate, whether the rule was met, and whether it stops early on purpose."""

    signal: Signal
    met: bool
    early: bool


@dataclass(frozen=True, eq=False)
class PoissonIterate:
    """One iterate, with what a stopping rule asks of it; `seen` are the numbers mu of `Signal`."""

    n_iter: int
    seen: Floats
    efficiency: Floats
    columns: Floats
    counts: Floats
    added: Floats
    background: float

    @property
    def distribution(self) -> Floats:
        """Distribution of all secrets, shape (k,)."""
        numbers = self.seen / self.efficiency
        return numbers / numbers.sum()

    @property
    def tally(self) -> Any:
        """An object that knows the number of counts, n."""
        return SimpleNamespace(n=float(self.counts.sum()))

    @cached_property
    def gap(self) -> float:
        """The certificate, nats per report."""
        return gap(self.seen, self.columns, self.counts, self.added)

    @cached_property
    def log_likelihood(self) -> float:
        """The Poisson log-likelihood."""
        nu = self.seen @ self.columns + self.added
        return log_likelihood(nu, self.counts) - float(self.seen.sum()) - self.background


def stopped_signal(
    response: Floats,
    efficiency: Floats,
    counts: Floats,
    background: Floats,
    stop: Any,
    unit: float,
) -> Stopped:
    r"""Take steps until the rule is met, from a flat start that sums to the counts.

    For row-stochastic M, mu = lambda e and nu = mu M + b a step is :math:`\mu_x\leftarrow
    \mu_x\sum_z M_{xz} n_z/\nu_z`: the EM step of the Poisson likelihood, which never falls.
    `unit` converts numbers of secrets: one secret as the caller counts them is `unit` secrets as
    the mechanism counts them.
    """
    check_rule(stop)
    if isinstance(stop, Discrepancy):
        raise ValueError(
            f"stop must be Steps, Gap or Change where there is a background, got {stop}: its "
            "degrees of freedom hold only for reports without a background"
        )
    m, n, b = possible_counts(response, counts, background)
    # The flat start has the number of all counts, whatever shares of the secrets are seen.
    seen = unit * n.sum() / len(m) * efficiency
    before: PoissonIterate | None = None
    with (
        one_thread(),
        tqdm(desc="unfold", unit=" steps", leave=False, disable=None, delay=1) as bar,
    ):
        for step in range(MAX_STEPS + 1):
            now = PoissonIterate(step, seen, efficiency, m, n, b, float(background.sum()))
            met = bool(stop.met(now, before))
            if met or step == MAX_STEPS:
                break
            nu = seen @ m + b
            before, seen = now, seen * (m @ (n / nu))
            bar.update()
    signal = Signal(now.seen, now.log_likelihood, now.gap, step)
    return Stopped(signal, met, hasattr(stop, "out_of_reach"))
