"""Keep the chapters in one canonical form, so that a change in a file is a change in the book.

    python scripts/notebooks.py run   [FILE ...]   run the chapters and write them back
    python scripts/notebooks.py check [FILE ...]   exit 1 if one was not run or is not canonical

In canonical form, cells are called CHAPTER-00, CHAPTER-01, and so on, and executed cells are
counted 1, 2, and so on. There are no times, no kernel version and no address of an object. Text
outputs are kept, because the tests compare them. Pictures are dropped, because the book build draws
them again, and the difference of two pictures can never be read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from tqdm import tqdm

# older kernels bring a debugger that nobody has asked for, and it warns here and in the kernel of
# what it may miss
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

ROOT = Path(__file__).resolve().parents[1]
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = {"tags", "mystnb"}
PICTURES = {"image/png", "image/jpeg", "image/svg+xml"}
OF_PICTURES = {*PICTURES, "needs_background"}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
# a kernel that is told to end closes its sockets while another of its threads may still write to
# them; nothing is lost by this
LAST_WORDS = """
import errno
import logging
logging.getLogger("tornado.general").addFilter(
    lambda record, closed=errno.ENOTSOCK: (
        not record.exc_info or getattr(record.exc_info[1], "errno", 0) != closed
    )
)
del errno, logging
"""
# drawings carry their numbers; the last line deletes the names that these lines give to the kernel
FIGURE_DATA = f"""
import importlib.util
spec = importlib.util.spec_from_file_location(
    "figure_data", {str(Path(__file__).with_name("figure_data.py"))!r}
)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.install()
del importlib, module, spec
"""
SECONDS_PER_CELL = 2000  # twenty times the time of the longest cell: a machine may be busy


def chapters() -> list[Path]:
    """Every notebook of the book, in the order of their names."""
    return sorted(
        p for p in (ROOT / "book").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts
    )


def kernel_settings() -> dict[str, str]:
    """The environment of kernels: the settings of this project, not those in somebody's home.

    Kernels report errors only: they would otherwise warn that they talk to their notebooks over
    TCP, but both are on one machine here, and nobody has to act on it. No kernel keeps a history,
    because kernels that run at once, or one after another, would wait for one database. No kernel
    complains of a closed socket, as kernels do now and then at their end, when nobody listens any
    more. Each drawing carries its numbers.
    """
    home = ROOT / "_build" / "ipython"
    settings = home / "profile_default" / "ipython_kernel_config.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    kernel = {"log_level": "ERROR", "exec_lines": [LAST_WORDS, FIGURE_DATA]}
    settings.write_text(json.dumps({"IPKernelApp": kernel, "HistoryManager": {"enabled": False}}))
    return {"IPYTHONDIR": str(home)}


def without_ports() -> None:
    """Let the kernels that this process starts talk through files, not ports, except on Windows.

    The process that starts a kernel looks for free ports, and the kernel takes them half a second
    later. If many kernels start at once, now and then one of them finds that another has its port,
    and complains or dies.
    """
    start = KernelManager.__init__
    if os.name == "nt" or start.__name__ == "through_files":
        return

    def through_files(self: KernelManager, *args: Any, **kwargs: Any) -> None:
        place = Path(tempfile.gettempdir()) / f"kernel-{uuid.uuid4().hex}"
        start(self, *args, **{"transport": "ipc", "ip": str(place), **kwargs})

    KernelManager.__init__ = through_files


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def _clean_output(output: NotebookNode, count: int) -> None:
    if "execution_count" in output:
        output["execution_count"] = count
    data = output.get("data", {})
    for mime in PICTURES & set(data):
        del data[mime]
    if "metadata" in output:
        output["metadata"] = {
            key: value for key, value in output["metadata"].items() if key not in OF_PICTURES
        }
    if "text/plain" in data:
        data["text/plain"] = ADDRESS.sub("at 0x0", _text(data["text/plain"]))


def canonical(notebook: NotebookNode, stem: str) -> NotebookNode:
    """The notebook in canonical form (changed in place and returned)."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    count = 0
    for i, cell in enumerate(notebook.cells):
        cell["id"] = f"{stem}-{i:02d}"
        cell["metadata"] = nbformat.from_dict(
            {k: v for k, v in cell["metadata"].items() if k in CELL_METADATA}
        )
        if cell["cell_type"] != "code":
            continue
        if cell["execution_count"] is not None:
            count += 1
            cell["execution_count"] = count
        if "nbval-ignore-output" in cell["metadata"].get("tags", []):
            cell[
                "outputs"
            ] = []  # nothing reads them: the tests ignore them and the book build makes its own
        for output in cell["outputs"]:
            _clean_output(output, count)
    return notebook


def dump(notebook: NotebookNode) -> str:
    """The bytes of the file, as text."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def never_run(notebook: NotebookNode) -> list[int]:
    """Positions of the code cells without a count; nbval runs such a cell but compares nothing."""
    cells = enumerate(notebook.cells)
    return [
        i
        for i, c in cells
        if c["cell_type"] == "code" and c["source"].strip() and c["execution_count"] is None
    ]


def execute(notebook: NotebookNode, folder: Path, **options: Any) -> NotebookNode:
    """Run a notebook in place, as if it stood in a folder, with nbclient's options; return it."""
    without_ports()
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # else a cell's prints would arrive in ever different pieces
        resources={"metadata": {"path": str(folder)}},
        **options,
    )
    return client.execute(env=os.environ | kernel_settings())


def run(path: Path) -> str | None:
    """Run one notebook and write it back; return the reason if that failed."""
    notebook = nbformat.read(path, 4)
    try:
        execute(notebook, path.parent)
    except CellExecutionError as error:
        return (
            f"{path.relative_to(ROOT)}: a cell failed; the file is"
            f" unchanged\n{COLOUR.sub('', str(error))}"
        )
    new = dump(canonical(notebook, path.stem))
    if new != path.read_text("utf8"):
        path.write_text(new, "utf8")
        tqdm.write(f"rewrote {path.relative_to(ROOT)}")
    return None


def check(path: Path) -> str | None:
    """The reason why a notebook is not fit to be committed, if there is one."""
    old = path.read_text("utf8")
    notebook = nbformat.reads(old, 4)
    if cells := never_run(notebook):
        return f"{path.relative_to(ROOT)}: cells {cells} were never run: `make notebooks`"
    if dump(canonical(notebook, path.stem)) != old:
        return f"{path.relative_to(ROOT)}: not in canonical form: `make notebooks`"
    return None


def main() -> int:
    """Carry out the command line; 1 where a chapter is not in order."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=["run", "check"])
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="default: every chapter"
    )
    arguments = parser.parse_args()
    do = run if arguments.verb == "run" else check
    files = [path.resolve() for path in arguments.files] or chapters()
    reasons = [reason for path in tqdm(files, disable=None, unit="chapter") if (reason := do(path))]
    for reason in reasons:
        print(reason, file=sys.stderr)
    print(f"notebooks: {len(files) - len(reasons)} of {len(files)} in order")
    return int(bool(reasons))


if __name__ == "__main__":
    sys.exit(main())
