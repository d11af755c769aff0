"""`podtide demo` as a newcomer meets it: it prints an address, and the page behind it shows the burst as it happens."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import expect

from dashboard.browser.conftest import Visit


@contextmanager
def demonstration() -> Iterator[str]:
    """The address of the page of a slow story."""
    command = (
        sys.executable,
        "-u",
        "-m",
        "podtide",
        "demo",
        "--story",
        "burst",
        "--nodes",
        "3",
        "--speed",
        "0.2",
    )
    with subprocess.Popen(
        [*command, "--dashboard", "127.0.0.1:0", "--plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    ) as process:
        try:
            assert process.stdout is not None
            yield next(
                found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/", line))
            )
        finally:
            process.kill()


def test_the_burst_of_the_demonstration_is_seen_on_its_page_and_a_node_can_be_opened(visit: Visit) -> None:
    with demonstration() as url:
        visited = visit(url)
        visited.may_fail = True  # it is ended while the page is open
        page = visited.open_live("#/decisions")
        expect(page.get_by_text("demo", exact=True)).to_be_visible()
        burst = page.locator("[data-decision]").filter(has_text="asks for 47").first
        burst.get_by_role("button").click()
        expect(burst).to_contain_text("= 47")
        burst.get_by_role("link").click()
        expect(page.locator("[data-node-panel]")).to_contain_text("default/pod-")
