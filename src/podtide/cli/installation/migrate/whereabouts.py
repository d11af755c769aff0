"""`podtide migrate whereabouts`: show, and do, what lets podtide take over secondary networks."""

import asyncio
import sys
from collections.abc import Iterator, Sequence

import click
from msgspec import Struct

from podtide.cli.connections.cluster import ClusterConnection, cluster_options, networks_namespace_option
from podtide.cli.output.formats import output_option, show, table
from podtide.cli.output.screen_width import fitted, screen_width
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cluster.listing import list_all, list_if_known
from podtide.cluster.port import Cluster, Conflict
from podtide.networks.migration import (
    DefinitionChange,
    Migration,
    MigrationSnapshot,
    confirmed,
    plan_migration,
)
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod

MANAGER = "podtide-migrate"
"""The field manager of what it writes."""
_AGAIN_AFTER_SECONDS = 1.0
"""Longer than an ADD takes from reservation to pool."""
_MOST_LINES = 10
"""The most lines about one kind of problem: JSON has all."""


class MigrationOutcome(Struct, frozen=True, kw_only=True):
    """What was found, and what happened to the changes."""

    found: Migration
    applied: bool
    changed: tuple[str, ...] = ()
    overtaken: tuple[str, ...] = ()
    """Definitions that somebody else wrote meanwhile."""

    @property
    def needs_attention(self) -> bool:
        """Whether a person has to do something."""
        return bool(self.found.left_alone or self.found.for_you or self.overtaken)


@click.command()
@click.option(
    "--dry-run", is_flag=True, help="Show what would change, and what is wrong today. Writes nothing."
)
@click.option("--apply", "apply_", is_flag=True, help="Apply the changes, one definition at a time.")
@networks_namespace_option
@cluster_options
@output_option
def whereabouts(
    *, dry_run: bool, apply_: bool, networks_namespace: str, there: ClusterConnection, output: str
) -> None:
    """Let podtide take over the secondary networks of a cluster that runs Whereabouts.

    The IPAM type in NetworkAttachmentDefinitions becomes podtide, and nothing else changes: pools and reservations are
    taken over as they are, and a classic network stays classic. It can be interrupted, and run again, at any point. Exit
    status 1 means that something is left for a person to do.
    """
    if dry_run == apply_:
        raise click.UsageError("say either --dry-run or --apply.")
    outcome = asyncio.run(_migrate(there, networks_namespace or there.networks_namespace(), apply_=apply_))
    show(output, _document(outcome), _lines(outcome))
    if outcome.needs_attention:
        sys.exit(ExitStatus.FAILED)


async def _migrate(there: ClusterConnection, namespace: str, *, apply_: bool) -> MigrationOutcome:
    async with there.cluster() as cluster:
        return await migrate_cluster(cluster, namespace, apply_=apply_)


async def migrate_cluster(cluster: Cluster, namespace: str, *, apply_: bool) -> MigrationOutcome:
    """Read a cluster, and change it if asked to."""
    _tell(f"reading definitions and pods, and reservations and pools in namespace {namespace}")
    found = plan_migration(await read_situation(cluster, namespace))
    if found.for_you or found.mended_by_repair:
        _tell("reading them again: something looks wrong, or moved while it was read")
        await asyncio.sleep(_AGAIN_AFTER_SECONDS)
        found = confirmed(found, plan_migration(await read_situation(cluster, namespace)))
    if not apply_:
        return MigrationOutcome(found=found, applied=False)
    changed: list[str] = []
    overtaken: list[str] = []
    for number, change in enumerate(found.changes, start=1):
        done = await carry_out(cluster, change)
        (changed if done else overtaken).append(change.name)
        _tell(f"{number} of {len(found.changes)}: {change.name} {'changed' if done else 'not changed'}")
    return MigrationOutcome(found=found, applied=True, changed=tuple(changed), overtaken=tuple(overtaken))


async def read_situation(cluster: Cluster, namespace: str) -> MigrationSnapshot:
    """Read everything once, in an order in which nothing that is in use can look unused."""
    return MigrationSnapshot(
        attachments=await list_all(cluster, NetworkAttachmentDefinition),
        reservations=await list_if_known(cluster, OverlappingRangeIPReservation, namespace),
        slice_pools=await list_if_known(cluster, NodeSlicePool, namespace),
        pools=await list_if_known(cluster, IPPool, namespace),
        pods=await list_all(cluster, Pod),
    )


async def carry_out(cluster: Cluster, change: DefinitionChange) -> bool:
    """Write one definition, if it is as it was read.

    Only its configuration is applied: all other fields stay their owners'.
    """
    read = change.attachment.metadata
    place = ObjectMeta(
        name=read.name, namespace=read.namespace, uid=read.uid, resource_version=read.resource_version
    )
    spec = NetworkAttachmentDefinitionSpec(config=change.config)
    try:
        await cluster.apply(NetworkAttachmentDefinition(metadata=place, spec=spec), manager=MANAGER)
    except Conflict:
        return False
    return True


def _tell(words: str) -> None:
    """Print progress to stderr, where it does not disturb a program that reads the output."""
    click.echo(f"podtide: {words}", err=True)


def _document(outcome: MigrationOutcome) -> dict[str, object]:
    found = outcome.found
    return {
        "applied": outcome.applied,
        "networks": found.networks,
        "changes": [
            {"attachment": change.name, "before": change.attachment.spec.config, "after": change.config}
            for change in found.changes
        ],
        "changed": outcome.changed,
        "overtaken": outcome.overtaken,
        "done": found.done,
        "left_alone": found.left_alone,
        "for_you": found.for_you,
        "mended_by_repair": found.mended_by_repair,
        "ownerless_pools": found.ownerless_pools,
    }


def _lines(outcome: MigrationOutcome) -> Iterator[str]:
    found = outcome.found
    yield from _networks(found)
    if outcome.applied:
        yield from _section("changed from whereabouts to podtide", outcome.changed)
        yield from _section(
            "not changed, because they were written meanwhile; run it again", outcome.overtaken
        )
    else:
        yield from _section(
            "would change from whereabouts to podtide", [change.name for change in found.changes]
        )
    yield from _section("podtide's already", found.done)
    yield from _section(
        "left alone, for you to mend", [f"{left.attachment}: {left.words}" for left in found.left_alone]
    )
    yield from _section("wrong today, for you to mend", [item.words for item in found.for_you])
    yield from _section(
        "wrong today, put right by the controller's leak repair",
        [item.words for item in found.mended_by_repair],
    )
    yield from _section(
        "pools of no network that a definition describes, left as they are", found.ownerless_pools
    )
    yield from _next_steps(outcome)


def _networks(found: Migration) -> Iterator[str]:
    if not found.networks:
        yield "no secondary networks of whereabouts or podtide are defined here"
        return
    rows = [("NETWORK", "MODE", "RANGES", "DEFINITIONS", "POOLS", "ADDRESSES")]
    rows += [
        (
            item.network,
            item.mode,
            ", ".join(item.ranges),
            str(len(item.attachments)),
            str(len(item.pools)),
            str(item.allocations),
        )
        for item in found.networks
    ]
    yield from table(fitted(rows, screen_width(), dispensable=("DEFINITIONS", "POOLS")))


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    """A heading and its lines, as many as a person reads."""
    if not items:
        return
    yield ""
    yield f"{title} ({len(items)})"
    yield from (f"  {item}" for item in items[:_MOST_LINES])
    if len(items) > _MOST_LINES:
        yield f"  and {len(items) - _MOST_LINES} more (-o json shows all)"


def _next_steps(outcome: MigrationOutcome) -> Iterator[str]:
    steps: list[str] = []
    if outcome.found.changes and not outcome.applied:
        steps = [
            "stop Whereabouts' node slice controller and its reconciler, if they run: two programs must not write the same objects",
            "see that podtide's controller and agents run, and its plugin is installed on every node",
            "podtide migrate whereabouts --apply",
        ]
    elif outcome.changed:
        steps = [
            "let the same word follow where the definitions come from (Git, Helm), or it is undone there",
            "keep an executable named whereabouts on the nodes (podtide's own will do) until pods from before are gone",
            "podtide check",
            "to go back: set the IPAM type of what is listed above to whereabouts again; nothing else was changed",
        ]
    if steps:
        yield ""
        yield "next:"
        yield from (f"  {number}. {step}" for number, step in enumerate(steps, start=1))
