"""Reports that are real numbers or points, as people release them."""

from ibukit.mechanisms.points.linear_laplace_points import (
    LinearLaplacePoints as LinearLaplacePoints,
)
from ibukit.mechanisms.points.planar_laplace_points import (
    PlanarLaplacePoints as PlanarLaplacePoints,
)
from ibukit.mechanisms.points.point_reports import PointReports as PointReports
from ibukit.mechanisms.points.point_reports import merging_loss as merging_loss
from ibukit.mechanisms.points.real_numbers import real_numbers as real_numbers
