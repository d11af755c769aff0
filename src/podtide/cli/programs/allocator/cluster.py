"""`podtide allocator cluster` and `release`: which cluster a name belongs to, and a database that waits for reports."""

import click

from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.terms import ClusterRecord, ClusterRegistry
from podtide.cli.connections.allocator import AllocatorLocation, allocator_options
from podtide.cli.output.formats import (
    counted,
    objects_option,
    output_option,
    rendered,
    show,
    table,
    table_width,
)
from podtide.cli.output.screen_width import fitted
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.core.errors import FixError, InvalidInput
from podtide.resources.timestamps import to_time

_COLUMNS = ("NAME", "UID", "CONTAINERS", "OF ANOTHER UID", "WITHOUT UID", "CONTROLLER", "REPORTED")
_DISPENSABLE = ("CONTROLLER", "WITHOUT UID", "OF ANOTHER UID")
"""Columns to drop before a uid is shortened, which people need to copy."""
_NONE = "-"


@click.group()
def cluster() -> None:
    """List clusters, move a name to another cluster, forget one that is gone.

    A cluster's name belongs to the uid of its namespace kube-system from first use.
    """


@cluster.command("list")
@allocator_options
@watch_options
@objects_option
def list_clusters(*, location: AllocatorLocation, watching: Watching | None, output: str) -> None:
    """List clusters with their uids, and say whether the allocator grants.

    Where it waits for reports after its database was restored, the first line says so.
    """

    async def look() -> str:
        async with location.allocator() as allocator:
            registry = await allocator.list_clusters()
        lines = [_waiting(registry)] if registry.recovering else []
        rows = [_COLUMNS, *map(_row, registry.clusters)]
        lines += table(fitted(rows, table_width(output), dispensable=_DISPENSABLE))
        return rendered(output, registry, lines, (each.name for each in registry.clusters))

    print_answer(look, watching)


@cluster.command()
@click.argument("name")
@click.option(
    "--to-uid",
    required=True,
    metavar="UID",
    help="The uid of the namespace kube-system of the cluster that is to own the name.",
)
@allocator_options
@output_option
def move(*, name: str, to_uid: str, location: AllocatorLocation, output: str) -> None:
    """Let a name belong to another cluster.

    Containers stay with the cluster that made them: if that one is gone, `forget NAME --uid` frees them.
    """

    async def move_it(allocator: AdministeredAllocator) -> None:
        await known_cluster(allocator, name)
        await allocator.move_cluster(name, uid=to_uid)

    location.ask_as_administration(move_it)
    show(output, {"name": name, "uid": to_uid}, [f"the name {name} belongs to {to_uid}"])


@cluster.command()
@click.argument("name")
@click.option("--uid", metavar="UID", help="Only containers that record this uid; the name keeps its owner.")
@click.option(
    "--without-uid", is_flag=True, help="Only containers that record no uid; the name keeps its owner."
)
@click.option("--force", is_flag=True, help="Do it even while a controller acts for the cluster.")
@allocator_options
@output_option
def forget(  # noqa: PLR0913 - one argument per option
    *,
    name: str,
    uid: str | None,
    without_uid: bool,
    force: bool,
    location: AllocatorLocation,
    output: str,
) -> None:
    """Delete all containers of a cluster that is gone for ever, and let its name be free.

    Their addresses are free at once, those in quarantine too. Nodes that still live would lose theirs: be sure that there are
    none. Refused while a controller acts for the cluster.
    """
    if uid and without_uid:
        raise InvalidInput("--uid and --without-uid name different containers: give one of them")
    which = "" if without_uid else uid

    async def forget_it(allocator: AdministeredAllocator) -> int:
        record = await known_cluster(allocator, name)
        if not force:
            refuse_if_acting(record, which)
        return await allocator.forget_cluster(name, uid=which)

    deleted = location.ask_as_administration(forget_it)
    words = f"{counted(deleted, 'container is', 'containers are')} deleted"
    if which is None:
        words += f", and the name {name} is free"
    show(output, {"name": name, "deleted": deleted}, [words])


@click.command()
@allocator_options
@output_option
def release(*, location: AllocatorLocation, output: str) -> None:
    """End the recovery of an allocator that waits for reports after its database was restored.

    What the clusters that did not report hold may then be given twice: be sure that they hold nothing.
    """
    before = location.ask_as_administration(lambda allocator: allocator.list_clusters())
    location.ask_as_administration(lambda allocator: allocator.end_recovery())
    awaited = ", ".join(before.awaited) or "no cluster"
    words = (
        f"it grants again, without a report of {awaited}"
        if before.recovering
        else "it did not wait for any cluster"
    )
    show(output, {"awaited": before.awaited}, [words])


def _waiting(registry: ClusterRegistry) -> str:
    awaited = ", ".join(registry.awaited) or "the first cluster"
    return (
        f"NOTHING IS GRANTED: the store went back ({registry.recovering}); it waits for the report of {awaited}. "
        "A cluster's controller reports by itself; for one that is gone run `podtide allocator cluster forget`, "
        "or `podtide allocator release`"
    )


def _row(record: ClusterRecord) -> tuple[str, ...]:
    return (
        record.name,
        record.uid or _NONE,
        str(record.containers),
        str(record.of_other_uids),
        str(record.without_uid),
        record.holder or _NONE,
        "yes" if record.reported else "AWAITED",
    )


class StillActing(FixError):
    """A controller has a term for the cluster that is to be forgotten."""


async def known_cluster(allocator: AdministeredAllocator, name: str) -> ClusterRecord:
    """The allocator's record of the cluster; refused if it knows nothing of it, not even something in quarantine.

    A misspelt name must not look like a cluster for which nothing is left to do.
    """
    records = (await allocator.list_clusters()).clusters
    for record in records:
        if record.name == name:
            return record
    if (await allocator.quarantined(cluster=name, limit=1)).items:
        return ClusterRecord(name=name)
    known = ", ".join(record.name for record in records) or "none"
    raise InvalidInput(f"the allocator knows no cluster {name}: it knows {known}; correct the name")


def refuse_if_acting(record: ClusterRecord, uid: str | None) -> None:
    """Raises if a controller has a term for the cluster whose containers, of one uid or all, are to be deleted."""
    if record.holder and uid in {None, record.uid}:
        raise StillActing(
            f"controller {record.holder} acts for cluster {record.name} until {to_time(record.term_until)}, and renews that as "
            "long as it runs: the nodes of a cluster that lives would lose their addresses; stop its podtide and try "
            "again, or say --force"
        )
