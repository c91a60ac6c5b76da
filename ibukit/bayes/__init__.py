"""Posterior distributions of the secrets' distribution under a Dirichlet prior."""

from ibukit.bayes.fit import posterior as posterior
from ibukit.bayes.posterior import Posterior as Posterior
