"""Privacy of a mechanism: measures of its matrix, and audits of the reports it draws."""

from ibukit.privacy.auditing import Audit as Audit
from ibukit.privacy.auditing import audit as audit
from ibukit.privacy.measures import HasMatrix as HasMatrix
from ibukit.privacy.measures import adversary_loss as adversary_loss
from ibukit.privacy.measures import best_guess as best_guess
from ibukit.privacy.measures import block_mass as block_mass
from ibukit.privacy.measures import epsilon_ldp as epsilon_ldp
from ibukit.privacy.measures import epsilon_metric as epsilon_metric
from ibukit.privacy.measures import exposure as exposure
from ibukit.privacy.measures import mean_displacement as mean_displacement
from ibukit.privacy.measures import mutual_information as mutual_information
from ibukit.privacy.measures import quality_loss as quality_loss
