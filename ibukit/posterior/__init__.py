"""What the reports say of the distribution, as a distribution over distributions."""

from ibukit.posterior.bayes import posterior as posterior
from ibukit.posterior.bayes import posterior_mean as posterior_mean
from ibukit.posterior.found import Posterior as Posterior
