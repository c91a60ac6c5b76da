"""Solvers on a matrix that is written out: interior point, its systems, and few secrets."""
