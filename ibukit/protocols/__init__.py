"""Protocols that are in use: local hashing, Hadamard response, sketches, numbers and places."""

from ibukit.protocols.gaussian import DiscreteGaussian as DiscreteGaussian
from ibukit.protocols.gaussian_points import LinearGaussian as LinearGaussian
from ibukit.protocols.gaussian_points import PlanarGaussian as PlanarGaussian
from ibukit.protocols.piecewise import Duchi as Duchi
from ibukit.protocols.piecewise import Hybrid as Hybrid
from ibukit.protocols.piecewise import Piecewise as Piecewise
from ibukit.protocols.square_wave import DiscreteSquareWave as DiscreteSquareWave
from ibukit.protocols.square_wave import SquareWave as SquareWave
from ibukit.protocols.staircase import Staircase as Staircase
from ibukit.protocols.staircase import least_variance_gamma as least_variance_gamma
