"""Removes what placement wrote on Nodes: extended resources, and the taint.

A resource is removed from capacity and allocatable in one patch: a kubelet works out allocatable from capacity, and would put
it back. A patch states the keys that go and nothing else, so that what the kubelet writes meanwhile stays. Taints are one list:
they are written by the version that was read, and read again where another program was first.
"""

import asyncio
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from podtide.cli.output.formats import counted
from podtide.cluster.listing import get_if_there, list_kept
from podtide.cluster.port import Cluster, ClusterError, Conflict, NotFound, Patch
from podtide.core.errors import FixError, RetryError
from podtide.core.removal import some_of
from podtide.resources.installed_kinds import CHART_KINDS
from podtide.resources.metadata_keys import NO_ADDRESSES_TAINT
from podtide.resources.node import Node

MANAGER = "podtide-placement"
Tell = Callable[[str], None]
_OWN = "podtide.io/"
_RIGHTS = "podtide-controller-placement"
"""What the chart names the controller's rights to Nodes: they are there while placement is on."""
_BINDING = next(kind for kind in CHART_KINDS if kind.api.kind == "ClusterRoleBinding")
_AT_ONCE = 16
_ATTEMPTS = 10
_NODES_PER_LINE = 500


class StillPublished(FixError):
    """The controller may still publish what is to be removed."""


class NodesLeft(RetryError):
    """Some Nodes could not be changed."""


class NodeTraces(Struct, frozen=True, kw_only=True):
    """What placement wrote on one Node."""

    node: str
    resources: tuple[str, ...] = ()
    is_tainted: bool = False


async def refuse_if_published(cluster: Cluster) -> None:
    """Raises while the controller has the rights that placement takes."""
    if await get_if_there(cluster, _BINDING, _RIGHTS):
        raise StillPublished(
            f"placement is on: the controller would publish the resources again (ClusterRoleBinding {_RIGHTS} is there). Run `helm "
            "upgrade` with placement.enabled=false, which removes them too, or say --force"
        )


async def traces(cluster: Cluster, *, only_taints: bool = False) -> list[NodeTraces]:
    """The Nodes that have something of placement."""
    return await list_kept(cluster, Node, keep=lambda node: traces_on(node, only_taints=only_taints))


def traces_on(node: Node, *, only_taints: bool = False) -> NodeTraces | None:
    """What placement wrote on a Node; None if it has nothing of that."""
    published = {*node.status.capacity, *node.status.allocatable}
    resources = () if only_taints else tuple(sorted(name for name in published if name.startswith(_OWN)))
    is_tainted = any(taint.key == NO_ADDRESSES_TAINT for taint in node.spec.taints)
    if not (resources or is_tainted):
        return None
    return NodeTraces(node=node.metadata.name, resources=resources, is_tainted=is_tainted)


async def remove_traces(cluster: Cluster, found: Sequence[NodeTraces], *, tell: Tell) -> None:
    """Remove them, a few at a time, and tell how far it is. NodesLeft says where it failed, after all were tried."""
    turn = asyncio.Semaphore(_AT_ONCE)
    failed: dict[str, ClusterError] = {}
    done = 0

    async def in_turn(each: NodeTraces) -> None:
        nonlocal done
        async with turn:
            try:
                await _remove_from(cluster, each)
            except ClusterError as error:
                failed[each.node] = error
                return
            done += 1
            if done % _NODES_PER_LINE == 0:
                tell(f"removed from {done} of {len(found)} nodes")

    await asyncio.gather(*map(in_turn, found))
    if failed:
        first = min(failed)
        raise NodesLeft(
            f"what placement wrote is still on {counted(len(failed), 'node', 'nodes')} ({some_of(sorted(failed))}): {failed[first]}. "
            "Run it again to continue"
        )
    tell(
        f"removed what placement wrote from {counted(done, 'node', 'nodes')}"
        if found
        else "no node has anything of placement"
    )


async def _remove_from(cluster: Cluster, found: NodeTraces) -> None:
    try:
        if found.resources:
            gone = dict.fromkeys(found.resources)
            changes = {"status": {"capacity": gone, "allocatable": gone}}
            await cluster.patch(Patch(Node, found.node, changes=changes, status=True), manager=MANAGER)
        if found.is_tainted:
            await _untaint(cluster, found.node)
    except NotFound:
        return  # the Node is gone, and all that was on it


async def _untaint(cluster: Cluster, name: str) -> None:
    """Write the taints without podtide's, again where another program wrote the Node first."""
    for attempt in range(1, _ATTEMPTS + 1):
        node = await cluster.get(Node, name)
        left = [taint for taint in node.spec.taints if taint.key != NO_ADDRESSES_TAINT]
        try:
            await cluster.patch(
                Patch(
                    Node,
                    name,
                    changes={"spec": {"taints": msgspec.to_builtins(left)}},
                    resource_version=node.metadata.resource_version,
                ),
                manager=MANAGER,
            )
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
        else:
            return
