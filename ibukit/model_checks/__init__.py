"""Tests of what an estimate assumes: that the mechanisms made the reports, and chose no secrets."""

from ibukit.model_checks.findings import findings as findings
from ibukit.model_checks.fit import fit_test as fit_test
from ibukit.model_checks.model_check import ModelCheck as ModelCheck
from ibukit.model_checks.pool import pool_test as pool_test
