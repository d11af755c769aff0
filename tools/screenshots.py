"""The pictures of the page in README and docs, taken of clusters at work: `make screenshots`.

Each is a scene of its own, so that one can be taken anew (`python tools/screenshots.py dark`). Pictures are reduced to a
palette: a page has few colours, and a repository keeps every picture for ever.
"""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from browser import NoBrowser, chromium
from page_stage.dashboard_process import DashboardProcess
from page_stage.drawn_fleet import LARGE, DrawnFleet
from page_stage.living_cluster import ClusterPlan, LivingCluster
from page_stage.past_weeks import PastWeeks, write_past
from podtide.simulation.nodes.network_definitions import described_network

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
COLOURS = 256
PATIENCE_MILLISECONDS = 120_000
SETTLED_MILLISECONDS = 1_500
"""For charts and transitions: nothing in the page tells when the last pixel is drawn."""


class Picture(Struct, frozen=True, kw_only=True):
    """One view of the page."""

    name: str
    fragment: str
    theme: Literal["light", "dark"] = "light"
    width: int = 1280
    height: int = 1010
    scale: float = 1.0
    before: Callable[[Page], None] = lambda _page: None
    """What a person does before the picture is taken."""


def point_at_a_pod(page: Page) -> None:
    """Rest the pointer on an address that a pod has."""
    page.locator("[data-map]").first.focus()
    for _ in range(700):
        page.keyboard.press("ArrowRight")
        if page.locator("[data-readout] .state-name").first.inner_text() == "on a pod":
            break
    box = page.locator(".map-cursor").first.bounding_box()
    assert box is not None
    page.keyboard.press("Escape")
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("[data-readout]").first).to_contain_text("default/")


def open_a_decision(page: Page) -> None:
    """Look at the arithmetic of the newest request."""
    page.locator("[data-decision]").filter(has_text="asks for").first.get_by_role("button").click()


def show_forecast(page: Page) -> None:
    """Look at the weeks behind and ahead."""
    page.locator("[data-forecast]").click()
    expect(page.locator("[data-forecast-table]")).to_be_visible()


@contextmanager
def empty_directory() -> Iterator[None]:
    """Work in a directory that is gone afterwards."""
    with TemporaryDirectory() as directory, chdir(directory):
        yield


def named(kubeconfig: Path) -> Path:
    """The kubeconfig with a context's name as clusters have it: the page shows it."""
    kubeconfig.write_text(kubeconfig.read_text().replace('"podtide"', '"prod-east"'))
    return kubeconfig


@contextmanager
def busy_cluster() -> Iterator[DashboardProcess]:
    """Twelve nodes in a /22 with six weeks behind it, and secondary networks: a morning, a rush, and what is left of it."""
    cidr, nodes = "10.1.0.0/22", tuple(f"node-{number:02}" for number in range(1, 13))
    networks = (
        described_network("storage", 1, "10.10.0.0/21", "/25"),
        described_network("backup", 2, "10.20.0.0/22"),
    )
    plan = ClusterPlan(cidr=cidr, nodes=nodes, networks=networks, speed=2, is_recorded=False)
    with empty_directory():
        living = LivingCluster(Path(), plan)
        write_past(living.database, PastWeeks(cidr=cidr, begin=260, end=540), time.time())
        with (
            living,
            DashboardProcess(named(living.kubeconfig), "--allocator", living.allocator_url) as running,
        ):
            for number, node in enumerate(nodes):
                living.add_pods(node, 26 + 5 * number % 11)
            living.settle()
            living.record()
            time.sleep(75)  # demand is written down once a minute
            for node in nodes[::3]:
                living.add_pods(node, 14)
            time.sleep(30)
            for number, node in enumerate(nodes):
                living.add_pods(node, 30 + 3 * number % 7)  # beyond the upper threshold
            time.sleep(75)
            for node in nodes[1:]:
                living.remove_pods(node, 28)
            time.sleep(75)
            yield running


@contextmanager
def full_subnet() -> Iterator[DashboardProcess]:
    """A /24 of which every address is taken, and pods that wait for one."""
    nodes = tuple(f"node-{number}" for number in range(1, 9))
    with (
        empty_directory(),
        LivingCluster(Path(), ClusterPlan(cidr="10.1.0.0/24", nodes=nodes, speed=4)) as living,
        DashboardProcess(named(living.kubeconfig), "--allocator", living.allocator_url) as running,
    ):
        for number, node in enumerate(nodes):
            living.add_pods(node, 28 + number % 3)
        living.settle()
        living.add_pods(nodes[2], 16)
        time.sleep(75)  # demand is written down once a minute
        yield running


@contextmanager
def large_fleet() -> Iterator[DashboardProcess]:
    """5,000 nodes in four subnets of /16."""
    with (
        empty_directory(),
        DrawnFleet(Path(), LARGE) as drawn,
        DashboardProcess(named(drawn.kubeconfig)) as running,
    ):
        yield running


SCENES = (
    (
        busy_cluster,
        (
            Picture(name="page-light", fragment="#/subnets/pods", height=1060, before=point_at_a_pod),
            Picture(
                name="page-dark", fragment="#/subnets/pods", theme="dark", height=1280, before=show_forecast
            ),
            Picture(name="page-narrow", fragment="#/subnets/pods", width=390, height=1500),
            Picture(name="page-node", fragment="#/subnets/pods/nodes/node-04"),
            Picture(name="page-decisions", fragment="#/decisions", height=760, before=open_a_decision),
            Picture(name="page-slices", fragment="#/networks/storage", height=780),
        ),
    ),
    (
        full_subnet,
        (
            Picture(name="page-full", fragment="#/subnets/pods", height=1010),
            Picture(name="page-waiting", fragment="#/waiting", height=600),
        ),
    ),
    (large_fleet, (Picture(name="page-large", fragment="#/subnets/east", height=1250),)),
)


def in_few_colours(taken: Image.Image) -> Image.Image:
    """Those that most of the picture has stay exactly what they are; the shades between them give way."""
    counted = sorted(taken.getcolors(taken.width * taken.height) or [], reverse=True)
    numbers = {colour: number for number, (_, colour) in enumerate(counted[:COLOURS])}
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in numbers if isinstance(colour, tuple) for part in colour])
    reduced = taken.quantize(palette=palette, dither=Image.Dither.NONE)  # the nearest, more or less
    pixels = zip(taken.get_flattened_data(), reduced.tobytes(), strict=True)
    reduced.frombytes(bytes(numbers.get(colour, near) for colour, near in pixels))
    return reduced


def take(browser: Browser, url: str, picture: Picture) -> None:
    """Take one picture, and write it in few colours."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.theme,
        device_scale_factor=picture.scale,
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    page = context.new_page()
    page.goto(url + picture.fragment)
    expect(page.locator('html[data-state="live"]')).to_be_attached()
    expect(page.get_by_text("Loading")).to_have_count(0)
    picture.before(page)
    page.wait_for_timeout(SETTLED_MILLISECONDS)
    taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    context.close()
    file = IMAGES / f"{picture.name}.png"
    in_few_colours(taken).save(file, optimize=True)
    print(f"docs/images/{file.name}  {file.stat().st_size / 1000:.0f} kB", flush=True)


def main(only: str) -> int:
    """Take all pictures, or those whose name has this in it; the answer is the exit status."""
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    try:
        with chromium() as browser:
            for scene, pictures in SCENES:
                if wanted := [picture for picture in pictures if only in picture.name]:
                    with scene() as running:
                        for picture in wanted:
                            take(browser, running.url, picture)
    except NoBrowser as lack:
        print(f"screenshots: {lack}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:])))
