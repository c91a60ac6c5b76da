"""Design: from a prior and a loss to a mechanism."""

from ibukit.design.blahut_arimoto import blahut_arimoto as blahut_arimoto
from ibukit.design.shokri import shokri as shokri
