"""The public names for type checkers; `lazy_loader` reads at run time where each of them lives."""

from . import attack as attack
from . import bayes as bayes
from . import channels as channels
from . import datasets as datasets
from . import design as design
from . import errors as errors
from . import estimators as estimators
from . import evaluation as evaluation
from . import mechanisms as mechanisms
from . import planning as planning
from . import plotting as plotting
from . import privacy as privacy
from . import scale as scale
from . import solvers as solvers
from . import surveys as surveys
from . import testing as testing
from . import theory as theory
from .bayes import Posterior as Posterior
from .bayes import posterior as posterior
from .channels import Channel as Channel
from .design import OptimalDesign as OptimalDesign
from .design import Privic as Privic
from .design import RateDistortion as RateDistortion
from .design import blahut_arimoto as blahut_arimoto
from .design import optimal_private as optimal_private
from .design import rate_distortion as rate_distortion
from .design import shokri as shokri
from .domain.alphabet import Alphabet as Alphabet
from .domain.alphabet import Line as Line
from .domain.distributions import check_distribution as check_distribution
from .domain.distributions import normalize as normalize
from .domain.distributions import project_to_simplex as project_to_simplex
from .domain.distributions import quantize as quantize
from .domain.distributions import uniform as uniform
from .domain.grid import Grid as Grid
from .errors import ConvergenceError as ConvergenceError
from .errors import IbukitError as IbukitError
from .estimate import Estimate as Estimate
from .estimate import Status as Status
from .estimators import Change as Change
from .estimators import Discrepancy as Discrepancy
from .estimators import Gap as Gap
from .estimators import Steps as Steps
from .estimators import StoppingRule as StoppingRule
from .estimators import Unfolded as Unfolded
from .estimators import choose_penalty as choose_penalty
from .estimators import combine_mechanisms as combine_mechanisms
from .estimators import combine_results as combine_results
from .estimators import compare as compare
from .estimators import ems as ems
from .estimators import gap as gap
from .estimators import gibu as gibu
from .estimators import ibu as ibu
from .estimators import inv as inv
from .estimators import mle as mle
from .estimators import posterior_mean as posterior_mean
from .estimators import regress as regress
from .estimators import smooth as smooth
from .estimators import unfold as unfold
from .evaluation import emd as emd
from .evaluation import replicate as replicate
from .evaluation import squared_l2 as squared_l2
from .evaluation import total_variation as total_variation
from .mechanisms import BloomRappor as BloomRappor
from .mechanisms import CountMeanSketch as CountMeanSketch
from .mechanisms import DiscreteGaussian as DiscreteGaussian
from .mechanisms import DiscreteSquareWave as DiscreteSquareWave
from .mechanisms import Duchi as Duchi
from .mechanisms import Exponential as Exponential
from .mechanisms import FiniteMechanism as FiniteMechanism
from .mechanisms import FreeWill as FreeWill
from .mechanisms import HadamardCountMeanSketch as HadamardCountMeanSketch
from .mechanisms import HadamardMechanism as HadamardMechanism
from .mechanisms import HadamardResponse as HadamardResponse
from .mechanisms import HistogramEncoding as HistogramEncoding
from .mechanisms import HybridMechanism as HybridMechanism
from .mechanisms import LinearGaussian as LinearGaussian
from .mechanisms import LinearGeometric as LinearGeometric
from .mechanisms import LinearLaplace as LinearLaplace
from .mechanisms import LinkedRounds as LinkedRounds
from .mechanisms import LocalHashing as LocalHashing
from .mechanisms import LongitudinalHashing as LongitudinalHashing
from .mechanisms import LongitudinalResponse as LongitudinalResponse
from .mechanisms import LongitudinalUnaryEncoding as LongitudinalUnaryEncoding
from .mechanisms import MatrixMechanism as MatrixMechanism
from .mechanisms import Mechanism as Mechanism
from .mechanisms import OptimizedUnaryEncoding as OptimizedUnaryEncoding
from .mechanisms import Piecewise as Piecewise
from .mechanisms import PlanarGaussian as PlanarGaussian
from .mechanisms import PlanarGeometric as PlanarGeometric
from .mechanisms import PlanarLaplace as PlanarLaplace
from .mechanisms import RandomizedResponse as RandomizedResponse
from .mechanisms import Rappor as Rappor
from .mechanisms import SquareWave as SquareWave
from .mechanisms import Staircase as Staircase
from .mechanisms import SubsetSelection as SubsetSelection
from .mechanisms import ThresholdedHistogram as ThresholdedHistogram
from .mechanisms import TightConstraints as TightConstraints
from .mechanisms import TruncatedGeometric as TruncatedGeometric
from .mechanisms import TruncatedPlanarGeometric as TruncatedPlanarGeometric
from .mechanisms import UnaryEncoding as UnaryEncoding
from .mechanisms import average_mechanism as average_mechanism
from .mechanisms import compose as compose
from .mechanisms import product as product
from .planning import plan as plan
from .tally import Tally as Tally
from .tally import TallyGroups as TallyGroups

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
    "TallyGroups",
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
    "compare",
    "compose",
    "datasets",
    "design",
    "emd",
    "ems",
    "errors",
    "gap",
    "gibu",
    "ibu",
    "inv",
    "mle",
    "normalize",
    "optimal_private",
    "plan",
    "posterior",
    "posterior_mean",
    "privacy",
    "product",
    "project_to_simplex",
    "quantize",
    "rate_distortion",
    "regress",
    "replicate",
    "scale",
    "shokri",
    "smooth",
    "solvers",
    "squared_l2",
    "surveys",
    "theory",
    "total_variation",
    "unfold",
    "uniform",
]
