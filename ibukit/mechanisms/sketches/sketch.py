"""Base class of count mean sketches: the fields, and the hash functions that they name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Ints
from ibukit.domain.alphabet import Alphabet
from ibukit.mechanisms.row_reports import RowReports
from ibukit.mechanisms.sketches import _sketch_kernels

# Largest number of rows or buckets: both fit into 32 bits.
MAX_SIZE = 2**31 - 1


@dataclass(frozen=True)
class Sketch(RowReports):
    """Fields of a count mean sketch, and the hash functions that they determine."""

    alphabet: Alphabet
    epsilon: float
    rows: int
    width: int
    seed: int = 0

    def __post_init__(self) -> None:
        """Check and convert the fields; ValueError if the hash functions tell no secrets apart."""
        super().__post_init__()
        arguments.whole("number of secrets", self.k, 2)
        for name, least in (("rows", 1), ("width", 2), ("seed", 0)):
            value = arguments.whole(name, getattr(self, name), least)
            if value > MAX_SIZE:
                raise ValueError(f"{name} must be at most 2^31 - 1, got {value}")
            self._keep(**{name: value})
        # The rows are tried one by one, so that not all buckets are kept if the first row already
        # tells secrets apart.
        if not any(
            (own != own[0]).any()
            for row in range(self.rows)
            for own in self._buckets_of(np.array([row]))
        ):
            raise ValueError(
                f"rows and width must tell secrets apart, got {self.rows} and {self.width}: all "
                f"{self.k} secrets share a bucket in each row; take more of either, or another seed"
            )

    @cached_property
    def buckets(self) -> NDArray[np.int32]:
        """Buckets :math:`h_{j}(x)` of all secrets under all functions, shape (rows, k)."""
        return arguments.frozen(self._buckets_of(np.arange(self.rows)))

    def _buckets_of(self, rows: Ints) -> NDArray[np.int32]:
        return _sketch_kernels.buckets(rows, self.k, self.width, self.seed)

    def _own_buckets(self, rows: Ints, secrets: Ints) -> NDArray[np.int32]:
        """The bucket of each user's secret under the function that the user drew."""
        return _sketch_kernels.buckets_of(rows, secrets, self.width, self.seed)
