"""Solvers that maximise a likelihood, given by a channel and counts alone, without a tally."""

from ibukit._ground.limits import limits as limits
from ibukit.solvers.maximum import Maximum as Maximum
from ibukit.solvers.maximum import best_found as best_found
from ibukit.solvers.maximum import maximise as maximise
from ibukit.solvers.maximum import maximise_near as maximise_near
from ibukit.solvers.problem import Problem as Problem
from ibukit.solvers.table import METHODS as METHODS
from ibukit.solvers.table import SOLVERS as SOLVERS
from ibukit.solvers.table import Solver as Solver
from ibukit.solvers.table import candidates as candidates
