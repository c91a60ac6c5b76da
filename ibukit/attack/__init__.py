"""Data poisoning: attacks on a tally, their detection, and estimates that withstand them."""

from ibukit.attack.breakdown import breakdown_fraction as breakdown_fraction
from ibukit.attack.detection import Detection as Detection
from ibukit.attack.detection import detect_poisoning as detect_poisoning
from ibukit.attack.mixing import coarse_map as coarse_map
from ibukit.attack.mixing import mix_with_public as mix_with_public
from ibukit.attack.poisoning import poison_inputs as poison_inputs
from ibukit.attack.poisoning import poison_outputs as poison_outputs
from ibukit.attack.poisoning import poisoned_distribution as poisoned_distribution
from ibukit.attack.robust import RobustEstimate as RobustEstimate
from ibukit.attack.robust import robust_mle as robust_mle
