"""Headless Chromium, and a server of a folder for it, on this machine only."""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def find_chromium() -> str:
    """The path of Chromium; a clear sentence and exit code 2 if there is none."""
    for candidate in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if candidate and (found := shutil.which(candidate)):
            return found
    print(
        "no Chromium found: run `apt-get install -y chromium`, or set CHROMIUM to its path.",
        file=sys.stderr,
    )
    raise SystemExit(2)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the base class's)
        """Say nothing: what fails is reported by the browser."""


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = (
        128  # a busy browser opens many connections at once; a queue of five would drop some
    )

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report a fault, unless the browser has left the page before all of it was sent."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine only, on a free port."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium with an empty profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), headless=True, args=FLAGS
        )
        yield browser
        browser.close()


def run_check(
    about: str | None,
    self_test: Callable[[Browser], list[str]],
    check: Callable[[Browser, Path], list[str]],
) -> int:
    """Carry out the command line of a check of the built book; 1 where something was found."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--self-test", action="store_true", help="judge what is broken on purpose")
    parser.add_argument("--html", type=Path, default=ROOT / "_build" / "html")
    arguments = parser.parse_args()
    with chromium() as browser:
        found = self_test(browser) if arguments.self_test else check(browser, arguments.html)
    print(*found[:40], sep="\n", end="\n" if found else "")
    return int(bool(found))
