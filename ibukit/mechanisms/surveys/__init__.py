"""Survey designs by name, with the parameters of their papers."""

from ibukit.mechanisms.surveys.cheating_detection import CheatingDetection as CheatingDetection
from ibukit.mechanisms.surveys.crosswise import Crosswise as Crosswise
from ibukit.mechanisms.surveys.design import SurveyDesign as SurveyDesign
from ibukit.mechanisms.surveys.forced_response import ForcedResponse as ForcedResponse
from ibukit.mechanisms.surveys.item_count import ItemCount as ItemCount
from ibukit.mechanisms.surveys.kuk import Kuk as Kuk
from ibukit.mechanisms.surveys.mangat import Mangat as Mangat
from ibukit.mechanisms.surveys.posterior_odds import posterior_odds as posterior_odds
from ibukit.mechanisms.surveys.scrambled_response import ScrambledResponse as ScrambledResponse
from ibukit.mechanisms.surveys.stochastic_lie_detector import (
    StochasticLieDetector as StochasticLieDetector,
)
from ibukit.mechanisms.surveys.triangular import Triangular as Triangular
from ibukit.mechanisms.surveys.two_samples import TwoSampleDesign as TwoSampleDesign
from ibukit.mechanisms.surveys.unrelated_question import UnrelatedQuestion as UnrelatedQuestion
from ibukit.mechanisms.surveys.warner import Warner as Warner
