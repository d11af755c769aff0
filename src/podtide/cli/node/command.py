"""`podtide node`: a node's pool, the arithmetic of its request, and its slices of secondary networks."""

from collections.abc import Iterator

import click

from podtide.allocator.pages import every_quarantined
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import Quarantined
from podtide.cli.connections.asked_allocator import AskedPlaces, ask_both, places_options
from podtide.cli.node.answer import NodeAnswer, describe_node
from podtide.cli.observed.network import NetworkObjects, observe_networks, read_network_objects
from podtide.cli.output.formats import counted, objects_option, rendered, table, table_width, warn
from podtide.cli.output.screen_width import fitted, folded
from podtide.cli.output.suggested_commands import own_commands
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.shell.known_names import complete_nodes
from podtide.cli.why.facts import WhyFacts, gather_facts
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster
from podtide.resources.node import Node
from podtide.resources.pod import Pod
from podtide.runtime.clock import SystemClock

_MOST_WAITING = 10


@click.command()
@click.argument("name", shell_complete=complete_nodes)
@places_options
@watch_options
@objects_option
def node(*, name: str, places: AskedPlaces, watching: Watching | None, output: str) -> None:
    """Show a node's pool, how its request follows from its pods, and its slices of secondary networks.

    The first line is what is so and what to do, as `podtide why` says it. If --allocator or --database is given, the
    allocator is asked how full the subnets are and what earlier nodes of the name left in quarantine. It only reads.
    """

    async def look() -> str:
        async with places.there.cluster() as cluster:
            (facts, left), not_asked = await ask_both(
                places.location, lambda allocator: _read(cluster, allocator, name.removeprefix("node/"))
            )
            objects = await read_network_objects(cluster, places.networks_namespace) or NetworkObjects()
            networks = observe_networks(objects, await list_all(cluster, Pod), await list_all(cluster, Node))
        answer = describe_node(facts, networks, left, own_commands(places.there, places.location), not_asked)
        if not_asked:
            warn([not_asked])
        return rendered(output, answer, lines_of(answer, output), [f"node/{answer.name}"])

    print_answer(look, watching)


async def _read(
    cluster: Cluster, allocator: Allocator | None, name: str
) -> tuple[WhyFacts, list[Quarantined] | None]:
    facts = await gather_facts(cluster, f"node/{name}", "default", SystemClock().wall(), allocator)
    for subnet in facts.subnets:
        if subnet.allocator_error is not None:
            raise subnet.allocator_error
    if allocator is None:
        return facts, None
    return facts, [each async for each in every_quarantined(allocator, node=name)]


def lines_of(answer: NodeAnswer, output: str) -> Iterator[str]:
    """The answer as text: numbers first, then tables of subnets and slices, then conditions."""
    width = table_width(output)
    yield from folded("", "  ", answer.headline, width)
    for topic, words in _numbers(answer):
        yield from folded(f"  {topic:<12}", " " * 14, words, width)
    if answer.containers:
        yield ""
        yield from table(fitted(_container_rows(answer, output), width, dispensable=("PRIMARY", "CIDR")))
    if answer.slices:
        yield ""
        rows = [("NETWORK", "SLICE", "POOL", "HELD", "CAPACITY", "LEAKED", "STATE")]
        rows += [
            (
                each.network or "-",
                each.slice,
                each.pool or "-",
                str(each.held),
                str(each.capacity),
                str(each.leaked),
                f"quarantined since {each.quarantined_since}" if each.quarantined_since else "ok",
            )
            for each in answer.slices
        ]
        yield from table(fitted(rows, width, dispensable=("POOL",)))
    if answer.conditions:
        yield ""
        for each in answer.conditions:
            so = f"{each.type}={each.status} since {each.last_transition_time}"
            yield from folded("", "  ", f"{so} ({each.reason}): {each.message}", width)


def _numbers(answer: NodeAnswer) -> Iterator[tuple[str, str]]:
    served, waiting = answer.pods_with_address, len(answer.waiting_pods)
    yield "demand", f"{answer.demand}: {counted(served, 'pod', 'pods')} with an address, {waiting} waiting"
    if answer.waiting_pods:
        shown = ", ".join(answer.waiting_pods[:_MOST_WAITING])
        more = len(answer.waiting_pods) - _MOST_WAITING
        yield "waiting", f"{shown} and {more} more" if more > 0 else shown
    is_right = answer.should_request in {None, answer.requested}
    right = "" if is_right else f", and {answer.should_request} would be right"
    yield "requested", f"{answer.requested} per subnet{right}"
    if answer.arithmetic:
        yield "by", answer.parameters
        yield from (("", step) for step in answer.arithmetic)
    yield "held", f"{answer.held}, of which {answer.releasing} being released"
    yield "owed", str(answer.owed)
    if answer.quarantined is not None:
        yield "quarantined", f"{answer.quarantined} that earlier nodes of this name had"
    yield from (("no slice", f"of {each}") for each in answer.without_slice)


def _container_rows(answer: NodeAnswer, output: str) -> list[tuple[str, ...]]:
    columns = ("SUBNET", "CIDR", "PRIMARY", "HELD", "ON PODS", "IDLE", "RELEASING", "OWED")
    rows: list[tuple[str, ...]] = [(*columns, "VERSION", "CONTAINER") if output == "wide" else columns]
    for each in answer.containers:
        counts = (each.held, each.on_pods, each.idle, each.releasing, each.owed)
        subnet = f"{each.network}/{each.subnet}" if each.network else each.subnet
        cells = (subnet, each.cidr or "-", each.primary or "-", *map(str, counts))
        rows.append((*cells, str(each.version), each.container) if output == "wide" else cells)
    return rows
