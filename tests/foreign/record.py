"""Write what a program answered to recorded/NAME.json, and its hash to recorded/SHA256SUMS.

`make foreign` runs this file, which runs every script beside it; what is not at hand keeps its old
record.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
SUMS = RECORDED / "SHA256SUMS"


def _plain(value: Any) -> Any:
    """Arrays and numpy's numbers, as JSON has them."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value)} has no place in a recorded file")


def write(name: str, program: str, version: str, answers: dict[str, Any]) -> None:
    """Keep the answers of one program, a line each, and the hash of the file."""
    about = {"program": program, "version": version, "script": f"record_{name}.py"}
    lines = [
        f"  {json.dumps(key)}: {json.dumps(value, default=_plain)}"
        for key, value in (about | answers).items()
    ]
    (RECORDED / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf8")
    SUMS.write_text(
        "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(RECORDED.glob("*.json"))),
        "utf8",
    )
    print(f"recorded {program} {version}")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(name: str) -> dict[str, Any]:
    """The answers of one program, after a look at the hash of their file."""
    path = RECORDED / f"{name}.json"
    hashes = dict(reversed(line.split("  ")) for line in SUMS.read_text("utf8").splitlines())
    if sha256(path) != hashes[path.name]:
        raise ValueError(
            f"{path.name} is not what was recorded: its SHA-256 is {sha256(path)}. Run `make"
            " foreign`."
        )
    answers: dict[str, Any] = json.loads(path.read_text("utf8"))
    return answers


def _record_all(privic: list[str]) -> None:
    """Run the scripts one after the other, each in a process of its own,
    and say whose program is missing.
    """
    missing = []
    for script in sorted(HERE.glob("record_*.py")):
        name = script.stem.removeprefix("record_")
        arguments = [str(Path(file).resolve()) for file in privic] if name == "privic" else []
        command = [sys.executable, "-W", "ignore", "-m", f"foreign.{script.stem}", *arguments]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False
        )
        print(done.stdout, end="")
        if done.returncode:
            missing.append(f"not recorded: {name}: {done.stderr.strip().splitlines()[-1]}")
    print(*missing, sep="\n")


if __name__ == "__main__":
    _record_all(sys.argv[1:])
