"""Names of nodes, subnets and secondary networks that a shell completes, asked of the cluster.

A person waits at every press of the key, so the cluster has a second to answer; and whatever goes wrong, nothing is
printed, because it would stand in the midst of the command line.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_SECONDS = 1.0
_MOST = 200


def complete_nodes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of Nodes."""
    del parameter
    from podtide.resources.node import Node  # noqa: PLC0415 - needed only at the press of a key

    return _names(context, incomplete, Node)


def complete_subnets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of ClusterSubnets."""
    del parameter
    from podtide.resources.cluster_subnet import ClusterSubnet  # noqa: PLC0415 - as above

    return _names(context, incomplete, ClusterSubnet)


def complete_networks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of secondary networks, by their definitions."""
    del parameter
    from podtide.networks.attachments import attached_networks  # noqa: PLC0415 - as above
    from podtide.resources.network_attachment import NetworkAttachmentDefinition  # noqa: PLC0415 - as above

    found = _objects(context, NetworkAttachmentDefinition)
    return _fitting((each.network.key for each in attached_networks(found)), incomplete)


def complete_scenarios(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Names of podtide's own scenarios; where none fits, files."""
    del context
    from click.shell_completion import CompletionItem as Item  # noqa: PLC0415 - as above

    from podtide.simulation.scenario.shipped_scenarios import STORIES, shipped_scenarios  # noqa: PLC0415 - as above

    kinds = {"kinds": (STORIES,)} if parameter.name == "story" else {}
    found = [Item(name) for name in sorted(shipped_scenarios(**kinds)) if name.startswith(incomplete)]
    return found or [Item(incomplete, type="file")]


def _names(context: click.Context, incomplete: str, kind: type) -> list[str]:
    return _fitting((item.metadata.name for item in _objects(context, kind)), incomplete)


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})[:_MOST]


def _objects(context: click.Context, kind: type) -> list:  # type: ignore[type-arg]  # of that kind
    with contextlib.suppress(Exception):  # the reason is in the module's docstring
        return asyncio.run(_ask(context, kind))
    return []


async def _ask(context: click.Context, kind: type) -> list:  # type: ignore[type-arg]  # as above
    from podtide.cli.connections.cluster import ClusterConnection  # noqa: PLC0415 - as above
    from podtide.cluster.listing import list_all  # noqa: PLC0415 - as above

    given = context.params.get("kubeconfig")
    there = ClusterConnection(
        kubeconfig=Path(given) if given else None, context=context.params.get("context") or ""
    )
    async with asyncio.timeout(_SECONDS), there.cluster() as cluster:
        return await list_all(cluster, kind)
