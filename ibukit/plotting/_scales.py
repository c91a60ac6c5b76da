"""The scale of colours of maps and matrices: white is nothing, and more is darker."""

from __future__ import annotations

import matplotlib
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize

from ibukit._ground.arguments import Floats

# below nothing, where raw inversion goes, another hue
ABOVE = ("#FFFFFF", "#CFE8EA", "#97CDD3", "#57A8C0", "#2F7CAE", "#254C8E", "#1B1A52")
BELOW = ("#FFFFFF", "#F3D9C4", "#D99A6C", "#A8552B", "#5E2A10")
NAME = "white to blue"

_LIGHT = LinearSegmentedColormap.from_list(NAME, ABOVE)
_BROWN = LinearSegmentedColormap.from_list("white to brown", BELOW)
matplotlib.colormaps.register(_LIGHT, force=True)  # so that the style can name it


def white_at_zero(norm: Normalize, values: Floats) -> Colormap:
    """The scale for a norm over these values, white at 0; what is equally far from it on the norm is equally dark."""
    norm.autoscale_None(values)
    if norm.vmin is None or norm.vmin >= 0 or norm.vmin == norm.vmax:
        return _LIGHT
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
