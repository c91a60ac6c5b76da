"""What every mechanism offers: draw a report, count reports, and say how probable they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel
from ibukit.domain.alphabet import Alphabet, Line, as_alphabet
from ibukit.domain.labels import codes_of, in_order
from ibukit.errors import AlphabetMismatch, NoExactSampler, NotInvertible
from ibukit.exact import Exact, Source, Table
from ibukit.mechanisms._labelled import BY_PLACE, Labelled
from ibukit.mechanisms.draws import drawable, one_by_one
from ibukit.tally.tally import Part, Tally, check_tally, make_part


class Mechanism(Labelled):
    """A channel from secrets to reports: P(report z | secret x) = M_xz.

    What is said of its privacy is said of these probabilities. `randomize` and `simulate` are a
    *simulator*, for experiments. Do not run them on users' devices to release what they draw: they
    draw in doubles from a generator that can be predicted, and the reports that come out are not
    epsilon-private in the strict sense. The chapter on mechanisms says what they give away.
    `release` draws without roundings, for devices.

    A subclass is a frozen dataclass whose fields are the paper's parameters, `alphabet` first. It
    provides `draw`, `check_reports` and `channel`, all in codes; where its reports can be listed it
    inherits from `FiniteMechanism` instead. What there is to check it checks in ``__post_init__``,
    which the classes that inherit from it then have, too. The page *Write your own mechanism* shows
    some; `testing.check_mechanism` holds each to what it promises.

    Raises
    ------
    ValueError
        If `alphabet` is neither an alphabet nor a whole number above 0, which stands for Line(0,
        alphabet - 1), or a field `epsilon` is not a number above 0.

    See Also
    --------
    FiniteMechanism : The shorter way, where reports are codes 0..m-1.

    Examples
    --------
    What every mechanism offers, and the reports whatever their form:

    >>> import numpy as np, ibukit as ik
    >>> mechanism = ik.Rappor(3, epsilon=1.0)
    >>> isinstance(mechanism, Mechanism)
    True
    >>> reports = mechanism.randomize([0, 1, 2], np.random.default_rng(1))
    >>> reports.tolist()
    [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    >>> mechanism.restore_reports(mechanism.check_reports(reports)).tolist()
    [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    """

    alphabet: Alphabet
    epsilon: float

    metric: ClassVar[bool] = False
    """Whether `epsilon` is per unit of distance (d-privacy) or for all pairs of secrets (local DP)."""

    def __post_init__(self) -> None:
        """Bring the fields that every mechanism has into shape; a subclass that has more to check calls this first."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        # a level of infinity is an honest one: no privacy
        given: Any = self.__getstate__().get("epsilon", math.inf)
        if not isinstance(given, float) or given != math.inf:
            self._keep(epsilon=arguments.positive("epsilon", given))

    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population.

        It has the same law as ``tally(randomize(secrets, rng))``.

        Parameters
        ----------
        secret_counts : array_like of int, shape (k,), or mapping or Series
            Number of users with each secret: in the alphabet's order, or by label.
        rng : numpy.random.Generator

        Raises
        ------
        TooLarge
            If reports are drawn one by one, and the users are more than 2^28.
        """
        rng = arguments.generator(rng)
        counts = in_order("secret_counts", secret_counts, self.alphabet)
        return self.tally(self.draw(one_by_one(counts, self), rng), codes=True)

    def restore_reports(self, kept: NDArray[Any]) -> NDArray[Any]:
        """Reports as `randomize` draws them, from the form that a tally keeps.

        It undoes `check_reports`: a mechanism that overrides one of the two overrides both.

        Parameters
        ----------
        kept : ndarray, shape (s,) or (s, width)
            As `check_reports` returns them, and as they stand in ``tally.parts[i].reports``.

        Returns
        -------
        ndarray, s reports
            Codes, integers, pairs of coordinates, or rows of 0 and 1.
        """
        return kept

    def as_finite(self) -> FiniteMechanism:
        """A mechanism of the same information whose reports can be listed.

        By default it is the mechanism itself if its reports can be listed, and a ValueError if not.
        A mechanism whose columns are multiples of finitely many overrides it: reports may be merged
        where each makes the secrets as probable as the others do, relative to each other. What is
        known about limits and bounds is asked of this one.

        Raises
        ------
        ValueError
            If no list of reports says as much.
        """
        raise ValueError(
            f"mechanism must have reports that can be listed, got {self}; a truncated kind has a little less "
            "information, and so has the matrix of enough of its reports as a MatrixMechanism, with one more column "
            "for the rest"
        )

    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        """The unbiased estimate v with E[v] = theta, shape (k,).

        It is computed from the frequencies of the reports seen.
        """
        raise NotInvertible(
            f"{self} has no square channel matrix, so matrix inversion does not apply; use mle or ibu"
        )

    def __getstate__(self) -> dict[str, Any]:
        # only the parameters travel: matrices are computed again where they are needed
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class FiniteMechanism(Mechanism):
    """A mechanism whose reports can be listed.

    They are the codes 0..m-1, and M is a matrix of shape (k, m).

    A subclass provides `make_matrix`, and `m` where there are not as many reports as secrets.
    Everything else follows from the matrix, and may be overridden by what is faster.

    Raises
    ------
    ValueError
        As for `Mechanism`.

    See Also
    --------
    MatrixMechanism : The mechanism of a matrix that is known already.

    Examples
    --------
    The truth, or with probability `skip` the first value:

    >>> from dataclasses import dataclass
    >>> import numpy as np, ibukit as ik
    >>> @dataclass(frozen=True)
    ... class Shy(FiniteMechanism):
    ...     alphabet: ik.Alphabet
    ...     skip: float
    ...     epsilon: float = np.inf
    ...
    ...     def make_matrix(self):
    ...         matrix = (1 - self.skip) * np.eye(self.k)
    ...         matrix[:, 0] += self.skip
    ...         return matrix
    >>> Shy(3, skip=0.25).matrix()
    array([[1.  , 0.  , 0.  ],
           [0.25, 0.75, 0.  ],
           [0.25, 0.  , 0.75]])
    >>> ik.mle(Shy(3, skip=0.25).tally_counts([50, 30, 0])).distribution
    array([0.5, 0.5, 0. ])
    """

    @property
    def m(self) -> int:
        """Number of possible reports."""
        return self.k

    @property
    def report_alphabet(self) -> Alphabet:
        """What the reports are called.

        They have the secrets' labels where there are as many reports, else 0..m-1. A mechanism
        whose reports are something else overrides it.
        """
        return self.alphabet if self.m == self.k else Line(0, self.m - 1)

    @override
    def code_reports(self, reports: ArrayLike) -> NDArray[Any]:
        known = self.report_alphabet
        if known.are_codes(reports):
            return arguments.codes("reports", reports, self.m)
        return codes_of("reports", reports, known, BY_PLACE)

    @override
    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        return self.report_alphabet.labels_of(reports)

    @override
    def as_finite(self) -> FiniteMechanism:
        return self

    def make_matrix(self) -> Floats:
        """Compute the channel matrix M_xz = P(z given x), shape (k, m).

        `matrix` asks once and keeps it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say its probabilities: define make_matrix(self), which returns an array "
            "of shape (k, m) whose rows sum to 1"
        )

    @cached_property
    def _matrix(self) -> Floats:
        return np.asarray(self.make_matrix(), dtype=np.float64)

    def matrix(self) -> Floats:
        """The channel matrix M_xz = P(z given x), shape (k, m), read-only; rows sum to 1."""
        return arguments.frozen(self._matrix)

    def _row(self, secret: int) -> Floats:
        return np.asarray(self.matrix()[secret])

    @property
    def _listed(self) -> NDArray[Any]:
        """All possible reports, in the form that a tally keeps."""
        return np.arange(self.m)

    @cached_property
    def _channel(self) -> Channel:
        return self.channel(self._listed)

    def forward(self, theta: ArrayLike) -> Floats:
        """Distribution of the reports, theta M, shape (m,).

        The secrets are distributed as `theta`.
        """
        return self._channel.forward(arguments.vector("theta", theta, self.k))

    def adjoint(self, w: ArrayLike) -> Floats:
        """Weights on the reports carried back to the secrets: M w, shape (k,)."""
        return self._channel.adjoint(arguments.vector("w", w, self.m))

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        return DenseChannel(np.ascontiguousarray(self.matrix()[:, reports]))

    @override
    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        return arguments.codes("reports", reports, self.m)

    def tally_counts(self, counts: ArrayLike, *, weighted: bool = False) -> Tally:
        """The tally of reports that are already counted.

        Weights, as surveys have them, count as numbers of people. Estimates and their gaps are then
        those of the weighted likelihood. Standard errors are about right if the weights w of all
        people sum to the effective sample size (sum w)^2 / sum w^2: scale them so first, or divide
        the errors by the root of that over sum w. What depends on whole counts (posteriors,
        `Discrepancy`) refuses weights.

        Parameters
        ----------
        counts : array_like of int, shape (m,), or mapping or Series
            How often each possible report was seen: in the order of `report_alphabet`, or by label,
            as ``series.value_counts()`` has them.
        weighted : bool
            Whether they are sums of weights: any numbers that are not negative.

        Raises
        ------
        AlphabetMismatch
            If a label is not one of the reports', or an array has not one count for each report.
        ValueError
            If a label is there twice, a count is no whole number or negative, or there is no report
            at all.
        """
        listed = self._listed  # first, because it refuses to list too many
        return Tally(
            (make_part(self, listed, in_order("counts", counts, self.report_alphabet, weighted)),)
        )

    @override
    def _count(self, seen: NDArray[Any], often: Ints | Floats | None) -> Tally:
        listed = type(self).check_reports is FiniteMechanism.check_reports and self.m <= len(seen)
        if often is not None or not listed:
            return super()._count(seen, often)
        return Tally((make_part(self, np.arange(self.m), np.bincount(seen, minlength=self.m)),))

    @override
    def _coded(self, reports: ArrayLike, codes: bool) -> NDArray[Any]:
        if (
            arguments.flag("codes", codes)
            or type(self).check_reports is not FiniteMechanism.check_reports
        ):
            return super()._coded(reports, codes)
        return self.code_reports(reports)  # found in a list of all: there is nothing more to check

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        reports = np.empty(len(secrets), dtype=np.int64)
        order = np.argsort(secrets, kind="stable")
        for secret, users in zip(*_groups(secrets[order], order), strict=True):
            row = self._row(secret)
            reports[users] = rng.choice(self.m, size=len(users), p=row / row.sum())
        return reports

    @cached_property
    def _fractions(self) -> Table:
        """The fractions that are released where only the matrix is known."""
        return Table(self.matrix())

    @override
    def _exact_by_default(self) -> Exact:
        if type(self).draw is not FiniteMechanism.draw:
            raise NoExactSampler(
                f"{type(self).__name__} has no sampler without roundings; release through its matrix: "
                "MatrixMechanism(mechanism.matrix(), mechanism.alphabet, mechanism.report_alphabet)"
            )
        return self._exact_by_matrix()

    def _exact_by_matrix(self) -> Exact:
        def draw(secrets: NDArray[Any], source: Source) -> NDArray[Any]:
            return self.restore_reports(self._listed[self._fractions.draw(secrets, source)])

        def level() -> float:
            table = self._fractions
            return (
                table.level_per_distance(self.alphabet.distances())
                if self.metric
                else table.level()
            )

        return Exact(draw, level)

    @override
    def simulate(self, secret_counts: ArrayLike, rng: Generator) -> Tally:
        rng = arguments.generator(rng)
        counts = in_order("secret_counts", secret_counts, self.alphabet)
        present = np.flatnonzero(counts)
        rows = self.matrix()[present]
        drawn = rng.multinomial(counts[present], drawable(rows))
        return self.tally_counts(drawn.sum(axis=0))

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        q = np.zeros(self.m)
        q[reports] = frequencies
        return self._solve(q)

    def _solve(self, q: Floats) -> Floats:
        return np.asarray(q @ self._right_inverse)

    @cached_property
    def _right_inverse(self) -> Floats:
        u, s, vt = np.linalg.svd(self.matrix(), full_matrices=False)
        floor = s[0] * max(self.k, self.m) * np.finfo(float).eps
        if self.m < self.k or s[-1] <= floor:
            rank = int((s > floor).sum())
            raise NotInvertible(
                f"the channel matrix has rank {rank} for {self.k} secrets (singular values from {s[-1]:.3g} to "
                f"{s[0]:.3g}): different distributions give the same reports; mle and ibu still apply, not uniquely"
            )
        return np.asarray(vt.T @ (u / s).T)


def _groups(sorted_codes: Ints, order: Ints) -> tuple[list[int], list[Ints]]:
    starts = (
        np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]])
        if len(sorted_codes)
        else np.array([], int)
    )
    return sorted_codes[starts].tolist(), np.split(order, starts[1:]) if len(starts) else []


def single_part(tally: Tally) -> Part:
    """The one part of a tally whose reports came through one mechanism."""
    if len(check_tally(tally).parts) != 1:
        raise ValueError(
            f"tally must hold reports of one mechanism, it pools {len(tally.parts)}; use mle, ibu or gibu"
        )
    return tally.parts[0]


def require_mechanism(mechanism: Any) -> Mechanism:
    """The mechanism itself."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism must be a mechanism, such as RandomizedResponse(k, epsilon), got {mechanism!r}"
        )
    return mechanism


def require_same_alphabet(mechanisms: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
    """The mechanisms, if there is one at least and all are over one alphabet."""
    if isinstance(mechanisms, Mechanism):
        raise TypeError(
            f"mechanisms must be a sequence of mechanisms, got one: pass [{mechanisms}]"
        )
    many = arguments.items("mechanisms", mechanisms, "a sequence of mechanisms")
    if not many:
        raise ValueError("mechanisms must hold at least one mechanism, got none")
    for mechanism in many:
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"mechanisms must be a sequence of mechanisms, got {mechanism!r} in it")
        if mechanism.alphabet != many[0].alphabet:
            raise AlphabetMismatch(
                f"mechanisms must be over the same secrets, got {many[0]} and {mechanism}"
            )
    return many
