"""Optimal private mechanism: the smallest error among all that are epsilon-d-private."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse.csgraph import shortest_path

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.design.optimal.column_generation import deviations, generated_columns
from ibukit.design.optimal.column_weights import Criterion, optimal_design
from ibukit.design.optimal.extremal_columns import (
    MAX_K_EXACT_PRICING,
    MAX_K_OFF_PATHS,
    can_be_listed,
    extremal_logs,
    path_of,
)
from ibukit.design.optimal.grids.hill_climbing import climbed_columns
from ibukit.design.optimal.heuristic_paths import guessed_columns
from ibukit.domain.alphabet import AlphabetLike, as_alphabet
from ibukit.domain.vectors import VectorLike
from ibukit.errors import ConvergenceError
from ibukit.fisher_information import contrasts
from ibukit.mechanisms import MatrixMechanism
from ibukit.theory.asymptotic_emd import cumulative_sums
from ibukit.theory.asymptotics import interior_distribution

CRITERIA = ("mse", "emd")
# Largest gap that is accepted, as a share of the value: of an exact bound, and of a relaxation's.
MAX_GAP, MAX_GAP_RELAXED = 1e-6, 1e-2
# Largest path for which listing all columns is as fast as generating them.
MAX_K_LISTED_PATH = 14


@dataclass(frozen=True)
class OptimalDesign:
    """A mechanism, its error, and a bound on how far it is from the best.

    Attributes
    ----------
    mechanism : MatrixMechanism
        It has one column for each report that is made, ordered by the mean code of the secrets
        behind it. There are at most k (k + 1) / 2 columns, or several times as many if the gap is
        that of a relaxation.
    value : float
        The criterion: `theory.asymptotic_mse` or `theory.asymptotic_emd` of the mechanism at the
        prior.
    gap : float
        No epsilon-d-private mechanism, with however many reports, has a criterion below ``value -
        gap``.
    criterion : str
        "mse" or "emd".

    Examples
    --------
    >>> import ibukit as ik
    >>> best = ik.optimal_private([0.5, 0.5], 2, epsilon=1.0)
    >>> best.mechanism.matrix().round(4)  # randomised response
    array([[0.7311, 0.2689],
           [0.2689, 0.7311]])
    """

    mechanism: MatrixMechanism
    value: float
    gap: float
    criterion: str


def optimal_private(
    prior: VectorLike,
    alphabet: AlphabetLike,
    epsilon: float,
    criterion: Literal["mse", "emd"] = "mse",
    *,
    strict: bool = True,
) -> OptimalDesign:
    r"""The private mechanism whose estimates have the least error.

    Minimise the error of the maximum likelihood estimate over all M with

    .. math:: M_{xz}\le e^{\varepsilon d(x,y)}M_{yz}.

    The error is the limit for many users, with :math:`\theta` = prior: "mse" is
    :math:`\operatorname{tr} C`, the limit of
    :math:`n\,\mathbb E\lVert\mathrm{MLE}-\theta\rVert_2^2` (`theory.asymptotic_mse`), and "emd" is
    the limit of :math:`\sqrt{n}\,E` EMD(MLE, :math:`\theta`) on a line (`theory.asymptotic_emd`). C
    is the inverse Fisher information of one report on the directions that keep the sum.

    Privacy bounds every column of M by itself, so M is a mixture of extremal columns: those for
    which privacy is so tight that :math:`\log w` climbs or falls by :math:`\varepsilon\,d` along
    every edge of a tree that connects the secrets. On a line there are :math:`2^{k - 1}` of them:
    up or down at each step. The information is linear in the columns' weights, and both criteria
    are convex in the information. So this is a problem of optimal design ("mse": A-optimality), and
    its dual gives the bound.

    Parameters
    ----------
    prior : array_like or labelled, shape (k,)
        How the secrets are distributed, without zeros: the mechanism is the best for this
        distribution.
    alphabet : Alphabet, sequence of labels or int
        The k secrets; its distances are d. The discrete metric stands for local differential
        privacy.
    epsilon : float
        Nats per unit of distance.
    criterion : str
        "mse", or "emd" for an alphabet on a line.
    strict : bool
        Raise if the gap is above 1e-6 of the value; or above 1e-2 of it if the bound is that of a
        relaxation, as with more than 25 secrets on a line, and off lines if columns cannot be
        listed. False returns the mechanism with the gap that it has. On a grid of more than ten
        cells the gap is usually above 1e-2 of the value, so expect ``strict=True`` to raise.

    Returns
    -------
    OptimalDesign
        The mechanism, its value, and the gap to a proven lower bound. As a rule the gap is at most
        1e-6 of the value and usually near 1e-11. With more than 25 secrets on a line it is usually
        below 1e-3 of the value; on the grids of more than ten cells that were tried it was 0.004 to
        0.09 of the value, and up to 0.16 of it on a grid of 100 cells. The optimal information is
        unique, but the weights need not be.

    Raises
    ------
    ConvergenceError
        If `strict` and the gap is above 1e-6 of the value, or above 1e-2 of it if the bound is that
        of a relaxation; carries the design as ``.estimate``.
    InvalidDistribution
        If `prior` is not a distribution, or has a zero.
    AlphabetMismatch
        If `prior` does not have one probability for each secret.
    TooLarge
        If there are more than 100 secrets.
    ValueError
        If `epsilon` is not a finite number above 0, or `criterion` is unknown or not defined for
        the alphabet.

    Notes
    -----
    Write each column w as the point :math:`r = w / (\theta\,w) - 1`, in coordinates of {v :
    :math:`\sum v = 0`}. A channel is then a distribution of points of a polytope, with mean 0 and
    second moment J, and the optimal channel spreads its points most. Take any J, the form
    :math:`q(r) = r^{\top}\,G\,r` that belongs to its gradient, and any vector :math:`\nu`, and let
    B be the maximum of :math:`q(r) - \nu\,r` over the vertices. Then no channel has a criterion
    below :math:`\phi(J)\,(\phi(J) / B)^{p}`, with p = 1 for "mse" and 1/2 for "emd". At the optimum
    there is equality, and reports are made only where the maximum is attained: the equivalence
    theorem of Kiefer and Wolfowitz.

    With more than 14 secrets on a line the columns are generated: the best design of some columns
    gives G and :math:`\nu`, the maximum B is taken over all :math:`2^{k - 1}` columns, in two
    halves that meet in the middle, and columns with high scores join the design. This is repeated
    until the bound is within 1e-9 of the value.

    With more than 25 secrets on a line the columns are guessed, and the bound needs no columns. Let
    D have the rows that take :math:`w_{x} - \exp (-\varepsilon\,d)\,w_{y}` of neighbours x and y,
    in both directions, and let :math:`X = \sum_{z} M_{z}\,M_{z}^{\top} / p_{z}`. Privacy makes all
    entries of :math:`D\,X\,D^{\top}` nonnegative, and on extremal columns the entries that belong
    to the two forms of one step are 0. The relaxation is the least :math:`\phi` over all such X.
    Any multipliers :math:`N_{ab} \ge 0` of these entries prove a bound, however they were found.
    The gap has two parts that are not told apart: what the relaxation leaves (in 291 random
    problems of 6 to 14 secrets it was at most 4e-4 of the value, and in most of them below 1e-6),
    and what the guess has missed.

    Off lines, columns are listed for up to 17 secrets on a tree, 16 with equal distances and 10
    elsewhere. With more secrets, columns climb from random ones: sets of secrets are raised or
    lowered so that the column rises on the tangent of the last design. The relaxation is then one
    of patches of at most nine secrets, which on grids are squares of 3 x 3 cells. If a form is
    concave across a patch's columns, and not negative at any of the patch's extremal columns, which
    are all listed, it is not negative on X. At a uniform distribution and epsilon 0.2, 0.5 and 2
    the gap is 1.7, 1.8 and 0.8 % of the value on 4 x 4 cells, 2.7, 3.7 and 2.5 % on 6 x 6, 4.6, 8.2
    and 3.4 % on 8 x 8 (in 66, 72 and 10 s of CPU), and 6.6, 16 and 4.0 % on 10 x 10 (in 150, 140
    and 100 s). In these cases the mirror symmetries of grid and distribution cut the number of
    unknowns to a quarter: at a distribution without them 8 x 8 cells took 233 s at epsilon 0.5,
    with a gap of 9.3 %, and 10 x 10 cells take far longer. If the relaxation on grids took products
    of neighbours' forms, as on lines, the gap would be up to 27 %. With 20 secrets at equal
    distances the gap is in fact as large: 23, 23 and 30 % at a uniform distribution and epsilon
    0.2, 0.5 and 2.

    For two secrets the mechanism is randomised response. Designs take milliseconds for up to 8
    secrets on a line and seconds for 20. From 26 secrets on they take less time again: 0.4 to 0.7 s
    of CPU for 30 secrets and 6 to 60 s for 50, with gaps of 4e-7 to 8e-4 of the value for epsilon
    from 0.1 to 2. At epsilon 0.5, 70 secrets take 46 s and 0.9 GB, and 100 secrets take five
    minutes and 3 GB, with gaps of 3e-4. Where epsilon times the length is about 5 it takes several
    times as long, because more columns have to be weighed.

    References
    ----------
    .. [pukelsheim2006] F. Pukelsheim, "Optimal Design of Experiments", SIAM, 2006.
    .. [kairouz2016] P. Kairouz, S. Oh and P. Viswanath, "Extremal mechanisms for local differential
       privacy", JMLR 17, 2016: extremal columns for the discrete metric.

    Examples
    --------
    Truncated geometric noise is not the best, nor is k-RR:

    >>> import ibukit as ik
    >>> prior = ik.uniform(5)
    >>> best = ik.optimal_private(prior, 5, epsilon=0.1)
    >>> print(round(best.value, 1), best.gap < 1e-6)
    705.6 True
    >>> kinds = (ik.TruncatedGeometric, ik.RandomizedResponse)
    >>> [round(ik.theory.asymptotic_mse(kind(5, 0.1), prior)) for kind in kinds]
    [8119, 1885]
    """
    secrets = as_alphabet(alphabet)
    k = len(secrets)
    theta = interior_distribution("prior", prior, secrets)
    level = arguments.positive("epsilon", epsilon)
    if not arguments.is_one_of(criterion, CRITERIA):
        raise ValueError(f"criterion must be 'mse' or 'emd', got {criterion!r}")
    limits.require_dense("the matrix of the design", k, k)
    loadings = np.eye(k) if criterion == "mse" else cumulative_sums(secrets)
    if k == 1:
        return OptimalDesign(MatrixMechanism(np.ones((1, 1)), secrets), 0.0, 0.0, criterion)
    measure = Criterion(loadings @ contrasts(k), criterion == "emd")
    with one_thread(), _refuse_outside_doubles(level):
        logs, shares, proven = _columns(secrets.distances(), level, theta, measure)
        logs -= logs.max(axis=1, keepdims=True)
        columns = np.exp(logs)
        deviating, sizes = deviations(logs, theta)
        points = deviating @ contrasts(k)
        # Columns that were listed or generated get exact weights here; guessed columns come with
        # their weights and a bound.
        weights, bound = (
            optimal_design(points, sizes / sizes.sum(), measure)
            if shares is None
            else (shares, 0.0)
        )
        bound = bound if proven is None else proven
        # Columns without weight are dropped, and the rest are corrected to exact rows.
        made = weights > 0
        channel = _with_unit_row_sums((columns[made].T / sizes[made]) * weights[made], theta)
        value = measure.value((points[made].T * (theta @ channel)) @ points[made])
    # Reports are ordered by the mean code of the secrets behind them.
    meant = np.arange(k) * theta @ channel / (theta @ channel)
    channel = channel[:, np.argsort(meant.round(9), kind="stable")]
    gap = max(value - bound, 0.0)
    design = OptimalDesign(MatrixMechanism(channel, secrets), value, gap, criterion)
    # Weights come with the columns only if the bound is that of a relaxation.
    largest = MAX_GAP if shares is None else MAX_GAP_RELAXED
    if arguments.flag("strict", strict) and not gap <= largest * value:
        why = (
            f"epsilon={level:g} times the distances may be too large or too small for doubles"
            if shares is None
            else "the bound is of a relaxation, which is not sharp but on a line"
        )
        raise ConvergenceError(
            f"the optimum was missed: value {value:.6g}, proven bound {bound:.6g}, a gap of "
            f"{gap / value:.2g} of the value; {why}; strict=False returns the design with its gap",
            design,
        )
    return design


@contextmanager
def _refuse_outside_doubles(level: float) -> Iterator[None]:
    """Raise ValueError where the criterion, which grows as 1 / epsilon^2, leaves the doubles."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            yield
    except (np.linalg.LinAlgError, FloatingPointError):
        raise ValueError(
            f"epsilon must be {'smaller' if level > 1 else 'larger'}, or prior further from 0, for "
            f"the criterion to be computed in doubles, got epsilon={level:g}"
        ) from None


def _columns(
    distances: Floats, level: float, theta: Floats, measure: Criterion
) -> tuple[Floats, Floats | None, float | None]:
    """Logs of columns, their weights if known, and a bound on all channels if known.

    The columns are all extremal ones if they can be listed, otherwise those that matter.
    """
    if len(theta) <= MAX_K_LISTED_PATH and can_be_listed(distances):
        return level * extremal_logs(distances), None, None
    path = path_of(distances)
    if path is None:
        if measure.roots or len(theta) > MAX_K_OFF_PATHS or can_be_listed(distances):
            return level * extremal_logs(distances), None, None
        return climbed_columns(level * shortest_path(distances), theta, measure)
    # A path is solved in the order along it: contrasts of the secrets are turned to that order.
    order, steps = path
    loadings = measure.loadings @ contrasts(len(theta)).T[:, order] @ contrasts(len(theta))
    along, back = Criterion(loadings, measure.roots), np.argsort(order)
    if len(theta) > MAX_K_EXACT_PRICING:
        logs, weights, bound = guessed_columns(level * steps, theta[order], along)
        return logs[:, back], weights, bound
    logs, bound = generated_columns(level * steps, theta[order], along)
    return logs[:, back], None, bound


def _with_unit_row_sums(channel: Floats, theta: Floats) -> Floats:
    """The channel with the least change of its columns' weights that makes its rows sum to 1."""
    root = np.sqrt(theta @ channel)
    equations = channel / root * np.sqrt(theta)[:, None]
    change = np.linalg.lstsq(equations, (1 - channel.sum(axis=1)) * np.sqrt(theta), rcond=None)[0]
    return channel * (1 + change / root)
