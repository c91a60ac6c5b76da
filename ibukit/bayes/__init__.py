"""What the reports say of the distribution, as a distribution over distributions."""

from ibukit.bayes.fit import posterior as posterior
from ibukit.bayes.posterior import Posterior as Posterior
