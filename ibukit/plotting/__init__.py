"""The book's one style: channels, distributions, maps, boxplots, the likelihood on a triangle.

No other room imports this.
"""

from ibukit.plotting.figures import boxes as boxes
from ibukit.plotting.figures import channel as channel
from ibukit.plotting.figures import triangle as triangle
from ibukit.plotting.lines import distributions as distributions
from ibukit.plotting.lines import panels as panels
from ibukit.plotting.maps import heatmap as heatmap
from ibukit.plotting.style import DASHES as DASHES
from ibukit.plotting.style import PALETTE as PALETTE
from ibukit.plotting.style import STYLE as STYLE
from ibukit.plotting.style import use_style as use_style
