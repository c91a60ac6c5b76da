"""Seeded repetitions: draw a tally, estimate, measure, and put every number into one tidy table."""

from __future__ import annotations

import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import lru_cache
from importlib.metadata import version
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.dask_tasks import check_client, run_on
from ibukit._ground.threads import one_thread
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.distributions import Population
from ibukit.domain.labels import aligned_counts
from ibukit.domain.vectors import distribution_over
from ibukit.errors import AlphabetMismatch, ConvergenceError, InvalidDistribution
from ibukit.estimate import Estimate, Status
from ibukit.estimators.certificate import as_estimate
from ibukit.evaluation.losses import emd, squared_l2, total_variation
from ibukit.files.canonical_text import fingerprint
from ibukit.files.journal import Key, Rows, open_journal
from ibukit.files.seeding import spawn_key
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.mixtures.free_will import FreeWill
from ibukit.tally.tally import Tally

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

# To type checkers a dict of several kinds of callables, kept in a variable, is a dict of objects:
# that is why `replicate` asks for a mapping to anything.
Estimator = Callable[[Tally], Estimate | ArrayLike]
# Largest number of repetitions of each mechanism: the table of results must fit in memory.
MAX_REPETITIONS = 10**7
Loss = Callable[[Floats, Floats, Alphabet], Any]
RESULT_COLUMNS = [
    *("mechanism", "epsilon", "estimator", "stop", "repetition"),
    *("emd", "tv", "squared_l2", "steps", "gap", "status", "seconds"),
]


def replicate(
    population: Population,
    mechanisms: Sequence[Mechanism | FreeWill],
    estimators: Mapping[str, Any],
    repetitions: int,
    seed: int,
    path: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    losses: Mapping[str, Loss] | None = None,
    client: Client | None = None,
) -> pd.DataFrame:
    r"""Repeat an experiment: reports, estimates and their losses.

    In each repetition a tally is drawn, tally ~ mechanism.simulate(population.counts); then each
    estimator is run on that tally, and its losses are computed. The secrets are fixed, the reports
    are drawn anew in each repetition, and all estimators see the same reports.

    Parameters
    ----------
    population : Dataset
        A data set, or anything with ``counts``, ``distribution`` (the truth in the losses) and
        ``alphabet``.
    mechanisms : sequence of Mechanism or FreeWill
        Mechanisms over that alphabet. No two may have the same class and epsilon, or the same name,
        because the table could not tell them apart.
    estimators : mapping from str to callable
        Each maps a tally to an `Estimate` or a distribution, shape (k,): for instance ``ik.mle``,
        ``partial(ik.ibu, stop=ik.Steps(10))`` or a ``lambda``. They must not draw random numbers.
    repetitions : int
        Number of repetitions of each mechanism.
    seed : int
        Not negative.
    path : str or path, optional
        A file of JSON lines to which every finished repetition is added at once. If it exists, what
        it holds is not computed again, so that an interrupted run can go on, and a run with more
        repetitions continues from it. Only one run at a time may use the file.
    n_jobs : int
        Number of processes, which joblib starts; -1 for one on each core.
    losses : mapping from str to callable, optional
        Losses of your own, by the names of their columns: functions that return a number from the
        estimate, the truth (both of shape (k,)) and the alphabet.
    client : distributed.Client, optional
        Its Dask workers do the work instead of processes. What a lost worker was doing is done
        again by another worker. One repetition at a time runs in each worker process, so workers
        with one thread are best.

    Returns
    -------
    pandas.DataFrame
        A row for each mechanism, estimator and repetition, in this order, with the columns

        - mechanism (its class, or the name of a FreeWill), epsilon (NaN for a FreeWill), estimator
          (its name), repetition (from 0);
        - stop: the stopping rule if the callable has a parameter `stop`, else "";
        - emd (in the alphabet's unit), tv, squared_l2 (not its root): see `emd`, `total_variation`,
          `squared_l2`; emd and tv are NaN for raw matrix inversion off the simplex;
        - your own losses, NaN where one raises `InvalidDistribution` off the simplex;
        - steps, gap (nats per report), status (a name in `Status`): the estimate's own. For a bare
          distribution they are 0, the gap it is certified with, and CLOSED_FORM. If an estimator
          raises `ConvergenceError`, the estimate that the error carries is taken, with its status;
        - seconds: CPU time of the estimator. This is the only column that another run does not
          repeat.

    Raises
    ------
    AlphabetMismatch
        If a mechanism is over another alphabet than the population.
    ForeignFile
        If `path` was begun with another seed, population, mechanism, estimator, loss, or other
        versions of Python, numpy or ibukit, or is not such a file at all. For a function, its code,
        its defaults and what it closes over are compared, not the functions that it calls.
    DataChanged
        If a line of the file is not what was written, or if another run is writing to it now.
    ValueError
        If there is no mechanism or no estimator, if two mechanisms have the same class and epsilon
        or the same name, if `repetitions` is below 1, if `seed` is negative, if `n_jobs` is 0, if
        it is not 1 although there is a `client`, or if a loss has the name of another column.
    TypeError
        If an argument is of another kind than stated, or a loss returns something other than a
        number, or `client` is not a client of Dask.

    Notes
    -----
    Repetition r of a mechanism draws from ``SeedSequence(seed, spawn_key=(*words, r))``, where the
    four words are a digest of the mechanism's recorded name and parameters. A matrix enters the
    digest as a weighted mean of its entries in steps of :math:`2^{-16}`, so that last digits do not
    decide. So a row depends only on `seed`, population, mechanism, estimator and r: not on `n_jobs`
    or `client`, nor on the order, on what else is asked for or on the number of repetitions. Linear
    algebra runs on one thread.

    An error in an estimator is raised with a note that says which mechanism, estimator and
    repetition it was.

    Examples
    --------
    >>> from functools import partial
    >>> import numpy as np, ibukit as ik
    >>> ages = ik.datasets.load_adult_ages()
    >>> mechanisms = [ik.TruncatedGeometric(ages.alphabet, epsilon) for epsilon in (0.1, 1.0)]
    >>> estimators = {
    ...     "noisy reports": lambda t: np.bincount(t.parts[0].reports, t.frequencies, t.k),
    ...     "INV-P": ik.inv,
    ...     "IBU": partial(ik.ibu, stop=ik.Steps(100)),
    ... }
    >>> table = replicate(ages, mechanisms, estimators, repetitions=5, seed=1)
    >>> table.groupby(["epsilon", "estimator"])["emd"].median().unstack().round(2)  # in years
    estimator   IBU  INV-P  noisy reports
    epsilon
    0.1        0.25   5.23           3.99
    1.0        0.05   0.06           0.06

    A loss of your own, the largest error of a probability:

    >>> worst = {"worst": lambda estimate, truth, alphabet: np.abs(estimate - truth).max()}
    >>> table = replicate(ages, mechanisms, {"INV-P": ik.inv}, repetitions=5, seed=1, losses=worst)
    >>> table.groupby("epsilon")["worst"].median().round(3).tolist()
    [0.186, 0.004]

    For quartiles take ``.quantile([0.25, 0.5, 0.75])`` instead of ``.median()``, and for the mean
    and its standard error ``.agg(["mean", "sem"])``.
    """
    import pandas as pd

    population = _in_order(population)
    chosen = _mechanisms_by_name(population, mechanisms)
    functions = _callables("estimators", estimators)
    if not functions:
        raise ValueError("estimators must hold at least one estimator, got none")
    measures = _own_losses(losses)
    repetitions = arguments.whole("repetitions", repetitions, 1, MAX_REPETITIONS)
    seed = arguments.whole("seed", seed, 0)
    arguments.processes("n_jobs", n_jobs)
    if client is not None:
        check_client(client)
        if n_jobs != 1:
            raise ValueError(
                "n_jobs must be left out where client is given, whose workers do the work; got "
                f"{n_jobs}"
            )
    keys = [(name, repetition) for name in chosen for repetition in range(repetitions)]
    # Without a file nothing is finished at the start, and nothing is written.
    journal = (
        nullcontext((dict[Key, Rows](), None))
        if path is None
        else open_journal(
            arguments.path("path", path), _question(population, chosen, functions, measures, seed)
        )
    )
    with journal as (finished, write):
        missing = [key for key in keys if key not in finished]
        # The words are computed here, once for each mechanism, because those of a matrix take a
        # pass over its entries.
        words = {name: spawn_key(mechanism) for name, mechanism in chosen.items()}
        tasks = (
            (key, population, chosen[key[0]], functions, measures, seed, words[key[0]])
            for key in missing
        )
        computed = _run(tasks, n_jobs) if client is None else run_on(client, _repeat, tasks)
        start = len(keys) - len(missing)
        bar = tqdm(
            desc="replicate", unit=" repetitions", total=len(keys), initial=start, disable=None
        )
        # After an error or an interrupt, `closing` ends the processes or the work of the client.
        with bar, closing(computed) as results:
            for key, rows in results:
                if write is not None:
                    write(key, rows)
                finished[key] = rows
                bar.update()
    stops = {name: _stop_of(function) for name, function in functions.items()}
    # Repetitions end in any order, and the file may hold more of them; the table has the order of
    # the arguments.
    table = [
        {
            **_label(mechanism),
            "estimator": name,
            "stop": stops[name],
            "repetition": repetition,
            **finished[key, repetition][name],
        }
        for key, mechanism in chosen.items()
        for name in functions
        for repetition in range(repetitions)
    ]
    # The caller's own losses go next to the others.
    after = RESULT_COLUMNS.index("steps")
    return pd.DataFrame(
        table, columns=[*RESULT_COLUMNS[:after], *measures, *RESULT_COLUMNS[after:]]
    )


class _People(NamedTuple):
    """A population whose numbers are arrays in the alphabet's order."""

    counts: Ints
    distribution: Floats
    alphabet: Alphabet


def _in_order(population: Population) -> _People:
    """Check a population, so that no error comes only when the first worker starts."""
    missing = [
        name for name in ("counts", "distribution", "alphabet") if not hasattr(population, name)
    ]
    if missing:
        raise TypeError(
            "population must have counts, distribution and alphabet, as "
            f"ik.datasets.load_adult_ages() has, got {type(population).__name__} without "
            f"{' and '.join(missing)}"
        )
    alphabet = population.alphabet
    return _People(
        aligned_counts("population.counts", population.counts, alphabet),
        distribution_over("population.distribution", population.distribution, alphabet),
        alphabet,
    )


def _mechanisms_by_name(
    population: Population, mechanisms: Sequence[Mechanism | FreeWill]
) -> dict[str, Mechanism | FreeWill]:
    """Return the mechanisms by the names that the file and the errors give them."""
    if isinstance(mechanisms, (Mechanism, FreeWill)):
        raise TypeError(
            f"mechanisms must be a sequence of mechanisms, got one: pass [{mechanisms}]"
        )
    chosen: dict[str, Mechanism | FreeWill] = {}
    for mechanism in arguments.items("mechanisms", mechanisms, "a sequence of mechanisms"):
        if not isinstance(mechanism, (Mechanism, FreeWill)):
            raise TypeError(f"mechanisms must be a sequence of mechanisms, got {mechanism!r} in it")
        if mechanism.alphabet != population.alphabet:
            raise AlphabetMismatch(
                f"mechanisms must be over the population's {population.alphabet!r}, {mechanism} is "
                "not"
            )
        name = _label(mechanism)["mechanism"]
        if not isinstance(mechanism, FreeWill):
            name += f"(epsilon={float(mechanism.epsilon)!r})"
        if name in chosen:
            raise ValueError(
                f"mechanisms must differ in class or epsilon or name, but {name} occurs twice and "
                "the table could not tell which is which; call replicate for each and join the "
                "tables"
            )
        chosen[name] = mechanism
    if not chosen:
        raise ValueError("mechanisms must hold at least one mechanism, got none")
    return chosen


def _label(mechanism: Mechanism | FreeWill) -> dict[str, Any]:
    """Return the first two columns of the table."""
    # Mechanisms of different epsilon may be mixed in a FreeWill, so it has none of its own.
    if isinstance(mechanism, FreeWill):
        return {"mechanism": mechanism.name, "epsilon": math.nan}
    return {"mechanism": type(mechanism).__name__, "epsilon": float(mechanism.epsilon)}


def _callables(argument: str, given: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} must be a mapping from names to callables, got {given!r}")
    for name, function in given.items():
        if not isinstance(name, str) or not callable(function):
            raise TypeError(
                f"{argument} must map names to callables, got {name!r}: {function!r} in it"
            )
    return dict(given)


def _own_losses(losses: Mapping[str, Loss] | None) -> dict[str, Loss]:
    measures = _callables("losses", {} if losses is None else losses)
    taken = [name for name in measures if name in RESULT_COLUMNS]
    if taken:
        raise ValueError(
            f"losses must have names of their own, {taken[0]!r} is a column of every table"
        )
    for name, loss in measures.items():
        if not arguments.takes(loss, 3):
            raise TypeError(
                f"losses must take an estimate, the truth and the alphabet, {name!r} does not: "
                f"{loss!r}"
            )
    return measures


def _question(
    population: Population,
    mechanisms: dict[str, Mechanism | FreeWill],
    estimators: dict[str, Estimator],
    losses: dict[str, Loss],
    seed: int,
) -> dict[str, Any]:
    """Return all that the numbers of a repetition depend on, for the first line of the file."""
    # Neither the number of repetitions nor their order is included, because a later call may add
    # repetitions to the file. A patch release of Python changes no number.
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    truth = (population.counts, population.distribution, population.alphabet)
    return {
        "versions": {"python": python, "numpy": np.__version__, "ibukit": version("ibukit")},
        "seed": seed,
        "population": f"{int(np.sum(population.counts))} on {len(population.alphabet)} values, "
        f"{fingerprint(truth)}",
        "mechanisms": {name: fingerprint(mechanism) for name, mechanism in mechanisms.items()},
        "estimators": {
            # The stopping rule stands in words, because it is what most often differs.
            name: f"{_stop_of(function)} {fingerprint(function)}".lstrip()
            for name, function in estimators.items()
        },
    } | ({"losses": {name: fingerprint(loss) for name, loss in losses.items()}} if losses else {})


def _run(tasks: Iterable[Any], n_jobs: int) -> Generator[tuple[Key, Rows], None, None]:
    """Yield the result of each task as soon as one is there, in any order."""
    # joblib takes a quarter of a second to import.
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        # One task at a time is sent, so that a finished repetition is written at once; memory maps
        # would not pay, because the tasks are small.
        parallel = Parallel(return_as="generator_unordered", batch_size=1, max_nbytes=None)
        yield from parallel(delayed(_repeat)(*task) for task in tasks)


def _repeat(
    key: Key,
    population: Population,
    mechanism: Mechanism | FreeWill,
    estimators: dict[str, Estimator],
    losses: dict[str, Loss],
    seed: int,
    words: tuple[int, ...],
) -> tuple[Key, Rows]:
    """Return the numbers of each estimator in one repetition of one mechanism."""
    name, repetition = key
    # The draws depend on the seed, the mechanism and the repetition alone: not on the process that
    # makes them, nor on the tasks before. The bit generator is named, because numpy may change its
    # default.
    sequence = np.random.SeedSequence(seed, spawn_key=(*words, repetition))
    rng = np.random.Generator(np.random.PCG64(sequence))
    rows: Rows = {}
    # With more threads the last digits of sums would depend on their number.
    with one_thread():
        tally = _equal_mechanism(mechanism).simulate(population.counts, rng)
        for estimator, function in estimators.items():
            try:
                rows[estimator] = _row(function, estimator, tally, population, losses)
            except Exception as error:
                error.add_note(
                    f"in repetition {repetition} of {name} with the estimator {estimator!r}"
                )
                raise
    return key, rows


@lru_cache(maxsize=2)
def _equal_mechanism(mechanism: Mechanism | FreeWill) -> Mechanism | FreeWill:
    """Return the first mechanism equal to this one that the process has met."""
    # Each task brings a copy of its mechanism without the matrices that are cached in it. The first
    # copy computes them and serves for all, as the key of this cache is compared by `==`.
    return mechanism


def _row(
    estimator: Estimator, name: str, tally: Tally, population: Population, losses: dict[str, Loss]
) -> dict[str, Any]:
    """Run an estimator on a tally, and return its losses and the columns after them."""
    start = time.process_time()
    try:
        result = estimator(tally)
    except ConvergenceError as error:
        # A goal that was missed is a result like others: its status says so in the table.
        result = error.estimate
    seconds = time.process_time() - start
    estimate = as_estimate(result, tally, f"what {name!r} returns", name)
    p, truth = estimate.distribution, population.distribution
    # Raw matrix inversion may leave the simplex, where neither distance is defined.
    is_off_simplex = estimate.status is Status.OFF_SIMPLEX
    return {
        "emd": math.nan if is_off_simplex else emd(p, truth, population.alphabet),
        "tv": math.nan if is_off_simplex else total_variation(p, truth),
        "squared_l2": squared_l2(p, truth),
        "steps": int(estimate.n_iter),
        "gap": float(estimate.gap),
        "status": estimate.status.name,
        "seconds": seconds,
    } | {each: _own_loss(each, loss, estimate, population) for each, loss in losses.items()}


def _own_loss(name: str, loss: Loss, estimate: Estimate, population: Population) -> float:
    """Return a loss of the caller's; NaN if it is not defined off the simplex."""
    try:
        value = loss(estimate.distribution, population.distribution, population.alphabet)
    except InvalidDistribution:
        if estimate.status is Status.OFF_SIMPLEX:
            return math.nan
        raise
    if not isinstance(value, Real):
        raise TypeError(f"losses must return a number, {name!r} returned {value!r}")
    return float(value)


def _stop_of(estimator: Callable[..., Any]) -> str:
    """Return the default of a parameter called `stop`; "" where there is none."""
    try:
        stop = inspect.signature(estimator).parameters["stop"].default
    except (KeyError, TypeError, ValueError):
        # Some callables that are written in C have no signature.
        return ""
    return "" if stop in (inspect.Parameter.empty, None) else str(stop)
