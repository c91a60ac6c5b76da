"""Profile intervals whose threshold takes the boundary of the simplex into account."""

from ibukit.intervals.boundary.region import applies as applies
from ibukit.intervals.boundary.region import boundary_profile as boundary_profile
