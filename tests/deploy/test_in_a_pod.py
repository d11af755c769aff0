"""Controller and agent as pods run them: nobody names a cluster, and they find the one they are in."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from control_plane.certificates import CertificateAuthority
from deploy.in_pod import lacking, running_in_pod
from deploy.installed import NAMESPACE, Installed, connected
from deploy.programs import PLUGIN, NodeFiles, Site, an_allocator, clear_nodes
from left_out import leave_out
from podtide.controller.program import LEASE
from podtide.resources.base import ObjectMeta
from podtide.resources.lease import Lease
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig

NODE = "running-pod"


@pytest.fixture(autouse=True)
def _own_view() -> None:
    if lack := lacking():
        leave_out("mount namespaces", lack)


async def test_in_a_pod_programs_find_their_cluster_by_the_service_account_that_is_mounted(
    installed: Installed, tmp_path: Path
) -> None:
    site, node, there = Site(tmp_path), NodeFiles(tmp_path, NODE), installed.control_plane
    async with connected(there.kubeconfig) as admin, AsyncExitStack() as programs:
        await admin.create(Node(metadata=ObjectMeta(name=NODE)), manager="test")
        programs.push_async_callback(clear_nodes, admin, [NODE])
        _, url = await programs.enter_async_context(an_allocator(site))
        controller = await programs.enter_async_context(
            running_in_pod(
                *(installed.mounted("podtide-controller"), there.url),
                *("controller", "--cluster-name", "default", "--network", "default", "--subnet", "pods"),
                *("--allocator", url, "--token-file", site.controllers_token, "--identity", "in-a-pod"),
            )
        )
        await controller.logged("leading")
        assert (await admin.get(Lease, LEASE.name, LEASE.namespace)).spec.holder_identity == "in-a-pod"

        agent = await programs.enter_async_context(
            running_in_pod(
                *(installed.mounted("podtide-agent", NODE), there.url),
                *("agent", "--state-directory", node.state, "--socket", node.socket),
                *("--cni-bin-directory", node.bin, "--cni-conf-directory", node.conf, "--plugin", PLUGIN),
                NODENAME=NODE,
            )
        )
        for _ in ("plugin", "network"):
            await agent.logged("installed")
        assert (await node.address("sandbox", node.primary())).startswith("10.1.0.")
        for program in (agent, controller):
            await program.stop()
        config = await admin.get(NodeNetworkConfig, NODE, NAMESPACE)
        assert config.spec.requested_ip_count, "the agent has asked, with the token that is bound to its node"


async def test_an_authority_that_did_not_sign_the_server_is_not_trusted(
    installed: Installed, tmp_path: Path
) -> None:
    """So the test above is one of TLS."""
    credential = installed.mounted("podtide-controller")
    (credential / "ca.crt").write_text(CertificateAuthority().certificate)
    async with running_in_pod(
        *(credential, installed.control_plane.url),
        *("controller", "--cluster-name", "default", "--network", "default", "--subnet", "pods"),
        *("--database", f"sqlite:///{tmp_path}/subnets.db"),
    ) as controller:
        said = await controller.logged("cannot stand for election; will go on trying")
        assert "certificate" in said["error"]
        await controller.stop()
