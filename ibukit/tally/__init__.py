"""Counts of the reports seen and their likelihood."""

from ibukit.tally.tally import Tally as Tally
from ibukit.tally.tally import check_bounded as check_bounded
from ibukit.tally.tally import check_tally as check_tally
from ibukit.tally.tally import pool as pool
from ibukit.tally.tally_groups import TallyGroups as TallyGroups
