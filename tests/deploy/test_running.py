"""The programs on a real API server, each with its own token and nobody else's: from the subnet to a pod's address."""

import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cli.processes import running, until
from deploy.installed import NAMESPACE, Installed, connected
from deploy.programs import (
    NodeFiles,
    Site,
    a_controller,
    an_agent,
    an_allocator,
    clear_networks,
    clear_nodes,
    define,
    secondary,
    stop_unrefused,
)
from podtide.agent.cni_installation import CONFLIST
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NODE_ANNOTATION
from podtide.resources.names import Naming
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig

SLICED = secondary("running-sliced", range="10.20.0.0/16", node_slice_size="/24")
SHARED = secondary("running-shared", range="10.21.0.0/24")


@pytest.mark.parametrize("naming", Naming)
async def test_with_its_own_role_each_program_does_its_part_and_is_refused_nothing(
    installed: Installed, tmp_path: Path, naming: Naming
) -> None:
    site = Site(tmp_path)
    nodes = [NodeFiles(tmp_path, name) for name in ("running-a", "running-b")]
    async with connected(installed.control_plane.kubeconfig) as admin, AsyncExitStack() as programs:
        for node in nodes:
            await admin.create(Node(metadata=ObjectMeta(name=node.name)), manager="test")
        programs.push_async_callback(clear_nodes, admin, [node.name for node in nodes])
        await define(admin, SLICED, SHARED)
        programs.push_async_callback(clear_networks, admin, SLICED, SHARED)

        agents = [
            await programs.enter_async_context(an_agent(node, installed.agent(node.name))) for node in nodes
        ]
        assert not any(node.network_is_there for node in nodes), "nothing was granted, so nothing is ready"

        allocator, url = await programs.enter_async_context(an_allocator(site))
        controller = await programs.enter_async_context(
            a_controller(site, url, installed.controller(), naming)
        )
        for agent in agents:
            assert (await agent.logged("installed"))["path"].endswith("/podtide"), "the plugin comes first"
            assert (await agent.logged("installed"))["path"].endswith(CONFLIST)

        for network in (nodes[0].primary(), SLICED, SHARED):
            addresses = [
                await node.address(f"{node.name}-{number}", network) for node in nodes for number in range(3)
            ]
            assert len(set(addresses)) == 6

        async def has_asked() -> bool:
            configs = [await admin.get(NodeNetworkConfig, node.name, NAMESPACE) for node in nodes]
            return all(config.spec.requested_ip_count for config in configs)

        await until(has_asked)
        await stop_unrefused(*agents, controller, allocator)
        pools = [
            pool.metadata.name
            for pool in (await admin.list(IPPool, NAMESPACE)).items
            if pool.metadata.annotations.get(NODE_ANNOTATION) in {node.name for node in nodes}
        ]
        assert len(pools) == len(nodes)
        for name in ("podtide-controller", *pools):
            lease = await admin.get(Lease, name, NAMESPACE)
            assert not lease.spec.holder_identity, f"{name} is not given up"
        assert all(node.network_is_there for node in nodes), "an agent that stops leaves its node its network"


@pytest.mark.parametrize("program", ["agent", "controller"])
async def test_without_its_role_a_program_says_what_it_may_not(
    installed: Installed, tmp_path: Path, program: str
) -> None:
    """So the test above would have noticed."""
    stranger = installed.control_plane.credentials.kubeconfig_for_user(f"stranger-{program}")
    files = NodeFiles(tmp_path, "running-c")
    started = {
        "agent": (
            "agent",
            "--state-directory",
            files.state,
            "--socket",
            files.socket,
            "--node-name",
            "running-c",
        ),
        "controller": (
            *("controller", "--cluster-name", "default", "--network", "default", "--subnet", "pods"),
            *("--database", f"sqlite:///{tmp_path}/subnets.db"),
        ),
    }[program]
    async with running(*started, "--kubeconfig", stranger) as refused:
        while "forbidden" not in json.dumps(refused.lines).lower():
            await refused.logged(
                {
                    "agent": "cannot list or watch the cluster: retrying",
                    "controller": "cannot stand for election; will go on trying",
                }[program]
            )
        await refused.stop()
