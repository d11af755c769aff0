"""The network that an agent installs carries traffic: the interface plugins that every node has, and real namespaces."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.test_agent import join
from deploy.container_runtime import Namespace, called_from, default_route, made_namespaces
from deploy.node_in_namespace import NodeInNamespace


@pytest.fixture
def namespaces() -> Iterator[list[Namespace]]:
    """A node and two pods."""
    with made_namespaces(3) as made:
        yield made


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("type_", ["ptp", "bridge"])
async def test_pods_on_the_installed_network_reach_each_other_by_their_addresses(
    tmp_path: Path, namespaces: list[Namespace], type_: str
) -> None:
    namespace, *pods = namespaces
    node = NodeInNamespace(tmp_path, namespace, type_)
    async with node.cluster() as cluster, node.agent() as agent:
        runtime = node.runtime
        await join(cluster, "10.1.0.5", "10.1.0.6")
        for _ in ("the plugin", "the network"):
            await agent.logged("installed")
        one, other = [await asyncio.to_thread(runtime.add, pod) for pod in pods]
        assert {one, other} == {"10.1.0.5", "10.1.0.6"}
        assert await asyncio.to_thread(called_from, pods[0], pods[1], other) == one
        assert await asyncio.to_thread(called_from, pods[1], pods[0], one) == other
        assert "via 10.1.0.1" in await asyncio.to_thread(default_route, pods[0]), (
            "the way out is the subnet's gateway"
        )
        await asyncio.to_thread(runtime.delete, pods[0])
        assert await asyncio.to_thread(runtime.add, pods[0]) == one, (
            "what a pod gave back is there for the next"
        )
        await agent.stop()
