"""Observed Fisher information of a tally, and its inverse on the directions that keep the sum."""

from ibukit.fisher_information.dense import channel_blocks as channel_blocks
from ibukit.fisher_information.dense import contrasts as contrasts
from ibukit.fisher_information.dense import observed_information as observed_information
from ibukit.fisher_information.dense import refuse_if_too_large as refuse_if_too_large
from ibukit.fisher_information.inverse import asymptotic_covariance as asymptotic_covariance
from ibukit.fisher_information.inverse import asymptotic_variances as asymptotic_variances
from ibukit.fisher_information.inverse import (
    asymptotic_variances_of_sums as asymptotic_variances_of_sums,
)
from ibukit.fisher_information.lossy import covariance_of_all as covariance_of_all
from ibukit.fisher_information.lossy import delta_method_covariance as delta_method_covariance
from ibukit.fisher_information.lossy import delta_method_variances as delta_method_variances
from ibukit.fisher_information.sandwich import (
    naive_and_design_variances as naive_and_design_variances,
)
from ibukit.fisher_information.sandwich import variances_of_differences as variances_of_differences
