"""The bootstrap, and draws of tallies that the other interval methods share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.random import Generator
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import one_thread
from ibukit.domain.distributions import quantize
from ibukit.domain.efficiency import to_all, to_seen
from ibukit.intervals.drawn_estimates import estimate_by
from ibukit.intervals.request import Ends, IntervalRequest
from ibukit.mechanisms.draws import drawable
from ibukit.solvers import maximise
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.tally import Tally, make_tally_part, pool
from ibukit.tally.trials import has_trials, trials_of

KINDS_OF_BOOTSTRAP = ("parametric", "reports")
# Slack for numbers of draws that are whole numbers but for rounding, as 1 / (1 - 0.95) is.
ROUNDING_TOLERANCE = 1e-6


def bootstrap(
    request: IntervalRequest,
    draws: int = 1000,
    seed: int = 0,
    kind: str = "parametric",
    n_jobs: int = 1,
    estimator: Callable[[Tally], Any] | None = None,
) -> Ends:
    """Return quantiles of w . theta over the maximum likelihood estimates of drawn tallies.

    With the target "distribution" this is the percentile interval: the quantiles of w . theta* at
    (1 -+ level) / 2. With the target "frequencies" it is the basic interval: the secrets are held
    fixed, with each part's n theta rounded to whole people, and the quantiles of the errors w .
    theta* - w . F are subtracted from w . theta of the maximum likelihood estimate.

    The bootstrap fails where the truth is at the boundary of the simplex. The estimate is then
    inside, so are the estimates from the tallies drawn from it, and they leave the truth out. For
    instance, under k-RR with k = 5, epsilon = 1 and n = 300, if everybody has the same secret, the
    interval of its probability at level 0.95 covers 1 with probability about 0.6. Nor does the
    bootstrap show directions that the reports leave undetermined, because each tally has only one
    estimate. "calibrated", "profile" and "guaranteed" allow for both.

    Where a matrix was measured, its trials are drawn anew as well: for each secret as many as there
    were, with the shares that were measured. If reports get lost, the number of reports seen is
    held fixed.

    Each draw's estimate is certified as in `mle`. On a dense channel with few secrets it is first
    sought on the support of the request's estimate, which is three times faster. Other solvers gain
    nothing from a warm start.

    Parameters
    ----------
    request : IntervalRequest
    draws : int
        Number of tallies. There must be enough for the largest value to be the upper end.
    seed : int
        Seed of the draws, not negative.
    kind : {"parametric", "reports"}
        "parametric": people are drawn from the estimate's distribution, and their reports from each
        part's mechanism. "reports": each part's reports are drawn with replacement from those that
        it has; not for the target "frequencies".
    n_jobs : int
        Number of processes that make the estimates; -1 for one on each core. The interval does not
        depend on it.
    estimator : callable, optional
        Function from a tally to an estimate, in place of maximum likelihood; not for the target
        "frequencies". The quantiles then show the spread of this estimator, which is not an
        interval for the truth.

    Returns
    -------
    (lower, upper) : ndarrays, shape (r,)
    """
    if not arguments.is_one_of(kind, KINDS_OF_BOOTSTRAP):
        raise ValueError(f"kind must be 'parametric' or 'reports', got {kind!r}")
    if request.target == "frequencies" and kind != "parametric":
        raise ValueError(f"kind must be 'parametric' with target='frequencies', got {kind!r}")
    if request.target == "frequencies" and estimator is not None:
        raise ValueError(
            "target must be 'distribution' with an estimator, whose spread is that of the reports, "
            "got 'frequencies'"
        )
    draws, rng = enough_draws(draws, (1 + request.level) / 2), seeded(seed)
    tally, functionals = request.checked_tally(lossy=True), request.functionals
    efficiency = tally.efficiency
    if efficiency is not None:
        request.refuse_frequencies("bootstrap")
        if estimator is not None:
            raise ValueError(
                "estimator must be None where reports may be lost: tallies are drawn of the "
                "secrets that are seen, and the spread of another estimate is not known"
            )
    # If reports get lost, as many as were seen are drawn again, from the distribution of the
    # secrets among those seen, and each estimate of it is converted to all secrets.
    tally, theta = tally.among_seen, to_seen(request.theta, efficiency)
    estimate = estimate_by(estimator, theta)
    people = (
        [whole_people(theta, part.n) for part in tally.parts]
        if request.target == "frequencies"
        else None
    )

    def drawn() -> Tally:
        if people is not None:
            found = reports_of(tally, people, rng)
        else:
            found = simulated(tally, theta, rng) if kind == "parametric" else resampled(tally, rng)
        return with_new_trials(found, rng) if has_trials(found) else found

    # A generator draws the tallies in one order, whichever process takes them.
    tallies = (drawn() for _ in range(draws))
    with one_thread():
        results = _estimates(tallies, estimate, n_jobs)
        answers = np.array(
            [
                functionals.values(to_all(phi, efficiency))
                for phi in tqdm(results, total=draws, desc="bootstrap", disable=None, leave=False)
            ]
        )
        if people is None:
            return _between(answers, request.level)
        # The basic interval: errors of the draws, mirrored at the estimate.
        low, high = _between(
            answers - functionals.values(np.sum(people, axis=0) / tally.n), request.level
        )
        middle = functionals.values(maximise(tally.operator, tally.counts).theta)
    return np.maximum(middle - high, functionals.least), np.minimum(middle - low, functionals.most)


def _estimates(
    tallies: Iterator[Tally], estimate: Callable[[Tally], Floats], n_jobs: int
) -> Iterable[Floats]:
    if arguments.processes("n_jobs", n_jobs) == 1:
        return map(estimate, tallies)
    # joblib takes a while to load.
    from joblib import Parallel, delayed, parallel_config

    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        estimates: Iterable[Floats] = Parallel(return_as="generator")(
            delayed(estimate)(tally) for tally in tallies
        )
        return estimates


def enough_draws(draws: int, share: float) -> int:
    """Return `draws`; ValueError if no order statistic of that many is the quantile of `share`."""
    draws = arguments.whole("draws", draws, 1)
    least = math.ceil(1 / (1 - share) - ROUNDING_TOLERANCE) - 1
    if draws < least:
        raise ValueError(
            f"draws must be at least {least}, got {draws}: fewer have no quantile of "
            f"{share:.12g}, which this level needs"
        )
    return draws


def rank_of(draws: int, share: float) -> int:
    """Return the rank, from 1, of a draw that a new draw exceeds with probability <= 1 - share."""
    return min(math.ceil(share * (draws + 1) - ROUNDING_TOLERANCE), draws)


def _between(answers: Floats, level: float) -> Ends:
    """Return the order statistics of each column that leave equally many draws on both sides."""
    # By symmetry the lower end has the same rank from the bottom as the upper end has from the top.
    ordered = np.sort(answers, axis=0)
    rank = rank_of(len(ordered), (1 + level) / 2)
    return ordered[len(ordered) - rank], ordered[rank - 1]


def seeded(seed: int) -> Generator:
    """Return the generator of a seed."""
    return np.random.Generator(np.random.PCG64(arguments.whole("seed", seed, 0)))


def simulated(tally: Tally, theta: Floats, rng: Generator) -> Tally:
    """Draw a tally: the same number of people for each mechanism, with secrets drawn from theta."""
    # Theta is rounded to multiples of a power of two, so that the same draws are made on every
    # machine.
    theta = quantize(theta)
    return reports_of(tally, [rng.multinomial(part.n, theta) for part in tally.parts], rng)


def reports_of(tally: Tally, people: list[Ints], rng: Generator) -> Tally:
    """Draw a tally of given people: for each part the number of people with each secret."""
    mechanisms: list[Any] = [part.mechanism for part in tally.parts]
    require_law(mechanisms, "a draw of other reports")
    return pool(
        [
            mechanism.simulate(counts, rng)
            for mechanism, counts in zip(mechanisms, people, strict=True)
        ]
    )


def resampled(tally: Tally, rng: Generator) -> Tally:
    """Draw a tally: as many reports for each part, drawn from its own with replacement."""
    return Tally(
        tuple(
            make_tally_part(
                part.mechanism, part.reports, rng.multinomial(part.n, part.counts / part.n)
            )
            for part in tally.parts
        )
    )


def with_new_trials(tally: Tally, rng: Generator) -> Tally:
    """Return the same reports with matrices measured anew, by as many trials of each secret.

    A report that turns up in no new trial keeps its old trials: otherwise, if it was seen, no
    matrix could explain it.
    """
    parts = []
    for part in tally.parts:
        mechanism: Any = part.mechanism
        trials = trials_of(mechanism)
        if trials is not None:
            drawn = rng.multinomial(trials.sum(axis=1), drawable(mechanism.matrix()))
            drawn = np.where(drawn.any(axis=0), drawn, trials)
            mechanism = mechanism.from_trials(drawn, mechanism.alphabet, mechanism.reports)
        parts.append(make_tally_part(mechanism, part.reports, part.counts))
    return Tally(tuple(parts))


def whole_people(theta: Floats, n: int) -> Ints:
    """Round n theta to whole numbers that sum to n: the largest remainders go up."""
    wanted = n * quantize(theta)
    people = np.floor(wanted).astype(np.int64)
    # The people that rounding down has lost go to the secrets with the largest remainders.
    people[np.argsort(people - wanted, kind="stable")[: n - people.sum()]] += 1
    return people
