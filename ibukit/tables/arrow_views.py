"""Texts as views, which an older Arrow can hold but neither group nor give away."""

from __future__ import annotations

# Before this release grouping by views is not implemented, and a process that hands short texts in
# views to another library, as to DuckDB, ends.
MIN_ARROW_OF_VIEWS = 25


def has_whole_views() -> bool:
    """Return whether the installed Arrow can group views and hand them to other libraries."""
    import pyarrow

    return pyarrow.cpp_version_info.major >= MIN_ARROW_OF_VIEWS
