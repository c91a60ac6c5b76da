"""Profile intervals whose threshold knows the boundary of the simplex."""

from ibukit.intervals.boundary.region import auto as auto
