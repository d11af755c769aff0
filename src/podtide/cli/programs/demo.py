"""`podtide demo`: a whole cluster in one process, and a story to watch it by."""

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import click
from msgspec import structs

from podtide.cli.options.page import page_address, page_url
from podtide.cli.output.screen_width import folded, screen_width
from podtide.cli.output.suggested_commands import own_command
from podtide.cli.shell.exit_status import ExitStatus
from podtide.core.subnet.exhaustion import Thresholds
from podtide.dashboard.options import PageOptions
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import CannotListen, ListenAddress, parse_listen_address
from podtide.runtime.plugin_executable import find_plugin
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime
from podtide.simulation.demo.plain import PlainTeller
from podtide.simulation.demo.playing import DemoOutcome, play
from podtide.simulation.demo.real_world import DemoOptions, open_real_world
from podtide.simulation.demo.stage import DemoStage, ship_released_lease
from podtide.simulation.demo.stories import STORIES, Story, check_subnet, default_subnet
from podtide.simulation.demo.teller import Teller
from podtide.simulation.world.world import World

_SCRIPT = ".py"
_PAGE, _NO_PAGE = "127.0.0.1:8321", "off"
_OPEN = "the demo serves metrics to every caller: give a loopback address, such as 127.0.0.1:9399"


@click.command(
    epilog="Stories: " + "; ".join(f"{story.name} ({story.sentence})" for story in STORIES.values()) + "."
)
@click.option(
    "--story",
    type=click.Choice(list(STORIES)),
    default="tide",
    show_default=True,
    help="Which story is told.",
)
@click.option(
    "--nodes", type=click.IntRange(2, 200), help="The number of nodes. Default: 20; 10 in the story slices."
)
@click.option(
    "--subnet", metavar="CIDR", help="The subnet of all pods. Default: the smallest in which the story fits."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of all random choices.")
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 20.0),
    default=1.0,
    show_default=True,
    help="The speed factor; 1 takes about a minute.",
)
@click.option(
    "--metrics-listen",
    metavar="ADDRESS:PORT",
    help="Where Prometheus finds the metrics of all programs, such as 127.0.0.1:9399. Default: nowhere.",
)
@click.option(
    "--dashboard",
    metavar="ADDRESS:PORT",
    default=_PAGE,
    show_default=True,
    help="Where to serve the live page; another port if that is taken, and no page if it is `off`.",
)
@click.option("--plain", is_flag=True, help="Print plain lines, as without a terminal.")
def demo(  # noqa: PLR0913 - one argument per option
    *,
    story: str,
    nodes: int | None,
    subnet: str | None,
    seed: int,
    speed: float,
    metrics_listen: str | None,
    dashboard: str,
    plain: bool,
) -> None:
    """Show podtide at work: a whole cluster in one process, told as a story.

    Allocator, controller and agents are the programs that run in a real cluster; a pretend kubelet starts the real
    CNI plugin for every pod. While it runs, podtide's other commands and kubectl can look at it. At the end all
    addresses are accounted for: exit status 0 means that none was ever where it did not belong. Ctrl-C ends it early.
    """
    told = STORIES[story]
    count = told.nodes if nodes is None else nodes
    cidr = subnet or default_subnet(told, count)
    check_subnet(told, count, cidr)
    listen = (
        parse_listen_address(metrics_listen, flag="--metrics-listen", open_because=_OPEN)
        if metrics_listen is not None
        else None
    )
    page = None if dashboard == _NO_PAGE else page_address(dashboard, flag="--dashboard", token_file=None)
    directory = Path(tempfile.mkdtemp(prefix="podtide-"))
    with ExitStack() as tidying_up:
        tidying_up.callback(shutil.rmtree, directory)
        plan = DemoOptions(
            directory=directory,
            plugin=find_plugin(),
            subnet=cidr,
            speed=speed,
            seed=seed,
            metrics_listen=listen,
            networks=told.networks(count),
        )
        outcome = asyncio.run(_play(told, plan, count, page, plain=plain or not sys.stdout.isatty()))
        _report(outcome)
        if not outcome.is_clean:
            tidying_up.pop_all()
            _tell(f"what the programs logged is kept in {plan.log}", indent=2)
            sys.exit(ExitStatus.FAILED)


async def _play(
    story: Story, plan: DemoOptions, nodes: int, page: ListenAddress | None, *, plain: bool
) -> DemoOutcome:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as opened:
        world = await opened.enter_async_context(open_real_world(plan))
        await ship_released_lease(world)
        controller = world.start_controller(elected=True)
        targets = ""
        if plan.metrics_listen is not None:
            from podtide.simulation.demo.monitoring import serving_metrics  # noqa: PLC0415 - the allocator's service starts slowly

            targets = await opened.enter_async_context(
                serving_metrics(plan.metrics_listen, world, controller, plan.nodes)
            )
        url = await opened.enter_async_context(_page(page, plan, world)) if page is not None else ""
        _introduce(story, plan, nodes, url, targets)
        teller = opened.enter_context(_teller(plain=plain))
        why = f"{own_command()} why {_where(plan)}"
        kubectl = f"kubectl {_cluster_of(plan)}"
        stage = DemoStage(
            world, controller, teller, nodes=nodes, speed=plan.speed, seed=plan.seed, why=why, kubectl=kubectl
        )
        return await play(story, stage, stopped.wait())


@asynccontextmanager
async def _page(listen: ListenAddress, plan: DemoOptions, world: World) -> AsyncIterator[str]:
    """Serve the live page; yields its URL. Another demo may have the port, so any other one does."""
    from podtide.dashboard.program import running_page  # noqa: PLC0415 - only where there is a page

    settings = world.defaults.settings
    runtime = Runtime(
        clock=world.clock, randomness=seeded_randomness("page"), log=world.log, settings=settings
    )
    options = PageOptions(
        listen=listen,
        name=f"demo in {plan.subnet}",
        networks_namespace=SYSTEM_NAMESPACE,
        thresholds=Thresholds(settings.lower_threshold, settings.upper_threshold),
        demo=True,
    )
    async with AsyncExitStack() as opened:
        try:
            address = await opened.enter_async_context(
                running_page(options, world.cluster, world.allocator, runtime=runtime)
            )
        except CannotListen:
            elsewhere = structs.replace(options, listen=structs.replace(listen, port=0))
            address = await opened.enter_async_context(
                running_page(elsewhere, world.cluster, world.allocator, runtime=runtime)
            )
        yield page_url(address)


@contextmanager
def _teller(*, plain: bool) -> Iterator[Teller]:
    if plain:
        plainly = PlainTeller(lambda line: print(line, flush=True), SystemClock(), screen_width())  # noqa: T201 - it is the output
        try:
            yield plainly
        finally:
            plainly.flush()
        return
    from rich.console import Console  # noqa: PLC0415 - needed only where it draws

    from podtide.simulation.demo.screen import ScreenTeller  # noqa: PLC0415 - as above

    with ScreenTeller(Console(), SystemClock()) as teller:
        yield teller


def _introduce(story: Story, plan: DemoOptions, nodes: int, page: str, targets: str) -> None:
    _tell(f"podtide demo, story {story.name}: {nodes} nodes in subnet {plan.subnet}.")
    if plan.plugin.suffix == _SCRIPT:
        _tell("The plugin is the portable script: the one in Rust is not built (`make plugin` builds it).")
    if page:
        click.echo("Open the live page in a browser while it runs:")
        click.echo(f"    {page}")
    click.echo(
        "Look at it from another terminal:" if page else "Look at it from another terminal while it runs:"
    )
    podtide, where = own_command(), _where(plan)
    for command in (
        f"{podtide} top {where}",
        f"{podtide} why {where} node/node-{'1'.zfill(len(str(nodes)))}",
        f"{podtide} check {where}",
        f"kubectl {_cluster_of(plan)} get nnc -A",
    ):
        click.echo(f"    {command}")
    if targets:
        click.echo(
            "A scrape configuration for Prometheus, with deploy/chart/dashboards/podtide.json for Grafana:"
        )
        click.echo(f"    http_sd_configs: [{{ url: '{targets}' }}]")


def _where(plan: DemoOptions) -> str:
    """The flags for other commands: the cluster and the database, because the demo serves no allocator over HTTP."""
    return f"{_cluster_of(plan)} --database {plan.database}"


def _cluster_of(plan: DemoOptions) -> str:
    return f"--kubeconfig {plan.kubeconfig}"


def _report(outcome: DemoOutcome) -> None:
    click.echo()
    click.echo("Stopped early. So far:" if outcome.was_stopped else "The end.")
    for line in outcome.summary.lines():
        _tell(line, indent=2)
    if outcome.is_clean:
        _tell(
            f"audit: clean, {outcome.audits} times: no address twice, none lost, all counts add up", indent=2
        )
    else:
        _tell(f"audit: NOT CLEAN: {outcome.failure}", indent=2)


def _tell(words: str, indent: int = 0) -> None:
    """Print a line; on a terminal, wrapped between words."""
    for line in folded(" " * indent, " " * 2 * indent, words, screen_width()):
        click.echo(line)
