"""Estimates of many groups, made together where groups are small, else one after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.domain.status import Status
from ibukit.errors import AlphabetMismatch
from ibukit.estimate import Estimate
from ibukit.estimate.estimate_groups import EstimateGroups
from ibukit.solvers.dense.many_tallies import maximise_many
from ibukit.tally.group_blocks import blocks
from ibukit.tally.tally import Tally
from ibukit.tally.tally_groups import TallyGroups


def each_group(groups: TallyGroups, estimator: Callable[[Tally], Estimate]) -> EstimateGroups:
    """Return the estimates of all groups by an estimator of one tally."""
    tallies = _over_one_alphabet(groups)
    estimates = [
        estimator(tally) for tally in tqdm(tallies, desc="groups", disable=None, leave=False)
    ]
    return EstimateGroups(
        groups,
        np.array([estimate.distribution for estimate in estimates]),
        np.array([estimate.gap for estimate in estimates]),
        estimates.__getitem__,
    )


def mle_of_groups(
    groups: TallyGroups, tol: float, single: Callable[[Tally], Estimate]
) -> EstimateGroups:
    """Return the certified maximisers of all groups; `single` estimates those that are left."""
    tallies = _over_one_alphabet(groups)
    together = blocks(groups)
    if together is None:
        return each_group(groups, single)
    shape = (len(tallies), tallies[0].k)
    theta, gaps, steps = np.empty(shape), np.empty(len(tallies)), np.empty(len(tallies), int)
    likelihoods, width = np.empty(len(tallies)), 0
    with tqdm(total=len(tallies), desc="groups", disable=None, leave=False) as bar:
        for block in together:
            n = block.counts.sum(axis=1, keepdims=True)
            at, width = block.groups, block.matrix.shape[1]
            theta[at], gaps[at], steps[at] = maximise_many(block.matrix, block.counts / n, tol)
            fitted = np.where(block.counts > 0, theta[at] @ block.matrix, 1.0)
            logs = np.log(np.maximum(fitted, np.finfo(float).tiny)) + block.log_scale
            likelihoods[at] = (block.counts * logs).sum(axis=1)
            bar.update(len(n))
    # Groups that were not certified together go to the solvers of single tallies.
    singles = {int(place): single(tallies[place]) for place in np.flatnonzero(~(gaps <= tol))}
    for place, estimate in singles.items():
        theta[place], gaps[place] = estimate.distribution, estimate.gap

    # a function of the module, because a function inside another cannot be pickled
    make = partial(_estimate_at, singles, tallies, width, theta, gaps, steps, likelihoods)
    return EstimateGroups(groups, theta, gaps, make)


def _estimate_at(
    singles: dict[int, Estimate],
    tallies: list[Tally],
    width: int,
    theta: Floats,
    gaps: Floats,
    steps: NDArray[np.int_],
    likelihoods: Floats,
    place: int,
) -> Estimate:
    """Return the estimate of the group at a place, which was found alone or with the others."""
    if place in singles:
        return singles[place]
    return Estimate(
        distribution=arguments.frozen(theta[place].copy()),
        log_likelihood=float(likelihoods[place]),
        gap=float(gaps[place]),
        status=Status.CONVERGED,
        n_iter=int(steps[place]),
        method=f"mle, interior point of all groups together: k = {theta.shape[1]}, {width} reports",
        alphabet=tallies[place].alphabet,
        tally=tallies[place],
    )


def _over_one_alphabet(groups: TallyGroups) -> list[Tally]:
    """Return the tallies of the groups; AlphabetMismatch unless they share their secrets."""
    tallies = list(groups.values())
    if not tallies:
        raise ValueError("groups must hold at least one group, got none")
    first = tallies[0].alphabet
    for group, tally in groups.items():
        if tally.full_alphabet is not None:
            raise AlphabetMismatch(
                f"groups must be over one bounded alphabet to make one table, got "
                f"{tally.full_alphabet!r} in group {group!r}: make the mechanism on the part of it "
                "that you mean"
            )
        if tally.alphabet is not first and tally.alphabet != first:
            raise AlphabetMismatch(
                f"groups must be over one alphabet to make one table, got {tally.alphabet!r} in "
                f"group {group!r} and {first!r} in the first"
            )
    return tallies
