"""Solvers on a dense matrix: the interior point, its systems, and least squares on few secrets."""
