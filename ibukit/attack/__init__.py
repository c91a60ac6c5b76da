"""Adversaries who want a lonely place to stand out: what they can do to a design, and what can be done about it."""

from ibukit.attack.breakdown import breakdown_fraction as breakdown_fraction
from ibukit.attack.detection import Detection as Detection
from ibukit.attack.detection import detect as detect
from ibukit.attack.mixing import coarse_map as coarse_map
from ibukit.attack.mixing import mix as mix
from ibukit.attack.poisoning import poison_inputs as poison_inputs
from ibukit.attack.poisoning import poison_outputs as poison_outputs
from ibukit.attack.poisoning import poisoned as poisoned
from ibukit.attack.robust import RobustEstimate as RobustEstimate
from ibukit.attack.robust import robust_mle as robust_mle
