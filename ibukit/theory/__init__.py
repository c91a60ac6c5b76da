"""Theoretical limits: identifiability, asymptotic errors, minimax and Bayes bounds.

It offers everything that can be known before, or without, an estimate.
"""

from ibukit.estimators.mle_set import MleSet as MleSet
from ibukit.estimators.mle_set import mle_set as mle_set
from ibukit.identification.concavity import Concavity as Concavity
from ibukit.identification.concavity import strictly_concave as strictly_concave
from ibukit.identification.consistency import Answer as Answer
from ibukit.identification.consistency import Condition as Condition
from ibukit.identification.consistency import Consistency as Consistency
from ibukit.identification.consistency import consistency as consistency
from ibukit.identification.fixed_points import FixedPoint as FixedPoint
from ibukit.identification.fixed_points import fixed_points as fixed_points
from ibukit.identification.identifiability import Identifiability as Identifiability
from ibukit.identification.identifiability import identifiable as identifiable
from ibukit.identification.likely_subsets import dominated as dominated
from ibukit.identification.likely_subsets import likely_region as likely_region
from ibukit.identification.likely_subsets import likely_subset as likely_subset
from ibukit.theory.asymptotic_emd import asymptotic_emd as asymptotic_emd
from ibukit.theory.asymptotics import asymptotic_mse as asymptotic_mse
from ibukit.theory.bayes_limits import BayesLimits as BayesLimits
from ibukit.theory.bayes_limits import bayes_limits as bayes_limits
from ibukit.theory.bounds import compound_squared_error as compound_squared_error
from ibukit.theory.bounds import inv_bound_geometric as inv_bound_geometric
from ibukit.theory.bounds import inv_bound_krr as inv_bound_krr
from ibukit.theory.bounds import inv_squared_error as inv_squared_error
from ibukit.theory.bounds import inv_squared_error_range as inv_squared_error_range
from ibukit.theory.estimation_bounds import BinaryResponseMse as BinaryResponseMse
from ibukit.theory.estimation_bounds import LdpBounds as LdpBounds
from ibukit.theory.estimation_bounds import binary_response_mse as binary_response_mse
from ibukit.theory.estimation_bounds import ldp_bounds as ldp_bounds
from ibukit.theory.estimation_bounds import least_asymptotic_mse as least_asymptotic_mse
from ibukit.theory.estimation_bounds import posterior_entropy_bound as posterior_entropy_bound
from ibukit.theory.mle_error import mle_error_bound as mle_error_bound
from ibukit.theory.rappor import rappor_concavity_bound as rappor_concavity_bound
from ibukit.theory.van_trees import van_trees_bound as van_trees_bound
