"""`podtide uninstall`: podtide leaves a cluster, and nothing of it stays but what is data or not its own."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import click
from msgspec import Struct

from podtide.allocator.port import AdministeredAllocator
from podtide.cli.connections.allocator import AllocatorLocation, optional_allocator_options
from podtide.cli.connections.cluster import ClusterConnection, cluster_options
from podtide.cli.installation.uninstall.carrying_out import Carrier, Tell
from podtide.cli.installation.uninstall.finding import FoundCluster, find
from podtide.cli.options.numbers import INTERVAL
from podtide.cli.output.formats import ToldSteps, counted, output_option
from podtide.cli.placement.removal import remove_traces, traces
from podtide.cluster.port import Cluster
from podtide.core.errors import FixError
from podtide.core.removal import NodeWork, Removal, RemovalWish, plan_removal, some_of
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.namespace import Namespace

_REASON = "podtide uninstall: no pod of the cluster has an address of podtide's"
_NOTHING_LEFT = "nothing of podtide's is left in the cluster"
_WORK_IN_WORDS = {
    NodeWork.REPLACE_AGENTS: "the files of podtide's on every node with an agent: plugin, network, bridge, journals, socket",
    NodeWork.GO_ON: "the files of podtide's on nodes that an earlier run did not finish",
    NodeWork.FROM_IMAGE: "the files of podtide's on every node: plugin, network, bridge, journals, socket",
}


class Refused(FixError):
    """podtide may not be removed now."""


class UninstallOptions(Struct, frozen=True, kw_only=True):
    """What the operator asks for."""

    wish: RemovalWish
    image: str
    dry_run: bool
    timeout_seconds: float


@click.command()
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and what stays. Changes nothing.")
@click.option(
    "--force",
    is_flag=True,
    help="Go on although pods hold addresses, or nodes cannot be cleaned. Such pods cannot be taken down without the plugin.",
)
@click.option("--keep-crds", is_flag=True, help="Leave the CustomResourceDefinitions.")
@click.option(
    "--delete-database",
    is_flag=True,
    help="Delete the volume claim of the allocator's database too. It cannot be undone.",
)
@click.option(
    "--image",
    default="",
    metavar="IMAGE",
    help="podtide's image, to clean the nodes with. Default: that of the agents. Needed where these were removed before.",
)
@click.option(
    "--timeout",
    type=INTERVAL,
    default="1m",
    show_default=True,
    help="How long to wait in all for programs to end and nodes to be clean. A later run goes on where this one ended.",
)
@cluster_options
@optional_allocator_options
@output_option
def uninstall(  # noqa: PLR0913 - one argument per option
    *,
    dry_run: bool,
    force: bool,
    keep_crds: bool,
    delete_database: bool,
    image: str,
    timeout: float,
    there: ClusterConnection,
    location: AllocatorLocation | None,
    output: str,
) -> None:
    """Remove podtide from a cluster: from its nodes, and every object of it.

    Refused while pods hold addresses. What other programs made or use stays, and so does the allocator's database. With
    --allocator, what the cluster has of the subnets there becomes free. Then `helm uninstall` removes Helm's own record.
    """
    options = UninstallOptions(
        wish=RemovalWish(
            force=force,
            keep_definitions=keep_crds,
            delete_database=delete_database,
            has_image=bool(image),
        ),
        image=image,
        dry_run=dry_run,
        timeout_seconds=timeout,
    )
    tell = ToldSteps(output)
    removal = asyncio.run(_uninstall(there, location, options, tell))
    tell.document(
        dry_run=dry_run,
        refused=removal.objections,
        stays=removal.kept,
        left_without_plugin=[pod.name for pod in removal.holders],
    )


async def _uninstall(
    there: ClusterConnection, location: AllocatorLocation | None, options: UninstallOptions, tell: Tell
) -> Removal:
    async with AsyncExitStack() as open_until_done:
        cluster = await open_until_done.enter_async_context(there.cluster())
        allocator = await open_until_done.enter_async_context(location.allocator()) if location else None
        return await uninstall_from(cluster, allocator, options, tell)


async def uninstall_from(
    cluster: Cluster,
    allocator: AdministeredAllocator | None,
    options: UninstallOptions,
    tell: Tell = click.echo,
) -> Removal:
    """Read, decide, and carry out unless that is refused or only to be shown."""
    found = await find(cluster)
    removal = plan_removal(found.situation, options.wish)
    # Asked before anything is changed, so that a wrong token is known at once.
    names = await _names_at(allocator, cluster) if allocator else ()
    if options.dry_run:
        for line in _plan_lines(removal, names):
            tell(line)
        return removal
    if removal.objections:
        raise Refused("; ".join(removal.objections))
    carrier = Carrier(cluster, seconds=options.timeout_seconds, tell=tell)
    if not removal.is_done:
        await carrier.clean_nodes(found, removal, image=options.image, force=options.wish.force)
    if allocator:
        await _free(allocator, names, removal, tell)
    if removal.is_done:
        tell(_NOTHING_LEFT)
    else:
        await carrier.delete_objects(removal.objects)
        if removal.nodes_with_traces:
            await remove_traces(cluster, await traces(cluster), tell=tell)
        await carrier.delete_custom_resources(removal.custom_resources)
        await carrier.delete_definitions(removal.definitions)
        await carrier.delete_remover(found.namespace)
    for line in _last_lines(found, removal, is_freed=allocator is not None):
        tell(line)
    return removal


async def _names_at(allocator: AdministeredAllocator, cluster: Cluster) -> tuple[str, ...]:
    """The names that this cluster has at the allocator, by its uid."""
    uid = (await cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid
    return tuple(record.name for record in (await allocator.list_clusters()).clusters if record.uid == uid)


async def _free(
    allocator: AdministeredAllocator, names: tuple[str, ...], removal: Removal, tell: Tell
) -> None:
    if not removal.may_free_addresses:
        tell(
            "what the cluster has at the allocator stays reserved: pods still have addresses of it. When they are gone, run "
            "`podtide quarantine release-cluster`"
        )
        return
    for name in names:
        containers = await allocator.forget_cluster(name, reason=_REASON)
        tell(f"freed at the allocator: cluster {name}, {counted(containers, 'container', 'containers')}")


def _plan_lines(removal: Removal, names: tuple[str, ...]) -> Iterator[str]:
    for objection in removal.objections:
        yield f"refused: {objection}"
    if words := _WORK_IN_WORDS.get(removal.node_work):
        yield f"would remove: {words}"
    for name in names if removal.may_free_addresses else ():
        yield f"would free at the allocator: all that cluster {name} has"
    if nodes := removal.nodes_with_traces:
        yield f"would remove: resources and the taint of podtide's on {counted(len(nodes), 'Node', 'Nodes')} ({some_of(nodes)})"
    for each in (*removal.objects, *removal.custom_resources):
        yield f"would delete: {each}"
    for name in removal.definitions:
        yield f"would delete: CustomResourceDefinition {name}"
    for kept in removal.kept:
        yield f"would stay: {kept.what}: {kept.reason}"
    if removal.is_done:
        yield _NOTHING_LEFT


def _last_lines(found: FoundCluster, removal: Removal, *, is_freed: bool) -> Iterator[str]:
    for kept in removal.kept:
        yield f"stays: {kept.what}: {kept.reason}"
    if removal.holders:
        yield f"left without the plugin: pods {some_of([pod.name for pod in removal.holders])}"
    if not is_freed and not removal.is_done:
        yield (
            "stays: what this cluster has at the allocator, for the next installation here; where other clusters share its "
            "subnets, free it by `podtide quarantine release-cluster NAME --reason … --force --allocator URL`"
        )
    if found.release:
        yield f"Helm still lists the release: helm uninstall {found.release} --namespace {found.namespace}"
