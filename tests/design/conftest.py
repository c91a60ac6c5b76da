"""What tests of designs share."""

from __future__ import annotations

import pytest

from ibukit.design.optimal.extremal_columns import extremal_logs
from ibukit.design.optimal.grids import patches


@pytest.fixture(scope="package")
def listed():
    """All columns of some distances, listed once: of ten cells that takes a second."""
    known = {}

    def columns(distances):
        key = distances.shape, distances.tobytes()
        if key not in known:
            known[key] = extremal_logs(distances)
            known[key].setflags(write=False)
        return known[key]

    return columns


@pytest.fixture(scope="module")
def listed_once(listed):
    """Patches take their columns from what is listed already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patches, "extremal_logs", listed)
        yield
