"""Run the chapters as tests: first, with time enough on a busy machine, one thread a worker."""

import contextlib
import gc
import importlib
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import threadpoolctl
from nbval.plugin import IPyNbCell

import notebooks

# stored chapters hold no drawing, as they hold no picture; nbval leaves out the pictures alone
DRAWING = "image/svg+xml"
# nbval waits five seconds for the last message of a cell if not told more
SECONDS = 600


# workers share the cores: threads of BLAS that wait for a core in a loop take twice the processor
# time in all
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


# what nearly every chapter calls: a quarter of a minute of compiling, which workers that start
# together do all at once
COMMON = """
import numpy as np, ibukit as ik
line, grid = ik.Line(0, 9), ik.Grid(2, 5)
kinds = [ik.RandomizedResponse(10, 1.0), ik.TruncatedGeometric(line, 1.0), ik.Rappor(10, 1.0)]
for mechanism in [*kinds, ik.TruncatedPlanarGeometric(grid, 1.0)]:
    tally = mechanism.simulate([30] * 10, np.random.default_rng(1))
    for estimator in (ik.ibu, ik.mle, ik.smooth):
        estimator(tally, strict=False)
# small lines are not compiled for
ik.mle(ik.TruncatedGeometric(4000, 1.0).tally_counts(np.ones(4000, int)))
ik.posterior(kinds[0].tally([0, 1, 1]), 0.5)
"""


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a fresh clone, compile what is common before the workers start, once for all of them."""
    first = (
        not any((Path(__file__).parent / "ibukit").rglob("*.nbi"))
        and "NUMBA_CACHE_DIR" not in os.environ
    )
    if (
        first
        and getattr(session.config.option, "numprocesses", None)
        and "PYTEST_XDIST_WORKER" not in os.environ
    ):
        alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(
            [sys.executable, "-c", COMMON], check=False, env=alone, cwd=Path(__file__).parent
        )


def pytest_configure() -> None:
    """One thread in a worker and in its kernels, unless the environment asks for another number.

    And bytecode is kept beside the compiled kernels: forty processes would compile the package,
    each worker rewrite the asserts of all tests, which is most of what collecting them takes.
    """
    notebooks.without_ports()
    if "PYTEST_XDIST_WORKER" in os.environ:
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if "PYTEST_XDIST_WORKER" in os.environ and not any(name in os.environ for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        threadpoolctl.threadpool_limits(1)


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Collect without a look for garbage, and let two workers rewrite asserts from both ends.

    Each then reads what the other has rewritten. In a run of some files there is little to share.
    """
    if not isinstance(collector, pytest.Session):
        return
    gc.disable()
    whole = collector.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if whole and os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        paths = (Path(__file__).parent / "tests").glob("*/test_*.py")
        for path in sorted(
            (path for path in paths if not (path.parent / "__init__.py").exists()), reverse=True
        ):
            sys.path.insert(0, str(path.parent))
            with contextlib.suppress(Exception):  # collecting it says what is wrong
                importlib.import_module(path.stem)


def pytest_collection_finish() -> None:
    """What is collected stays to the end: no later look for garbage looks at it."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let go of it: modules in C complain of what is alive when the process ends."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every cell its time; put long chapters first, so that no worker is left with one."""
    cells = Counter(item.path for item in items if isinstance(item, IPyNbCell))
    for notebook in {item.parent for item in items if isinstance(item, IPyNbCell)}:
        notebook.skip_compare += (DRAWING,)
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = SECONDS
    items.sort(key=lambda item: -cells[item.path])
