"""A browser for tests of the page. Where there is none, they are left out: see left_out.py."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser

from browser import NoBrowser, chromium
from dashboard.browser.page_visit import PageVisit, Theme
from left_out import leave_out

HERE = Path(__file__).parent


class Visit(Protocol):
    """Visits the page at a URL, in a tab of its own."""

    def __call__(
        self, url: str, *, theme: Theme = "light", width: int = 1280, height: int = 900
    ) -> PageVisit: ...


@pytest.fixture(scope="module", autouse=True)  # first of all: without it, nothing else need be started
def browser() -> Iterator[Browser]:
    """A browser that the tests of a module share; each visit has a profile of its own in it."""
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(chromium())
        except NoBrowser as reason:
            leave_out("Chromium", reason)
        yield opened


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Visits of a test. At its end none may have complained: no error in the console, no violation of the CSP."""
    visits: list[PageVisit] = []

    def begin(url: str, *, theme: Theme = "light", width: int = 1280, height: int = 900) -> PageVisit:
        visits.append(PageVisit(browser, url, theme=theme, width=width, height=height))
        return visits[-1]

    yield begin
    for each in visits:
        each.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser takes seconds to start, and so does a cluster of 5,000 nodes: a quick run does without, others start each once.

    The tests of a module share both, and so go to one worker.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("slow")
            item.add_marker(pytest.mark.xdist_group(f"page-{item.path.stem}"))
