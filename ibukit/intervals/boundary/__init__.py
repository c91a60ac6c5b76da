"""Profile intervals whose threshold knows the boundary of the simplex."""

from ibukit.intervals.boundary.region import applies as applies
from ibukit.intervals.boundary.region import boundary_profile as boundary_profile
