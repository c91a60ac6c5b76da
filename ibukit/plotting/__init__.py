"""Plots in the style of the book: channels, distributions, maps, boxplots, triangles.

Functions take arrays and alphabets, and return matplotlib axes. matplotlib takes a second to
import, so other subpackages import this one inside the methods that draw.
"""

from ibukit.plotting._looks import DASHES as DASHES
from ibukit.plotting._looks import ESTIMATORS as ESTIMATORS
from ibukit.plotting._looks import PALETTE as PALETTE
from ibukit.plotting._looks import Look as Look
from ibukit.plotting._looks import looks as looks
from ibukit.plotting._style import STYLE as STYLE
from ibukit.plotting._style import use_style as use_style
from ibukit.plotting.charts import boxes as boxes
from ibukit.plotting.charts import channel as channel
from ibukit.plotting.charts import triangle as triangle
from ibukit.plotting.interval_maps import interval_maps as interval_maps
from ibukit.plotting.lines import distributions as distributions
from ibukit.plotting.lines import panels as panels
from ibukit.plotting.maps import heatmap as heatmap
from ibukit.plotting.maps import maps as maps
from ibukit.plotting.outlines import land_shares as land_shares
