"""Reconstruct distributions from locally private reports, and know how close to the maximum likelihood you are.

A mechanism turns reports into a tally, an estimator turns a tally into an estimate:

>>> import numpy as np, ibukit as ik
>>> mechanism = ik.RandomizedResponse(4, epsilon=2.0)
>>> reports = mechanism.randomize(np.repeat([0, 1, 2], 1000), np.random.default_rng(1))
>>> estimate = ik.ibu(mechanism.tally(reports))
>>> estimate.distribution.round(1), estimate.gap < 1e-6
(array([0.4, 0.3, 0.3, 0. ]), True)
"""

import sys as _sys
from typing import TYPE_CHECKING

from ibukit._front import Front as _Front

if TYPE_CHECKING:
    from ibukit import attack as attack
    from ibukit import channels as channels
    from ibukit import datasets as datasets
    from ibukit import design as design
    from ibukit import errors as errors
    from ibukit import identification as identification
    from ibukit import privacy as privacy
    from ibukit import scale as scale
    from ibukit import solvers as solvers
    from ibukit import theory as theory
    from ibukit.alphabet import Alphabet as Alphabet
    from ibukit.alphabet import Line as Line
    from ibukit.channels import Channel as Channel
    from ibukit.design import OptimalDesign as OptimalDesign
    from ibukit.design import Privic as Privic
    from ibukit.design import RateDistortion as RateDistortion
    from ibukit.design.blahut_arimoto import blahut_arimoto as blahut_arimoto
    from ibukit.design.optimal_private import optimal_private as optimal_private
    from ibukit.design.rate_distortion import rate_distortion as rate_distortion
    from ibukit.design.shokri import shokri as shokri
    from ibukit.distributions import check_distribution as check_distribution
    from ibukit.distributions import normalize as normalize
    from ibukit.distributions import project_to_simplex as project_to_simplex
    from ibukit.distributions import quantize as quantize
    from ibukit.distributions import uniform as uniform
    from ibukit.errors import ConvergenceError as ConvergenceError
    from ibukit.errors import IbukitError as IbukitError
    from ibukit.estimate import Estimate as Estimate
    from ibukit.estimate import Status as Status
    from ibukit.estimators import Change as Change
    from ibukit.estimators import Discrepancy as Discrepancy
    from ibukit.estimators import Gap as Gap
    from ibukit.estimators import Steps as Steps
    from ibukit.estimators import StoppingRule as StoppingRule
    from ibukit.estimators import Unfolded as Unfolded
    from ibukit.estimators import choose_penalty as choose_penalty
    from ibukit.estimators import combine_mechanisms as combine_mechanisms
    from ibukit.estimators import combine_results as combine_results
    from ibukit.estimators import ems as ems
    from ibukit.estimators import gap as gap
    from ibukit.estimators import gibu as gibu
    from ibukit.estimators import ibu as ibu
    from ibukit.estimators import inv as inv
    from ibukit.estimators import mle as mle
    from ibukit.estimators import smooth as smooth
    from ibukit.estimators import unfold as unfold
    from ibukit.evaluation import emd as emd
    from ibukit.evaluation import squared_l2 as squared_l2
    from ibukit.evaluation import total_variation as total_variation
    from ibukit.evaluation.replicate import replicate as replicate
    from ibukit.grid import Grid as Grid
    from ibukit.mechanisms import Exponential as Exponential
    from ibukit.mechanisms import FiniteMechanism as FiniteMechanism
    from ibukit.mechanisms import FreeWill as FreeWill
    from ibukit.mechanisms import LinearGeometric as LinearGeometric
    from ibukit.mechanisms import LinearLaplace as LinearLaplace
    from ibukit.mechanisms import MatrixMechanism as MatrixMechanism
    from ibukit.mechanisms import Mechanism as Mechanism
    from ibukit.mechanisms import OptimizedUnaryEncoding as OptimizedUnaryEncoding
    from ibukit.mechanisms import PlanarGeometric as PlanarGeometric
    from ibukit.mechanisms import PlanarLaplace as PlanarLaplace
    from ibukit.mechanisms import RandomizedResponse as RandomizedResponse
    from ibukit.mechanisms import Rappor as Rappor
    from ibukit.mechanisms import SubsetSelection as SubsetSelection
    from ibukit.mechanisms import TightConstraints as TightConstraints
    from ibukit.mechanisms import TruncatedGeometric as TruncatedGeometric
    from ibukit.mechanisms import TruncatedPlanarGeometric as TruncatedPlanarGeometric
    from ibukit.mechanisms import UnaryEncoding as UnaryEncoding
    from ibukit.mechanisms import average_mechanism as average_mechanism
    from ibukit.mechanisms import compose as compose
    from ibukit.planning import plan as plan
    from ibukit.posterior import Posterior as Posterior
    from ibukit.posterior import posterior as posterior
    from ibukit.posterior import posterior_mean as posterior_mean
    from ibukit.protocols import BloomRappor as BloomRappor
    from ibukit.protocols import CountMeanSketch as CountMeanSketch
    from ibukit.protocols import DiscreteGaussian as DiscreteGaussian
    from ibukit.protocols import DiscreteSquareWave as DiscreteSquareWave
    from ibukit.protocols import Duchi as Duchi
    from ibukit.protocols import HadamardCountMeanSketch as HadamardCountMeanSketch
    from ibukit.protocols import HadamardMechanism as HadamardMechanism
    from ibukit.protocols import HadamardResponse as HadamardResponse
    from ibukit.protocols import HistogramEncoding as HistogramEncoding
    from ibukit.protocols import HybridMechanism as HybridMechanism
    from ibukit.protocols import LinearGaussian as LinearGaussian
    from ibukit.protocols import LinkedRounds as LinkedRounds
    from ibukit.protocols import LocalHashing as LocalHashing
    from ibukit.protocols import LongitudinalHashing as LongitudinalHashing
    from ibukit.protocols import LongitudinalResponse as LongitudinalResponse
    from ibukit.protocols import LongitudinalUnaryEncoding as LongitudinalUnaryEncoding
    from ibukit.protocols import Piecewise as Piecewise
    from ibukit.protocols import PlanarGaussian as PlanarGaussian
    from ibukit.protocols import SquareWave as SquareWave
    from ibukit.protocols import Staircase as Staircase
    from ibukit.protocols import ThresholdedHistogram as ThresholdedHistogram
    from ibukit.tally import Tally as Tally

    __version__: str

__all__ = [
    "Alphabet",
    "BloomRappor",
    "Change",
    "Channel",
    "ConvergenceError",
    "CountMeanSketch",
    "Discrepancy",
    "DiscreteGaussian",
    "DiscreteSquareWave",
    "Duchi",
    "Estimate",
    "Exponential",
    "FiniteMechanism",
    "FreeWill",
    "Gap",
    "Grid",
    "HadamardCountMeanSketch",
    "HadamardMechanism",
    "HadamardResponse",
    "HistogramEncoding",
    "HybridMechanism",
    "IbukitError",
    "Line",
    "LinearGaussian",
    "LinearGeometric",
    "LinearLaplace",
    "LinkedRounds",
    "LocalHashing",
    "LongitudinalHashing",
    "LongitudinalResponse",
    "LongitudinalUnaryEncoding",
    "MatrixMechanism",
    "Mechanism",
    "OptimalDesign",
    "OptimizedUnaryEncoding",
    "Piecewise",
    "PlanarGaussian",
    "PlanarGeometric",
    "PlanarLaplace",
    "Posterior",
    "Privic",
    "RandomizedResponse",
    "Rappor",
    "RateDistortion",
    "SquareWave",
    "Staircase",
    "Status",
    "Steps",
    "StoppingRule",
    "SubsetSelection",
    "Tally",
    "ThresholdedHistogram",
    "TightConstraints",
    "TruncatedGeometric",
    "TruncatedPlanarGeometric",
    "UnaryEncoding",
    "Unfolded",
    "attack",
    "average_mechanism",
    "blahut_arimoto",
    "channels",
    "check_distribution",
    "choose_penalty",
    "combine_mechanisms",
    "combine_results",
    "compose",
    "datasets",
    "design",
    "emd",
    "ems",
    "errors",
    "gap",
    "gibu",
    "ibu",
    "identification",
    "inv",
    "mle",
    "normalize",
    "optimal_private",
    "plan",
    "posterior",
    "posterior_mean",
    "privacy",
    "project_to_simplex",
    "quantize",
    "rate_distortion",
    "replicate",
    "scale",
    "shokri",
    "smooth",
    "solvers",
    "squared_l2",
    "theory",
    "total_variation",
    "unfold",
    "uniform",
]

# where each name is defined: a module of the package is loaded when the first of its names is asked for
_HOMES = {
    "Alphabet": "alphabet",
    "Line": "alphabet",
    "Channel": "channels",
    "OptimalDesign": "design",
    "Privic": "design",
    "RateDistortion": "design",
    "blahut_arimoto": "design.blahut_arimoto",
    "optimal_private": "design.optimal_private",
    "rate_distortion": "design.rate_distortion",
    "shokri": "design.shokri",
    "check_distribution": "distributions",
    "normalize": "distributions",
    "project_to_simplex": "distributions",
    "quantize": "distributions",
    "uniform": "distributions",
    "ConvergenceError": "errors",
    "IbukitError": "errors",
    "Estimate": "estimate",
    "Status": "estimate",
    "Change": "estimators",
    "Discrepancy": "estimators",
    "Gap": "estimators",
    "Steps": "estimators",
    "StoppingRule": "estimators",
    "Unfolded": "estimators",
    "choose_penalty": "estimators",
    "combine_mechanisms": "estimators",
    "combine_results": "estimators",
    "ems": "estimators",
    "gap": "estimators",
    "gibu": "estimators",
    "ibu": "estimators",
    "inv": "estimators",
    "mle": "estimators",
    "smooth": "estimators",
    "unfold": "estimators",
    "emd": "evaluation",
    "replicate": "evaluation.replicate",
    "squared_l2": "evaluation",
    "total_variation": "evaluation",
    "Grid": "grid",
    "Exponential": "mechanisms",
    "FiniteMechanism": "mechanisms",
    "FreeWill": "mechanisms",
    "LinearGeometric": "mechanisms",
    "LinearLaplace": "mechanisms",
    "MatrixMechanism": "mechanisms",
    "Mechanism": "mechanisms",
    "OptimizedUnaryEncoding": "mechanisms",
    "PlanarGeometric": "mechanisms",
    "PlanarLaplace": "mechanisms",
    "RandomizedResponse": "mechanisms",
    "Rappor": "mechanisms",
    "SubsetSelection": "mechanisms",
    "TightConstraints": "mechanisms",
    "TruncatedGeometric": "mechanisms",
    "TruncatedPlanarGeometric": "mechanisms",
    "UnaryEncoding": "mechanisms",
    "average_mechanism": "mechanisms",
    "compose": "mechanisms",
    "plan": "planning",
    "Posterior": "posterior",
    "posterior": "posterior",
    "posterior_mean": "posterior",
    "HadamardResponse": "protocols",
    "CountMeanSketch": "protocols",
    "HadamardCountMeanSketch": "protocols",
    "HadamardMechanism": "protocols",
    "BloomRappor": "protocols",
    "HistogramEncoding": "protocols",
    "LinkedRounds": "protocols",
    "LocalHashing": "protocols",
    "LongitudinalHashing": "protocols",
    "LongitudinalResponse": "protocols",
    "LongitudinalUnaryEncoding": "protocols",
    "ThresholdedHistogram": "protocols",
    "DiscreteGaussian": "protocols",
    "DiscreteSquareWave": "protocols",
    "Duchi": "protocols",
    "HybridMechanism": "protocols",
    "LinearGaussian": "protocols",
    "Piecewise": "protocols",
    "PlanarGaussian": "protocols",
    "SquareWave": "protocols",
    "Staircase": "protocols",
    "Tally": "tally",
}

# what stood here once, and the module that it stands in now: it still works in this release, with a warning
_MOVED = {
    "AlphabetMismatch": "errors",
    "DataChanged": "errors",
    "ForeignFile": "errors",
    "ImpossibleReport": "errors",
    "Infeasible": "errors",
    "InvalidDistribution": "errors",
    "MechanismMismatch": "errors",
    "NotInvertible": "errors",
    "TooLarge": "errors",
}

_sys.modules[__name__].__class__ = _Front
del TYPE_CHECKING  # dir() and completion show public names only
