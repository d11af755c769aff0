"""`podtide placement remove`: what placement wrote on Nodes goes, and all else on them stays."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, served
from cluster.faulty_cluster import FaultyCluster, Script
from podtide.cli.placement.removal import (
    NodesLeft,
    NodeTraces,
    StillPublished,
    refuse_if_published,
    remove_traces,
    traces,
)
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Conflict, Forbidden
from podtide.cluster.served import SERVED_KINDS
from podtide.resources.base import ObjectMeta
from podtide.resources.installed_kinds import CHART_KINDS
from podtide.resources.metadata_keys import IPV4_RESOURCE, IPV6_RESOURCE, NO_ADDRESSES_TAINT
from podtide.resources.node import Node, NodeSpec, NodeStatus, Taint

OURS = Taint(key=NO_ADDRESSES_TAINT, effect="NoSchedule")
THEIRS = Taint(key="example.org/gpu", value="yes", effect="NoExecute")
RESOURCES = {IPV4_RESOURCE: "30", IPV6_RESOURCE: "30", "podtide.io/net-blue": "4"}
MACHINE = {"cpu": "4", "example.org/gpu": "1"}
BINDING = next(kind for kind in CHART_KINDS if kind.api.kind == "ClusterRoleBinding")


async def placed(
    there: DrawnCluster,
    name: str,
    *,
    capacity: dict[str, str],
    allocatable: dict[str, str],
    taints: list[Taint],
) -> None:
    """A Node with this beside what a kubelet says of its machine."""
    made = await there.cluster.create(
        Node(metadata=ObjectMeta(name=name, labels={"zone": "a"}), spec=NodeSpec(taints=taints)),
        manager="kubelet",
    )
    status = NodeStatus(capacity=MACHINE | capacity, allocatable=MACHINE | allocatable)
    await there.cluster.replace_status(structs.replace(made, status=status), manager="kubelet")


class PlacedCluster(DrawnCluster):
    """A cluster whose Nodes have something of placement."""

    def __init__(self) -> None:
        super().__init__(EmbeddedCluster(kinds=[*SERVED_KINDS, BINDING]))

    async def placed(
        self, name: str, *, capacity: dict[str, str], allocatable: dict[str, str], taints: list[Taint]
    ) -> None:
        await placed(self, name, capacity=capacity, allocatable=allocatable, taints=taints)

    async def remove(self, *, only_taints: bool = False) -> list[str]:
        """Remove it all; answers what is told."""
        told: list[str] = []
        found = await traces(self.cluster, only_taints=only_taints)
        await remove_traces(self.cluster, found, tell=told.append)
        return told

    def of(self, name: str) -> tuple[dict[str, str], dict[str, str], list[Taint]]:
        (node,) = [each for each in self.cluster.items(Node) if each.metadata.name == name]
        assert node.metadata.labels == {"zone": "a"}
        return node.status.capacity, node.status.allocatable, node.spec.taints


async def test_resources_go_from_capacity_and_allocatable_with_the_taint_and_all_else_stays() -> None:
    there = PlacedCluster()
    await there.placed("all", capacity=RESOURCES, allocatable=RESOURCES, taints=[THEIRS, OURS])
    await there.placed("half", capacity=RESOURCES, allocatable={}, taints=[])
    await there.placed("tainted", capacity={}, allocatable={}, taints=[OURS])
    assert await there.remove() == ["removed what placement wrote from 3 nodes"]
    assert there.of("all") == (MACHINE, MACHINE, [THEIRS])
    assert there.of("half") == (MACHINE, MACHINE, [])
    assert there.of("tainted") == (MACHINE, MACHINE, [])


async def test_a_node_without_anything_of_it_is_not_written_nor_is_any_the_second_time() -> None:
    there = PlacedCluster()
    await there.placed("other", capacity={}, allocatable={}, taints=[THEIRS])
    await there.placed("all", capacity=RESOURCES, allocatable=RESOURCES, taints=[OURS])
    (other,) = [each for each in there.cluster.items(Node) if each.metadata.name == "other"]
    await there.remove()
    before = there.cluster.server.store.version
    assert await there.remove() == ["no node has anything of placement"]
    assert there.cluster.server.store.version == before
    assert other in there.cluster.items(Node)


async def test_taints_alone_can_be_removed() -> None:
    there = PlacedCluster()
    await there.placed("all", capacity=RESOURCES, allocatable=RESOURCES, taints=[OURS, THEIRS])
    await there.remove(only_taints=True)
    assert there.of("all") == (MACHINE | RESOURCES, MACHINE | RESOURCES, [THEIRS])


async def test_on_many_nodes_it_tells_how_far_it_is() -> None:
    there = PlacedCluster()
    for number in range(1001):
        await there.placed(f"n{number}", capacity=RESOURCES, allocatable=RESOURCES, taints=[])
    assert await there.remove() == [
        "removed from 500 of 1001 nodes",
        "removed from 1000 of 1001 nodes",
        "removed what placement wrote from 1001 nodes",
    ]


async def test_a_node_that_is_gone_meanwhile_is_clear() -> None:
    there = PlacedCluster()
    found = [NodeTraces(node="gone", resources=(IPV4_RESOURCE,)), NodeTraces(node="too", is_tainted=True)]
    told: list[str] = []
    await remove_traces(there.cluster, found, tell=told.append)
    assert told == ["removed what placement wrote from 2 nodes"]


async def test_it_is_refused_while_the_controller_has_the_rights_to_publish() -> None:
    there = PlacedCluster()
    await refuse_if_published(there.cluster)
    binding = BINDING(metadata=ObjectMeta(name="podtide-controller-placement"))  # type: ignore[arg-type]  # what it is stored with
    await there.cluster.create(binding, manager="helm")
    with pytest.raises(StillPublished, match=r"placement is on: .* placement\.enabled=false"):
        await refuse_if_published(there.cluster)


async def test_a_node_that_another_program_wrote_first_is_read_and_written_again() -> None:
    there = PlacedCluster()
    await there.placed("all", capacity={}, allocatable={}, taints=[OURS, THEIRS])
    conflicts = Script(patch=[Conflict("it has changed")] * 9)
    await remove_traces(
        FaultyCluster(there.cluster, conflicts), await traces(there.cluster), tell=lambda _: None
    )
    assert there.of("all") == (MACHINE, MACHINE, [THEIRS])


async def test_a_node_that_cannot_be_changed_is_named_after_all_others_were() -> None:
    there = PlacedCluster()
    for name in ("node-0", "node-1"):
        await there.placed(name, capacity={}, allocatable={}, taints=[OURS])
    faulty = FaultyCluster(there.cluster, Script(patch=[Forbidden("node-0 is not yours")]))
    with pytest.raises(
        NodesLeft, match=r"still on 1 node \(node-0\): node-0 is not yours\. Run it again to continue"
    ):
        await remove_traces(faulty, await traces(there.cluster), tell=lambda _: None)
    assert there.of("node-1") == (MACHINE, MACHINE, [])
    assert await there.remove() == ["removed what placement wrote from 1 node"]


async def test_a_node_that_others_write_all_the_time_is_left_to_the_next_run() -> None:
    there = PlacedCluster()
    await there.placed("busy", capacity={}, allocatable={}, taints=[OURS])
    faulty = FaultyCluster(there.cluster, Script(patch=[Conflict("it has changed")] * 10))
    with pytest.raises(NodesLeft, match=r"busy\): it has changed"):
        await remove_traces(faulty, await traces(there.cluster), tell=lambda _: None)


@pytest.mark.real_time
def test_the_command_works_by_a_kubeconfig_and_can_be_repeated(podtide: Run, tmp_path: Path) -> None:
    async def draw(drawn: DrawnCluster) -> None:
        await placed(drawn, "node-a", capacity=RESOURCES, allocatable=RESOURCES, taints=[OURS])

    with served(draw, tmp_path) as kubeconfig:
        command = ("placement", "remove", f"--kubeconfig={kubeconfig}")
        assert podtide(*command, "--only-taints").out == "removed what placement wrote from 1 node\n"
        document = podtide(*command, "-o", "json")
        assert json.loads(document.out)["removed"] == [
            {"node": "node-a", "resources": sorted(RESOURCES), "is_tainted": False}
        ]
        assert document.err == "removed what placement wrote from 1 node\n"
        assert podtide(*command) == (0, "no node has anything of placement\n", "")
