"""Debian's Chromium, driven by Playwright: what tests, pictures and benchmarks look at the page with.

Chromium is the machine's own (see install-chromium.sh): Playwright fetches none. It gets a profile of its own, which is
deleted with it, and nothing in it may ask anything of the network.

Playwright leaves a mark of its event loop on the thread for as long as it runs, so that no other loop can be run there
meanwhile. So a browser is opened for a module's tests at most, and what needs a loop beside it has a thread of its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
_FLAGS = (
    "--no-sandbox",  # tests run as root in CI; the only pages it opens are podtide's
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-domain-reliability",
    "--font-render-hinting=none",  # the same letters on every machine's pictures
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class NoBrowser(Exception):
    """This machine has no Chromium; the words say how to get it."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser, for as long as the context lasts."""
    if not CHROMIUM.exists():
        raise NoBrowser(
            "there is no /usr/bin/chromium: `make chromium-if-possible` installs it, as root on Debian"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()
