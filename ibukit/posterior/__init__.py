"""What the reports say of the distribution, as a distribution over distributions."""

from ibukit.posterior.bayes import Posterior as Posterior
from ibukit.posterior.bayes import posterior as posterior
from ibukit.posterior.bayes import posterior_mean as posterior_mean
