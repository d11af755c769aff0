"""One visit of the page in a browser, as a person makes it; and everything the browser complained of meanwhile."""

import re
from importlib.resources import files
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

from patience import PATIENCE_SECONDS

PATIENCE = PATIENCE_SECONDS * 1000
"""In milliseconds, as Playwright counts."""
expect.set_options(timeout=PATIENCE)

Theme = Literal["light", "dark"]

_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
    console.error(`CSP: ${event.violatedDirective} refuses ${event.blockedURI || event.sample}`));"""
_FAILED_REQUEST = "Failed to load resource"
_AXE = (files("axe_playwright_python") / "axe.min.js").read_text()
_RUN_AXE = """() => axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
    .then(({violations}) => violations.map(({id, help, nodes}) =>
        `${id}: ${help}: ${nodes.map((node) => node.html.slice(0, 160)).slice(0, 3).join(" | ")}`))"""


class PageVisit:
    """A tab of its own, without anything remembered from another one."""

    def __init__(
        self, browser: Browser, url: str, *, theme: Theme = "light", width: int = 1280, height: int = 900
    ) -> None:
        self.url = url
        self._context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
        )
        self._context.set_default_timeout(PATIENCE)
        self._context.add_init_script(_VIOLATIONS)
        self.page: Page = self._context.new_page()
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        """Requests to anything but the server that is looked at."""
        self.may_fail = False
        """Whether requests may fail: a browser writes each into its console, whatever the page does about it."""
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("request", self._see)

    def open(self, fragment: str = "") -> Page:
        """Load the page."""
        self.page.goto(self.url + fragment)
        return self.page

    def go(self, fragment: str) -> None:
        """Follow a link within the page."""
        self.page.evaluate("(fragment) => { location.hash = fragment; }", fragment)

    def open_live(self, fragment: str = "") -> Page:
        """Load the page, and wait until it shows the cluster."""
        self.open(fragment)
        self.expect_state("live")
        return self.page

    def expect_state(self, state: Literal["loading", "live", "lost", "token"]) -> None:
        """Wait until the page's connection is so."""
        expect(self.page.locator(f'html[data-state="{state}"]')).to_be_attached()

    @property
    def map(self) -> Locator:
        """The map of the subnet that is looked at."""
        return self.page.locator("[data-map]").first

    @property
    def readout(self) -> Locator:
        """What is told of the address under the cursor."""
        return self.page.locator("[data-readout]").first

    def count_of(self, state: str) -> int:
        """How many addresses are in a state, by the legend."""
        text = self.page.locator(f'[data-legend="{state}"] .number').first.inner_text()
        return int(re.sub(r"\D", "", text))

    def violations(self) -> list[str]:
        """What axe finds wrong."""
        if not self.page.evaluate("() => 'axe' in window"):
            self.page.evaluate(_AXE)
        found: Any = self.page.evaluate(_RUN_AXE)
        return list(found)

    def close(self) -> None:
        """Leave, and see that the browser had nothing to complain of."""
        self._context.close()
        if self.complaints or self.foreign:
            raise AssertionError(f"the browser complains: {self.complaints}, other servers: {self.foreign}")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        if self.may_fail and message.text.startswith(_FAILED_REQUEST):
            return
        self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.foreign.append(request.url)
