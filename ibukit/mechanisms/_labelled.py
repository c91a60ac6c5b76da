"""What people hand to a mechanism and get from it: labels, or codes where they are asked for by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import Channel
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import codes_of
from ibukit.errors import NoExactSampler
from ibukit.exact import OPERATING_SYSTEM, Exact, Source
from ibukit.tally.tally import Tally, make_part

BY_PLACE = "; places in the alphabet are taken with codes=True"

# the class whose own `randomize`, made its `draw`, is running, and for which mechanism
_DRAWING: ContextVar[tuple[type, Any] | None] = ContextVar("_DRAWING", default=None)


def _as_draw(cls: type, randomize: Callable[..., NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    """A `draw` out of a `randomize` on codes, in which ``super().randomize`` means the parent's `draw`."""

    @wraps(randomize)
    def draw(self: Any, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        token = _DRAWING.set((cls, self))
        try:
            return randomize(self, secrets, rng)
        finally:
            _DRAWING.reset(token)

    return draw


class Labelled(arguments.ReadOnlyArrays, ABC):
    """Draw and count reports by their labels; a subclass says how codes are drawn, and which reports there are."""

    alphabet: Alphabet

    @abstractmethod
    def channel(self, reports: NDArray[Any]) -> Channel:
        """Forward and adjoint on the given reports (in the form of `check_reports`)."""

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of the factor that `channel` leaves out of each probability.

        None for none.
        """
        return None

    @property
    def k(self) -> int:
        """Number of secrets."""
        return len(self.alphabet)

    @abstractmethod
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        """One report for each user, in codes.

        What `randomize` and `simulate` ask of a mechanism.

        Parameters
        ----------
        secrets : ndarray of int, shape (n,)
            Codes of the users' true values; their labels where the alphabet has no end.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, n reports
            Codes 0..m-1 where the reports can be listed.
        """

    def randomize(self, secrets: ArrayLike, rng: Generator, *, codes: bool = False) -> NDArray[Any]:
        """Simulate one report for each user; what leaves a device is drawn by `release`.

        Parameters
        ----------
        secrets : sequence, n labels
            The users' true values, as they stand in the alphabet.
        rng : numpy.random.Generator
        codes : bool
            Secrets are places 0..k-1 in the alphabet instead of labels, and so are reports that can
            be listed. On a grid, where labels are pairs, single numbers are always the places of
            cells, as `Grid.locate` has them.

        Returns
        -------
        ndarray, n reports
            As `tally` takes them.

        Raises
        ------
        AlphabetMismatch
            If a secret is not in the alphabet.
        ValueError
            If a secret is missing.
        """
        rng = arguments.generator(rng)
        if (above := _DRAWING.get()) and above[1] is self:  # an old class asks its parent
            return super(above[0], self).draw(np.asarray(secrets), rng)  # type: ignore[arg-type]
        return self._drawn(secrets, codes, lambda places: self.draw(places, rng))

    def release(self, secrets: ArrayLike, *, codes: bool = False) -> NDArray[Any]:
        """Draw one report for each user, for release: without a rounding.

        Random bits are those of the operating system. From secret to report there are whole numbers
        only: the bits are compared with the digits of probabilities, as many as it takes.
        `epsilon`, a double, is taken as the fraction that it is. A mechanism whose matrix is all
        that is known of it is drawn from fractions next to the matrix, and Laplace noise on a fine
        lattice. The level of what is drawn is `release_epsilon`. How long a draw takes is not
        hidden, and there is no seed: nobody can draw the same reports again.

        Parameters
        ----------
        secrets : sequence, n labels
            The users' true values, as for `randomize`.
        codes : bool
            Secrets, and reports that can be listed, are places instead of labels, as for
            `randomize`.

        Returns
        -------
        ndarray, n reports
            As `tally` takes them.

        Raises
        ------
        NoExactSampler
            If there is no such sampler; the message says what to take instead.
        AlphabetMismatch
            If a secret is not in the alphabet.
        ValueError
            If a secret is missing.
        """
        return self._released(secrets, codes, OPERATING_SYSTEM)

    @property
    def release_epsilon(self) -> float:
        """The level of what `release` draws, rounded up where it is no double.

        It is `epsilon` itself wherever a sampler follows from `epsilon`; otherwise that of the
        fractions next to the matrix. It is per unit of distance where `metric` is True.
        """
        return self._exact().level()

    def _released(self, secrets: ArrayLike, codes: bool, source: Source) -> NDArray[Any]:
        exact = self._exact()
        return self._drawn(secrets, codes, lambda places: exact.draw(places, source))

    def _exact(self) -> Exact:
        """How the reports of exactly this class are drawn: one that inherits from it may have another law."""
        made = vars(type(self)).get("_exactly")
        return made(self) if made else self._exact_by_default()

    def _exact_by_default(self) -> Exact:
        raise NoExactSampler(
            f"{type(self).__name__} has no sampler without roundings; take a mechanism over the same secrets that has "
            "one, such as LinearGeometric or LinearLaplace on a line, PlanarGeometric or PlanarLaplace on a grid, or a "
            "unary encoding"
        )

    def _drawn(
        self, secrets: ArrayLike, codes: bool, draw: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> NDArray[Any]:
        """What `draw` makes of the codes of secrets, by its labels where the secrets were."""
        if not self.alphabet.bounded:
            self._refuse_codes(codes)
            return draw(arguments.whole_array("secrets", secrets))
        if arguments.flag("codes", codes) or self.alphabet.are_codes(secrets):
            return draw(arguments.codes("secrets", secrets, self.k))
        return self.label_reports(draw(codes_of("secrets", secrets, self.alphabet, BY_PLACE)))

    def _refuse_codes(self, codes: bool) -> None:
        if arguments.flag("codes", codes):
            raise ValueError(
                f"codes must be False: {self.alphabet!r} has no end, and labels stand for themselves"
            )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take a `randomize` of a class's own for its `draw`, as it was called before labels were looked up here."""
        super().__init_subclass__(**kwargs)
        own = vars(cls).get("randomize")
        if own is not None and "draw" not in vars(cls):
            del cls.randomize
            cls.draw = _as_draw(cls, own)  # type: ignore[method-assign]

    @abstractmethod
    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        """Bring reports into the form that the tally keeps.

        Reports outside the alphabet raise `AlphabetMismatch`.
        """

    def code_reports(self, reports: ArrayLike) -> NDArray[Any]:
        """Codes of reports given by their labels.

        Reports that cannot be listed are their own names.
        """
        return arguments.whole_array("reports", reports)

    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Labels of reports as `draw` returns them; it undoes `code_reports`."""
        return reports

    def tally(
        self,
        reports: ArrayLike,
        *,
        counts: ArrayLike | None = None,
        codes: bool = False,
        weighted: bool = False,
    ) -> Tally:
        """Count the distinct reports.

        Where the alphabet has no end the tally is over its part from which alone the reports can
        best be explained (see `Tally.full_alphabet`).

        Parameters
        ----------
        reports : sequence, n reports
            Labels, where the reports can be listed: of a mechanism that reports secrets, those of
            the alphabet. Otherwise the integers, pairs of coordinates or rows of bits that were
            reported.
        counts : array_like of int, shape (n,), optional
            How often each was reported, once by default; a report may be there more than once.
        codes : bool
            Reports that can be listed are places 0..m-1 in their list instead of labels.
        weighted : bool
            Whether `counts` may be weights, any numbers that are not negative: what they do to
            standard errors `tally_counts` says.

        Raises
        ------
        AlphabetMismatch
            If a report is not in the alphabet of reports.
        ImpossibleReport
            If no secret can produce a report.
        ValueError
            If a report is missing, or there is none at all.
        """
        seen = self._coded(reports, codes)
        if arguments.flag("weighted", weighted) and counts is None:
            raise ValueError("counts must be given where weighted is True, got None")
        checked = arguments.weights if weighted else arguments.counts
        often = None if counts is None else checked("counts", counts, len(seen))
        return self._count(seen, often)

    def _count(self, seen: NDArray[Any], often: Ints | Floats | None) -> Tally:
        """The tally of reports in the form of `check_reports`."""
        if self.alphabet.bounded or not len(seen):
            return Tally((make_part(self, seen, often),))
        here: Labelled = replace(self, alphabet=self.alphabet.window(seen))  # type: ignore[type-var]
        return Tally((make_part(here, seen, often),), full_alphabet=self.alphabet)

    def _coded(self, reports: ArrayLike, codes: bool) -> NDArray[Any]:
        given = (
            arguments.whole_array("reports", reports)
            if arguments.flag("codes", codes)
            else self.code_reports(reports)
        )
        return self.check_reports(given)
