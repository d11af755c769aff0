"""`podtide demo`: a whole cluster in one process, and a story to watch it by."""

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import click

from podtide.cli.screen_width import folded, screen_width
from podtide.cli.suggested_commands import own_command
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import parse_listen_address
from podtide.simulation.demo.plain import PlainTeller
from podtide.simulation.demo.playing import DemoOutcome, play
from podtide.simulation.demo.real_world import DemoOptions, open_real_world
from podtide.simulation.demo.stage import DemoStage, ship_released_lease
from podtide.simulation.demo.stories import STORIES, Story, check_subnet, default_subnet
from podtide.simulation.demo.teller import Teller
from podtide.simulation.nodes.plugin_executable import find_plugin

_NOT_CLEAN = 1
_SCRIPT = ".py"
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
    "--nodes", type=click.IntRange(2, 200), default=20, show_default=True, help="The number of nodes."
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
@click.option("--plain", is_flag=True, help="Print plain lines, as without a terminal.")
def demo(  # noqa: PLR0913 - one argument per option
    *,
    story: str,
    nodes: int,
    subnet: str | None,
    seed: int,
    speed: float,
    metrics_listen: str | None,
    plain: bool,
) -> None:
    """Show podtide at work: a whole cluster in one process, told as a story.

    Allocator, controller and agents are the programs that run in a real cluster; a pretend kubelet starts the real
    CNI plugin for every pod. While it runs, podtide's other commands and kubectl can look at it. At the end all
    addresses are accounted for: exit status 0 means that none was ever where it did not belong. Ctrl-C ends it early.
    """
    told = STORIES[story]
    cidr = subnet or default_subnet(told, nodes)
    check_subnet(told, nodes, cidr)
    listen = (
        parse_listen_address(metrics_listen, flag="--metrics-listen", open_because=_OPEN)
        if metrics_listen is not None
        else None
    )
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
        )
        outcome = asyncio.run(_play(told, plan, nodes, plain=plain or not sys.stdout.isatty()))
        _report(outcome)
        if not outcome.is_clean:
            tidying_up.pop_all()
            _tell(f"what the programs logged is kept in {plan.log}", indent=2)
            sys.exit(_NOT_CLEAN)


async def _play(story: Story, plan: DemoOptions, nodes: int, *, plain: bool) -> DemoOutcome:
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
        _introduce(story, plan, nodes, targets)
        teller = opened.enter_context(_teller(plain=plain))
        why = f"{own_command()} why {_where(plan)}"
        stage = DemoStage(world, controller, teller, nodes=nodes, speed=plan.speed, seed=plan.seed, why=why)
        return await play(story, stage, stopped.wait())


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


def _introduce(story: Story, plan: DemoOptions, nodes: int, targets: str) -> None:
    _tell(f"podtide demo, story {story.name}: {nodes} nodes in subnet {plan.subnet}.")
    if plan.plugin.suffix == _SCRIPT:
        _tell("The plugin is the portable script: the one in Rust is not built (`make plugin` builds it).")
    click.echo("Look at it from another terminal while it runs:")
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
