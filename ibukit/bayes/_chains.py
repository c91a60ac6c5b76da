"""Markov chains of the posterior: what a sweep does, and how the warm-up chooses it."""

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
# Sweeps of the warm-up in which trajectories are tried; the first ones are not counted.
TRIAL_SWEEPS, BURN_IN_SWEEPS = 25, 10
# Below this acceptance rate, augmentation followed by a random walk mixes faster.
MIN_ACCEPTANCE_RATE = 0.3
# Sweeps by trajectories between two by augmentation, which moves in the directions in which the
# parabola approximates the log-likelihood badly.
TRAJECTORIES_IN_A_ROW = 49


class Chains:
    """Draws of p, shape (N_CHAINS, k).

    A sweep by augmentation draws T' | p (see `_data_augmentation`), then p | T' ~ Dirichlet(alpha +
    T'), then moves p by a Metropolis step (see `_surrogate_metropolis`). If trajectories are mostly
    accepted (see `_hamiltonian`), 49 of 50 sweeps are trajectories instead. Chains start at draws
    from Dirichlet(min(alpha, 1)), which are more dispersed than any posterior, as R-hat requires.
    """

    def __init__(self, tally: Tally, alpha: Floats, rng: Generator):
        self._alpha, self._rng = alpha, rng
        self._draw_secrets = sampler_of(tally)
        self._walk = SurrogateMoves.of(tally, alpha)
        self._trajectories: Trajectories | None = None
        # The log-weights W of the trajectories' targets at p; None once p has moved in another way.
        self._weights: list[float] | None = None
        self._in_a_row = 0
        p = dirichlet(np.broadcast_to(np.minimum(alpha, 1), (N_CHAINS, tally.k)), rng)
        # Mixed with the uniform distribution, so that every report seen has a positive probability.
        self.p = 0.999 * p + 0.001 / tally.k

    def draw_assigned(self) -> Ints:
        """Draw T' | p: totals of the secrets that reports tell."""
        return self._draw_secrets(self.p, self._rng)

    def warm_up(self, sweeps: int, advance: Callable[[], object]) -> None:
        """Move away from the start, choose the kind of sweep; calls `advance` after each sweep."""
        if self._walk is not None and sweeps >= TRIAL_SWEEPS:
            self._trial_sweeps(Trajectories.of(self._walk), advance)
            sweeps -= TRIAL_SWEEPS
        for _ in range(sweeps):
            self.sweep()
            advance()

    def sweep(self, assigned: Ints | None = None) -> None:
        """Move every chain once; `assigned` is T' | p if it has been drawn already."""
        if self._trajectories is None:
            self._sweep_by_augmentation(
                self.draw_assigned() if assigned is None else assigned, self._walk
            )
        elif self._in_a_row == TRAJECTORIES_IN_A_ROW:
            self._in_a_row = 0
            self._sweep_by_augmentation(
                self.draw_assigned() if assigned is None else assigned, None
            )
        else:
            self._in_a_row += 1
            self._sweep_by_trajectories(self._trajectories)

    @property
    def needs_secrets(self) -> bool:
        """True if the next sweep is by augmentation."""
        return self._trajectories is None or self._in_a_row == TRAJECTORIES_IN_A_ROW

    def _sweep_by_augmentation(self, assigned: Ints, walk: SurrogateMoves | None) -> None:
        self.p = dirichlet(self._alpha + assigned, self._rng)
        if walk is not None:
            self.p = walk(self.p, self._rng)
        self._weights = None

    def _sweep_by_trajectories(self, trajectories: Trajectories) -> None:
        if self._weights is None:
            self._weights = [trajectories.weight(each) for each in self.p]
        p = self.p.copy()
        for i, weight in enumerate(self._weights):
            end, _ = trajectories.end(p[i], self._rng)
            if end is None:
                continue
            end_weight = trajectories.weight(end)
            # Metropolis: accept with probability min(1, exp(W(end) - W(start))).
            if end_weight - weight > -self._rng.standard_exponential():
                p[i], self._weights[i] = end, end_weight
        self.p = p

    def _trial_sweeps(
        self, trajectories: Trajectories | None, advance: Callable[[], object]
    ) -> None:
        """Accept every gain in trial sweeps, so that chains approach the mode; then decide.

        These sweeps do not leave the posterior unchanged, which the warm-up need not do.
        Trajectories are taken if enough would have been accepted by the correct rule.
        """
        accepted, reflections = 0, 0
        draws: list[Floats] = []
        for number in range(TRIAL_SWEEPS):
            self._sweep_by_augmentation(self.draw_assigned(), None)
            for i, start in enumerate(self.p):
                if trajectories is None:
                    break
                end, hits = trajectories.end(start, self._rng)
                if end is None:
                    trajectories = trajectories.shorter()
                    continue
                log_uniform = -self._rng.standard_exponential()
                before, after = trajectories.log_density(start), trajectories.log_density(end)
                is_accepted = (
                    after - trajectories.parabola(end) - (before - trajectories.parabola(start))
                    > log_uniform
                )
                if is_accepted or after - before > log_uniform:
                    self.p[i] = end
                if number >= BURN_IN_SWEEPS:
                    accepted += is_accepted
                    reflections += hits
                    draws.append(self.p[i].copy())
            advance()
        if trajectories is None or accepted < MIN_ACCEPTANCE_RATE * N_CHAINS * (
            TRIAL_SWEEPS - BURN_IN_SWEEPS
        ):
            return
        # If the trial met no wall, longer trajectories suffice, without random walks around them.
        if not reflections:
            self._trajectories = trajectories.without_walls().balanced(np.array(draws))
        # With alpha < 1 the density has peaks at the walls, where a chain would stay long because
        # the parabola knows nothing of them.
        elif (self._alpha >= 1).all():
            self._trajectories = trajectories.balanced(np.array(draws))
