"""A matrix that is written out: the steps of its interior point, its systems of equations, and few secrets."""
