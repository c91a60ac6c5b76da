"""Design: from a prior and a loss to a mechanism."""

from ibukit.design.blahut_arimoto import blahut_arimoto as blahut_arimoto
from ibukit.design.gaps import information_gap as information_gap
from ibukit.design.gaps import protection_gap as protection_gap
from ibukit.design.optimal.optimal_private import OptimalDesign as OptimalDesign
from ibukit.design.optimal.optimal_private import optimal_private as optimal_private
from ibukit.design.privic import Privic as Privic
from ibukit.design.rate_distortion import RateDistortion as RateDistortion
from ibukit.design.rate_distortion import rate_distortion as rate_distortion
from ibukit.design.shokri import shokri as shokri
