"""An estimator and a stopping rule of one's own."""

from dataclasses import dataclass

import ibukit as ik


def shrunk(tally, weight=0.1):
    """Matrix inversion, mixed with the uniform distribution."""
    inverted = ik.inv(tally, post="project").distribution
    return (1 - weight) * inverted + weight * ik.uniform(tally.k)


@dataclass(frozen=True)
class Settled:
    """Stop when no probability moves by more than `tol` in a step."""

    tol: float

    def met(self, now, before):
        return (
            before is not None
            and abs(now.distribution - before.distribution).max()
            <= self.tol
        )
