"""Base classes `Mechanism` and `FiniteMechanism`.

Both stand in one file, because every mechanism can be asked for a finite one (`as_finite`). The
public methods `randomize`, `release` and `tally` take and return labels, or codes with
``codes=True``; the methods that a subclass defines (`draw`, `check_reports`, `channel`) work on
codes alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel
from ibukit.domain.alphabet import MAX_ON_A_LINE, Alphabet, Line, as_alphabet
from ibukit.domain.labels import CountsLike, LabelsLike, aligned_counts, codes_of
from ibukit.domain.report_kind import ReportKind
from ibukit.domain.vectors import vector_over
from ibukit.errors import AlphabetMismatch, NoExactSampler, NotInvertible, TooLarge
from ibukit.exact import OPERATING_SYSTEM, ExactSampler, RandomBits, RationalMatrix
from ibukit.mechanisms.draws import drawable, reports_by_rows, secrets_of_users
from ibukit.mechanisms.exact_samplers import registered_sampler
from ibukit.tally.survey_rows import with_weights
from ibukit.tally.tally import Tally, make_tally_part

# End of the error message for a label that is not in the alphabet.
CODES_HINT = "; places in the alphabet are taken with codes=True"


class Mechanism(arguments.ReadOnlyArrays, ABC):
    r"""A channel from secrets x to reports z: :math:`P(z\mid x)=M_{xz}`.

    All statements about its privacy refer to these probabilities. `randomize` and `simulate` are a
    *simulator*, for experiments. Do not use them on users' devices to make the reports that are
    released: they draw in doubles from a generator that can be predicted, so their reports are not
    epsilon-private in the strict sense. The chapter on mechanisms says what such reports give away.
    For devices there is `release`, which draws without roundings.

    A subclass is a frozen dataclass whose fields are the paper's parameters, `alphabet` first. It
    provides `draw`, `check_reports` and `channel`, all in codes; if its reports can be listed, it
    inherits from `FiniteMechanism` instead. It checks its fields in ``__post_init__``, and so do
    the classes that inherit from it. The page *Write your own mechanism* shows examples;
    `testing.check_mechanism` tests whether a mechanism keeps its promises.

    Raises
    ------
    ValueError
        If `alphabet` is neither an alphabet nor labels nor a whole number above 0 (which stands for
        Line(0, alphabet - 1)), or if a field `epsilon` is not a number above 0.

    See Also
    --------
    FiniteMechanism : The shorter way for mechanisms whose reports are codes 0..m-1.

    Examples
    --------
    Every mechanism offers these methods, whatever the form of its reports:

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
    """True if `epsilon` is per unit of distance (d-privacy) instead of for all pairs (local DP)."""

    report_kind: ClassVar[ReportKind] = ReportKind.NUMBERS
    """Form in which tables and files hold the reports."""

    def __post_init__(self) -> None:
        """Check and convert the fields of every mechanism; subclasses extend it."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        # An infinite epsilon is accepted: it states that there is no privacy.
        epsilon: Any = self.__getstate__().get("epsilon", math.inf)
        if not isinstance(epsilon, float) or epsilon != math.inf:
            self._keep(epsilon=arguments.positive("epsilon", epsilon))

    @property
    def k(self) -> int:
        """Number of secrets."""
        return len(self.alphabet)

    @abstractmethod
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        """Draw one report for each user, in codes; `randomize` and `simulate` call it.

        Parameters
        ----------
        secrets : ndarray of int, shape (n,)
            Codes of the users' true values, or their labels if the alphabet has no end.
        rng : numpy.random.Generator

        Returns
        -------
        ndarray, n reports
            Codes 0..m-1 if the reports can be listed.
        """

    @abstractmethod
    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        """Bring reports into the form that the tally keeps.

        Reports outside the alphabet raise `AlphabetMismatch`.
        """

    @abstractmethod
    def channel(self, reports: NDArray[Any]) -> Channel:
        """Forward and adjoint on the given reports (in the form of `check_reports`)."""

    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of the factor that `channel` leaves out of each probability.

        None if it leaves out nothing.
        """
        return None

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

    def code_reports(self, reports: LabelsLike) -> NDArray[Any]:
        """Codes of reports given by their labels.

        Reports that cannot be listed stand for themselves.
        """
        return arguments.whole_array("reports", reports)

    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Labels of reports as `draw` returns them; it undoes `code_reports`."""
        return reports

    def as_finite(self) -> FiniteMechanism:
        """A mechanism with the same information whose reports can be listed.

        By default it is the mechanism itself if its reports can be listed; if not, ValueError is
        raised. Mechanisms whose columns are all multiples of finitely many columns override it,
        because reports may be merged if they give the secrets probabilities in the same ratios.
        Limits and bounds are computed for this mechanism.

        Raises
        ------
        ValueError
            If no list of reports carries as much information.
        """
        raise ValueError(
            f"mechanism must have reports that can be listed, got {self}; take a truncated kind if "
            "there is one (reports beyond its ends must then be moved to the ends), else a "
            "MatrixMechanism with a column for each of its likelier reports and one for all the "
            "rest: either has a little less information"
        )

    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        r"""The unbiased estimate v with :math:`\mathbb E[v]=\theta`, shape (k,).

        It is computed from the frequencies of the reports seen.
        """
        raise NotInvertible(
            f"{self} has no square channel matrix, so matrix inversion does not apply; use mle or "
            "ibu"
        )

    def randomize(
        self, secrets: LabelsLike, rng: Generator, *, codes: bool = False
    ) -> NDArray[Any]:
        """Simulate one report for each user; on devices, use `release` instead.

        Parameters
        ----------
        secrets : sequence, n labels
            The users' true values, as they stand in the alphabet.
        rng : numpy.random.Generator
        codes : bool
            If True, secrets are places 0..k-1 in the alphabet instead of labels, and reports that
            can be listed are places in their list. On a grid, where labels are pairs, single
            numbers are always the places of cells, as `Grid.locate` returns them.

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
        # Secrets come in as labels and reports go out as labels; `draw` works on codes.
        rng = arguments.generator(rng)
        return self._draw_labelled(secrets, codes, lambda places: self.draw(places, rng))

    def release(self, secrets: LabelsLike, *, codes: bool = False) -> NDArray[Any]:
        """Draw one report for each user, without any rounding, for release.

        The random bits come from the operating system. From secret to report only whole numbers are
        used: the bits are compared with the digits of probabilities, as many as it takes.
        `epsilon`, a double, is taken as the fraction that it is. If nothing but the matrix is known
        of a mechanism, its reports are drawn from fractions close to the entries of the matrix.
        Laplace noise is drawn on a fine lattice. The reports have the level `release_epsilon`. How
        long a draw takes is not hidden. There is no seed, so nobody can draw the same reports
        again.

        Parameters
        ----------
        secrets : sequence, n labels
            The users' true values, as for `randomize`.
        codes : bool
            If True, secrets and reports that can be listed are places instead of labels, as for
            `randomize`.

        Returns
        -------
        ndarray, n reports
            As `tally` takes them.

        Raises
        ------
        NoExactSampler
            If the mechanism has no sampler without roundings; the message says what to take
            instead.
        AlphabetMismatch
            If a secret is not in the alphabet.
        ValueError
            If a secret is missing.
        """
        return self._release_from(secrets, codes, OPERATING_SYSTEM)

    @property
    def release_epsilon(self) -> float:
        """The level of what `release` draws, rounded up to a double.

        It is `epsilon` itself if the sampler is derived from `epsilon`; otherwise the sampler
        replaces each entry of the matrix by a fraction close to it, and this is the level of these
        fractions. It is per unit of distance where `metric` is True.
        """
        return self._exact_sampler().epsilon()

    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
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
            If reports are drawn one by one, and there are more than :math:`2^{28}` users.
        """
        rng = arguments.generator(rng)
        # By default reports are drawn user by user. Mechanisms that know the law of the counts
        # override this: k-RR by k binomials, noise on a line by one for each value.
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        return self.tally(self.draw(secrets_of_users(counts, self), rng), codes=True)

    def _release_from(
        self, secrets: LabelsLike, codes: bool, random_bits: RandomBits
    ) -> NDArray[Any]:
        """Draw as `release` does, drawing from the given random bits."""
        sampler = self._exact_sampler()
        return self._draw_labelled(secrets, codes, lambda places: sampler.draw(places, random_bits))

    def _exact_sampler(self) -> ExactSampler:
        """The sampler without roundings of exactly this class, or the default one."""
        # The exact type counts: a sampler proved for a class may be wrong for its subclasses.
        make = registered_sampler(type(self))
        return make(self) if make else self._default_exact_sampler()

    def _default_exact_sampler(self) -> ExactSampler:
        raise NoExactSampler(
            f"{type(self).__name__} has no sampler without roundings; take a mechanism over the "
            "same secrets that has one, such as LinearGeometric or LinearLaplace on a line, "
            "PlanarGeometric or PlanarLaplace on a grid, or a unary encoding"
        )

    def _draw_labelled(
        self, secrets: LabelsLike, codes: bool, draw: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> NDArray[Any]:
        """Draw from the codes of secrets; the reports are labels if the secrets were."""
        # An unbounded alphabet has no codes: its labels are integers or pairs, used directly.
        if not self.alphabet.bounded:
            if arguments.flag("codes", codes):
                raise ValueError(
                    f"codes must be False: {self.alphabet!r} has no end, and labels stand for "
                    "themselves"
                )
            return draw(self._read_secrets(secrets))
        places, were_codes = self._places(secrets, codes)
        return draw(places) if were_codes else self.label_reports(draw(places))

    def _read_secrets(self, secrets: LabelsLike) -> NDArray[Any]:
        """Return secrets over an alphabet without an end, which are their own codes."""
        return arguments.whole_array("secrets", secrets)

    def _places(self, secrets: LabelsLike, codes: bool) -> tuple[Ints, bool]:
        """Return the codes of secrets over a bounded alphabet, and whether codes were given."""
        # Single numbers on a grid can only be codes, because the label of a cell is a pair.
        if arguments.flag("codes", codes) or self.alphabet.are_codes(secrets):
            return arguments.codes("secrets", secrets, self.k), True
        return codes_of("secrets", secrets, self.alphabet, CODES_HINT), False

    def tally(
        self,
        reports: LabelsLike,
        *,
        counts: ArrayLike | None = None,
        codes: bool = False,
        weighted: bool = False,
    ) -> Tally:
        """Count the distinct reports.

        If the alphabet has no end, the tally is over that part of it to which the best explanations
        of the reports are confined (see `Tally.full_alphabet`).

        Parameters
        ----------
        reports : sequence, n reports
            Labels, if the reports can be listed; for a mechanism that reports secrets they are the
            labels of the alphabet. Otherwise the integers, pairs of coordinates or rows of bits
            that were reported.
        counts : array_like of int, shape (n,), optional
            How often each report was made, once by default; the same report may occur more than
            once in `reports`.
        codes : bool
            If True, reports that can be listed are places 0..m-1 in their list instead of labels.
        weighted : bool
            Whether `counts` may be weights, that is, any numbers that are not negative;
            `Tally.from_table` says what weights, and weights of 0, do to standard errors.

        Raises
        ------
        AlphabetMismatch
            If a report is not in the alphabet of reports.
        ImpossibleReport
            If there is a report that no secret can produce.
        ValueError
            If a report is missing, or there are no reports at all.
        """
        # Labels become codes, codes the form that a tally keeps, and equal ones are counted.
        checked_reports = self._read_reports(reports, codes)
        if arguments.flag("weighted", weighted) and counts is None:
            raise ValueError("counts must be given where weighted is True, got None")
        check = arguments.weights if weighted else arguments.counts
        if counts is None:
            return self._count(checked_reports, None)
        often = check("counts", counts, len(checked_reports))
        tally = self._count(checked_reports, often)
        return with_weights(tally, checked_reports, often) if weighted else tally

    def _read_reports(self, reports: LabelsLike, codes: bool) -> NDArray[Any]:
        """Reports, labels or codes, in the form of `check_reports`."""
        as_codes = arguments.flag("codes", codes)
        read = arguments.whole_array("reports", reports) if as_codes else self.code_reports(reports)
        return self.check_reports(read)

    def _count(self, reports: NDArray[Any], counts: Ints | Floats | None) -> Tally:
        """The tally of reports in the form of `check_reports`; each counts once by default."""
        if self.alphabet.bounded or not len(reports):
            return Tally((make_tally_part(self, reports, counts),))
        # No secret outside the window explains a report better than the nearest secret inside does.
        window = self.alphabet.window(reports)
        bounded: Mechanism = replace(self, alphabet=window)  # type: ignore[type-var]
        return Tally((make_tally_part(bounded, reports, counts),), full_alphabet=self.alphabet)

    def __getstate__(self) -> dict[str, Any]:
        # Only the parameters are pickled: matrices are computed again where they are needed.
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}


class FiniteMechanism(Mechanism):
    """A mechanism whose reports can be listed.

    The reports are the codes 0..m-1, and M is a matrix of shape (k, m).

    A subclass provides `make_matrix`, and also `m` if there are not as many reports as secrets.
    Everything else follows from the matrix, and may be overridden by faster methods.

    Raises
    ------
    ValueError
        As for `Mechanism`.

    See Also
    --------
    MatrixMechanism : The mechanism of a matrix that is known already.

    Examples
    --------
    This mechanism reports the truth, or with probability `skip` the first value:

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
    >>> shy = Shy(ik.Line(0, 2), skip=0.25)
    >>> shy.matrix()
    array([[1.  , 0.  , 0.  ],
           [0.25, 0.75, 0.  ],
           [0.25, 0.  , 0.75]])
    >>> ik.mle(shy.tally_counts([50, 30, 0])).distribution
    array([0.5, 0.5, 0. ])
    """

    report_kind: ClassVar[ReportKind] = ReportKind.LABELS

    @property
    def m(self) -> int:
        """Number of possible reports."""
        return self.k

    @property
    def report_alphabet(self) -> Alphabet:
        """Labels of the reports.

        Reports have the labels of the secrets if there are as many reports as secrets, and
        otherwise the labels 0..m-1. A mechanism whose reports have other labels overrides it.
        """
        return self.alphabet if self.m == self.k else Line(0, self.m - 1)

    @override
    def code_reports(self, reports: LabelsLike) -> NDArray[Any]:
        labels = self.report_alphabet
        if labels.are_codes(reports):
            return arguments.codes("reports", reports, self.m)
        return codes_of("reports", reports, labels, CODES_HINT)

    @override
    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        return self.report_alphabet.labels_of(reports)

    @override
    def as_finite(self) -> FiniteMechanism:
        return self

    def make_matrix(self) -> Floats:
        r"""Compute the channel matrix :math:`M_{xz}=P(z\mid x)`, shape (k, m).

        `matrix` calls it once and keeps the result.
        """
        raise NotImplementedError(
            f"{type(self).__name__} does not say its probabilities: define make_matrix(self), "
            "which returns an array of shape (k, m) whose rows sum to 1"
        )

    @cached_property
    def _matrix(self) -> Floats:
        self._refuse_large_matrix()
        return np.asarray(self.make_matrix(), dtype=np.float64)

    def matrix(self) -> Floats:
        r"""Channel matrix of :math:`P(z\mid x)`, shape (k, m), read-only; rows sum to 1."""
        return arguments.frozen(self._matrix)

    def _refuse_large_matrix(self) -> None:
        """Raise TooLarge before writing out a matrix that exceeds the budget of memory."""
        limits.require_dense(f"the matrix of {type(self).__name__}", self.k, self.m)

    def _row(self, secret: int) -> Floats:
        """Probabilities of all reports given one secret, shape (m,)."""
        return self.matrix()[secret]

    @property
    def _all_reports(self) -> NDArray[Any]:
        """All possible reports, in the form that a tally keeps."""
        self._refuse_unlisted("count the reports with tally")
        return np.arange(self.m)

    def _refuse_unlisted(self, instead: str) -> None:
        """Raise TooLarge before listing reports of which there are more than an alphabet has."""
        if self.m > MAX_ON_A_LINE:
            raise TooLarge(
                f"{arguments.brief(self)} must have at most {MAX_ON_A_LINE} possible reports to "
                f"list them, got {arguments.readable(self.m)}: {instead}"
            )

    @cached_property
    def _full_channel(self) -> Channel:
        """The channel of all possible reports."""
        return self.channel(self._all_reports)

    def forward(self, theta: ArrayLike) -> Floats:
        r"""Distribution of the reports, :math:`\theta M`, shape (m,).

        `theta` is the distribution of the secrets.
        """
        return self._full_channel.forward(vector_over("theta", theta, self.alphabet))

    def adjoint(self, w: ArrayLike) -> Floats:
        """Weights on the reports carried back to the secrets, :math:`Mw`, shape (k,)."""
        return self._full_channel.adjoint(arguments.vector("w", w, self.m))

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        return DenseChannel(np.ascontiguousarray(self.matrix()[:, reports]))

    @override
    def check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        return arguments.codes("reports", reports, self.m)

    def tally_counts(self, counts: CountsLike, *, weighted: bool = False) -> Tally:
        r"""The tally of reports that are already counted.

        Weights, such as those of surveys, count as numbers of people. Estimates and their gaps are
        then those of the weighted likelihood. Standard errors are about right if the weights w of
        all people sum to the effective sample size :math:`(\sum w)^{2} / \sum w^{2}`: scale them to
        this sum first, or divide the errors by the square root of the ratio of that size to
        :math:`\sum w`. Only `mle`, `ibu` and `gibu` (without `Discrepancy`) and `gap` take weights,
        and estimates of them have Wald intervals only. Other estimators and posteriors refuse them.

        Parameters
        ----------
        counts : array_like of int, shape (m,), or mapping or Series
            How often each possible report was seen: in the order of `report_alphabet`, or by label,
            as ``series.value_counts()`` returns them.
        weighted : bool
            Whether the counts are sums of weights, that is, any numbers that are not negative.

        Raises
        ------
        AlphabetMismatch
            If a label is not that of any report, or an array does not have one count for each
            report.
        ValueError
            If a label occurs twice, a count is negative or not a whole number, or there are no
            reports at all.
        TooLarge
            If there are too many possible reports to list them.
        """
        every_report = self._all_reports  # first, because it refuses to list too many
        return Tally(
            (
                make_tally_part(
                    self,
                    every_report,
                    aligned_counts("counts", counts, self.report_alphabet, weighted),
                ),
            )
        )

    @override
    def _read_reports(self, reports: LabelsLike, codes: bool) -> NDArray[Any]:
        if arguments.flag("codes", codes) or not self._reports_are_codes:
            return super()._read_reports(reports, codes)
        # These codes come from a look-up in the list of all reports, so they need no further check.
        return self.code_reports(reports)

    @override
    def _count(self, reports: NDArray[Any], counts: Ints | Floats | None) -> Tally:
        # Many reports that are codes are counted by `bincount` instead of being sorted.
        if counts is None and self._reports_are_codes and self.m <= len(reports):
            totals = np.bincount(reports, minlength=self.m)
            return Tally((make_tally_part(self, np.arange(self.m), totals),))
        return super()._count(reports, counts)

    @property
    def _reports_are_codes(self) -> bool:
        """True if a tally keeps codes 0..m-1, because no class changed `check_reports`."""
        return type(self).check_reports is FiniteMechanism.check_reports

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        return reports_by_rows(secrets, self._row, (self.k, self.m), rng)

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        # The reports of all users of one secret are one multinomial draw from its row.
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        present = np.flatnonzero(counts)
        rows = self.matrix()[present]
        drawn = rng.multinomial(counts[present], drawable(rows))
        return self.tally_counts(drawn.sum(axis=0))

    @cached_property
    def _fractions(self) -> RationalMatrix:
        """Fractions close to the matrix's entries, for `release` if only the matrix is known."""
        return RationalMatrix(self.matrix())

    @override
    def _default_exact_sampler(self) -> ExactSampler:
        if type(self).draw is not FiniteMechanism.draw:
            raise NoExactSampler(
                f"{type(self).__name__} has no sampler without roundings; for one report of "
                "each person, release through its matrix, m = MatrixMechanism("
                "mechanism.matrix(), mechanism.alphabet, mechanism.report_alphabet), and count "
                "these reports with m.tally"
            )
        return self._matrix_sampler()

    def _matrix_sampler(self) -> ExactSampler:
        """The sampler of the fractions close to the matrix's entries."""
        # Reports are drawn from integer weights over a power of two, without rounding. The privacy
        # level is that of these fractions, which may be a little above that of the matrix.

        def draw(secrets: NDArray[Any], random_bits: RandomBits) -> NDArray[Any]:
            return self.restore_reports(
                self._all_reports[self._fractions.draw(secrets, random_bits)]
            )

        def epsilon() -> float:
            if self.metric:
                return self._fractions.epsilon_per_distance(self.alphabet.distances())
            return self._fractions.epsilon()

        return ExactSampler(draw, epsilon)

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        # Reports that were not seen have frequency 0.
        self._refuse_unlisted("take mle, which needs those seen alone")
        q = np.zeros(self.m)
        q[reports] = frequencies
        return self._solve(q)

    def _solve(self, q: Floats) -> Floats:
        """The estimate q M^-1, by the pseudo-inverse where M is not square."""
        return q @ self._right_inverse

    @cached_property
    def _right_inverse(self) -> Floats:
        """The pseudo-inverse V diag(1/s) U^T of M = U diag(s) V^T; it needs rank k."""
        u, s, vt = np.linalg.svd(self.matrix(), full_matrices=False)
        # Singular values below the rounding of the largest one count as 0, as in `matrix_rank`.
        floor = s[0] * max(self.k, self.m) * np.finfo(float).eps
        if self.m < self.k or s[-1] <= floor:
            rank = int((s > floor).sum())
            raise NotInvertible(
                f"the channel matrix has rank {rank} for {self.k} secrets (singular values from "
                f"{s[-1]:.3g} to {s[0]:.3g}): different distributions give the same reports; mle "
                "and ibu still apply, but their answer is one of many"
            )
        return vt.T @ (u / s).T


def require_mechanism(mechanism: Any) -> Mechanism:
    """Return the mechanism itself; TypeError for anything else."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            "mechanism must be a mechanism, such as RandomizedResponse(k, epsilon), got "
            f"{mechanism!r}"
        )
    return mechanism


def require_same_alphabet(mechanisms: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
    """Return the mechanisms as a tuple, if there is at least one and all share one alphabet."""
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
