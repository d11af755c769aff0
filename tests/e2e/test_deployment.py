"""A Deployment on ten nodes, with a scheduler and controllers nobody here wrote, while the control plane dies under it.

Real Pods are bound by the real scheduler, agents grow their pools for them, and pretend kubelets fetch the addresses by
the real plugin. A rollout replaces every pod, during which the API server is killed; then a node is deleted, and etcd
and the controller that leads are killed before anybody has cleared up after it. In the end nothing may be lost, and at no time may an address have been two sandboxes'.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.binaries import Binaries
from control_plane.cluster import ControlPlane
from control_plane.commands import CONTROLLERS
from control_plane.errors import CannotBuild
from e2e.fleet import Fleet, running_fleet, until
from left_out import leave_out
from podtide.cluster.kubernetes import KubernetesCluster
from podtide.controller.program import LEASE
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.resources.lease import Lease
from podtide.resources.pod import Pod, PodPhase

WORKLOADS = (
    *CONTROLLERS,
    "deployment-controller",
    "replicaset-controller",
    "pod-garbage-collector-controller",
)
NODES = 10
PODS = 90
SUBNET = "10.1.0.0/20"
NAMESPACE = "default"
DEPLOYMENT = "web"


@pytest.fixture
def busy_control_plane(control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    """A control plane with controllers that make pods and delete them, which would disturb other tests."""
    with ControlPlane(control_plane_binaries, controllers=WORKLOADS) as running:
        try:
            running.start_controllers()
            running.start_scheduler()
        except CannotBuild as reason:
            leave_out("real Kubernetes", reason)
        yield running


def deployment(*, release: int) -> dict[str, Any]:
    """The Deployment; another `release` of it is a rollout."""
    labels = {"app": DEPLOYMENT}
    container = {
        "name": "main",
        "image": "registry.invalid/nothing",
        "env": [{"name": "RELEASE", "value": str(release)}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }


async def roll_out(there: ControlPlane, *, release: int) -> None:
    answer = await asyncio.to_thread(
        there.kubectl, "apply", "--filename=-", stdin=json.dumps(deployment(release=release))
    )
    assert answer.returncode == 0, answer.stderr


async def status_of(there: ControlPlane) -> dict[str, int]:
    """The Deployment's counts, once the controller has seen its newest version."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{DEPLOYMENT}"
    found = await asyncio.to_thread(there.admin.request, "GET", path)
    status: dict[str, int] = found["status"]
    return status if status.get("observedGeneration") == found["metadata"]["generation"] else {}


async def is_rolled_out(there: ControlPlane) -> bool:
    status = await status_of(there)
    counts = {status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return counts == {PODS}


async def pods_with_addresses(cluster: KubernetesCluster) -> dict[str, Pod]:
    """By the address."""
    pods = (await cluster.list(Pod, NAMESPACE)).items
    running = [pod for pod in pods if pod.status.phase is PodPhase.RUNNING]
    addresses = {pod.status.pod_ip: pod for pod in running}
    assert len(addresses) == len(running), "an address is two pods'"
    return addresses


async def pools_fit(fleet: Fleet) -> bool:
    """Whether each node asks for, and has, just what its pods call for."""
    counts = Counter(pod.spec.node_name for pod in (await pods_with_addresses(fleet.cluster)).values())
    for name in fleet.nodes:
        config = await fleet.config_of(name)
        wanted = decide_request(counts[name], Scaler(), primaries=1).request
        if (config.spec.requested_ip_count, config.status.assigned_ip_count) != (wanted, wanted):
            return False
    return True


async def test_a_deployment_keeps_its_addresses_through_a_rollout_a_lost_node_and_a_dying_control_plane(
    busy_control_plane: ControlPlane, tmp_path: Path
) -> None:
    there = busy_control_plane
    async with running_fleet(there, tmp_path, SUBNET) as fleet:
        await fleet.start_controllers(2)
        await fleet.add_nodes(NODES, "--shrink-delay", "1s")

        await roll_out(there, release=1)
        await until(lambda: is_rolled_out(there))
        first = await pods_with_addresses(fleet.cluster)
        assert len(first) == PODS
        assert {pod.spec.node_name for pod in first.values()} == set(fleet.nodes), (
            "the scheduler used all nodes"
        )
        await until(lambda: pools_fit(fleet))

        await roll_out(there, release=2)

        async def is_under_way() -> bool:
            return (await status_of(there)).get("updatedReplicas", 0) >= PODS // 4

        await until(is_under_way)
        await asyncio.to_thread(there.kill_api_server)
        await asyncio.to_thread(there.start_api_server)
        await until(lambda: is_rolled_out(there))
        second = await pods_with_addresses(fleet.cluster)
        uids = [{pod.metadata.uid for pod in pods.values()} for pods in (first, second)]
        assert not uids[0] & uids[1], "every pod is a new one"

        await fleet.delete_node("node-3")
        leader = (await fleet.cluster.get(Lease, LEASE.name, LEASE.namespace)).spec.holder_identity
        fleet.controllers[leader].kill()
        await asyncio.to_thread(there.kill_etcd)
        await asyncio.to_thread(there.start_etcd)

        async def is_moved() -> bool:
            moved = await pods_with_addresses(fleet.cluster)
            return len(moved) == PODS and {pod.spec.node_name for pod in moved.values()} == set(fleet.nodes)

        await until(is_moved)
        await until(lambda: pools_fit(fleet))

        found = await fleet.check()
        assert found["violations"] == []
        assert (found["nodes"], found["pods"]) == (NODES - 1, PODS)
        assert fleet.in_use.given_twice == []
        kept = await pods_with_addresses(fleet.cluster)
        sandboxes = {
            address: sandbox.pod
            for node in fleet.nodes.values()
            for sandbox in node.kubelet.sandboxes()
            for address in sandbox.addresses
        }
        assert sandboxes == {address: str(pod.key) for address, pod in kept.items()}
