"""Design: from a prior and a loss to a mechanism."""

from ibukit.design.shokri import shokri as shokri
