"""Tables of reports: each engine counts the distinct reports of its table by mechanism."""

from ibukit.tables.groups import Group as Group
from ibukit.tables.groups import TableReports as TableReports
from ibukit.tables.survey_columns import survey_columns as survey_columns
