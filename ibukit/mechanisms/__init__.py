"""Mechanisms: from secrets to reports."""

from ibukit.mechanisms.average import average_mechanism as average_mechanism
from ibukit.mechanisms.base import FiniteMechanism as FiniteMechanism
from ibukit.mechanisms.base import Mechanism as Mechanism
from ibukit.mechanisms.exponential import Exponential as Exponential
from ibukit.mechanisms.free_will import FreeWill as FreeWill
from ibukit.mechanisms.geometric import LinearGeometric as LinearGeometric
from ibukit.mechanisms.geometric import TruncatedGeometric as TruncatedGeometric
from ibukit.mechanisms.laplace import LinearLaplace as LinearLaplace
from ibukit.mechanisms.matrix import MatrixMechanism as MatrixMechanism
from ibukit.mechanisms.matrix import compose as compose
from ibukit.mechanisms.planar import PlanarGeometric as PlanarGeometric
from ibukit.mechanisms.planar import PlanarLaplace as PlanarLaplace
from ibukit.mechanisms.planar import TruncatedPlanarGeometric as TruncatedPlanarGeometric
from ibukit.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
from ibukit.mechanisms.subset_selection import SubsetSelection as SubsetSelection
from ibukit.mechanisms.tight_constraints import TightConstraints as TightConstraints
from ibukit.mechanisms.unary import OptimizedUnaryEncoding as OptimizedUnaryEncoding
from ibukit.mechanisms.unary import Rappor as Rappor
from ibukit.mechanisms.unary import UnaryEncoding as UnaryEncoding
