"""What is certain of the second moments of a few secrets that are near each other: all private columns on them.

Restricted to a patch, a private column is private there, and a mixture of the patch's own extremal
columns r, which can be listed. Scaled to a mean entry of 1, let N be a form that is concave across
such columns. Where N(r) >= 0 for each r, N(w) >= 0 for every private column w, as a concave
function at a mean is at least the mean of its values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints
from ibukit.design.optimal.column_generation import deviations
from ibukit.design.optimal.extremal_columns import TIE_OF_PATHS, extremal_logs
from ibukit.design.optimal.whitening import Pairs
from ibukit.fisher_information import contrasts

# on a grid a patch of nine has some four thousand extremal columns, one of ten fifteen thousand
MAX_PATCH = 9


class Patch(NamedTuple):
    """Some secrets, and the extremal columns on them.

    In coordinates of the patch: the mean of the entries first, then the contrasts divided by the
    shortest step.
    """

    secrets: Ints
    turn: Floats
    """From entries to coordinates."""
    moments: Floats
    """R r^T of the extremal columns, in coordinates of `Pairs`, shape (pairs, columns)."""

    @property
    def pairs(self) -> Pairs:
        """Of the coordinates."""
        return Pairs.of(len(self.secrets))

    @staticmethod
    def of(secrets: Ints, distances: Floats) -> Patch:
        """Distances are in nats."""
        m = len(secrets)
        inside = distances[np.ix_(secrets, secrets)]
        step = min(float(inside[~np.eye(m, dtype=bool)].min()), 1.0)
        mean, across = np.full((1, m), 1 / m), contrasts(m).T / step
        relative, _ = deviations(extremal_logs(inside), mean[0])
        rays = np.column_stack([np.ones(len(relative)), relative @ across.T])
        return Patch(
            secrets, np.vstack([mean, across]), np.ascontiguousarray(Pairs.of(m).squares(rays).T)
        )


def patches_of(distances: Floats) -> list[Patch]:
    """Balls around secrets that together hold each secret beside its neighbours: on a grid squares of three by three.

    Distances are in nats. Balls of the same distances share their columns.
    """
    balls = sorted((_ball(each) for each in distances), key=lambda ball: _width(ball, distances))
    held = np.eye(len(distances), dtype=bool)
    known: dict[bytes, Patch] = {}
    made = []
    for ball in balls:
        # those at an edge of a grid are wider, and hold no pair near their centre that is not held
        # already
        if held[ball[0], ball].all():
            continue
        secrets = np.sort(ball)
        held[np.ix_(secrets, secrets)] = True
        inside = np.rint(
            distances[np.ix_(secrets, secrets)] / (8 * TIE_OF_PATHS * distances.max())
        ).tobytes()
        if inside not in known:
            known[inside] = Patch.of(secrets, distances)
        made.append(known[inside]._replace(secrets=secrets))
    return made


def unlike_patches(patches: list[Patch], images: Ints) -> tuple[list[Patch], list[int]]:
    """One of all patches that are images of one another, and how many images it has."""
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
    """A secret and those up to some distance, as many as a patch holds; some of the nearest where they are too many."""
    order = np.argsort(from_one, kind="stable")
    lengths = from_one[order]
    farther = np.flatnonzero(
        np.diff(lengths, append=np.inf)[:MAX_PATCH] > TIE_OF_PATHS * lengths[-1]
    )
    return order[: max(farther[-1] + 1, 2) if farther[-1] else MAX_PATCH].astype(np.int64)


def _width(ball: Ints, distances: Floats) -> float:
    return float(
        np.rint(distances[np.ix_(ball, ball)].max() / (8 * TIE_OF_PATHS * distances.max()))
    )
