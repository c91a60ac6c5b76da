"""Colour scale of maps and matrices: white is 0, and larger numbers are darker."""

from __future__ import annotations

import matplotlib
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize

from ibukit._ground.arguments import Floats

# Positive numbers are blue. Negative ones, which raw inversion has, are brown.
BLUES = ("#FFFFFF", "#CFE8EA", "#97CDD3", "#57A8C0", "#2F7CAE", "#254C8E", "#1B1A52")
BROWNS = ("#FFFFFF", "#F3D9C4", "#D99A6C", "#A8552B", "#5E2A10")
NAME = "white to blue"

_LIGHT = LinearSegmentedColormap.from_list(NAME, BLUES)
_BROWN = LinearSegmentedColormap.from_list("white to brown", BROWNS)
# A registered scale can be named in the style.
matplotlib.colormaps.register(_LIGHT, force=True)


def white_at_zero(norm: Normalize, values: Floats) -> Colormap:
    """Return the scale for a norm over these values, white at 0."""
    norm.autoscale_None(values)
    if norm.vmin is None or norm.vmin >= 0 or norm.vmin == norm.vmax:
        return _LIGHT
    # `zero` is the position of 0 on the scale. Both halves reach as far into their colours as they
    # are long, relative to the longer one, so that equal distances from 0 are equally dark.
    zero = min(float(norm(0.0)), 1.0)
    far = max(zero, 1 - zero)
    parts = (
        [(zero * (1 - t), _BROWN(t * zero / far)) for t in (1.0, 0.75, 0.5, 0.25)]
        if zero > 0
        else []
    )
    parts += [
        (zero + (1 - zero) * t, _LIGHT(t * (1 - zero) / far))
        for t in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]
    return LinearSegmentedColormap.from_list("brown to blue", parts if zero < 1 else parts[:5])
