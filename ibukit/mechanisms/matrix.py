"""Mechanisms that are given as a matrix, and their composition."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit import privacy
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import DenseChannel
from ibukit.channels.line import MIN_LOG_FACTOR
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.domain.matrices import read_matrix, refuse_entries
from ibukit.domain.vectors import vector_over
from ibukit.errors import AlphabetMismatch, NoExactSampler
from ibukit.exact import ExactSampler
from ibukit.mechanisms import matrix_entries
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.draws import drawable
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.tally.tally import Tally
from ibukit.tally.trials import refuse_trials, trials_of


@dataclass(frozen=True, eq=False)
class MatrixMechanism(FiniteMechanism):
    r""":math:`P(z\mid x)=M_{xz}` for any row-stochastic matrix M of shape (k, m).

    The matrix is taken as exactly known: intervals and errors account only for the chance in the
    reports. If the matrix was measured, as a confusion matrix is, use `from_trials`, which keeps
    the counts of the trials, so that the intervals also account for the chance in the trials.

    With `efficiency`, reports may get lost: secret x is seen with probability
    :math:`e_x=\sum_z M_{xz}<1`, and the users who are not seen are not counted. The reports of the
    others have the distribution :math:`p_z=\frac{(\theta M)_z}{\sum_x\theta_x e_x}`. Estimates are
    of :math:`\theta`, the distribution of the secrets of all users, seen or not (see Notes).

    Parameters
    ----------
    matrix : array_like, DataFrame or scipy sparse matrix, shape (k, m)
        A row for each secret and a column for each report. No entry is negative, and each row sums
        to 1 (or to its efficiency) within 1e-9. The index and the columns of a DataFrame are the
        labels of secrets and reports, unless they are only the numbers 0, 1, 2, ... A sparse matrix
        is written out.
    alphabet : Alphabet, sequence or int, optional
        The k secrets; by default the labels of a DataFrame's rows, or Line(0, k - 1).
    reports : Alphabet, sequence or int, optional
        The m reports; by default the labels of a DataFrame's columns, or the secrets if there are
        as many, or Line(0, m - 1).
    efficiency : True, float, array_like, dict or Series, optional
        The probability :math:`e_{x}`, above 0, that a secret x is seen at all. True takes the sums
        of the rows. Each row must sum to its efficiency, or all rows to 1: these are then the
        probabilities of the reports among those seen, and are multiplied by :math:`e_{x}`.
    normalize : bool
        Divide each row by its sum (and multiply it by its efficiency) if the sum is off by
        rounding, that is, by at most 1e-4. This is for matrices of 32 bits or of few digits. By
        default nothing is changed.

    Raises
    ------
    InvalidDistribution
        If an entry is negative, complex, masked or NaN, or a row does not sum to 1 or to its
        efficiency.
    AlphabetMismatch
        If the alphabet does not have k elements, or there are not m reports, or labels disagree
        with those of the matrix.
    TooLarge
        If a sparse matrix would take more than 2 GiB when written out.

    Notes
    -----
    Let :math:`\phi_x=\theta_x e_x/\sum_y\theta_y e_y` be the distribution of the secrets among
    those seen. Then :math:`p = \phi\,M / e`, where the rows of :math:`M / e` sum to 1, and
    :math:`\theta_x` is proportional to :math:`\phi_{x} / e_{x}`. The map between :math:`\theta` and
    :math:`\phi` is one to one, so :math:`\theta` maximises the likelihood of the reports seen if
    and only if its :math:`\phi` does, and the gap is the same: the certificate of an estimate holds
    for :math:`\theta`. The same :math:`\theta` also has the largest Poisson likelihood of the
    counts, :math:`\sum_{z} n_{z}\,\log \nu_{z} - \nu_{z}` with :math:`\nu = N\,\theta M`, over all
    N and :math:`\theta` together: given :math:`\theta`, the best N is the one with
    :math:`\sum_{z} \nu_{z} = \sum_{z} n_{z}`, and what is left is the likelihood of the reports
    seen. If the number of lost reports is known, use it: give these reports a column 1 - e of their
    own, and leave `efficiency` out.

    References
    ----------
    .. [dagostini] D'Agostini, "A multidimensional unfolding method based on Bayes' theorem", Nucl.
       Instrum. Meth. A 362, 1995 (whose iteration with efficiencies is `ibu` here).

    Examples
    --------
    >>> mechanism = MatrixMechanism([[0.9, 0.1], [0.3, 0.7]])
    >>> mechanism.forward([0.5, 0.5])
    array([0.6, 0.4])
    >>> round(mechanism.epsilon, 4)  # log(0.7 / 0.1)
    1.9459

    Of 100 users with the first secret and 100 with the second, a detector sees 80 and 40:

    >>> import ibukit as ik
    >>> detector = MatrixMechanism([[0.6, 0.2], [0.1, 0.3]], efficiency=True)
    >>> ik.mle(detector.tally_counts([70, 50])).distribution.round(9)
    array([0.5, 0.5])
    """

    entries: Floats
    alphabet: Alphabet = None  # type: ignore[assignment]  # until it is made
    reports: Alphabet | None = None
    efficiency: Floats | None = None
    """Probability of being seen, shape (k,); None if no report gets lost."""
    normalize: bool = False

    # The argument is called `matrix`, which the field cannot be: there is a method of that name.
    @arguments.field_is("entries", "matrix")
    def __init__(
        self,
        matrix: Any,
        alphabet: Any = None,
        reports: Any = None,
        efficiency: Any = None,
        normalize: bool = False,
    ):
        self._keep(
            entries=matrix,
            alphabet=alphabet,
            reports=reports,
            efficiency=efficiency,
            normalize=normalize,
        )
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check and convert the fields, also of classes that inherit."""
        normalize = arguments.flag("normalize", self.normalize)
        table = read_matrix(self.entries)
        refuse_entries(table.rows)
        wanted: Any = self.efficiency
        # Without efficiencies the sums are judged first, so that a message names the row as the
        # caller gave it. With efficiencies, rows are first brought into the order of the secrets.
        if wanted is None:
            table = table._replace(rows=matrix_entries.check_sums(table.rows, None, normalize))
        rows, secrets, reports = matrix_entries.align(table, self.alphabet, self.reports)
        efficiency = matrix_entries.read_efficiency(rows, wanted, secrets)
        if wanted is not None:
            rows = matrix_entries.check_sums(rows, efficiency, normalize)
        self._keep(
            entries=arguments.frozen(rows),
            alphabet=secrets,
            reports=reports,
            efficiency=None if efficiency is None else arguments.frozen(efficiency),
            normalize=normalize,
        )

    # Arrays are compared by content, which the comparison of dataclasses cannot do.
    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MatrixMechanism)
            and self.alphabet == other.alphabet
            and self.reports == other.reports
            and (self.efficiency is None) == (other.efficiency is None)
            and np.array_equal(self.entries, other.entries)
        )

    def __hash__(self) -> int:
        return hash((self.alphabet, self.entries.shape, self.entries.tobytes()))

    def __repr__(self) -> str:
        more = "" if self.reports is None else f", reports={self.reports!r}"
        if self.efficiency is not None:
            more += f", efficiency=<{self.efficiency.min():.4g} to {self.efficiency.max():.4g}>"
        more += ", normalize=True" if self.normalize else ""
        return f"MatrixMechanism(<{self.k} x {self.m}>, {self.alphabet!r}{more})"

    @property
    @override
    def m(self) -> int:
        return int(self.entries.shape[1])

    @property
    @override
    def report_alphabet(self) -> Alphabet:
        """Labels of the reports.

        They are the labels that were given, or else the secrets if there are as many, or else
        0..m-1.
        """
        return super().report_alphabet if self.reports is None else self.reports

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        """The tight local-DP level of the matrix.

        It is inf if some report rules some secret out. Where reports get lost, seeing nothing
        counts as a report, too.
        """
        return privacy.epsilon_ldp(self)

    @override
    def make_matrix(self) -> Floats:
        return self.entries

    @override
    def _refuse_large_matrix(self) -> None:
        # The matrix is there already.
        pass

    @override
    def as_finite(self) -> FiniteMechanism:
        if self.efficiency is not None:
            raise ValueError(
                f"mechanism must not lose reports, got {self}; take mechanism.among_seen for what "
                "is known of those seen, or give the lost ones a column of their own"
            )
        return self

    @cached_property
    @override
    def _right_inverse(self) -> Floats:
        self.as_finite()  # raises where reports get lost: INV is about reports that do not
        return super()._right_inverse

    @cached_property
    def among_seen(self) -> MatrixMechanism:
        """The mechanism of the users whose reports are seen.

        Its rows are divided by their efficiencies, and its estimates are of the distribution of the
        secrets among these users.
        """
        if self.efficiency is None:
            return self
        return MatrixMechanism(self._normalized_rows, self.alphabet, self.report_alphabet)

    @cached_property
    def _normalized_rows(self) -> Floats:
        """Probabilities of the reports given the secret and that a report is seen, shape (k, m)."""
        return self.entries if self.efficiency is None else self.entries / self.efficiency[:, None]

    @cached_property
    def with_null_report(self) -> MatrixMechanism:
        """The mechanism with one more report, the last, which says that nothing is seen."""
        if self.efficiency is None:
            return self
        return MatrixMechanism(
            np.column_stack([self.entries, 1 - self.efficiency]), self.alphabet, self.m + 1
        )

    @override
    def forward(self, theta: ArrayLike) -> Floats:
        r"""Probability of each report, :math:`\theta M`, shape (m,).

        `theta` is the distribution of the secrets. If reports get lost, the probabilities sum to
        the share of users that is seen.
        """
        # The channel holds rows over their efficiencies, and columns over their factors: both are
        # multiplied in again.
        weights = vector_over("theta", theta, self.alphabet)
        p = super().forward(weights if self.efficiency is None else weights * self.efficiency)
        return p if self._column_factors is None else p * self._column_factors

    @override
    def adjoint(self, w: ArrayLike) -> Floats:
        back = super().adjoint(
            w
            if self._column_factors is None
            else arguments.vector("w", w, self.m) * self._column_factors
        )
        return back if self.efficiency is None else back * self.efficiency

    @staticmethod
    def from_trials(counts: Any, alphabet: Any = None, reports: Any = None) -> MatrixMechanism:
        r"""Return the mechanism of a matrix that was measured, and keep its uncertainty.

        Of the :math:`T_x=\sum_z t_{xz}` trials of secret x, :math:`t_{xz}` had report z. The matrix
        is :math:`\hat M_{xz}=t_{xz}/T_x`. `Estimate.interval` takes the trials into account, each
        row as a multinomial sample of its own:

        - "wald", and `Estimate.standard_errors` and `Estimate.covariance`: the delta method
          [rogan]_ [lang]_. Let V be the covariance for a known matrix, with :math:`p=\theta M` and
          n reports; the covariance is then V plus
          :math:`B\,\bigl(\sum_y\theta_y^2\,(\mathrm{diag}(M_y)-M_y^\top M_y)/T_y\bigr)\,B^\top`
          with :math:`B_{xz}=n\sum_u V_{xu}\,M_{uz}/p_z`. For two secrets and two reports this is
          Rogan and Gladen's formula.
        - "profile", for two secrets, if measured matrices have two reports: the range of
          :math:`w\cdot\theta` over all :math:`\theta` and M with
          :math:`\sum_z n_z\log(\theta M)_z+\sum_{xz}t_{xz}\log M_{xz}` within :math:`z^2/2` of its
          maximum.
        - "guaranteed": all :math:`\theta` for which there is a matrix that has its rows in their
          Clopper-Pearson boxes and under which the probabilities of all reports are in the boxes of
          the reports. All boxes hold together with probability at least `level` (Bonferroni).
        - "bootstrap": trials and reports are both drawn anew.

        Other interval methods, `posterior`, `plan`, `unfold`, tests of the model and
        `attack.detect_poisoning` raise `MatrixUncertain`. Everything else, such as estimates,
        `epsilon`, limits, designs, attacks and simulations, is computed from the measured matrix as
        it stands: so `epsilon` is an estimate, not a bound on what is given away. A report that
        occurred in no trial is impossible. Mechanisms with equal trials are equal, and their
        tallies add up to a tally with one matrix; if mechanisms differ, their trials are taken as
        independent.

        Parameters
        ----------
        counts : array_like, DataFrame or scipy sparse matrix, shape (k, m)
            Counts of trials, with a row for each secret and a column for each report: whole
            numbers, at least one trial in each row. Labels are as in `MatrixMechanism`.
        alphabet, reports : Alphabet, sequence or int, optional
            As for `MatrixMechanism`.

        Returns
        -------
        MatrixMechanism
            With the attribute `trials`, an array of integers of shape (k, m).

        Raises
        ------
        InvalidDistribution
            If a count is negative or not a whole number, or a secret has no trials.
        AlphabetMismatch
            As for `MatrixMechanism`.

        References
        ----------
        .. [rogan] Rogan and Gladen, "Estimating prevalence from the results of a screening test",
           American Journal of Epidemiology 107, 1978.
        .. [lang] Lang and Reiczigel, "Confidence limits for prevalence of disease adjusted for
           estimated sensitivity and specificity", Preventive Veterinary Medicine 113, 2014.

        Examples
        --------
        A test finds 103 of 122 people who are ill, and flags 2 of 401 who are well. Of 3,330
        people, 50 test positive, and perhaps nobody is ill:

        >>> import ibukit as ik
        >>> trials = [[103, 19], [2, 399]]
        >>> test = ik.MatrixMechanism.from_trials(trials, ["ill", "well"], ["+", "-"])
        >>> estimate = ik.mle(test.tally_counts({"+": 50, "-": 3280}))
        >>> lower, upper = estimate.interval(of={"ill": 1})
        >>> print(f"{estimate['ill']:.4f}, {lower:.4f} to {upper:.4f}")
        0.0119, 0.0000 to 0.0199
        """
        return MeasuredMatrix(counts, alphabet, reports)

    @cached_property
    def _column_factors(self) -> Floats | None:
        """Factors that `channel` leaves out of all columns, shape (m,); None if there are none."""
        return _factor(self._normalized_rows)

    @override
    def channel(self, reports: NDArray[Any]) -> DenseChannel:
        """The columns of the given reports, with each row divided by its efficiency.

        Columns of tiny entries are divided by their largest entry, whose logarithm `log_scale`
        returns.
        """
        columns = np.ascontiguousarray(self._normalized_rows[:, reports])
        factor = _factor(columns)
        return DenseChannel(columns if factor is None else columns / factor)

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats | None:
        """Logarithm of the factor that `channel` omits for the most improbable reports.

        They are so improbable under every secret that a quotient would overflow.
        """
        factor = _factor(self._normalized_rows[:, reports])
        return None if factor is None else np.log(factor)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> NDArray[Any]:
        """Draw one report for each user, as codes 0..m-1; fewer if reports get lost."""
        if self.efficiency is None:
            return super().draw(secrets, rng)
        is_seen = rng.random(len(secrets)) < self.efficiency[secrets]
        return super().draw(secrets[is_seen], rng)

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        """Draw the tally of a whole population: one multinomial per secret.

        If reports get lost, it is the tally of those that are seen.
        """
        if self.efficiency is None:
            return super().simulate(secret_counts, rng)
        rng = arguments.generator(rng)
        counts = aligned_counts("secret_counts", secret_counts, self.alphabet)
        # First how many users of each secret are seen, then what they report.
        seen_counts = rng.binomial(counts, self.efficiency)
        if not seen_counts.any():
            raise ValueError("the tally is empty: at least one report is needed, and all were lost")
        return self.tally_counts(
            rng.multinomial(seen_counts, drawable(self._normalized_rows)).sum(axis=0)
        )


@dataclass(frozen=True, eq=False)
class MeasuredMatrix(MatrixMechanism):
    """A matrix of the shares of reports in trials, which `MatrixMechanism.from_trials` makes.

    It also keeps the counts of the trials, so that no method takes the matrix for exactly known by
    mistake.
    """

    # The matrix follows from the trials. Each trial has a report, so no report gets lost.
    entries: Floats = field(init=False)
    efficiency: Floats | None = field(default=None, init=False)
    normalize: bool = field(default=False, init=False)
    trials: Ints = None  # type: ignore[assignment]  # until it is made
    """Counts of the trials of each secret by their reports, shape (k, m)."""

    def __init__(self, trials: Any, alphabet: Any = None, reports: Any = None):
        table = matrix_entries.read_trials(trials)
        rows, secrets, named = matrix_entries.align(table, alphabet, reports)
        self._keep(trials=arguments.frozen(rows.astype(np.int64)))
        super().__init__(rows / rows.sum(axis=1, keepdims=True), secrets, named)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MeasuredMatrix)
            and super().__eq__(other)
            and np.array_equal(self.trials, other.trials)
        )

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.trials.tobytes()))

    def __repr__(self) -> str:
        inner = super().__repr__().removeprefix("MatrixMechanism(")
        n = self.trials.sum(axis=1)
        return (
            f"MatrixMechanism.from_trials({inner[:-1]}, <{n.min()} to {n.max()} trials a secret>)"
        )


@exact_sampler(MeasuredMatrix)
@exact_sampler(MatrixMechanism)
def _matrix_mechanism_sampler(mechanism: MatrixMechanism) -> ExactSampler:
    if mechanism.efficiency is not None:
        raise NoExactSampler(
            f"{mechanism} loses reports, which release cannot do; take mechanism.with_null_report, "
            "whose last report says that nothing was seen, and count its reports with its own tally"
        )
    return mechanism._matrix_sampler()


def _factor(columns: Floats) -> Floats | None:
    """Largest entry of each column of tiny entries, 1 for the others; None if no column is tiny."""
    # Below e^MIN_LOG_FACTOR quotients of probabilities might overflow.
    largest = columns.max(axis=0)
    tiny = (largest > 0) & (largest < np.exp(MIN_LOG_FACTOR))
    return np.where(tiny, largest, 1.0) if tiny.any() else None


def as_mechanism(mechanism: Mechanism | ArrayLike) -> Mechanism:
    """Return the mechanism itself, or a row-stochastic matrix as a `MatrixMechanism`."""
    return mechanism if isinstance(mechanism, Mechanism) else MatrixMechanism(mechanism)


def compose(mechanism: FiniteMechanism, channel: FiniteMechanism | ArrayLike) -> MatrixMechanism:
    r"""Post-process every report by another channel.

    .. math:: (MC)_{xw}=\sum_z M_{xz}\,C_{zw}.

    Post-processing never weakens the privacy of `mechanism`; but it can make it impossible to
    identify the secrets' distribution, for instance when the reports of a 5 x 5 grid are truncated
    to 4 x 4 cells.

    Parameters
    ----------
    mechanism : FiniteMechanism
        With m possible reports.
    channel : FiniteMechanism or array_like, shape (m, l)
        Row-stochastic: row z has the probabilities of what becomes of report z.

    Returns
    -------
    MatrixMechanism
        From the secrets of `mechanism` to l reports.

    Raises
    ------
    AlphabetMismatch
        If `channel` does not have one row for each report.
    InvalidDistribution
        If `channel` is not row-stochastic.
    MatrixUncertain
        If the matrix of `channel` was measured; or if that of `mechanism` was, unless `channel` has
        only zeros and ones, and so merges the trials.

    Examples
    --------
    Randomized response over three values, of which the collector keeps only "first or not":

    >>> import ibukit as ik
    >>> response = ik.RandomizedResponse(3, epsilon=1.0)
    >>> ik.compose(response, [[1, 0], [0, 1], [0, 1]]).matrix().round(4)
    array([[0.5761, 0.4239],
           [0.2119, 0.7881],
           [0.2119, 0.7881]])
    """
    if not isinstance(mechanism, FiniteMechanism):
        raise TypeError(
            f"mechanism must have reports that can be listed, a FiniteMechanism, got {mechanism!r}"
        )
    second = channel if isinstance(channel, FiniteMechanism) else MatrixMechanism(channel)
    refuse_trials(
        [second],
        "a composition",
        "measure the composed channel, or take the trials of `mechanism` and a known `channel`",
    )
    if second.k != mechanism.m:
        raise AlphabetMismatch(
            "channel must have one row for each of the "
            f"{arguments.shown(mechanism.m)} reports, got {second.k} rows"
        )
    trials = trials_of(mechanism)
    if trials is not None:
        return _merged_trials(mechanism, trials, second)
    # Lost reports stay lost: the rows of the product then sum to less than 1.
    lossy = any(getattr(kind, "efficiency", None) is not None for kind in (mechanism, second))
    reports = second.reports if isinstance(second, MatrixMechanism) else None
    return MatrixMechanism(
        mechanism.matrix() @ second.matrix(), mechanism.alphabet, reports, efficiency=lossy
    )


def _merged_trials(mechanism: FiniteMechanism, trials: Ints, channel: FiniteMechanism) -> Any:
    """Return the measured matrix after reports are merged, by merging the trials."""
    merging = channel.matrix()
    if not np.isin(merging, (0.0, 1.0)).all() or getattr(channel, "efficiency", None) is not None:
        refuse_trials(
            [mechanism],
            "a composition by chance",
            "a channel of zeros and ones, which merges reports, merges the trials, too",
        )
    reports = channel.reports if isinstance(channel, MatrixMechanism) else None
    return MeasuredMatrix(trials @ merging, mechanism.alphabet, reports)
