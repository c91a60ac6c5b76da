"""Collect in cycles: from the reports of one cycle to the mechanism of the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints, ReadOnlyArrays
from ibukit._ground.threads import one_thread
from ibukit.design.blahut_arimoto import blahut_arimoto
from ibukit.design.privic import options, restored
from ibukit.design.privic.options import Draw
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.domain.distributions import Population, quantize
from ibukit.domain.vectors import VectorLike, distribution_over, positive_distribution_over
from ibukit.errors import AlphabetMismatch, ConvergenceError, ForeignFile, MechanismMismatch
from ibukit.estimate import Estimate, Status
from ibukit.estimators.certificate import as_estimate, certified
from ibukit.estimators.iterative_update import ibu
from ibukit.estimators.maximum_likelihood import mle
from ibukit.estimators.stopping import Steps
from ibukit.files import storage
from ibukit.mechanisms import MatrixMechanism
from ibukit.tally.tally import Tally, TallyPart, check_tally, pool

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Cycle(ReadOnlyArrays):
    """A finished cycle: the estimate after it, with its proof, and how often each report came."""

    distribution: Floats
    counts: Ints
    gap: float
    n_iter: int
    status: str
    method: str

    @property
    def n(self) -> int:
        """Number of reports."""
        return int(self.counts.sum())


class Privic:
    r"""PRIVIC: a mechanism and an estimate that improve each other in cycles.

    In cycle t the mechanism is :math:`M^t=\mathrm{BA}(\theta^{t-1},\beta)`, the reports through it
    are :math:`q^t`, and the estimate is :math:`\theta^t=\mathrm{IBU}(M^t,q^t)`, started from
    :math:`\theta^{t-1}`. A good mechanism needs a distribution that is not known yet, so both are
    made in turn: users report through `mechanism`, and `collect` ends the cycle with their reports.
    Every mechanism is :math:`2\,\beta`-d-private, whatever was reported before.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also the reports.
    beta : float
        What a unit of distance is worth to `blahut_arimoto`, in nats per unit of the alphabet's
        distances, above 0.
    ba_steps : int or None
        Steps of `blahut_arimoto` in each cycle; None for the certified optimum.
    ibu_steps : int or None
        Steps of `ibu` in each cycle; None for the certified maximum, by `mle`, which does not
        depend on where an iteration starts.
    start : array_like or labelled, shape (k,), optional
        The first distribution :math:`\theta^{0}`, nowhere 0; uniform by default.
    ba_start : array_like or labelled, shape (k,), optional
        Where `blahut_arimoto` starts in every cycle, nowhere 0; uniform by default. Only with
        `ba_steps`.
    restart : bool
        Start the update at `start` in each cycle, as the authors' published program does. By
        default it starts at the last distribution, as in Algorithm 1, and it is this default that
        reproduces the paper's tables.
    combine : {"last", "average"}
        Whether :math:`\theta^{t}` is this cycle's estimate :math:`\mu^{t}`, or the average of the
        estimates of all cycles, each weighted by its number of reports: :math:`\theta^{t} =
        (n_{t}\,\mu^{t} + (n_{1} + \dots + n_{t - 1})\,\theta^{t - 1}) / (n_{1} + \dots + n_{t})`.
        Algorithm 1 has the average, but it is "last" that reproduces the paper's tables.
    tol : float
        With ``ba_steps=None`` or ``ibu_steps=None``: nats within which that optimum is certified.
    path : str or path, optional
        A file that is replaced after every cycle, all at once or not at all. If it exists, the loop
        continues from the file and must have the arguments that the file was begun with. Only one
        loop at a time may use the file; a second is refused.

    Raises
    ------
    ValueError
        If `beta` or `tol` is not a finite number above 0, a number of steps is below 1, `combine`
        is neither of the two, or `ba_start` is given with ``ba_steps=None``.
    InvalidDistribution
        If a start is not a distribution or has a zero: the steps of BA and IBU only multiply
        probabilities, so a report or a secret of probability 0 would keep this probability for
        ever.
    AlphabetMismatch
        If a start does not have k entries.
    ForeignFile
        If the file at `path` was begun with other arguments, or is not the file of a loop.
    DataChanged
        If the file was changed or cut short; or, when a cycle ends, if another loop has written to
        it.

    Notes
    -----
    The steps are few on purpose, because few steps smooth: at the certified maximum of every cycle
    the estimates follow the noise. With an unlimited number of users the estimates tend to the
    truth if :math:`\exp (-\beta\,d)` is invertible, as it is for Euclidean d; otherwise they may
    not.

    A mechanism is made for `quantize` of :math:`\theta^{t - 1}`, so that a seed gives the same
    draws on every computer.

    Where Algorithm 1 is inconsistent, reports go through the mechanism that was built last, and the
    loop for N cycles runs N times, not N + 1. The first row of the paper's Tables III and IV is the
    start: their row N is ``distributions[N - 1]``.

    The file holds the running cycle's mechanism to the last bit, so that its users' reports are
    recognised after a restart. Of earlier cycles it holds the counts of the reports; the mechanisms
    of these cycles are computed again where needed.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Algorithm 1.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> paris, rng = ik.datasets.load_gowalla("privic_paris"), np.random.default_rng(1)
    >>> P = Privic(paris.alphabet, beta=1.0)
    >>> for cycle in range(3):
    ...     tally = P.mechanism().simulate(paris.counts, rng)  # stands for the users
    ...     estimate = P.collect(tally)
    >>> P.cycle, estimate.n_iter, estimate.gap < 0.1
    (3, 10, True)
    >>> truth, cells = paris.distribution, paris.alphabet
    >>> [round(ik.emd(theta, truth, cells), 1) for theta in P.distributions]
    [2.0, 0.3, 0.2, 0.2]
    """

    def __init__(
        self,
        alphabet: AlphabetLike,
        beta: float = 1.0,
        ba_steps: int | None = 8,
        ibu_steps: int | None = 10,
        *,
        start: VectorLike | None = None,
        ba_start: VectorLike | None = None,
        restart: bool = False,
        combine: Literal["last", "average"] = "last",
        tol: float = 1e-9,
        path: str | os.PathLike[str] | None = None,
    ):
        self._options = options.privic_options(
            alphabet, beta, ba_steps, ibu_steps, start, ba_start, restart, combine, tol
        )
        # The state of the loop: its finished cycles, and the mechanism of the running one, which is
        # computed when it is first needed.
        self._cycles: tuple[Cycle, ...] = ()
        self._mechanism: MatrixMechanism | None = None
        # The path is resolved now, because the process may change its folder.
        self._path = None if path is None else arguments.path("path", path).resolve()
        # The checksum of the file as this loop left it: if the file has another one, another loop
        # wrote it.
        self._checksum: str | None = None
        if self._path is not None and self._path.exists():
            self._resume(Privic.load(self._path))
        elif self._path is not None:
            self.save(self._path)

    @property
    def alphabet(self) -> Alphabet:
        """The secrets."""
        return self._options.alphabet

    @property
    def beta(self) -> float:
        """Nats per unit of distance: no mechanism's level exceeds twice this."""
        return self._options.beta

    @property
    def cycle(self) -> int:
        """Number of finished cycles."""
        return len(self._cycles)

    @property
    def distribution(self) -> Floats:
        r"""The current estimate :math:`\theta^{t}`, shape (k,); at first the start."""
        return self._cycles[-1].distribution if self._cycles else self._options.start

    @property
    def distributions(self) -> Floats:
        """The start and the estimate after each cycle, shape (cycle + 1, k)."""
        return np.array([self._options.start, *(cycle.distribution for cycle in self._cycles)])

    def mechanism(self, *, strict: bool = True) -> MatrixMechanism:
        """The mechanism through which the users of this cycle report.

        With ``ba_steps=None`` it raises ConvergenceError if `tol` is missed; ``strict=False`` takes
        the mechanism as it is.
        """
        if self._mechanism is None:
            self._mechanism = self._design(self.distribution, strict)
        return self._mechanism

    def collect(
        self, tally: Tally, estimate: VectorLike | None = None, *, strict: bool = True
    ) -> Estimate:
        r"""End the cycle: its reports give the next distribution and the next mechanism.

        With a `path` the new state is in the file when this returns; after an error nothing has
        changed.

        Parameters
        ----------
        tally : Tally
            Of reports through this cycle's `mechanism`.
        estimate : array_like or labelled, shape (k,), optional
            Your own estimate from this tally, :math:`\mu^{t}`, which takes the place of the update:
            a robust one, for instance.
        strict : bool
            Raise if `tol` is missed, which can happen with ``ibu_steps=None`` or ``ba_steps=None``.
            False goes on with the best that was found.

        Returns
        -------
        Estimate
            The estimate that the method `estimate` returns from now on.

        Raises
        ------
        MechanismMismatch
            If the reports came through another mechanism, that of an earlier cycle or any other.
        AlphabetMismatch
            If the tally or the estimate is of other secrets.
        InvalidDistribution
            If `estimate` is not a distribution, or has zeros although the next update would start
            from it.
        ConvergenceError
            If `strict` and an optimum could not be certified; carries it as ``.estimate``. The
            cycle has then not ended.
        """
        part = self._part_of_this_cycle(tally)
        # With more threads the last digits, and from them the next mechanism, would depend on their
        # number.
        with one_thread():
            # mu^t is the estimate of this cycle alone, theta^t that after the cycle.
            own = self._update(tally) if estimate is None else self._accept(tally, estimate)
            theta = self._combine(own.distribution, tally.n)
            method = f"PRIVIC cycle {self.cycle + 1}, {own.method}"
            after = certified(tally, theta, own.status, own.n_iter, method)
            # An estimate that the caller hands in has missed no goal of this loop.
            is_missed = estimate is None and own.status is Status.MAX_ITER
            if arguments.flag("strict", strict) and is_missed:
                raise ConvergenceError(
                    f"tol was missed, the gap is {own.gap:.3g}; strict=False goes on", after
                )
            # A tally lists the distinct reports; the file has a count for each possible one.
            finite: Any = part.mechanism
            counts = np.zeros(finite.m, dtype=np.int64)
            counts[part.reports] = part.counts
            status = after.status.name
            finished = Cycle(
                theta, arguments.frozen(counts), after.gap, after.n_iter, status, method
            )
            # The next mechanism is computed before the file is written, which holds it: if either
            # fails, the cycle goes on as if it had not been ended.
            before = self._cycles, self._mechanism
            try:
                self._cycles, self._mechanism = (*self._cycles, finished), None
                if self._path is not None:
                    self.mechanism(strict=strict)
                    self.save(self._path)
            except BaseException:
                # After an interrupt as well: a cycle that is not in the file has not happened.
                self._cycles, self._mechanism = before
                raise
        return after

    def _design(self, theta: Floats, strict: bool) -> MatrixMechanism:
        """Return BA(theta, beta) for theta rounded so that its last digits decide no draw."""
        own = self._options
        # `blahut_arimoto` takes a tolerance for the optimum, and a start for a number of steps.
        goal: Any = {"tol": own.tol} if own.ba_steps is None else {"start": own.ba_start}
        return blahut_arimoto(
            quantize(theta), own.alphabet, own.beta, own.ba_steps, strict=strict, **goal
        )

    @property
    def _is_warm(self) -> bool:
        """True if the next update starts at the current estimate."""
        return self._options.ibu_steps is not None and not self._options.restart

    def _update(self, tally: Tally) -> Estimate:
        """Return the estimate that the reports of one cycle make."""
        own = self._options
        # A goal that is missed raises in `collect`, with the estimate after the cycle.
        if own.ibu_steps is None:
            return mle(tally, own.tol, strict=False)
        start = own.start if own.restart else self.distribution
        return ibu(tally, start=start, stop=Steps(own.ibu_steps))

    def _accept(self, tally: Tally, estimate: VectorLike) -> Estimate:
        """Return the caller's estimate, validated."""
        values: Any = estimate
        if isinstance(estimate, Estimate):
            if estimate.alphabet != self.alphabet:
                raise AlphabetMismatch(
                    f"estimate must be of {self.alphabet!r}, but it is of {estimate.alphabet!r}"
                )
            values = estimate.distribution
        if self._is_warm:
            why = (
                "and the next cycle's IBU, which starts here, could not raise it; mix it with the "
                "uniform distribution, or set restart=True"
            )
            positive_distribution_over("estimate", values, self.alphabet, why)
        else:
            distribution_over("estimate", values, self.alphabet)
        return as_estimate(estimate, tally, "estimate", "handed in")

    def _combine(self, own: Floats, n: int) -> Floats:
        """Return theta^t from the estimate of this cycle's n reports, as a new array."""
        before = sum(cycle.n for cycle in self._cycles)
        if self._options.combine == "average" and before:
            own = (n * own + before * self.distribution) / (n + before)
        # Over hundreds of cycles the probability of an empty cell falls below the smallest double,
        # and IBU would keep a 0.
        return np.maximum(own, np.finfo(float).tiny) if self._is_warm else own.copy()

    def _part_of_this_cycle(self, tally: Tally) -> TallyPart:
        if check_tally(tally).alphabet != self.alphabet:
            raise AlphabetMismatch(
                f"tally must be of the secrets {self.alphabet!r}, but it is of {tally.alphabet!r}"
            )
        (part, *others) = tally.parts
        if others:
            raise MechanismMismatch(
                "tally must hold reports through one mechanism, that of this cycle, but it pools "
                f"{len(tally.parts)}"
            )
        # The error names the cycle whose mechanism the reports did come through. All earlier
        # mechanisms are computed again for this; that is slow, but nothing else is left to do.
        if part.mechanism != self.mechanism():
            number = next(
                (t for t in range(self.cycle) if part.mechanism == self._past_mechanism(t)), None
            )
            which = (
                f"any of this loop's ({part.mechanism!r})"
                if number is None
                else f"that of cycle {number + 1}"
            )
            raise MechanismMismatch(
                f"tally must hold reports through the mechanism of cycle {self.cycle + 1}, "
                f"but they came through {'another than ' if number is None else ''}{which}; hand "
                "users the current P.mechanism()"
            )
        return part

    def _past_mechanism(self, t: int) -> MatrixMechanism:
        # `strict` decides whether a mechanism is returned, not which one.
        return self._design(self._cycles[t - 1].distribution if t else self._options.start, False)

    def tallies(self) -> tuple[Tally, ...]:
        """The tally of each finished cycle, with its mechanism, computed again."""
        return tuple(
            self._past_mechanism(t).tally_counts(cycle.counts)
            for t, cycle in enumerate(self._cycles)
        )

    def estimate(self, pooled: bool = False, *, strict: bool = True) -> Estimate:
        """The current estimate with its proof: how far its likelihood is from the maximum.

        Parameters
        ----------
        pooled : bool
            By default the estimate is `distribution`, with the gap under the last cycle's reports.
            True stands for the last line of Algorithm 1, GIBU: the maximum-likelihood estimate from
            the reports of all cycles, each through its own mechanism, certified within `tol`. The
            loop itself does not use it.
        strict : bool
            Raise if `tol` is missed. False returns the best estimate found.

        Returns
        -------
        Estimate
            With the tally, so standard errors can be asked for.

        Raises
        ------
        ConvergenceError
            If `strict` and `tol` was missed; carries the best ``.estimate``.
        ValueError
            If no cycle has ended yet, so that there are no reports.
        """
        if not self._cycles:
            raise ValueError(
                "P has no reports yet, so there is nothing to estimate from: P.collect(tally) first"
            )
        if arguments.flag("pooled", pooled):
            return mle(pool(self.tallies()), self._options.tol, strict=strict)
        last = self._cycles[-1]
        tally = self._past_mechanism(self.cycle - 1).tally_counts(last.counts)
        with one_thread():
            return certified(
                tally, last.distribution, Status[last.status], last.n_iter, last.method
            )

    def history(self) -> pd.DataFrame:
        """One row for each finished cycle.

        Returns
        -------
        pandas.DataFrame
            Index cycle, from 1; columns n (reports), gap (of the distribution under that cycle's
            reports, nats per report), steps, status (a name in `Status`), method. The distributions
            are in `distributions`.
        """
        import pandas as pd

        rows = [(c.n, c.gap, c.n_iter, c.status, c.method) for c in self._cycles]
        table = pd.DataFrame(rows, columns=["n", "gap", "steps", "status", "method"])
        return table.set_index(pd.RangeIndex(1, self.cycle + 1, name="cycle"))

    def run(
        self,
        population: Population | ArrayLike | Draw,
        cycles: int,
        seed: int,
        callbacks: Iterable[Callable[[Privic], Any]] = (),
    ) -> Privic:
        """Simulate cycles, tally ~ mechanism.simulate(counts), until `cycles` are done.

        Parameters
        ----------
        population : Dataset, array_like of int, shape (k,), or callable
            How many users have each secret; all of them report again in every cycle. Or a function
            that draws a cycle's tally from the mechanism and a generator, for instance to have
            other users in each cycle, or adversaries.
        cycles : int
            Number of cycles in all, including those that are already finished.
        seed : int
            Not negative. Cycle t draws from ``SeedSequence(seed, spawn_key=(t,))``, so a loop that
            is interrupted and continued ends at the same digits.
        callbacks : iterable of callable
            Each is called with this object after each cycle.

        Returns
        -------
        Privic
            This object.

        Raises
        ------
        AlphabetMismatch
            If `population` is over another alphabet.
        ValueError
            If `cycles` or `seed` is negative, or if `Privic.collect`, which ends every cycle,
            raises it.
        """
        cycles, seed = options.number_of_cycles(cycles), arguments.whole("seed", seed, 0)
        draw = options.tally_source(population, self.alphabet)
        functions = options.valid_callbacks(callbacks)
        start = min(self.cycle, cycles)
        with tqdm(desc="privic", unit=" cycles", total=cycles, initial=start, disable=None) as bar:
            while self.cycle < cycles:
                # Each cycle has draws of its own, so that a loop may stop between two and go on.
                # The bit generator is named, because numpy may change its default.
                sequence = np.random.SeedSequence(seed, spawn_key=(self.cycle + 1,))
                rng = np.random.Generator(np.random.PCG64(sequence))
                self.collect(draw(self.mechanism(), rng))
                for function in functions:
                    function(self)
                bar.update()
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Replace a file with the whole state, all at once or not at all.

        The file is plain: a line with its version and SHA-256, a line of JSON, then arrays as numpy
        writes them.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        TypeError
            If the labels of the alphabet are not strings, numbers or tuples of these.
        DataChanged
            If this is the file that the loop goes on with, and another loop has written to it
            since.
        """
        file = arguments.path("path", path)
        # A copy elsewhere replaces whatever is there. The loop's own file is replaced only if it is
        # as this loop left it.
        is_own = file.resolve() == self._path
        checksum = storage.save(self, file, overwrite=not is_own, checksum=self._checksum)
        self._checksum = checksum if is_own else self._checksum

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The loop as `save` wrote it.

        It writes to the file again only if you save it there.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Privic
            Its ``path`` is None. To go on with a file, call ``Privic(..., path=path)``.

        Raises
        ------
        ForeignFile
            If the file was not written by `save`, or is of another version.
        DataChanged
            If the file was changed or cut short.
        """
        loop, checksum = storage.load(path, cls)
        loop._checksum = checksum
        return loop

    def _stored(self) -> dict[str, Any]:
        """Return what a file holds of the loop: options, cycles and the running one's mechanism."""
        own = self._options
        # Before the first cycle the shape has to say how many reports there are.
        counts = np.array([cycle.counts for cycle in self._cycles], dtype=np.int64)
        return {field.name: getattr(own, field.name) for field in fields(own)} | {
            "distributions": self.distributions[1:],
            "counts": counts.reshape(-1, len(self.alphabet)),
            "ends": tuple((c.gap, c.n_iter, c.status, c.method) for c in self._cycles),
            "mechanism": self.mechanism().matrix(),
        }

    @classmethod
    def _restored(
        cls, distributions: Floats, counts: Ints, ends: Any, mechanism: Floats, **own: Any
    ) -> Privic:
        """Return the loop from what a file holds of it."""
        # The options have no field `path`: a file can never name another one to be written.
        given = options.PrivicOptions(**own)
        loop = cls(**vars(given))
        restored.refuse_other_cycles(distributions, counts, ends, loop.alphabet)
        rows = zip(distributions, counts, ends, strict=True)
        loop._cycles = tuple(Cycle(theta, count, *end) for theta, count, end in rows)
        there = MatrixMechanism(mechanism, loop.alphabet)
        with one_thread():
            again = loop._design(loop.distribution, strict=False) if given.ba_steps else None
        restored.refuse_other_mechanism(there, again, loop.beta)
        loop._mechanism = there
        return loop

    def _resume(self, there: Privic) -> None:
        """Go on from the state of a loop with the same options."""
        if differing := "; ".join(self._options.differences(there._options)):
            raise ForeignFile(
                "path must be a file that was begun with the same arguments, "
                f"{self._path} was not: {differing}. Name another file, or read it by Privic.load"
            )
        self._cycles, self._mechanism = there._cycles, there._mechanism
        self._checksum = there._checksum

    def __repr__(self) -> str:
        return f"Privic({self.alphabet!r}, beta={self.beta:g}, {self.cycle} cycles finished)"
