"""The package works where nothing can be written: neither its folder, nor a home, nor a cache."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

import ibukit as ik
from ibukit._ground import numba_cache

PACKAGE = Path(ik.__file__).parent
# The first import loads the modules of others, which another user may not be allowed to read; the
# second is that of the copy, by this user.
# With other start methods a lock that a module makes for the first user is removed at the end,
# which the second user may not do.
CHILD = """
import multiprocessing, os, sys

if os.name == "posix":
    multiprocessing.set_start_method("fork")

def work():
    import ibukit as ik
    line = ik.TruncatedGeometric(5, 1.0)
    bits = ik.Rappor(3, 1.0)
    return [
        ik.mle(line.tally_counts([5, 3, 1, 1, 1])).distribution.tolist(),
        ik.mle(bits.tally([[1, 0, 0], [0, 1, 1]])).distribution.tolist(),
        ik.ibu(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 1])).distribution.tolist(),
        len(line.release([0, 1])),
    ]

before = work()
for name in [name for name in sys.modules if name.split(".")[0] == "ibukit"]:
    del sys.modules[name]
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
os.environ["HOME"] = "/nowhere/home"
for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
    os.environ.pop(name, None)
sys.path.insert(0, sys.argv[1])
os.chdir("/")
import ibukit
from ibukit.channels import _gram_kernels
assert ibukit.__file__.startswith(sys.argv[1]), ibukit.__file__
assert not os.access(sys.argv[1], os.W_OK)
assert _gram_kernels.mirror.stats.cache_path is None
assert work() == before
print("worked")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="users and modes are those of POSIX")
def test_a_read_only_package_and_home():
    # The folder of pytest belongs to one user, and others may not look into it.
    with tempfile.TemporaryDirectory() as name:
        left_out = shutil.ignore_patterns("__pycache__", "repetitions")
        shutil.copytree(PACKAGE, Path(name) / "ibukit", ignore=left_out)
        everything = [Path(name), *Path(name).rglob("*")]
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            run = subprocess.run(
                [sys.executable, "-W", "error::RuntimeWarning", "-c", CHILD, name],
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            for path in everything:
                path.chmod(0o755 if path.is_dir() else 0o644)
    assert run.stderr == ""
    assert run.stdout == "worked\n"


def loop(x):
    return x + 1


def test_a_cache_that_can_no_longer_be_written_to_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiled = numba_cache.njit()(loop)
    impossible = PermissionError("the process has become another user")

    def refuse(*arguments):
        raise impossible

    monkeypatch.setattr(compiled._cache._cache_file, "load", refuse)
    monkeypatch.setattr(compiled._cache._cache_file, "save", refuse)
    assert compiled(1) == 2
    assert list(tmp_path.rglob("*.nbi")) == []


def test_a_cache_that_was_cut_short_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert numba_cache.njit()(loop)(1) == 2
    files = [*tmp_path.rglob("*.nbi")]
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:20])
    assert numba_cache.njit()(loop)(1) == 2
