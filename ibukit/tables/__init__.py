"""Tables of reports: which reports they hold, how often and through which mechanism, counted by the table's engine."""

from ibukit.tables.groups import Group as Group
from ibukit.tables.groups import TableReports as TableReports
