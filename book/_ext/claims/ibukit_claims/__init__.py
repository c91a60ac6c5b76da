"""Set published numbers beside ours, with a computed verdict that must be the recorded one.

The book has one vocabulary of verdicts. Results are *reproduced*, *fitted* (they agree, but only
because of a free choice of ours, and the note says which), *hold with a condition* (which the note
states and the paper does not), *deviate* or are *not checkable*. A *setting* is an input that the
paper chose and we took over, so it is never counted as a result. A result of *ours*, which no paper
states, is not counted. An *open* result is one that no chapter has looked at yet.
"""

from ibukit_claims._beside import beside as beside
from ibukit_claims._beside import check as check
from ibukit_claims._beside import show as show
from ibukit_claims._comparison import Comparison as Comparison
from ibukit_claims._counts import OURS as OURS
from ibukit_claims._counts import counts as counts
from ibukit_claims._published import COLUMNS as COLUMNS
from ibukit_claims._published import KEY as KEY
from ibukit_claims._published import VERDICTS as VERDICTS
from ibukit_claims._published import InvalidClaim as InvalidClaim
from ibukit_claims._published import load_published as load_published
from ibukit_claims._published import settings as settings
from ibukit_claims._repetitions import remembered as remembered
from ibukit_claims._repetitions import repeated as repeated
from ibukit_claims._setting import published as published
from ibukit_claims._words import MARGINS as MARGINS
from ibukit_claims._words import agrees as agrees
from ibukit_claims._words import statements as statements
