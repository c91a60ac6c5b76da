"""How chapters are run as tests: with time enough on a busy machine, first, and with one thread for each worker."""

import os
import sys
from collections import Counter

import pytest
import threadpoolctl
from nbval.plugin import IPyNbCell

# stored chapters hold no drawing, as they hold no picture; nbval leaves out the pictures alone
DRAWING = "image/svg+xml"
# nbval waits five seconds for the last message of a cell if not told more
SECONDS = 600


# workers share the cores: threads of BLAS that wait for a core in a loop take twice the processor time in all
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def pytest_configure() -> None:
    """One thread in a worker and in the kernels that it starts, unless the environment asks for another number.

    And bytecode is kept beside the compiled kernels: forty processes would compile the package, each worker rewrite
    the asserts of all tests, which is most of what collecting them takes.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "PYTEST_XDIST_WORKER" in os.environ and not any(name in os.environ for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        threadpoolctl.threadpool_limits(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every cell the time it may take; put long chapters first, so that no worker is left alone with one."""
    cells = Counter(item.path for item in items if isinstance(item, IPyNbCell))
    for notebook in {item.parent for item in items if isinstance(item, IPyNbCell)}:
        notebook.skip_compare += (DRAWING,)
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = SECONDS
    items.sort(key=lambda item: -cells[item.path])
