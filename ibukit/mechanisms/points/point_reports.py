"""Base class of mechanisms whose reports are points: densities, and merging of close points."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel
from ibukit.domain.grid import Grid
from ibukit.domain.labels import LabelsLike
from ibukit.domain.report_kind import ReportKind
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.points.coordinates import centres, coordinates_of
from ibukit.mechanisms.points.merging import Merged, merge, merge_until_few
from ibukit.mechanisms.points.real_numbers import real_numbers
from ibukit.tally.tally import Tally, make_tally_part


class PointReports(Mechanism):
    """Noise whose reports are points, shape (n, 2), or numbers, shape (n,).

    Probabilities are densities. If there are more reports than a matrix of `most_entries` entries
    has columns, neighbouring reports are merged into their mean. The estimate that maximises the
    likelihood of the merged reports then has an exact log-likelihood that is below the exact
    maximum by at most `merging_loss(tally)` nats per report. A tally keeps rows (coordinates, the
    bound on what merging did to this report).
    """

    dimension: ClassVar[int] = 2
    report_kind: ClassVar[ReportKind] = ReportKind.POINTS
    most_entries: ClassVar[int] = 2**25
    """Most entries of the matrix, which has k rows, for which reports are not merged: 256 MB."""

    @property
    @abstractmethod
    def side(self) -> float:
        """Side of the largest squares in which reports are merged."""

    def places(self) -> Floats:
        """Places of the secrets, in the coordinates of reports, shape (k,) or (k, 2)."""
        if isinstance(self.alphabet, Grid):
            return centres(self.alphabet)
        return self.alphabet.values.astype(np.float64)

    @abstractmethod
    def logs(self, points: Floats) -> Floats:
        """Log-densities of points (s, d), less that of the nearest secret, shape (k, s)."""

    @abstractmethod
    def log_largest(self, points: Floats) -> Floats:
        """Logarithm of the density of the nearest secret, shape (s,)."""

    @abstractmethod
    def merging_bound(self, means: Floats, merged: Merged) -> Floats:
        """Bound on what merging costs each of the original points, in nats, shape (n,)."""

    @override
    def check_reports(self, reports: ArrayLike) -> Floats:
        # The last column is the bound on what merging did to a report: nothing so far.
        points = real_numbers("reports", reports, self.dimension)
        return np.column_stack([points, np.zeros(len(points))])

    @override
    def restore_reports(self, kept: NDArray[Any]) -> NDArray[Any]:
        return kept[:, 0] if self.dimension == 1 else kept[:, :-1]

    @override
    def code_reports(self, reports: LabelsLike) -> NDArray[Any]:
        if isinstance(self.alphabet, Grid):
            return coordinates_of(self.alphabet, reports, "reports")
        return real_numbers("reports", reports, self.dimension)

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        limits.require_channel("the channel of these reports", self.k, len(reports))
        columns = self.logs(reports[:, :-1])
        return DenseChannel(np.exp(columns, out=columns))

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats:
        return self.log_largest(reports[:, :-1])

    @override
    def _count(self, seen: NDArray[Any], often: Ints | Floats | None) -> Tally:
        return self.counted(seen, often)

    def counted(
        self, seen: Floats, often: Ints | Floats | None = None, bins: int | None = None
    ) -> Tally:
        """The tally of reports in the form of `check_reports`.

        Reports close together are merged if there are many, or if `bins` is given.

        Parameters
        ----------
        seen : ndarray, shape (n, d + 1)
        often : ndarray, shape (n,), optional
            How often each report was made, once by default.
        bins : int, optional
            Merge in squares whose side is `side` / `bins`.
        """
        counts: Any = np.ones(len(seen), dtype=np.int64) if often is None else often
        if bins is None and self.k * len(seen) <= self.most_entries:
            return Tally((make_tally_part(self, seen, counts),))
        # Reports of weight 0 must not move the means.
        seen, counts = seen[counts > 0], counts[counts > 0]
        if not len(seen):
            return Tally((make_tally_part(self, seen, counts),))  # raises: the tally is empty
        points = seen[:, :-1]
        if bins is None:
            merged = merge_until_few(points, counts, self.side, self.most_entries // self.k)
        else:
            merged = merge(points, counts, self.side / arguments.whole("bins", bins, 1, 2**53))
        # The bound of a merged report is the mean over its original ones, each with what an earlier
        # merging did to it.
        bounds = counts * (seen[:, -1] + self.merging_bound(merged.points, merged))
        mean_bound = np.bincount(merged.group, bounds) / merged.counts
        return Tally(
            (make_tally_part(self, np.column_stack([merged.points, mean_bound]), merged.counts),)
        )


def merging_loss(tally: Tally) -> float:
    """Bound on the log-likelihood that merging neighbouring reports may cost, in nats per report.

    An estimate that maximises the likelihood of the merged reports has an exact mean log-likelihood
    that is below the maximum by at most this bound. The bound is 0 if nothing was merged.

    Parameters
    ----------
    tally : Tally

    Examples
    --------
    >>> import ibukit as ik
    >>> mechanism = ik.PlanarLaplace(ik.Grid(2, 2), epsilon=1.0)
    >>> points = [[0.3, 0.4], [0.32, 0.41], [1.7, 0.5]]
    >>> merging_loss(mechanism.tally_points(points))
    0.0
    >>> round(merging_loss(mechanism.tally_points(points, bins=4)), 5)
    0.00025
    """
    # The last column of a part's reports is the bound for each report, 0 where nothing was merged.
    lost = [
        part.counts @ part.reports[:, -1]
        for part in tally.parts
        if isinstance(part.mechanism, PointReports)
    ]
    return float(sum(lost)) / tally.n
