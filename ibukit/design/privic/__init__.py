"""PRIVIC: collect reports in cycles, each through the mechanism that the last estimate calls for."""

from ibukit.design.privic.privic import Privic as Privic
