"""Reconstruct distributions from locally private reports, and know how close to the maximum likelihood you are.

A mechanism turns reports into a tally, an estimator turns a tally into an estimate:

>>> import numpy as np, ibukit as ik
>>> mechanism = ik.RandomizedResponse(4, epsilon=2.0)
>>> reports = mechanism.randomize(np.repeat([0, 1, 2], 1000), np.random.default_rng(1))
>>> estimate = ik.ibu(mechanism.tally(reports))
>>> estimate.distribution.round(1), estimate.gap < 1e-6
(array([0.4, 0.3, 0.3, 0. ]), True)
"""

from importlib.metadata import version

from ibukit import datasets as datasets
from ibukit import theory as theory
from ibukit.alphabet import Alphabet as Alphabet
from ibukit.alphabet import Line as Line
from ibukit.design import OptimalDesign as OptimalDesign
from ibukit.design import Privic as Privic
from ibukit.design import RateDistortion as RateDistortion
from ibukit.design import attack as attack
from ibukit.design import blahut_arimoto as blahut_arimoto
from ibukit.design import optimal_private as optimal_private
from ibukit.design import rate_distortion as rate_distortion
from ibukit.design import shokri as shokri
from ibukit.distributions import check_distribution as check_distribution
from ibukit.distributions import normalize as normalize
from ibukit.distributions import project_to_simplex as project_to_simplex
from ibukit.distributions import quantize as quantize
from ibukit.distributions import uniform as uniform
from ibukit.errors import AlphabetMismatch as AlphabetMismatch
from ibukit.errors import ConvergenceError as ConvergenceError
from ibukit.errors import DataChanged as DataChanged
from ibukit.errors import ForeignFile as ForeignFile
from ibukit.errors import IbukitError as IbukitError
from ibukit.errors import ImpossibleReport as ImpossibleReport
from ibukit.errors import Infeasible as Infeasible
from ibukit.errors import InvalidDistribution as InvalidDistribution
from ibukit.errors import MechanismMismatch as MechanismMismatch
from ibukit.errors import NotInvertible as NotInvertible
from ibukit.errors import TooLarge as TooLarge
from ibukit.estimate import Estimate as Estimate
from ibukit.estimate import Status as Status
from ibukit.estimators import Change as Change
from ibukit.estimators import Discrepancy as Discrepancy
from ibukit.estimators import Gap as Gap
from ibukit.estimators import Posterior as Posterior
from ibukit.estimators import Steps as Steps
from ibukit.estimators import combine_mechanisms as combine_mechanisms
from ibukit.estimators import combine_results as combine_results
from ibukit.estimators import gap as gap
from ibukit.estimators import gibu as gibu
from ibukit.estimators import ibu as ibu
from ibukit.estimators import inv as inv
from ibukit.estimators import mle as mle
from ibukit.estimators import posterior as posterior
from ibukit.estimators import posterior_mean as posterior_mean
from ibukit.estimators import smooth as smooth
from ibukit.evaluation import emd as emd
from ibukit.evaluation import replicate as replicate
from ibukit.evaluation import squared_l2 as squared_l2
from ibukit.evaluation import total_variation as total_variation
from ibukit.grid import Grid as Grid
from ibukit.mechanisms import Exponential as Exponential
from ibukit.mechanisms import FreeWill as FreeWill
from ibukit.mechanisms import LinearGeometric as LinearGeometric
from ibukit.mechanisms import LinearLaplace as LinearLaplace
from ibukit.mechanisms import MatrixMechanism as MatrixMechanism
from ibukit.mechanisms import OptimizedUnaryEncoding as OptimizedUnaryEncoding
from ibukit.mechanisms import PlanarGeometric as PlanarGeometric
from ibukit.mechanisms import PlanarLaplace as PlanarLaplace
from ibukit.mechanisms import RandomizedResponse as RandomizedResponse
from ibukit.mechanisms import Rappor as Rappor
from ibukit.mechanisms import SubsetSelection as SubsetSelection
from ibukit.mechanisms import TightConstraints as TightConstraints
from ibukit.mechanisms import TruncatedGeometric as TruncatedGeometric
from ibukit.mechanisms import TruncatedPlanarGeometric as TruncatedPlanarGeometric
from ibukit.mechanisms import average_mechanism as average_mechanism
from ibukit.mechanisms import compose as compose
from ibukit.mechanisms import privacy as privacy
from ibukit.tally import Tally as Tally

__version__ = version("ibukit")
