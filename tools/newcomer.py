"""A newcomer's first minutes, timed: clone, `make demo`, the page, the burst, a click on a node: `make newcomer`.

The clone has a home of its own that is empty, so that everything is installed anew, from the network. What it takes from the machine are
git, make, Python, Rust where it is installed, and Chromium.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from playwright.sync_api import expect

from browser import NoBrowser, chromium

GOAL_SECONDS = 180
PATIENCE_MILLISECONDS = 300_000
REPOSITORY = Path(__file__).resolve().parent.parent
_OF_THE_MACHINE = ("PATH", "LANG", "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "SSL_CERT_FILE")
_OF_THE_NETWORK = re.compile(r"(?i)(.*_proxy|pip_.*|uv_.*)$")
_PAGE = re.compile(r"http://127\.0\.0\.1:\d+/")


class Stopwatch:
    """Prints what was reached, and when."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._start

    def reached(self, what: str) -> None:
        """Print a step."""
        print(f"{self.seconds:7.1f} s  {what}", flush=True)


@contextmanager
def demonstration(clone: Path, home: Path) -> Iterator[str]:
    """`make demo` in the clone; yields the page's address."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _OF_THE_MACHINE or _OF_THE_NETWORK.fullmatch(name)
    }
    toolchains = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"}
    for name, directory in toolchains.items():
        if (there := Path.home() / directory).is_dir():
            kept.setdefault(name, str(there))
    with subprocess.Popen(
        ["make", "demo"],  # noqa: S607 - as a newcomer types it
        cwd=clone,
        env={**kept, "HOME": str(home), "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield _address(process.stdout)
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def _address(output: IO[str]) -> str:
    said = []
    for line in output:
        said.append(line)
        if found := _PAGE.search(line):
            return found[0]
    raise SystemExit(f"`make demo` named no page:\n{''.join(said[-20:])}")


def main() -> int:
    """Go a newcomer's way; the answer is the exit status."""
    with TemporaryDirectory(prefix="newcomer-") as directory:
        clone, home = Path(directory, "podtide"), Path(directory, "home")
        home.mkdir()
        watch = Stopwatch()
        subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)  # noqa: S607 - as above
        watch.reached("cloned")
        try:
            with demonstration(clone, home) as url, chromium() as browser:
                watch.reached(f"installed; the demonstration runs, its page is {url}")
                page = browser.new_page()
                page.set_default_timeout(PATIENCE_MILLISECONDS)
                expect.set_options(timeout=PATIENCE_MILLISECONDS)
                page.goto(f"{url}#/decisions")
                expect(page.locator('html[data-state="live"]')).to_be_attached()
                watch.reached("the page is live")
                burst = page.locator("[data-decision]").filter(has_text="asks for 47").first
                expect(burst).to_be_visible()
                watch.reached("the burst is seen: a node asks for 47")
                burst.get_by_role("link").click()
                expect(page.locator("[data-node-panel]")).to_contain_text("default/pod-")
                watch.reached("a node is clicked, and its pods are seen")
        except NoBrowser as reason:
            raise SystemExit(f"without a browser nobody looks at the page: {reason}") from reason
        print(f"         goal: {GOAL_SECONDS} s")
        return 0 if watch.seconds < GOAL_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
