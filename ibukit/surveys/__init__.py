"""Survey designs by name: randomized response and other indirect questions.

These are the public names of `ibukit.mechanisms.surveys`. A design of two labels has the first one
for people without the sensitive attribute, and the second for people with it:

>>> import ibukit as ik
>>> design = ik.surveys.Crosswise(["no", "yes"], p=0.25)
>>> print(round(ik.mle(design.tally(["same", "different", "same"]))["yes"], 3))
0.167
"""

from ibukit.mechanisms.surveys import CheatingDetection as CheatingDetection
from ibukit.mechanisms.surveys import Crosswise as Crosswise
from ibukit.mechanisms.surveys import ForcedResponse as ForcedResponse
from ibukit.mechanisms.surveys import ItemCount as ItemCount
from ibukit.mechanisms.surveys import Kuk as Kuk
from ibukit.mechanisms.surveys import Mangat as Mangat
from ibukit.mechanisms.surveys import ScrambledResponse as ScrambledResponse
from ibukit.mechanisms.surveys import StochasticLieDetector as StochasticLieDetector
from ibukit.mechanisms.surveys import SurveyDesign as SurveyDesign
from ibukit.mechanisms.surveys import Triangular as Triangular
from ibukit.mechanisms.surveys import TwoSampleDesign as TwoSampleDesign
from ibukit.mechanisms.surveys import UnrelatedQuestion as UnrelatedQuestion
from ibukit.mechanisms.surveys import Warner as Warner
from ibukit.mechanisms.surveys import posterior_odds as posterior_odds
