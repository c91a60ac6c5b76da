"""How chapters are run as tests: with time enough on a busy machine, and first."""

from collections import Counter

import pytest
from nbval.plugin import IPyNbCell

# nbval waits five seconds for the last message of a cell if not told more
SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every cell the time it may take; put long chapters first, so that no worker is left alone with one."""
    cells = Counter(item.path for item in items if isinstance(item, IPyNbCell))
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = SECONDS
    items.sort(key=lambda item: -cells[item.path])
