"""What can be known before or without an estimate: what the reports can tell apart, and what they leave open."""

from ibukit.theory.concavity import Concavity as Concavity
from ibukit.theory.concavity import strictly_concave as strictly_concave
from ibukit.theory.identifiability import Identifiability as Identifiability
from ibukit.theory.identifiability import identifiable as identifiable
from ibukit.theory.mle_set import MleSet as MleSet
from ibukit.theory.mle_set import mle_set as mle_set
