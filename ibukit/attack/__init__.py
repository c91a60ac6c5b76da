"""Adversaries who want a lonely place to stand out: what they can do to a design, and what can be done about it."""

from typing import TYPE_CHECKING

from ibukit import _deprecated
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

if not TYPE_CHECKING:
    _OLD = {
        "detect": "detect_poisoning",
        "mix": "mix_with_public",
        "poisoned": "poisoned_distribution",
    }
    __getattr__ = _deprecated.moved(__name__, _OLD, globals())
del TYPE_CHECKING
