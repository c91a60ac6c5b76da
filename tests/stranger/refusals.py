"""A mechanism of one's own: k-RR where some people do not answer."""

from dataclasses import dataclass

import numpy as np

import ibukit as ik


@dataclass(frozen=True)
class WithRefusals(ik.FiniteMechanism):
    """k-RR, but a person sends report k with probability `refusal`."""

    alphabet: ik.Alphabet
    epsilon: float
    refusal: float

    def __post_init__(self):
        # an int becomes a Line; epsilon must be above 0
        super().__post_init__()
        if not 0 <= self.refusal < 1:
            raise ValueError(
                "refusal must be at least 0 and below 1,"
                f" got {self.refusal!r}"
            )

    @property
    def m(self):
        return self.k + 1  # one report more than there are secrets

    def make_matrix(self):
        answers = ik.RandomizedResponse(
            self.alphabet, self.epsilon
        ).matrix()
        return np.column_stack(
            [(1 - self.refusal) * answers, np.full(self.k, self.refusal)]
        )
