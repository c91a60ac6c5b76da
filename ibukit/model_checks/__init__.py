"""Tests of assumptions: that mechanisms made the reports, and were not chosen by secret."""

from ibukit.model_checks.findings import findings as findings
from ibukit.model_checks.fit import fit_test as fit_test
from ibukit.model_checks.model_check import ModelCheck as ModelCheck
from ibukit.model_checks.pool import pool_test as pool_test
