"""What can be known before or without an estimate: what the reports can tell apart, and what they leave open."""

from ibukit.theory.asymptotics import asymptotic_mse as asymptotic_mse
from ibukit.theory.bounds import compound_squared_error as compound_squared_error
from ibukit.theory.bounds import inv_bound_geometric as inv_bound_geometric
from ibukit.theory.bounds import inv_bound_krr as inv_bound_krr
from ibukit.theory.bounds import inv_squared_error as inv_squared_error
from ibukit.theory.bounds import inv_squared_error_range as inv_squared_error_range
from ibukit.theory.concavity import Concavity as Concavity
from ibukit.theory.concavity import strictly_concave as strictly_concave
from ibukit.theory.consistency import Answer as Answer
from ibukit.theory.consistency import Condition as Condition
from ibukit.theory.consistency import Consistency as Consistency
from ibukit.theory.consistency import consistency as consistency
from ibukit.theory.fixed_points import FixedPoint as FixedPoint
from ibukit.theory.fixed_points import fixed_points as fixed_points
from ibukit.theory.identifiability import Identifiability as Identifiability
from ibukit.theory.identifiability import identifiable as identifiable
from ibukit.theory.mle_set import MleSet as MleSet
from ibukit.theory.mle_set import mle_set as mle_set
from ibukit.theory.rappor import rappor_concavity_bound as rappor_concavity_bound
