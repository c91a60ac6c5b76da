"""`Estimate`: a distribution with a proven bound on how far its likelihood is from the maximum."""

from ibukit.domain.status import Status as Status
from ibukit.estimate.estimate import Estimate as Estimate
