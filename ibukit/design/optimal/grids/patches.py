"""Patches of near secrets, and quadratic forms that are nonnegative on all private columns there.

Restricted to a patch, a private column is private there, and a mixture of the patch's own extremal
columns r, which can be listed. Scale columns to a mean entry of 1, and let N be a quadratic form
that is concave across such columns. If N(r) >= 0 for each r, then N(w) >= 0 for every private
column w, as a concave function at a mean is at least the mean of its values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.extremal_columns import TIE_TOLERANCE, extremal_logs
from ibukit.design.optimal.whitening import Pairs
from ibukit.fisher_information import contrasts

# Number of secrets of a patch: on a grid a patch of 9 has about 4,000 extremal columns, one of 10
# about 15,000.
MAX_PATCH_SECRETS = 9


class Patch(NamedTuple):
    """Some secrets and the extremal columns on them.

    The patch's coordinates are the mean of the entries first, then the contrasts divided by the
    shortest step.
    """

    secrets: Ints
    turn: Floats
    """Matrix from entries to coordinates."""
    moments: Floats
    """R r^T of the extremal columns, in coordinates of `Pairs`, shape (pairs, columns)."""

    @property
    def pairs(self) -> Pairs:
        """Pairs of the patch's coordinates."""
        return Pairs.of(len(self.secrets))

    @staticmethod
    def of(secrets: Ints, distances: Floats) -> Patch:
        """Patch of the given secrets; distances are in nats."""
        m = len(secrets)
        inside = distances[np.ix_(secrets, secrets)]
        # Contrasts are divided by the shortest step, because columns differ by that much: all
        # coordinates of columns are then of order 1.
        step = min(float(inside[~np.eye(m, dtype=bool)].min()), 1.0)
        mean, across = np.full((1, m), 1 / m), contrasts(m).T / step
        relative, _ = deviations(extremal_logs(inside), mean[0])
        rays = np.column_stack([np.ones(len(relative)), relative @ across.T])
        return Patch(
            secrets, np.vstack([mean, across]), np.ascontiguousarray(Pairs.of(m).squares(rays).T)
        )


def patches_of(distances: Floats) -> list[Patch]:
    """Balls around secrets that hold each secret with its neighbours: on a grid 3 x 3 cells.

    Distances are in nats. Balls of the same distances share their columns.
    """
    balls = sorted((_ball(each) for each in distances), key=lambda ball: _width(ball, distances))
    held = np.eye(len(distances), dtype=bool)
    known: dict[bytes, Patch] = {}
    made = []
    for ball in balls:
        # Balls at an edge of a grid are wider; if all pairs near their centre are in a patch
        # already, they are not needed.
        if held[ball[0], ball].all():
            continue
        secrets = np.sort(ball)
        held[np.ix_(secrets, secrets)] = True
        inside = np.rint(
            distances[np.ix_(secrets, secrets)] / (8 * TIE_TOLERANCE * distances.max())
        ).tobytes()
        if inside not in known:
            known[inside] = Patch.of(secrets, distances)
        made.append(known[inside]._replace(secrets=secrets))
    return made


def unique_patches(patches: list[Patch], images: Ints) -> tuple[list[Patch], list[int]]:
    """One patch of each set of patches that are images of one another, and the size of the set."""
    met: set[tuple[int, ...]] = set()
    firsts, sizes = [], []
    for patch in patches:
        own = {tuple(row) for row in np.sort(images[:, patch.secrets], axis=1).tolist()}
        if not own & met:
            firsts.append(patch)
            sizes.append(len(own))
            met |= own
    return firsts, sizes


def _ball(from_one: Floats) -> Ints:
    """A secret and those within some distance, as many as a patch holds.

    If more secrets than that are at the least distance, only some of them are taken.
    """
    order = np.argsort(from_one, kind="stable")
    lengths = from_one[order]
    farther = np.flatnonzero(
        np.diff(lengths, append=np.inf)[:MAX_PATCH_SECRETS] > TIE_TOLERANCE * lengths[-1]
    )
    return order[: max(farther[-1] + 1, 2) if farther[-1] else MAX_PATCH_SECRETS].astype(np.int64)


def _width(ball: Ints, distances: Floats) -> float:
    return float(
        np.rint(distances[np.ix_(ball, ball)].max() / (8 * TIE_TOLERANCE * distances.max()))
    )
