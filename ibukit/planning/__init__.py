"""Sample sizes: the least variance of an answer, at a distribution or in the worst case."""

from ibukit.planning.plans import plan as plan
from ibukit.planning.power import PowerPlan as PowerPlan
from ibukit.planning.result import Plan as Plan
from ibukit.planning.result import Plans as Plans
