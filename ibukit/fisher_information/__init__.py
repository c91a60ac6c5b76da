"""How much a tally says about each secret's probability: the observed Fisher information and what follows from it."""

from ibukit.fisher_information.dense import contrasts as contrasts
from ibukit.fisher_information.dense import observed_information as observed_information
from ibukit.fisher_information.dense import pieces_of as pieces_of
from ibukit.fisher_information.dense import refuse_if_too_large as refuse_if_too_large
from ibukit.fisher_information.inverse import asymptotic_covariance as asymptotic_covariance
from ibukit.fisher_information.inverse import asymptotic_variances as asymptotic_variances
from ibukit.fisher_information.inverse import (
    asymptotic_variances_of_sums as asymptotic_variances_of_sums,
)
from ibukit.fisher_information.lossy import carried_over as carried_over
from ibukit.fisher_information.lossy import covariance_of_all as covariance_of_all
from ibukit.fisher_information.lossy import of_sums as of_sums
