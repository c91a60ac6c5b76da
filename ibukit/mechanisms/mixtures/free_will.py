"""Free will: every user picks a mechanism, and says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.mechanisms.base import Mechanism, require_same_alphabet
from ibukit.mechanisms.draws import drawable
from ibukit.tally.tally import Tally, pool


@dataclass(frozen=True, eq=False)
class FreeWill(arguments.ReadOnlyArrays):
    r"""Every user reports through a mechanism of their own choice.

    The report of user i, who chose :math:`A^{i}`, has the law :math:`\theta\,A^{i}`. Users choose
    independently of each other and of their secret, each mechanism with its probability in
    `shares`. The report says which mechanism it came through; a tally keeps the groups apart.
    Mechanisms may differ in level, in kind and in their reports.

    Parameters
    ----------
    mechanisms : sequence of Mechanism
        At least one, over the same secrets, no two equal.
    shares : array_like, shape (len(mechanisms),), optional
        Probability of each mechanism, equal by default.
    name : str
        Its name in tables.

    Raises
    ------
    AlphabetMismatch
        If the mechanisms are over different secrets.
    InvalidDistribution
        If `shares` is not on the simplex.
    ValueError
        If there is no mechanism, or one occurs twice.

    References
    ----------
    .. [freewill] ElSalamouny and Palamidessi, arXiv:2208.11268, section 3.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> line = ik.Line(0, 4)
    >>> geometric = ik.TruncatedGeometric(line, 0.5)
    >>> users = FreeWill([ik.RandomizedResponse(line, 1.0), ik.Rappor(line, 2.0), geometric])
    >>> tally = users.simulate([100, 300, 300, 200, 100], np.random.default_rng(1))
    >>> tally.n, [type(part.mechanism).__name__ for part in tally.parts]
    (1000, ['RandomizedResponse', 'Rappor', 'TruncatedGeometric'])
    >>> ik.ibu(tally).gap <= 1e-6  # GIBU
    True
    """

    mechanisms: tuple[Mechanism, ...]
    shares: Floats = None  # type: ignore[assignment]  # until it is made
    name: str = "FreeWill"

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            mechanisms: Sequence[Mechanism],
            shares: ArrayLike | None = None,
            name: str = "FreeWill",
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        mechanisms = require_same_alphabet(self.mechanisms)
        if len(set(mechanisms)) < len(mechanisms):
            twice = next(
                mechanism for i, mechanism in enumerate(mechanisms) if mechanism in mechanisms[:i]
            )
            raise ValueError(f"mechanisms must differ, but {twice} occurs twice; add its shares up")
        shares: Any = self.shares
        p = np.full(len(mechanisms), 1 / len(mechanisms)) if shares is None else shares
        p = arguments.distribution("shares", p, len(mechanisms)).copy()
        self._keep(mechanisms=mechanisms, shares=arguments.frozen(p), name=str(self.name))

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""
        return self.mechanisms[0].alphabet

    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the pooled tally of a whole population.

        Mechanisms that nobody chose are left out.

        Parameters
        ----------
        secret_counts : array_like of int, shape (k,)
            Number of users with each secret.
        rng : numpy.random.Generator
        """
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        if not counts.any():
            raise ValueError("secret_counts must count at least one user, got none")
        # The users of each secret divide among the mechanisms; then each group reports on its own.
        groups = rng.multinomial(counts, drawable(self.shares)).T
        chosen = [
            (mechanism, group)
            for mechanism, group in zip(self.mechanisms, groups, strict=True)
            if group.any()
        ]
        return pool([mechanism.simulate(group, rng) for mechanism, group in chosen])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FreeWill) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.mechanisms, self.shares.tobytes(), self.name

    def __repr__(self) -> str:
        return f"FreeWill({self.name!r}, {len(self.mechanisms)} mechanisms over {self.alphabet!r})"
