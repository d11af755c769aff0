"""`podtide network show`: secondary networks with their slices, pools, reservations and leaks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import click
from msgspec import Struct

from podtide.cli.connections.cluster import ClusterConnection, cluster_options, networks_namespace_option
from podtide.cli.observed.network import (
    ObservedLeak,
    ObservedNetwork,
    ObservedPool,
    ObservedRange,
    observe_networks,
    read_network_objects,
)
from podtide.cli.output.formats import alarming, counted, objects_option, rendered, table, table_width
from podtide.cli.output.screen_width import fitted, folded
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.shell.known_names import complete_networks
from podtide.cluster.listing import list_all
from podtide.cluster.port import Forbidden
from podtide.core.errors import InvalidInput
from podtide.core.subnet.count_text import count_text
from podtide.resources.names import normalise_range
from podtide.resources.node import Node
from podtide.resources.pod import Pod

T = TypeVar("T")

_MOST_ROWS = 20
"""Rows of one table that a person reads; `-o wide` and documents have all."""
_WITHOUT_DEFINITION = "-"
_POOL_COLUMNS: tuple[str, ...] = ("POOL", "RANGE", "NODE", "HELD", "CAPACITY", "STATE")


class NoSuchNetwork(InvalidInput):
    """There is no secondary network of that name."""


class CountedNetwork(Struct, frozen=True, kw_only=True):
    """A network's counts, beside the network itself in documents."""

    name: str
    capacity: int
    held: int
    quarantined: int
    owed: int
    """Slices that nodes lack."""
    reservations: int
    leaks: int
    network: ObservedNetwork


@click.group()
def network() -> None:
    """Show secondary networks: their slices, pools, reservations and leaks."""


@network.command("show")
@click.argument("name", default="", shell_complete=complete_networks)
@networks_namespace_option
@cluster_options
@watch_options
@objects_option
def show_network(
    *,
    name: str,
    networks_namespace: str,
    there: ClusterConnection,
    watching: Watching | None,
    output: str,
) -> None:
    """Show one secondary network in detail, or all of them in a table.

    NAME is a `network_name`, or the range of an unnamed network. HELD counts addresses that pods hold, QUARANTINED those
    of them in slices whose node is deleted, OWED slices that nodes lack, LEAKS what seems to be held for pods that are
    gone: the controller's repair frees it after its grace period. It only reads.
    """
    namespace = networks_namespace or there.networks_namespace()

    async def look() -> str:
        async with there.cluster() as cluster:
            objects = await read_network_objects(cluster, namespace)
            if objects is None:
                raise Forbidden("the credential may not read the objects of secondary networks: use another")
            found = observe_networks(objects, await list_all(cluster, Pod), await list_all(cluster, Node))
        shown = [summary_of(each) for each in chosen(found, name, namespace)]
        lines = detail_lines(shown[0], output) if name else summary_lines(shown, output, namespace)
        return rendered(
            output, shown[0] if name else shown, lines, (f"network/{each.name}" for each in shown)
        )

    print_answer(look, watching)


def chosen(networks: Iterable[ObservedNetwork], name: str, namespace: str) -> list[ObservedNetwork]:
    """The network of that name, or all without one."""
    found = list(networks)
    if not name:
        return found
    wanted = {name, normalise_range(name)}
    matching = [each for each in found if each.name in wanted and each.name]
    if not matching:
        names = ", ".join(each.name for each in found if each.name)
        raise NoSuchNetwork(
            f"there is no secondary network {name!r} with its pools in namespace {namespace}: "
            + (f"there are {names}" if names else "there is none at all; see --networks-namespace")
        )
    return matching


def summary_of(network: ObservedNetwork) -> CountedNetwork:
    """The network with its counts."""
    return CountedNetwork(
        name=network.name,
        capacity=network.capacity,
        held=network.held,
        quarantined=network.quarantined,
        owed=network.owed,
        reservations=len(network.reservations),
        leaks=len(network.leaks),
        network=network,
    )


def summary_lines(networks: Iterable[CountedNetwork], output: str, namespace: str) -> Iterator[str]:
    """All networks as a table."""
    found = list(networks)
    if not found:
        yield f"there are no secondary networks with pools in namespace {namespace}"
        return
    columns = (
        "NETWORK",
        "RANGES",
        "POOLS",
        "CAPACITY",
        "HELD",
        "QUARANTINED",
        "OWED",
        "RESERVATIONS",
        "LEAKS",
    )
    rows: list[tuple[str, ...]] = [(*columns, "DEFINITIONS") if output == "wide" else columns]
    for each in found:
        counts = (each.capacity, each.held, each.quarantined, each.owed, each.reservations, each.leaks)
        ranges = ",".join(_range_words(one) for one in each.network.ranges)
        cells = (
            each.name or _WITHOUT_DEFINITION,
            ranges or "-",
            str(len(each.network.pools)),
            *map(count_text, counts),
        )
        rows.append((*cells, ",".join(each.network.definitions) or "-") if output == "wide" else cells)
    yield from table(fitted(rows, table_width(output), dispensable=("POOLS", "RESERVATIONS")))


def detail_lines(summary: CountedNetwork, output: str) -> Iterator[str]:
    """One network in sentences and tables."""
    width, found = table_width(output), summary.network
    guarded = (
        "addresses are reserved across networks" if found.is_guarded else "no reservations across networks"
    )
    defined = f"network {found.name}: {guarded}; defined by {', '.join(found.definitions) or 'nothing'}"
    yield from folded("", "  ", defined, width)
    for each in found.ranges:
        sliced = (
            "" if each.total is None else f": {len(each.slices)} of {count_text(each.total)} slices assigned"
        )
        yield f"  range {_range_words(each)}{sliced}"
        if each.nodes_without:
            without = counted(len(each.nodes_without), "node has", "nodes have")
            names = ", ".join(_some(each.nodes_without, output))
            yield from folded("    ", "      ", f"{without} no slice: {names}", width)
    yield (
        f"  {summary.held} of {count_text(summary.capacity)} addresses held, {summary.quarantined} of them in quarantine; "
        f"{counted(summary.reservations, 'reservation', 'reservations')}, {counted(summary.leaks, 'leak', 'leaks')}"
    )
    if found.pools:
        yield ""
        busiest = sorted(found.pools, key=lambda pool: (-len(pool.holders), pool.name))
        rows = [_POOL_COLUMNS, *(_pool_row(pool) for pool in _some(busiest, output))]
        yield from table(fitted(rows, width, dispensable=("POOL",)))
        yield from _left_out(len(busiest), "pools", output)
    if found.reservations and output == "wide":
        yield ""
        yield from table(
            [
                ("RESERVATION", "ADDRESS", "POD", "SINCE"),
                *((each.name, each.address or "-", each.podref, each.since) for each in found.reservations),
            ]
        )
    if found.leaks:
        yield ""
        for leak in _some(found.leaks, output):
            yield alarming(f"leaked: {_leak_words(leak)}")
        yield from _left_out(len(found.leaks), "leaks", output)


def _pool_row(pool: ObservedPool) -> tuple[str, ...]:
    state = "not confirmed yet" if pool.is_inert else "ok"
    if pool.node_gone_since:
        state = f"quarantined since {pool.node_gone_since}"
    counts = (str(len(pool.holders)), count_text(pool.capacity))
    return pool.name, pool.range, pool.node or "all", *counts, state


def _leak_words(leak: ObservedLeak) -> str:
    where = f"pool {leak.pool}" if leak.pool else f"reservation {leak.reservation}"
    return f"{leak.address or leak.reservation} in {where} for pod {leak.podref}: {leak.reason}"


def _range_words(each: ObservedRange) -> str:
    return each.cidr if each.slice_prefix is None else f"{each.cidr} by /{each.slice_prefix}"


def _some(items: Sequence[T], output: str) -> Sequence[T]:
    return items if output == "wide" else items[:_MOST_ROWS]


def _left_out(count: int, what: str, output: str) -> Iterator[str]:
    if output != "wide" and count > _MOST_ROWS:
        yield f"and {count - _MOST_ROWS} more {what}; all of them with `-o wide`"
