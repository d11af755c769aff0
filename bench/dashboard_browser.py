"""What the live page costs a browser: the first paint with 5,000 nodes that state 150,000 pods, and frames of the map of a /16.

Script times are processor time of the page's main thread (see tools/page_trace.py), and hold on a busy machine. The first paint is
on the clock, as a person waits for it.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser

from browser import NoBrowser, chromium
from page_stage.dashboard_process import DashboardProcess
from page_stage.drawn_fleet import LARGE, DrawnFleet
from page_trace import TracedPage

PART = "dashboard"
PAINT_GOAL = 1_000
FRAME_GOAL = 8
_VISITS = 3
_SETTLED_SECONDS = 2.0
_MOVES = 150
_CHANGED_NODES = 50
_MAP = '[data-map] canvas[data-drawn="true"]'
_FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
_SHOWN = "() => performance.getEntriesByName('cluster-shown')[0].startTime"


def measure() -> Iterator[tuple[str, str]]:
    """Visit the page of a drawn cluster, as a person does."""
    try:
        with (
            chromium() as browser,
            TemporaryDirectory() as directory,
            DrawnFleet(Path(directory), LARGE) as fleet,
            DashboardProcess(fleet.kubeconfig) as running,
        ):
            yield from _paints(browser, running.url)
            yield from _frames(browser, running.url, fleet)
    except NoBrowser as reason:
        yield "the page in a browser", f"left out: {reason}"


def _paints(browser: Browser, url: str) -> Iterator[tuple[str, str]]:
    """The first visit warms the server, not the browser: each has a profile of its own."""
    paints, shows = [], []
    for _ in range(1 + _VISITS):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{url}#/nodes")
        page.wait_for_selector("[data-node]")
        paints.append(page.evaluate(_FIRST_PAINT))
        shows.append(page.evaluate(_SHOWN))
        context.close()
    goal = f"goal {PAINT_GOAL}"
    yield "first paint, best and worst of 3 visits", _range(paints[1:], goal)
    yield "5,000 nodes in the table, best and worst of 3 visits", _range(shows[1:], goal)


def _range(times: list[float], goal: str) -> str:
    return f"{min(times):.0f} to {max(times):.0f} ms, {goal}"


def _frames(browser: Browser, url: str, fleet: DrawnFleet) -> Iterator[tuple[str, str]]:
    context = browser.new_context(viewport={"width": 1280, "height": 1400})
    page = context.new_page()
    page.set_default_timeout(120_000)
    traced = TracedPage(page)

    def draw() -> None:
        page.goto(f"{url}#/subnets/east", wait_until="commit")
        traced.until(_MAP)

    def hover() -> None:
        for number in range(_MOVES):
            traced.move(left + 7 * number % width, top + 13 * number % height)
            time.sleep(0.02)

    def choose() -> None:
        traced.click(left + width / 2, top + height / 2)
        traced.until("[data-lit]")

    def change() -> None:
        for number in range(_CHANGED_NODES):
            fleet.state_demand(f"east-{number:04}", 34)

    yield from _figures("the map of a /16 is loaded and drawn", traced, draw)
    box = page.locator(_MAP).bounding_box()
    assert box is not None
    left, top, width, height = box["x"], box["y"], box["width"], min(box["height"], 1_390 - box["y"])
    yield from _figures(f"the pointer crosses {_MOVES} of its addresses", traced, hover)
    yield from _figures("a node is clicked, the others are dimmed", traced, choose)
    yield from _figures(f"{_CHANGED_NODES} of its nodes ask for more", traced, change)
    context.close()


def _figures(title: str, traced: TracedPage, act: Callable[[], None]) -> Iterator[tuple[str, str]]:
    with traced.tracing():
        act()
        time.sleep(_SETTLED_SECONDS)
    times = traced.times()
    yield f"{title}: longest script of a frame", f"{times.longest_frame:.1f} ms, goal {FRAME_GOAL}"
    yield (
        f"{title}: of any task, of {times.frames} frames",
        f"{times.longest_task:.1f} / {times.total:.0f} ms",
    )
