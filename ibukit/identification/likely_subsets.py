"""Likely subsets: secrets outside them have no mass in any maximum likelihood estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.domain.alphabet import Line, require_bounded
from ibukit.domain.grid import Grid
from ibukit.domain.labels import LabelsLike
from ibukit.errors import TooLarge
from ibukit.identification import _planar_cuts
from ibukit.mechanisms import (
    Exponential,
    LinearGeometric,
    LinearLaplace,
    Mechanism,
    PlanarGeometric,
    PlanarLaplace,
    RandomizedResponse,
    TruncatedGeometric,
    TruncatedPlanarGeometric,
)
from ibukit.mechanisms.base import require_mechanism
from ibukit.tally.tally import TallyPart

if TYPE_CHECKING:
    from shapely import Polygon

# Probabilities of the reports seen that are compared: 2^25 take a quarter of a gigabyte.
MAX_COMPARED = 2**25
# Relative difference up to which probabilities are equal.
PROBABILITY_TOLERANCE = 1e-12
# A secret is compared first at the reports where it is likeliest, which exclude most others, and
# then with this number of candidates at a time.
TELLING_REPORTS, CANDIDATES_AT_ONCE = 8, 16


def dominated(
    mechanism: Mechanism, reports: LabelsLike, *, codes: bool = False
) -> NDArray[np.bool_]:
    r"""Find the secrets that are less likely than another, whatever was reported.

    These are the secrets x' with :math:`M_{x'z}\le M_{xz}` for all reports z seen, and < for one of
    them, for some x. No maximum likelihood estimate gives them mass: what it gave to x' would be
    better placed at x. On a finite alphabet the other secrets are thus a likely subset, the
    smallest in the paper's sense: each of those left out is dominated by one that stays, because a
    chain of ever better secrets ends.

    Parameters
    ----------
    mechanism : Mechanism
        Any with finitely many secrets.
    reports : array_like, n reports
        As ``mechanism.tally`` takes them; how often each was seen does not matter.
    codes : bool
        Whether reports that can be listed are given by their places in the list instead of labels.

    Returns
    -------
    ndarray of bool, shape (k,)
        True for these secrets. All pairs of secrets are compared on the reports seen, up to the
        rounding of doubles: a difference of 1e-12 between probabilities does not leave a secret
        out.

    Raises
    ------
    TooLarge
        If k secrets on s distinct reports make more than :math:`2^{25}` probabilities.
    AlphabetMismatch, ImpossibleReport, ValueError
        If the reports are not the mechanism's, or there are none.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, Definition 2.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.theory.dominated(ik.TruncatedGeometric(5, epsilon=1.0), [1, 3])
    array([ True, False, False, False,  True])
    """
    require_bounded(require_mechanism(mechanism).alphabet)
    return _dominated(mechanism.tally(reports, codes=codes).parts[0])


def likely_subset(mechanism: Mechanism, reports: LabelsLike, *, codes: bool = False) -> Ints:
    r"""Secrets that carry all mass of every maximum likelihood estimate.

    This is proven for each secret that is left out. An estimate over the likely subset alone, with
    0 for all others, is therefore an estimate over the whole alphabet, and its certificate holds
    for the whole alphabet. Each secret x' that is left out is dominated by a single secret (see
    `dominated`) or by a mixture: :math:`\sum_x w_x M_{xz}\ge M_{x'z}` for all reports z seen, with
    > for one of them, for weights w that sum to at most 1.

    Parameters
    ----------
    mechanism : Mechanism
    reports : array_like, n reports
        As ``mechanism.tally`` takes them; how often each was seen does not matter.
    codes : bool
        Whether reports that can be listed are given by their places in the list instead of labels.

    Returns
    -------
    ndarray of int, shape (l,)
        Codes, in ascending order. Where the alphabet has no end: labels, on a grid (row, column)
        pairs, shape (l, 2).

    Raises
    ------
    TooLarge
        If only a comparison of all pairs would tell, and there are too many (see `dominated`).
    AlphabetMismatch, ImpossibleReport, ValueError
        If the reports are not the mechanism's, or there are none.

    Notes
    -----
    - `RandomizedResponse`: the values reported. Any of them dominates all that were not.
    - `LinearGeometric`, `TruncatedGeometric`, `Exponential` on a `Line`: the values reported (those
      beyond an end count as the end). There :math:`M_{xz}=f_z\,g_x\,e^{-c|x-z|}` with g = 1, or
      :math:`g_x=1/N_x` and :math:`c = \varepsilon / 2` for the exponential mechanism. Let x lie
      between two neighbouring reports a < b. As :math:`e^{cx}` and :math:`e^{-cx}` are interpolated
      exactly by :math:`A=\frac{\sinh c(b-x)}{\sinh c(b-a)}` and
      :math:`B=\frac{\sinh c(x-a)}{\sinh c(b-a)}`,
      :math:`M_{xz}=A\,(g_x/g_a)\,M_{az}+B\,(g_x/g_b)\,M_{bz}` for every report z. These weights sum
      to less than 1: for g = 1 because cosh is convex; for the exponential mechanism because N is a
      sum of terms :math:`e^{-c|x-y|}` of which those with :math:`y \le a` or :math:`y \ge b` are
      interpolated, and those with y in between, among them y = x, exceed the interpolation. So the
      mixture of a and b, scaled to sum 1, makes every report more probable. Beyond the last report
      b :math:`M_{xz}=e^{-c(x-b)}(g_x/g_b)\,M_{bz}`, and :math:`N_{b} < e^{c(x - b)}\,N_{x}`. The
      proof does not use that the nearer value is the likelier one, which need not be so for the
      exponential mechanism on a line that ends.
    - `LinearLaplace`: from the least to the largest report.
    - `PlanarGeometric`: the cells that no cell dominates, found without comparing pairs. They lie
      in the bounding box of the reports and within
      :math:`\delta'=\sqrt{\delta^2+2\,\delta\,d_{\max}}` of their convex hull (see
      `likely_region`). Where reports lie outside the grid, the subset consists of the cells of the
      grid that are in their bounding box or nearest to it.
    - `TruncatedPlanarGeometric`, `PlanarLaplace`: the cells in the bounding box of the reports: a
      step towards it along an axis makes every report more likely, also those at a border, which
      stand for all beyond. The hull widened by the margin that suffices on an unbounded grid
      (`likely_region`) may fail to contain the estimates of these two mechanisms. Where comparing
      all pairs is affordable, the subset is only those cells of the box that are not dominated.
    - Any other mechanism: the secrets that are not dominated.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 8.

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.theory.likely_subset(ik.LinearLaplace(20, epsilon=0.5), [4, 8, 8, 7])
    array([4, 5, 6, 7, 8])
    >>> ik.theory.likely_subset(ik.LinearGeometric(ik.Line(10, 29), epsilon=0.5), [14, 18, 18, 35])
    array([ 4,  8, 19])
    >>> unbounded = ik.LinearGeometric(ik.Line(None, None), epsilon=0.5)
    >>> ik.theory.likely_subset(unbounded, [14, 18, 18, 35])
    array([14, 18, 35])
    """
    if not require_mechanism(mechanism).alphabet.bounded:
        tally = mechanism.tally(reports, codes=codes)
        return tally.alphabet.values[_likely_codes(tally.parts[0])]
    return _likely_codes(mechanism.tally(reports, codes=codes).parts[0])


def _likely_codes(part: TallyPart) -> Ints:
    mechanism, seen = part.mechanism, part.reports
    kind = type(mechanism)
    alphabet: Any = mechanism.alphabet
    # By the exact type: a class that inherits from one of these may have another law.
    if kind in (RandomizedResponse, TruncatedGeometric) or (
        kind is Exponential and isinstance(alphabet, Line)
    ):
        return seen
    if kind is LinearGeometric:
        return np.unique(np.clip(seen, alphabet.first, alphabet.last)) - alphabet.first
    if kind is LinearLaplace:
        return np.arange(seen[0], seen[-1] + 1)
    if kind is PlanarGeometric:
        return _likely_cells(alphabet, seen)
    if kind in (TruncatedPlanarGeometric, PlanarLaplace):
        # A step towards the box makes every report more likely: cells outside are dominated.
        box = _bounding_box(alphabet, alphabet.values[seen])
        return box[~_dominated(part, box)] if len(box) * len(seen) <= MAX_COMPARED else box
    return np.flatnonzero(~_dominated(part))


def likely_region(grid: Grid, reports: ArrayLike) -> Polygon:
    r"""The paper's region around the reported cells, widened by a margin.

    It is the convex hull of reported cells' centres, grown by
    :math:`\delta'=\sqrt{\delta^2+2\,\delta\,d_{\max}}` in all directions. :math:`\delta` is half
    the diagonal of a cell, as on a grid without an end, and :math:`d_{\mathrm{max}}` is the largest
    distance between two reports. Where the probability of every report falls with its distance and
    all reports lie in the grid, each cell outside the region is dominated by the cell nearest to
    the point where its shortest way to the hull meets the hull. Truncated noise is not of that
    kind: with it this region may miss the maximum.

    Parameters
    ----------
    grid : Grid
    reports : array_like of int, shape (n, 2)
        (row, column) of the cells reported.

    Returns
    -------
    shapely.Polygon
        In `unit`; x is the easting and y the northing, as in ``grid.to_geodataframe`` without
        bounds. Its rounded corners are arcs of polygons with 256 vertices.

    Raises
    ------
    ValueError
        If the reports are not pairs of whole numbers, or there are none.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, eq. (13) and Figure 14.

    Examples
    --------
    >>> region = likely_region(Grid(20, 20, cell_size=0.5), [[4, 4], [4, 12], [10, 8]])
    >>> tuple(round(edge, 3) for edge in region.bounds)
    (0.531, 0.531, 7.969, 6.969)
    """
    import shapely

    if not isinstance(grid, Grid):
        raise TypeError(f"grid must be a Grid, got {grid!r}")
    cells = arguments.integers("reports", reports, ndim=2)
    if cells.shape[1] != 2 or len(cells) == 0:
        raise ValueError(f"reports must be (row, column) pairs, shape (n, 2), got {cells.shape}")
    corners = _planar_cuts.hull_of(((cells + 0.5) * np.array(grid.cell_shape))[:, ::-1])
    hull = shapely.convex_hull(shapely.multipoints(corners))
    # delta is half a cell's diagonal; `margin` is the delta' of the docstring.
    error = float(np.hypot(*grid.cell_shape)) / 2
    away = _planar_cuts.margin(error, _planar_cuts.diameter(corners))
    region: Polygon = shapely.buffer(hull, away, quad_segs=64)
    return region


def _likely_cells(grid: Grid, reports: Ints) -> Ints:
    inside = np.array_equal(grid.nearest(reports), reports)
    return (
        grid.codes(_planar_cuts.undominated_cells(reports, grid.cell_shape))
        if inside
        else _bounding_box(grid, reports)
    )


def _bounding_box(grid: Grid, cells: Ints) -> Ints:
    """Codes of the cells in the bounding box of some cells, moved into the grid."""
    low, high = grid.nearest(np.stack([cells.min(axis=0), cells.max(axis=0)]))
    rows, cols = (np.arange(low[i], high[i] + 1) for i in (0, 1))
    return grid.codes(np.stack(np.meshgrid(rows, cols, indexing="ij"), axis=-1).reshape(-1, 2))


def _dominated(part: TallyPart, among: Ints | None = None) -> NDArray[np.bool_]:
    """Mask of the secrets that are dominated by another, both among the given ones."""
    columns = np.ascontiguousarray(_rows(part, among).T)
    # Secrets that are likely under all reports are tried first: they dominate most others.
    order = np.argsort(-columns.sum(axis=0), kind="stable")
    return np.array([_has_better(columns, x, order) for x in range(columns.shape[1])])


def _rows(part: TallyPart, among: Ints | None) -> Floats:
    """Probabilities of the reports seen under each secret, (k, s), each report up to a factor."""
    k = len(part.mechanism.alphabet)
    secrets = np.arange(k) if among is None else among
    if len(secrets) * len(part.counts) > MAX_COMPARED:
        raise TooLarge(
            f"{len(secrets)} secrets on {len(part.counts)} distinct reports make "
            f"{len(secrets) * len(part.counts):.2g} probabilities to compare, more than "
            f"{MAX_COMPARED}; take fewer secrets, or estimate on all of them: mle and ibu do not "
            "need a likely subset"
        )
    return part.channel.rows(secrets)


def _has_better(columns: Floats, x: int, order: Ints) -> bool:
    own = columns[:, x]
    telling = np.argsort(-own, kind="stable")[:TELLING_REPORTS]
    # Only secrets at least as likely at the telling reports can dominate.
    able: Any = (columns[telling] >= own[telling, None]).all(axis=0)
    able[x] = False
    candidates = order[able[order]]
    for start in range(0, len(candidates), CANDIDATES_AT_ONCE):
        other = columns[:, candidates[start : start + CANDIDATES_AT_ONCE]]
        better = (other >= own[:, None]).all(axis=0) & (
            other > own[:, None] * (1 + PROBABILITY_TOLERANCE)
        ).any(axis=0)
        if better.any():
            return True
    return False
