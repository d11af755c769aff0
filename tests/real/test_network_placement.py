"""Secondary networks and a real kube-scheduler: pods that request an address of a network go where a slice has one."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from control_plane.cluster import ControlPlane
from controller.slices.network_world import conf, ipam
from patience import PATIENCE_SECONDS
from podtide.allocator.store import InlineExecutor, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.controller.options import ControllerOptions, NetworkOptions
from podtide.controller.program import Controller
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

IN_A_SLICE = 2
"""A /30 has four addresses, of which the first and the last are never handed out."""


@asynccontextmanager
async def publishing(control_plane: ControlPlane, namespace: str) -> AsyncIterator[None]:
    """A controller that publishes, with its networks in a namespace of their own."""
    access = find_access(kubeconfig=control_plane.kubeconfig, environment={}, home=Path("/nowhere"))
    clock, settings = SystemClock(), Settings(contact_timeout_seconds=1, quarantine_seconds=2)
    async with (
        KubernetesCluster(access, clock=clock, randomness=Random(1)) as cluster,
        await open_allocator(
            "sqlite:///:memory:", clock=clock, executor=InlineExecutor(), migrate=True
        ) as allocator,
    ):
        await allocator.add_subnet(SubnetSpec(network="vnet", name=namespace, cidrs=("10.78.0.0/24",)))
        controller = Controller(
            cluster,
            allocator,
            ControllerOptions(
                cluster=namespace,
                network="vnet",
                subnet=namespace,
                networks=NetworkOptions(namespace=namespace),
                placement=True,
            ),
            runtime=Runtime(
                clock=clock, randomness=Random(1), log=make_logger(io.StringIO(), clock), settings=settings
            ),
        )
        running = asyncio.create_task(controller.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.wait({running})


class NetworkedNodes:
    """Two nodes, a network of which each has a slice, and pods that may run on these nodes alone."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self._admin = control_plane.admin
        self._namespace = namespace
        self.resource = f"podtide.io/net-{namespace}"
        self.nodes = [f"{namespace}-n{number}" for number in (1, 2)]
        self._definition = f"/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions"

    def make(self) -> None:
        for name in self.nodes:
            node = {
                "metadata": {"name": name, "labels": {"test": self._namespace}},
                "status": {"capacity": {"pods": "100"}, "allocatable": {"pods": "100"}},
            }
            self._admin.request("POST", "/api/v1/nodes", node)

    def define(self) -> None:
        config = conf(ipam(network_name=self._namespace, range="10.20.0.0/16", node_slice_size="/30"))
        kind = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
        definition = {**kind, "metadata": {"name": "net"}, "spec": {"config": config}}
        self._admin.request("POST", self._definition, definition)

    def undefine(self) -> None:
        self._admin.request("DELETE", f"{self._definition}/net")

    def remove(self) -> None:
        for name in self.nodes:
            self._admin.request("DELETE", f"/api/v1/nodes/{name}")

    def published(self) -> list[tuple[str | None, str | None]]:
        """Capacity and allocatable of each node."""
        found = [self._admin.request("GET", f"/api/v1/nodes/{name}")["status"] for name in self.nodes]
        return [
            (each["capacity"].get(self.resource), each["allocatable"].get(self.resource)) for each in found
        ]

    def start_pod(self, name: str, **more: object) -> None:
        one = {self.resource: "1"}
        container = {"name": "main", "image": "registry.invalid/nothing"}
        spec = {
            "containers": [{**container, "resources": {"requests": one, "limits": one}}],
            "nodeSelector": {"test": self._namespace},
            "tolerations": [{"operator": "Exists"}],  # no kubelet ever says that a node is ready
            "terminationGracePeriodSeconds": 0,  # nor that a pod has ended
            **more,
        }
        self._admin.request("POST", self._pods(), {"metadata": {"name": name}, "spec": spec})

    def pods(self) -> set[str]:
        return {each["metadata"]["name"] for each in self._admin.request("GET", self._pods())["items"]}

    def make_priority(self) -> None:
        """A class of priority for pods that are worth more than others."""
        kind = {"metadata": {"name": self._namespace}, "value": 1000}
        self._admin.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", kind)

    def delete_pod(self, name: str) -> None:
        self._admin.request("DELETE", f"{self._pods()}/{name}?gracePeriodSeconds=0")

    def node_of(self, pod: str) -> str:
        return str(self._pod(pod)["spec"].get("nodeName", ""))

    def refusal_of(self, pod: str) -> str:
        """Why the scheduler places the pod nowhere; "" where it said nothing yet."""
        conditions = self._pod(pod)["status"].get("conditions", ())
        return " ".join(each.get("message", "") for each in conditions if each["status"] == "False")

    def _pod(self, name: str) -> Any:
        return self._admin.request("GET", f"{self._pods()}/{name}")

    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if await asyncio.to_thread(holds):
                return
            await asyncio.sleep(0.1)


async def test_pods_go_where_a_slice_has_an_address_and_wait_while_none_has(
    scheduler: ControlPlane, namespace: str
) -> None:
    cluster = NetworkedNodes(scheduler, namespace)
    cluster.make()
    async with publishing(scheduler, namespace):
        cluster.start_pod("early")
        await until(lambda: f"Insufficient {cluster.resource}" in cluster.refusal_of("early"))
        cluster.define()
        await until(lambda: cluster.published() == [(str(IN_A_SLICE), str(IN_A_SLICE))] * 2)

        pods = ["early", *(f"pod-{number}" for number in range(1, 2 * IN_A_SLICE))]
        for name in pods[1:]:
            cluster.start_pod(name)
        await until(lambda: all(cluster.node_of(name) for name in pods))
        assert sorted(cluster.node_of(name) for name in pods) == sorted(cluster.nodes * IN_A_SLICE)

        cluster.start_pod("late")
        await until(lambda: f"Insufficient {cluster.resource}" in cluster.refusal_of("late"))
        assert cluster.node_of("late") == ""
        left = cluster.node_of("pod-1")
        cluster.delete_pod("pod-1")
        await until(lambda: cluster.node_of("late") == left)

        cluster.undefine()
        await until(lambda: cluster.published() == [(None, None)] * 2)
        cluster.remove()


async def test_a_pod_of_a_higher_priority_takes_the_place_of_a_lower_one(
    scheduler: ControlPlane, namespace: str
) -> None:
    cluster = NetworkedNodes(scheduler, namespace)
    cluster.make()
    cluster.make_priority()
    async with publishing(scheduler, namespace):
        cluster.define()
        await until(lambda: cluster.published() == [(str(IN_A_SLICE), str(IN_A_SLICE))] * 2)
        pods = {f"pod-{number}" for number in range(2 * IN_A_SLICE)}
        for name in sorted(pods):
            cluster.start_pod(name)
        await until(lambda: all(cluster.node_of(name) for name in pods))
        cluster.start_pod("urgent", priorityClassName=namespace)
        await until(lambda: bool(cluster.node_of("urgent")))
        assert len(pods - cluster.pods()) == 1
    cluster.remove()
