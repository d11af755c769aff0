"""A node as the rest of a cluster sees it: a Node that says it is ready, a Lease that is renewed, pods that get to run.

What a kubelet does for pods is the simulation's (`podtide.simulation.nodes.kubelet`), on the machine's own clock and with the
real plugin. Added here is what a scheduler and controllers nobody here wrote look at: a node's readiness and room, and
the condition by which a pod counts as ready.
"""

import asyncio
import time
from contextlib import suppress
from typing import ClassVar, cast

from msgspec import field, structs

from podtide.cluster.kubernetes import KubernetesCluster
from podtide.cluster.port import Cluster, ClusterError, NotFound, R
from podtide.core.errors import RetryError
from podtide.resources.base import ObjectMeta, OwnerReference, Part
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node import Node, NodeAddress, NodeStatus
from podtide.resources.pod import Pod, PodPhase, PodStatus
from podtide.resources.timestamps import to_micro_time, to_time
from podtide.simulation.nodes.kubelet import Sandbox

MANAGER = "kubelet"
LEASES = "kube-node-lease"
LEASE_SECONDS = 40
HEARTBEAT_SECONDS = 5.0
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "110"}
READY = "Ready"


class Condition(Part, frozen=True, kw_only=True):
    """One aspect of a node or pod."""

    merge_key: ClassVar[str | None] = "type"

    type: str
    status: str
    reason: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class MachineStatus(NodeStatus, frozen=True, kw_only=True):
    """How the machine is, and what room it has."""

    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)


class MachineNode(Node, frozen=True, kw_only=True):
    """A Node with what its kubelet reports."""

    status: MachineStatus = MachineStatus()


class ReportedPodStatus(PodStatus, frozen=True, kw_only=True):
    """How a pod is, with what makes a ReplicaSet count it."""

    conditions: list[Condition] = field(default_factory=list)


class ReportedPod(Pod, frozen=True, kw_only=True):
    """A pod with what its kubelet reports."""

    status: ReportedPodStatus = ReportedPodStatus()


class KubeletsCluster(KubernetesCluster):
    """The API server as kubelets use it: whoever says that a pod runs says that it is ready, too."""

    async def replace_status(self, item: R, *, manager: str) -> R:
        """See `Cluster.replace_status`."""
        if not isinstance(item, Pod):
            return await super().replace_status(item, manager=manager)
        return cast("R", await super().replace_status(_reported(item), manager=manager))


def _reported(pod: Pod) -> ReportedPod:
    is_ready = pod.status.phase is PodPhase.RUNNING
    return ReportedPod(
        metadata=pod.metadata,
        spec=pod.spec,
        status=ReportedPodStatus(
            phase=pod.status.phase,
            pod_ip=pod.status.pod_ip,
            pod_ips=pod.status.pod_ips,
            conditions=[Condition(type=READY, status=str(is_ready), last_transition_time=_now())],
        ),
    )


class Heart:
    """Keeps a Node ready for as long as there is one."""

    def __init__(self, cluster: Cluster, name: str, address: str) -> None:
        self._cluster = cluster
        self._name = name
        self._address = address

    async def register(self) -> MachineNode:
        """Make the Node, as a kubelet does at its start."""
        node = MachineNode(
            metadata=ObjectMeta(name=self._name, labels={"kubernetes.io/hostname": self._name}),
            status=self._status(),
        )
        return await self._cluster.create(node, manager=MANAGER)

    async def beat(self) -> None:
        """Renew the Lease, and say again that the node is ready where somebody doubts it. Ends with the Node."""
        while True:
            try:
                node = await self._cluster.get(MachineNode, self._name)
            except NotFound:
                return
            except RetryError:
                pass  # there is the next beat
            else:
                await self._report(node)
            await asyncio.sleep(HEARTBEAT_SECONDS)

    async def _report(self, node: MachineNode) -> None:
        with suppress(ClusterError):  # there is the next beat
            await self._renew(node)
            if not any((each.type, each.status) == (READY, "True") for each in node.status.conditions):
                well = structs.replace(node, status=self._status())
                await self._cluster.replace_status(well, manager=MANAGER)

    def _status(self) -> MachineStatus:
        now = _now()
        return MachineStatus(
            addresses=[NodeAddress(type="InternalIP", address=self._address)],
            capacity=ROOM,
            allocatable=ROOM,
            conditions=[
                Condition(
                    type=READY,
                    status="True",
                    reason="KubeletReady",
                    last_heartbeat_time=now,
                    last_transition_time=now,
                )
            ],
        )

    async def _renew(self, node: Node) -> None:
        spec = LeaseSpec(
            holder_identity=self._name,
            lease_duration_seconds=LEASE_SECONDS,
            renew_time=to_micro_time(time.time()),
        )
        try:
            lease = await self._cluster.get(Lease, self._name, LEASES)
        except NotFound:
            owner = OwnerReference(
                api_version="v1", kind=Node.api.kind, name=self._name, uid=node.metadata.uid
            )
            place = ObjectMeta(name=self._name, namespace=LEASES, owner_references=[owner])
            await self._cluster.create(Lease(metadata=place, spec=spec), manager=MANAGER)
        else:
            await self._cluster.replace(structs.replace(lease, spec=spec), manager=MANAGER)


class AddressesInUse:
    """Which sandbox has which address, on all machines, told of every change as it happens."""

    def __init__(self) -> None:
        self._holders: dict[str, Sandbox] = {}
        self.given_twice: list[str] = []
        """Every time that an address came to a sandbox while another had it."""

    def hear(self, old: Sandbox | None, new: Sandbox | None) -> None:
        """A sandbox came, changed or went."""
        for address in old.addresses if old else ():
            if self._holders[address] is old:
                del self._holders[address]
        for address in new.addresses if new else ():
            assert new is not None
            if holder := self._holders.get(address):
                self.given_twice.append(f"{address} is {holder.pod}'s and {new.pod}'s")
            self._holders[address] = new


def _now() -> str:
    return to_time(time.time())
