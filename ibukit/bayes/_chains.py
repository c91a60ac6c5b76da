"""The chains of the posterior, and what a sweep of them is: what they find out while they warm up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from ibukit._ground.arguments import Floats, Ints
from ibukit.bayes._data_augmentation import sampler_of
from ibukit.bayes._dirichlet import dirichlet
from ibukit.bayes._hamiltonian import Trajectories
from ibukit.bayes._surrogate_metropolis import SurrogateMoves
from ibukit.tally.tally import Tally

N_CHAINS = 4
# sweeps in which trajectories are tried, of which the first are not counted
TRIED, UNCOUNTED = 25, 10
# with fewer accepted a sweep by augmentation and a walk is the better one
MIN_ACCEPTED = 0.3
# sweeps by trajectories for each one by augmentation, which moves what the parabola is wrong about
TRAJECTORIES_IN_A_ROW = 49


class Chains:
    """Draws of p, shape (N_CHAINS, k).

    A sweep by augmentation is T' | p (see `_latent_secrets`), then p | T' ~ Dirichlet(alpha + T'),
    then a step of p by itself (see `_surrogate_moves`). Where trajectories are mostly accepted (see
    `_trajectories`) a sweep is one of these, but for every fiftieth. Chains start at draws from
    Dirichlet(min(alpha, 1)), which spread wider than any posterior.
    """

    def __init__(self, tally: Tally, alpha: Floats, rng: Generator):
        self._alpha, self._rng = alpha, rng
        self._draw_secrets = sampler_of(tally)
        self._walk = SurrogateMoves.of(tally, alpha)
        self._trajectories: Trajectories | None = None
        self._weights: list[float] | None = None  # of p, where they are known
        self._in_a_row = 0
        p = dirichlet(np.broadcast_to(np.minimum(alpha, 1), (N_CHAINS, tally.k)), rng)
        self.p = 0.999 * p + 0.001 / tally.k  # so that every report seen has a probability

    def assigned(self) -> Ints:
        """T' | p."""
        return self._draw_secrets(self.p, self._rng)

    def warm_up(self, sweeps: int, advance: Callable[[], object]) -> None:
        """Move from the start, and decide what a sweep is; calls `advance` after each."""
        if self._walk is not None and sweeps >= TRIED:
            self._try(Trajectories.of(self._walk), advance)
            sweeps -= TRIED
        for _ in range(sweeps):
            self.sweep()
            advance()

    def sweep(self, assigned: Ints | None = None) -> None:
        """Move every chain; with T' | p where it has been drawn already."""
        if self._trajectories is None:
            self._augment(self.assigned() if assigned is None else assigned, self._walk)
        elif self._in_a_row == TRAJECTORIES_IN_A_ROW:
            self._in_a_row = 0
            self._augment(self.assigned() if assigned is None else assigned, None)
        else:
            self._in_a_row += 1
            self._travel(self._trajectories)

    @property
    def needs_secrets(self) -> bool:
        """Whether the next sweep is by augmentation."""
        return self._trajectories is None or self._in_a_row == TRAJECTORIES_IN_A_ROW

    def _augment(self, assigned: Ints, walk: SurrogateMoves | None) -> None:
        self.p = dirichlet(self._alpha + assigned, self._rng)
        if walk is not None:
            self.p = walk(self.p, self._rng)
        self._weights = None

    def _travel(self, trajectories: Trajectories) -> None:
        if self._weights is None:
            self._weights = [trajectories.weight(each) for each in self.p]
        p = self.p.copy()
        for i, weight in enumerate(self._weights):
            end, _ = trajectories.end(p[i], self._rng)
            if end is None:
                continue
            found = trajectories.weight(end)
            if found - weight > -self._rng.standard_exponential():
                p[i], self._weights[i] = end, found
        self.p = p

    def _try(self, trajectories: Trajectories | None, advance: Callable[[], object]) -> None:
        """Sweeps in which every gain is accepted, so that the chains come near; then a decision about trajectories."""
        accepted, reflections = 0, 0
        draws: list[Floats] = []
        for number in range(TRIED):
            self._augment(self.assigned(), None)
            for i, start in enumerate(self.p):
                if trajectories is None:
                    break
                end, met = trajectories.end(start, self._rng)
                if end is None:
                    trajectories = trajectories.shorter()
                    continue
                chance = -self._rng.standard_exponential()
                before, after = trajectories.log_density(start), trajectories.log_density(end)
                is_accepted = (
                    after - trajectories.parabola(end) - (before - trajectories.parabola(start))
                    > chance
                )
                if is_accepted or after - before > chance:
                    self.p[i] = end
                if number >= UNCOUNTED:
                    accepted += is_accepted
                    reflections += met
                    draws.append(self.p[i].copy())
            advance()
        if trajectories is None or accepted < MIN_ACCEPTED * N_CHAINS * (TRIED - UNCOUNTED):
            return
        if not reflections:
            self._trajectories = trajectories.without_walls().balanced(np.array(draws))
        # a prior with peaks at the walls would hold a chain there that the parabola lets go
        elif (self._alpha >= 1).all():
            self._trajectories = trajectories.balanced(np.array(draws))
