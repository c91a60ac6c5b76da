"""Cells of an infinite grid that no other cell dominates: a polygon cut out by half-planes.

Where probability falls with distance, cell x + e makes every report v at least as likely as cell x
does if |v - x - e| <= |v - x|, that is (v - x) . e >= |e|^2 / 2, for all v. So each offset e cuts
off the half-plane x . e <= min_v v . e - |e|^2 / 2, and what no offset cuts off is a convex polygon
of cells around the reports. The two offsets along each axis cut off all that lies outside the
reports' bounding box.

**Offsets up to 2 delta' suffice**, delta' = sqrt(delta^2 + 2 delta d_max), where delta is half the
diagonal of a cell and d_max the largest distance between two reports. Let u be the point of the
reports' hull nearest to x, D = |x - u|. If x + e beats x then the hull lies in the half-plane (v -
x) . e >= |e|^2 / 2, whose distance from x is |e| / 2, so |e| <= 2 D: this settles D <= delta'. If D
> delta', go from x towards u by delta' and take the cell nearest to where one arrives, at most
delta away. A report v lies at a depth of at least D in the direction of u, and to the side by some
s <= d_max. This step brings x nearer to v by sqrt(D^2 + s^2) - sqrt((D - delta')^2 + s^2) or more,
which grows with D and for D = delta' is sqrt(delta'^2 + s^2) - s, falling in s and equal to delta
at s = d_max. So that cell beats x, and |e| <= delta' + delta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import pdist

from ibukit._ground.arguments import Floats, Ints

# Relative rounding of products of coordinates, where cells are not square.
PRODUCT_TOLERANCE = 1e-12
# Number of offsets whose half-planes are held in memory at a time.
OFFSETS_AT_ONCE = 256


def hull_of(points: Floats) -> Floats:
    """Corners of the convex hull of points, shape (v, 2); the ends if they lie on a line."""
    # Importing shapely takes a second.
    import shapely

    return np.unique(
        shapely.get_coordinates(shapely.convex_hull(shapely.multipoints(points))), axis=0
    )


def margin(error: float, diameter: float) -> float:
    """Delta' = sqrt(delta^2 + 2 delta d_max)."""
    return math.sqrt(error * error + 2 * error * diameter)


def diameter(points: Floats) -> float:
    """The largest distance between two points."""
    return float(pdist(points).max(initial=0.0))


def undominated_cells(reports: Ints, cell_shape: tuple[float, float]) -> Ints:
    """Cells of the infinite grid that no cell dominates, as (row, column) pairs, row-major."""
    # Square cells are measured in cells: then all products are integers, and ties are exact.
    square = cell_shape[0] == cell_shape[1]
    shape = np.ones(2) if square else np.array(cell_shape)
    corners = hull_of(reports.astype(np.float64))
    (south, west), (north, east) = reports.min(axis=0), reports.max(axis=0)
    rows = np.arange(south, north + 1)
    low, high = np.full(len(rows), west), np.full(len(rows), east)
    for offsets in _offsets(corners, shape, (len(rows), int(east - west) + 1)):
        squares = offsets * shape**2
        along = squares @ corners.T
        # A cell that is as far from every report as another one does not dominate it: otherwise two
        # cells could cut each other off.
        slack = 0.0 if square else PRODUCT_TOLERANCE * (1 + np.abs(along).max(axis=1))
        tie = along.max(axis=1) - along.min(axis=1) <= slack
        limit = along.min(axis=1) - (squares * offsets).sum(axis=1) / 2 - np.where(tie, slack, 0)
        # In each row the half-plane's edge is at `column`: cells east or west of it are cut off.
        column = (limit[:, None] - squares[:, :1] * rows) / squares[:, 1:]
        least = np.where(tie[:, None], np.ceil(column), np.floor(column) + 1)
        most = np.where(tie[:, None], np.floor(column), np.ceil(column) - 1)
        eastward = offsets[:, 1] > 0
        low = np.maximum(low, least[eastward].max(axis=0, initial=west)).astype(np.int64)
        high = np.minimum(high, most[~eastward].min(axis=0, initial=east)).astype(np.int64)
    widths = np.maximum(high - low + 1, 0)
    starts = np.repeat(low - np.cumsum(widths) + widths, widths)
    return np.column_stack([np.repeat(rows, widths), starts + np.arange(widths.sum())])


def _offsets(corners: Floats, shape: Floats, box: tuple[int, int]) -> Iterator[Floats]:
    """Blocks of offsets up to 2 delta' within the box that are no multiple of a shorter one."""
    farthest = 2 * margin(math.hypot(*shape) / 2, diameter(corners * shape))
    reach = [
        min(math.floor(farthest / side), size - 1) for side, size in zip(shape, box, strict=True)
    ]
    i, j = (
        axis.ravel() for axis in np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij")
    )
    wanted = (np.gcd(i, j) == 1) & (j != 0) & (np.hypot(i * shape[0], j * shape[1]) <= farthest)
    chosen = np.column_stack([i, j])[wanted].astype(np.float64)
    for start in range(0, len(chosen), OFFSETS_AT_ONCE):
        yield chosen[start : start + OFFSETS_AT_ONCE]
