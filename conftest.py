"""A busy machine is no reason to fail: nbval waits five seconds for the last message of a cell if not told more."""

import pytest
from nbval.plugin import IPyNbCell

SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every cell as long as a busy machine may take to pass on what the cell has printed."""
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = SECONDS
