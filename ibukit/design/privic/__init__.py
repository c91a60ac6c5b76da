"""PRIVIC: collect reports in cycles, each through the mechanism made for the last estimate."""

from ibukit.design.privic.privic import Privic as Privic
