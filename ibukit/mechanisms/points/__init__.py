"""Reports that are real numbers and points, as people release them."""

from ibukit.mechanisms.points.laplace import LinearLaplacePoints as LinearLaplacePoints
from ibukit.mechanisms.points.laplace import PlanarLaplacePoints as PlanarLaplacePoints
from ibukit.mechanisms.points.model import PointReports as PointReports
from ibukit.mechanisms.points.model import merging_loss as merging_loss
from ibukit.mechanisms.points.reals import real_numbers as real_numbers
