"""`podtide check`: the invariants, checked in a live cluster."""

import asyncio
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from podtide.allocator.pages import every_container
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Subnet
from podtide.cli.check.findings import AllocatorRecords, CheckedObjects, CheckFindings, confirmed, find
from podtide.cli.connections.asked_allocator import AskedPlaces, places_options
from podtide.cli.observed.node import observe_nodes
from podtide.cli.options.numbers import DURATION
from podtide.cli.output.formats import counted, output_option, rendered
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cluster.listing import list_all, list_if_known
from podtide.cluster.port import Cluster, Forbidden
from podtide.core.audit.invariants import Violation
from podtide.core.audit.networks import NetworkPicture
from podtide.core.errors import InvalidInput
from podtide.core.networks.leaks import LeakGrace
from podtide.networks.audit_picture import draw_networks
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod
from podtide.runtime.clock import SystemClock
from podtide.runtime.durations import format_duration
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

if TYPE_CHECKING:
    from podtide.cli.check.repair import RepairReport

_AGAIN_AFTER_SECONDS = 1.0
"""Longer than one object takes to follow another: what is still inconsistent by then is broken."""


@click.command()
@click.option(
    "--repair",
    is_flag=True,
    help="Repair leaks in secondary networks as the controller does: what two passes find, --grace apart.",
)
@click.option("--dry-run", is_flag=True, help="With --repair: only say what would be written.")
@click.option(
    "--grace",
    type=DURATION,
    default=None,
    metavar="DURATION",
    help="With --repair: how long a leak must last, at least the setting leak_grace, which is the default.",
)
@places_options
@watch_options
@output_option
def check(  # noqa: PLR0913 - one argument per option
    *,
    repair: bool,
    dry_run: bool,
    grace: float | None,
    places: AskedPlaces,
    watching: Watching | None,
    output: str,
) -> None:
    """Check that no address is given twice, nothing is lost, and all counts add up.

    Reads the cluster's objects, those of secondary networks too, and, if --allocator or --database is given, the
    allocator's records. It only reads, unless --repair is given. What looks broken is read once more before it is
    reported, because a live cluster changes while it is read. Exit status 1 means that something was broken at the last
    look.
    """
    if (dry_run or grace is not None) and not repair:
        raise click.UsageError("--dry-run and --grace are for --repair: give that as well")
    if repair and watching:
        raise click.UsageError("--watch only looks, and --repair writes: give one of them")
    report = _repair(places, grace, dry_run=dry_run) if repair else None
    is_broken = False

    async def look() -> str:
        nonlocal is_broken
        findings = await _check(places)
        is_broken = bool(findings.violations)
        document = _document(findings) | ({"repair": report} if report else {})
        return rendered(output, document, [*_repair_lines(report), *_lines(findings)])

    print_answer(look, watching)
    if is_broken:
        sys.exit(ExitStatus.FAILED)


def _repair(places: AskedPlaces, grace_seconds: float | None, *, dry_run: bool) -> "RepairReport":
    from podtide.cli.check.repair import repair_leaks  # noqa: PLC0415 - a check that only reads needs none of it

    usual = Settings()
    least = usual.leak_grace_seconds
    if grace_seconds is not None and grace_seconds < least:
        raise InvalidInput(
            f"--grace={format_duration(grace_seconds)} is refused: a leak must last {format_duration(least)} at least, as for "
            "the controller, because a pod may be starting"
        )
    seconds = least if grace_seconds is None else grace_seconds
    patience = LeakGrace(leak_grace_seconds=seconds, quarantine_seconds=usual.quarantine_seconds)
    clock = SystemClock()
    log = make_logger(sys.stderr, clock, level="error" if dry_run else "warning")
    runtime = Runtime(clock=clock, randomness=system_randomness(), log=log)
    click.echo(f"podtide: looking for leaks twice, {format_duration(seconds)} apart", err=True)

    async def run() -> "RepairReport":
        async with places.there.cluster() as cluster:
            namespace = places.networks_namespace
            return await repair_leaks(cluster, namespace, patience=patience, dry_run=dry_run, runtime=runtime)

    return asyncio.run(run())


def _repair_lines(report: "RepairReport | None") -> Iterator[str]:
    if report is None:
        return
    begin = "would " if report.dry_run else "did "
    yield from (f"{begin}{line}" for line in report.done)
    if not report.done:
        yield "nothing to repair" + (" yet" if report.left else "")
    if report.left:
        yield (
            f"{counted(report.left, 'leak', 'leaks')} left to the controller, which waits longer where a removed node's machine may run "
            "on; free one by hand with `podtide release ADDRESS`"
        )


async def _check(places: AskedPlaces) -> CheckFindings:
    namespace = places.networks_namespace
    async with places.opened() as (cluster, allocator):
        findings = find(await read(cluster, allocator, namespace))
        if findings.violations:
            await asyncio.sleep(_AGAIN_AFTER_SECONDS)
            findings = confirmed(findings, find(await read(cluster, allocator, namespace)))
        return findings


async def read(
    cluster: Cluster, allocator: Allocator | None, namespace: str = SYSTEM_NAMESPACE
) -> CheckedObjects:
    """Read everything once: first uses of addresses, then their grants, so that no use is newer than its grant."""
    pods = await list_all(cluster, Pod)
    configs = await list_all(cluster, NodeNetworkConfig, SYSTEM_NAMESPACE)
    records = await _read_records(allocator) if allocator else None
    return CheckedObjects(observe_nodes(configs, pods), records, await _read_networks(cluster, namespace))


async def _read_networks(cluster: Cluster, namespace: str) -> NetworkPicture | None:
    """The secondary networks, if the cluster has any; None if the credential may not read them."""
    try:
        attachments = await list_if_known(cluster, NetworkAttachmentDefinition)
        pools = await list_if_known(cluster, IPPool, namespace)
        # After the pools: an address is reserved before it is held, so no reservation of what was read can be missing.
        reservations = await list_if_known(cluster, OverlappingRangeIPReservation, namespace)
        slice_pools = await list_if_known(cluster, NodeSlicePool, namespace)
    except Forbidden:
        return None
    return draw_networks(attachments, pools=pools, reservations=reservations, slice_pools=slice_pools)


async def _read_records(allocator: Allocator) -> AllocatorRecords:
    before = await allocator.list_subnets()
    containers = [container async for container in every_container(allocator)]
    after = await allocator.list_subnets()
    stood = {_timeless(subnet) for subnet in before}
    return AllocatorRecords(
        containers=tuple(containers),
        subnets=tuple(subnet for subnet in after if _timeless(subnet) in stood),
        moving=tuple(subnet.name for subnet in after if _timeless(subnet) not in stood),
        broken=await _audit_database(allocator),
    )


def _timeless(subnet: Subnet) -> Subnet:
    """The subnet without the fields that differ between two reads although nothing changed."""
    return replace(subnet, in_force=replace(subnet.in_force, age_seconds=0.0))


async def _audit_database(allocator: Allocator) -> tuple[Violation, ...]:
    """The violations in the database, if --database is given; an allocator does not offer that over HTTP."""
    from podtide.allocator.store import DatabaseAllocator  # noqa: PLC0415 - not needed to ask a service

    return await allocator.audit() if isinstance(allocator, DatabaseAllocator) else ()


def _document(findings: CheckFindings) -> dict[str, object]:
    return {
        "clean": not findings.violations,
        "violations": findings.violations,
        "not_checked": findings.not_checked,
        "nodes": findings.nodes,
        "pods": findings.pods,
        "addresses": findings.addresses,
        "networks": findings.networks,
        "network_addresses": findings.network_addresses,
    }


def _lines(findings: CheckFindings) -> Iterator[str]:
    looked_at = (
        f"{counted(findings.nodes, 'node', 'nodes')} with {counted(findings.addresses, 'address', 'addresses')}, "
        f"{counted(findings.pods, 'pod', 'pods')} with one"
    )
    if findings.networks:
        looked_at += (
            f", {counted(findings.networks, 'secondary network', 'secondary networks')} with "
            f"{counted(findings.network_addresses, 'address', 'addresses')} in use"
        )
    broken = len(findings.violations)
    yield f"{counted(broken, 'violation', 'violations')} in {looked_at}" if broken else f"clean: {looked_at}"
    yield from (f"  {violation}" for violation in findings.violations)
    yield from (f"  not checked: {words}" for words in findings.not_checked)
