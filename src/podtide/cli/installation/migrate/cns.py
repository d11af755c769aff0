"""`podtide migrate cns`: let podtide take the place of Azure CNS, with all pods running, and back."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum

import click

from podtide.cli.connections.allocator import AllocatorLocation, allocator_options
from podtide.cli.connections.cluster import ClusterConnection, cluster_options
from podtide.cli.installation.migrate.cns_take_over import (
    TakeOver,
    TakeOverOptions,
    give_back,
    hand_over,
    look,
    reserve,
)
from podtide.cli.options.names import ALLOCATOR_NAME, OBJECT_NAME
from podtide.cli.output.formats import output_option, show, table
from podtide.cli.output.screen_width import fitted, screen_width
from podtide.cli.shell.exit_status import ExitStatus

_MOST_LINES = 10
"""The most lines about one thing: JSON has all."""


class Step(StrEnum):
    """What the command is to do."""

    LOOK = "dry-run"
    RESERVE = "reserve"
    HAND_OVER = "hand-over"
    BACK = "back"
    LOOK_BACK = "back, dry-run"


_DONE = {
    Step.LOOK: "",
    Step.RESERVE: "reserved",
    Step.HAND_OVER: "handed over to podtide",
    Step.BACK: "given back",
    Step.LOOK_BACK: "",
}


@click.command()
@click.option(
    "--dry-run", is_flag=True, help="Show the plan, or with --back what speaks against it. Writes nothing."
)
@click.option(
    "--reserve", "reserve_", is_flag=True, help="Reserve at the allocator what every NodeNetworkConfig lists."
)
@click.option(
    "--hand-over", "hand_over_", is_flag=True, help="Let podtide serve nodes: those of --node, or all."
)
@click.option(
    "--back",
    is_flag=True,
    help="Give all nodes back to Azure CNS, with their NodeNetworkConfigs as they were.",
)
@click.option(
    "--node",
    "nodes",
    multiple=True,
    type=OBJECT_NAME,
    metavar="NAME",
    help="A node to hand over; may be repeated.",
)
@click.option(
    "--cluster-name",
    required=True,
    type=ALLOCATOR_NAME,
    metavar="NAME",
    help="This cluster's name at the allocator, as the controller has it.",
)
@click.option(
    "--network",
    required=True,
    type=ALLOCATOR_NAME,
    metavar="NAME",
    help="The network at the allocator that the subnets are in, as the controller has it.",
)
@cluster_options
@allocator_options
@output_option
def cns(  # noqa: PLR0913 - one argument per option
    *,
    dry_run: bool,
    reserve_: bool,
    hand_over_: bool,
    back: bool,
    nodes: tuple[str, ...],
    cluster_name: str,
    network: str,
    there: ClusterConnection,
    location: AllocatorLocation,
    output: str,
) -> None:
    """Let podtide take the place of Azure CNS, with all pods running.

    First --dry-run, then --reserve, which keeps every address that any node has from all others; then --hand-over, node
    after node. Each can be interrupted and run again. Exit status 1 means that something is left for a person to do.
    """
    step = _step(dry_run=dry_run, reserve_=reserve_, hand_over_=hand_over_, back=back)
    if nodes and step is not Step.HAND_OVER:
        raise click.UsageError("--node is for --hand-over: all nodes are reserved, or given back, at once.")
    options = TakeOverOptions(cluster=cluster_name, network=network)
    outcome = asyncio.run(_carry_out(step, there, location, options, nodes))
    show(output, _document(step, outcome), _lines(step, outcome))
    if outcome.objections:
        sys.exit(ExitStatus.FAILED)


def _step(*, dry_run: bool, reserve_: bool, hand_over_: bool, back: bool) -> Step:
    steps = {
        (True, False, False, False): Step.LOOK,
        (False, True, False, False): Step.RESERVE,
        (False, False, True, False): Step.HAND_OVER,
        (False, False, False, True): Step.BACK,
        (True, False, False, True): Step.LOOK_BACK,
    }
    step = steps.get((dry_run, reserve_, hand_over_, back))
    if step is None:
        raise click.UsageError(
            "say one of --dry-run, --reserve, --hand-over and --back; --dry-run and --back go together."
        )
    return step


async def _carry_out(
    step: Step,
    there: ClusterConnection,
    location: AllocatorLocation,
    options: TakeOverOptions,
    nodes: Sequence[str],
) -> TakeOver:
    async with there.cluster() as cluster, location.allocator() as allocator:
        if step is Step.LOOK:
            return await look(cluster, allocator, options)
        if step is Step.RESERVE:
            return await reserve(cluster, allocator, options)
        if step is Step.HAND_OVER:
            return await hand_over(cluster, allocator, options, nodes)
        return await give_back(cluster, allocator, options, dry_run=step is Step.LOOK_BACK)


def _document(step: Step, outcome: TakeOver) -> dict[str, object]:
    return {
        "step": step.value,
        "subnets_to_add": outcome.plan.subnets,
        "containers": outcome.plan.containers,
        "done": outcome.done,
        "already": outcome.already,
        "objections": outcome.objections,
    }


def _lines(step: Step, outcome: TakeOver) -> Iterator[str]:
    if step not in {Step.BACK, Step.LOOK_BACK}:
        yield from _containers(outcome)
    new = [f"{subnet.name}: {', '.join(subnet.cidrs)}" for subnet in outcome.plan.subnets]
    yield from _section("subnets that the allocator does not have yet", new if step is Step.LOOK else [])
    yield from _section(_DONE[step], outcome.done)
    yield from _section("done before", outcome.already)
    yield from _section("for you to mend", outcome.objections)
    yield from _next_steps(step, outcome)


def _containers(outcome: TakeOver) -> Iterator[str]:
    if not outcome.plan.containers:
        yield "no NodeNetworkConfig here is another program's"
        return
    rows = [("NODE", "SUBNET", "PRIMARY", "ADDRESSES", "CONTAINER")]
    rows += [
        (each.node, each.subnet, each.primary, str(len(each.addresses)), each.given_as)
        for each in outcome.plan.containers
    ]
    yield from table(fitted(rows, screen_width(), dispensable=("CONTAINER",)))


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    """A heading and its lines, as many as a person reads."""
    if not items:
        return
    yield ""
    yield f"{title} ({len(items)})"
    yield from (f"  {item}" for item in items[:_MOST_LINES])
    if len(items) > _MOST_LINES:
        yield f"  and {len(items) - _MOST_LINES} more (-o json shows all)"


def _next_steps(step: Step, outcome: TakeOver) -> Iterator[str]:
    steps: list[str] = []
    if outcome.objections:
        return
    if step is Step.LOOK and outcome.plan.containers:
        steps = [
            "stop DNC's request controller, which writes these NodeNetworkConfigs",
            "see that podtide's controller does not run, then: podtide migrate cns --reserve",
        ]
    elif step is Step.RESERVE and (outcome.done or outcome.already):
        steps = [
            "start podtide's controller: it leaves these nodes alone until they are handed over",
            "node after node: keep Azure CNS from it, then: podtide migrate cns --hand-over --node NAME",
        ]
    elif step is Step.HAND_OVER and outcome.done:
        steps = [
            "let podtide's agent run on these nodes: pods keep their addresses",
            "podtide check",
            "to go back: stop podtide's controller and agents, then: podtide migrate cns --back",
        ]
    elif step is Step.BACK:
        steps = ["start DNC's request controller, then Azure CNS on the nodes"]
    if steps:
        yield ""
        yield "next:"
        yield from (f"  {number}. {words}" for number, words in enumerate(steps, start=1))
