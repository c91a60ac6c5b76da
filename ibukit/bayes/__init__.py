"""What the reports say of the distribution, as a distribution over distributions."""

from ibukit.bayes.fit import posterior as posterior
from ibukit.bayes.fit import posterior_mean as posterior_mean
from ibukit.bayes.posterior import Posterior as Posterior
