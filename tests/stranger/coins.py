"""A variant of k-RR that tells the truth if a few tossed coins say so."""

from dataclasses import dataclass

import ibukit as ik


@dataclass(frozen=True)
class CoinResponse(ik.RandomizedResponse):
    """k-RR with the truth's probability rounded down to n / 2^coins."""

    coins: int = 16

    def __post_init__(self):
        super().__post_init__()
        if self.truth <= 1 / self.k:
            raise ValueError(
                f"coins must be more, got {self.coins}: the truth would"
                " be no likelier than a lie"
            )

    @property
    def truth(self):
        return int(super().truth * 2**self.coins) / 2**self.coins

    @property
    def lie(self):
        return (1 - self.truth) / (self.k - 1)
