"""How much a tally says about each secret's probability: the observed Fisher information and what follows from it."""

from ibukit.information.asymptotic import asymptotic_covariance as asymptotic_covariance
from ibukit.information.asymptotic import asymptotic_variances as asymptotic_variances
from ibukit.information.asymptotic import asymptotic_variances_of_sums as asymptotic_variances_of_sums
from ibukit.information.dense import contrasts as contrasts
from ibukit.information.dense import observed_information as observed_information
from ibukit.information.dense import pieces_of as pieces_of
from ibukit.information.dense import refuse_if_too_large as refuse_if_too_large
from ibukit.information.lossy import carried_over as carried_over
from ibukit.information.lossy import covariance_of_all as covariance_of_all
from ibukit.information.lossy import of_sums as of_sums
