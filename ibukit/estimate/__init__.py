"""What every estimator returns: a distribution with the proof of how far its likelihood is from the optimum."""

from ibukit.estimate.result import ConvergenceError as ConvergenceError
from ibukit.estimate.result import Estimate as Estimate
from ibukit.estimate.result import Status as Status
from ibukit.estimate.result import determined as determined
