"""What the reports can tell, and what they cannot, whoever estimates."""

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
