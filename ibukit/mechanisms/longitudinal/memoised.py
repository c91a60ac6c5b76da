"""Base class of memoised mechanisms: an answer is drawn once, and reported on in every round."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.typing import override
from ibukit.errors import NoExactSampler
from ibukit.exact import OPERATING_SYSTEM, ExactSampler, RandomBits
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.longitudinal.kept_answers import KeptAnswers


class Memoised(Mechanism):
    """A mechanism for several reports of one person.

    `keep` draws the answer that a person keeps, and `release` draws one report of it. However many
    reports there are, they tell no more than the kept answer, whose level is `release_epsilon`; one
    report alone has the level `epsilon`. To draw a second answer for the same secret adds another
    `release_epsilon`, so `release` does not take secrets.

    The exact sampler that is registered for a class draws the kept answers.
    """

    def keep(self, secrets: ArrayLike, *, codes: bool = False) -> KeptAnswers:
        """Draw, without rounding, the answers that users keep.

        Call it once in each user's life. The random bits are those of the operating system. The
        level of a kept answer is `release_epsilon`. If `keep` is called again for the same users,
        both answers together have twice that level: so store what it returns.

        Parameters
        ----------
        secrets : sequence, n labels
            The users' true values, as for `randomize`.
        codes : bool
            Whether the secrets are given as places instead of labels.

        Raises
        ------
        NoExactSampler
            If the kept answers have no sampler without roundings, or are the secrets themselves.
        AlphabetMismatch
            If a secret is not in the alphabet.
        ValueError
            If a secret is missing.
        """
        sampler = self._exact_sampler()
        places, _ = self._places(secrets, codes)
        return KeptAnswers(self, sampler.draw(places, OPERATING_SYSTEM))

    @override
    def release(self, secrets: Any, *, codes: bool = False) -> NDArray[Any]:
        """Draw, without rounding, one report of each kept answer.

        Call it once in each round.

        Parameters
        ----------
        secrets : KeptAnswers
            What ``mechanism.keep(secrets)`` returned when the users began. Secrets themselves are
            refused: drawing an answer anew in each round would tell the secret in the end.
        codes : bool
            Whether reports that can be listed are returned as places instead of labels.

        Returns
        -------
        ndarray, n reports
            The reports, in the form that `tally` takes.

        Raises
        ------
        NoExactSampler
            If secrets are given instead of kept answers, or if there is no sampler without
            roundings.
        ValueError
            If the answers were kept by another mechanism.
        """
        return super().release(secrets, codes=codes)

    @override
    def _release_from(self, secrets: Any, codes: bool, random_bits: RandomBits) -> NDArray[Any]:
        as_codes = arguments.flag("codes", codes)
        if not isinstance(secrets, KeptAnswers):
            raise NoExactSampler(
                f"secrets must be the kept answers of {type(self).__name__}, got "
                f"{type(secrets).__name__}: call kept = mechanism.keep(secrets) once for each "
                "person, store it, and call mechanism.release(kept) in every round; an answer "
                "drawn anew in each round would tell the secret in the end"
            )
        if secrets.mechanism != self:
            raise ValueError(
                f"secrets must be answers that this {type(self).__name__} kept, got those of "
                f"another mechanism, {type(secrets.mechanism).__name__} with epsilon "
                f"{secrets.mechanism.epsilon:g} and {secrets.mechanism.k} secrets: release them by "
                "the mechanism that kept them"
            )
        self._exact_sampler()  # refuses a class that inherits, whose second round may be another
        reports = self._respond_exactly(secrets.answers, random_bits)
        return reports if as_codes else self.label_reports(reports)

    @abstractmethod
    def _respond_exactly(self, answers: NDArray[Any], random_bits: RandomBits) -> NDArray[Any]:
        """Draw one report of each kept answer, in the form of `draw`."""

    @override
    def _default_exact_sampler(self) -> ExactSampler:
        raise NoExactSampler(
            f"{type(self).__name__} has no sampler without roundings: it inherits from a mechanism "
            "that keeps answers, and may have another law; take that mechanism itself"
        )
