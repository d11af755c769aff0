"""`podtide migrate cns`: reserves what nodes have, hands them over one by one, refuses contradictions, and goes back."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, served
from cluster.faulty_cluster import FaultyCluster, Script
from controller import dnc
from controller.world import World, a_world, moment
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cli.installation.migrate.cns_take_over import (
    ControllerRuns,
    NothingReserved,
    TakeOverOptions,
    give_back,
    hand_over,
    look,
    reserve,
)
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidInput
from podtide.resources.base import ObjectMeta
from podtide.resources.foreign_config import is_foreign
from podtide.resources.metadata_keys import CONTAINER_FINALIZER
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodIP, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import SystemClock

OPTIONS = TakeOverOptions(cluster="east", network="blue")


async def run_pod(
    cluster: Cluster, name: str, node: str, ip: str = "", labels: dict[str, str] | None = None
) -> Pod:
    place = ObjectMeta(name=name, namespace="default", labels=labels or {})
    made = await cluster.create(Pod(metadata=place, spec=PodSpec(node_name=node)), manager="kubelet")
    status = PodStatus(phase=PodPhase.RUNNING, pod_ip=ip, pod_ips=[PodIP(ip=ip)] if ip else [])
    return await cluster.replace_status(structs.replace(made, status=status), manager="kubelet")


async def draw(cluster: Cluster) -> None:
    """Two nodes that CNS serves, each with a pod."""
    for name, first in (("n1", 10), ("n2", 20)):
        node = await cluster.create(Node(metadata=ObjectMeta(name=name)), manager="kubelet")
        ips = [f"10.1.0.{number}" for number in range(first, first + 4)]
        await dnc.give(cluster, node, *ips, version=first)
        await run_pod(cluster, f"web-{name}", name, ips[1])


async def taken_over(world: World) -> None:
    """Both nodes handed over, and a controller at work."""
    await draw(world.cluster)
    await reserve(world.cluster, world.allocator, OPTIONS)
    await hand_over(world.cluster, world.allocator, OPTIONS, ())


def ips_of(config: NodeNetworkConfig) -> dict[str, str]:
    """The addresses that a NodeNetworkConfig shows, with their names."""
    return {each.ip: each.name for held in config.status.network_containers for each in held.ip_assignments}


async def test_every_node_keeps_what_it_has_and_nothing_else_is_given_of_it() -> None:
    async with a_world("") as world:
        await draw(world.cluster)
        found = await look(world.cluster, world.allocator, OPTIONS)
        assert (found.objections, len(found.plan.subnets)) == ((), 1)
        assert not await world.allocator.list_subnets("blue"), "it was only a look"
        first = await reserve(world.cluster, world.allocator, OPTIONS)
        assert (first.done, first.already) == (("n1", "n2"), ())
        again = await reserve(world.cluster, world.allocator, OPTIONS)
        assert (again.done, again.already) == ((), ("n1", "n2"))
        assert (await world.subnet()).reserved == 8
        before = {name: await world.config(name) for name in ("n1", "n2")}
        world.replica().start()
        await moment()
        done = await hand_over(world.cluster, world.allocator, OPTIONS, ["n1"])
        assert (done.done, done.objections) == (("n1",), ())
        await world.add_node("n3")
        await moment()
        after = await world.config("n1")
        (container,) = after.status.network_containers
        assert (container.id, container.primary_ip) == (after.node_uid, "10.1.0.10")
        assert ips_of(after).keys() == ips_of(before["n1"]).keys()
        assert not set(ips_of(after).values()) & set(ips_of(before["n1"]).values())
        assert CONTAINER_FINALIZER in after.metadata.finalizers
        assert (await world.config("n2")) == before["n2"]
        rest = await hand_over(world.cluster, world.allocator, OPTIONS, ())
        assert (rest.done, rest.already) == (("n2",), ("n1", "n3"))
        await world.ask("n3", 20)
        await moment()
        await world.everybody()


async def test_a_node_that_cns_still_serves_is_not_handed_over() -> None:
    async with a_world() as world:
        await draw(world.cluster)
        await reserve(world.cluster, world.allocator, OPTIONS)
        await run_pod(world.cluster, "azure-cns-x", "n1", labels={"k8s-app": "azure-cns"})
        done = await hand_over(world.cluster, world.allocator, OPTIONS, ())
        assert done.done == ("n2",)
        assert "azure-cns-x runs on node n1" in done.objections[0]
        assert is_foreign(await world.config("n1"))


async def test_nothing_is_reserved_where_anything_contradicts_itself() -> None:
    async with a_world("") as world:
        await draw(world.cluster)
        await run_pod(world.cluster, "stray", "n1", "10.1.0.22")
        done = await reserve(world.cluster, world.allocator, OPTIONS)
        assert not done.done
        assert any("stray" in words for words in done.objections)
        assert not await world.allocator.list_subnets("blue")


async def test_a_node_whose_pods_contradict_its_addresses_is_not_handed_over() -> None:
    async with a_world() as world:
        await draw(world.cluster)
        await reserve(world.cluster, world.allocator, OPTIONS)
        await run_pod(world.cluster, "stray", "n1", "10.1.0.99")
        done = await hand_over(world.cluster, world.allocator, OPTIONS, ())
        assert done.done == ("n2",)
        assert "stray" in done.objections[0]


async def test_nobody_is_handed_over_before_all_is_reserved() -> None:
    async with a_world() as world:
        await draw(world.cluster)
        with pytest.raises(NothingReserved, match="n1, n2"):
            await hand_over(world.cluster, world.allocator, OPTIONS, ["n1"])
        await reserve(world.cluster, world.allocator, OPTIONS)
        config = await world.config("n2")
        await dnc.show(world.cluster, config, dnc.a_container("10.1.0.20", ["10.1.0.21"], version=99))
        with pytest.raises(NothingReserved, match="n2"):
            await hand_over(world.cluster, world.allocator, OPTIONS, ["n1"])
        await reserve(world.cluster, world.allocator, OPTIONS)
        with pytest.raises(InvalidInput, match="n9"):
            await hand_over(world.cluster, world.allocator, OPTIONS, ["n9"])


async def test_what_is_not_reserved_at_the_allocator_after_all_is_not_handed_over() -> None:
    async with a_world() as world:
        await draw(world.cluster)
        await reserve(world.cluster, world.allocator, OPTIONS)
        uid = (await world.config("n1")).node_uid
        await world.allocator.delete_container(uid, cluster="east", cluster_uid=await world.uid())
        done = await hand_over(world.cluster, world.allocator, OPTIONS, ())
        assert done.done == ("n2",)
        assert "node n1 was not handed over" in done.objections[0]


async def test_nothing_is_reserved_while_a_controller_acts() -> None:
    async with a_world() as world:
        await draw(world.cluster)
        replica = world.replica()
        replica.start()
        await moment()
        with pytest.raises(ControllerRuns, match="scale deployment"):
            await reserve(world.cluster, world.allocator, OPTIONS)
        await replica.stop()
        await moment(15)
        assert (await reserve(world.cluster, world.allocator, OPTIONS)).done == ("n1", "n2")


async def test_a_store_that_recovers_is_waited_for() -> None:
    async with a_world() as world:
        await draw(world.cluster)
        await world.allocator.begin_recovery("an administrator said so")
        with pytest.raises(ControllerRuns, match="try again"):
            await reserve(world.cluster, world.allocator, OPTIONS)


@pytest.mark.parametrize("writes", range(8))
async def test_a_run_that_was_killed_between_any_two_writes_is_finished_by_the_next(writes: int) -> None:
    async with a_world() as world:
        await draw(world.cluster)
        failing = _Dying(world.cluster, writes)
        for step in ("reserve", "hand over"):
            try:
                if step == "reserve":
                    await reserve(failing, world.allocator, OPTIONS)
                else:
                    await hand_over(failing, world.allocator, OPTIONS, ())
            except (asyncio.CancelledError, _Killed, NothingReserved):
                pass
        await reserve(world.cluster, world.allocator, OPTIONS)
        await hand_over(world.cluster, world.allocator, OPTIONS, ())
        for name, first in (("n1", 10), ("n2", 20)):
            config = await world.config(name)
            assert not is_foreign(config)
            assert list(ips_of(config)) == [f"10.1.0.{number}" for number in range(first + 1, first + 4)]
        assert (await world.subnet()).reserved == 8


class _Killed(BaseException):
    """The program was killed."""


class _Dying(FaultyCluster):
    """A cluster that only so many writes reach."""

    def __init__(self, inner: Cluster, writes: int) -> None:
        super().__init__(inner, Script())
        self._left = writes

    async def replace(self, item: Any, *, manager: str) -> Any:
        self._count()
        return await super().replace(item, manager=manager)

    async def replace_status(self, item: Any, *, manager: str) -> Any:
        self._count()
        return await super().replace_status(item, manager=manager)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Killed


async def test_nodes_go_back_as_they_were() -> None:
    async with a_world() as world:
        await draw(world.cluster)
        before = {name: await world.config(name) for name in ("n1", "n2")}
        await reserve(world.cluster, world.allocator, OPTIONS)
        await hand_over(world.cluster, world.allocator, OPTIONS, ["n1"])
        replica = world.replica()
        replica.start()
        await moment()
        await world.state("n1", 2)
        await moment()
        with pytest.raises(ControllerRuns):
            await give_back(world.cluster, world.allocator, OPTIONS, dry_run=False)
        await replica.stop()
        await moment(15)
        done = await give_back(world.cluster, world.allocator, OPTIONS, dry_run=False)
        assert (done.done, done.objections) == (("n1",), ())
        for name, config in before.items():
            now = await world.config(name)
            assert (now.spec, now.status) == (config.spec, config.status)
            assert (now.metadata.annotations, now.metadata.finalizers) == ({}, [])
            assert now.metadata.owner_references[0].uid == config.node_uid
        assert (await give_back(world.cluster, world.allocator, OPTIONS, dry_run=False)).done == ()


async def test_no_node_goes_back_while_a_pod_has_what_cns_did_not_give() -> None:
    async with a_world() as world:
        await taken_over(world)
        await run_pod(world.cluster, "new", "n1", "10.1.0.77")
        told = await give_back(world.cluster, world.allocator, OPTIONS, dry_run=True)
        assert "pod default/new on node n1 has 10.1.0.77" in told.objections[0]
        kept = await give_back(world.cluster, world.allocator, OPTIONS, dry_run=False)
        assert not kept.done
        assert not is_foreign(await world.config("n2"))


async def test_no_node_goes_back_while_agents_run_or_nodes_joined_since() -> None:
    async with a_world() as world:
        await taken_over(world)
        labels = {"app.kubernetes.io/name": "podtide", "app.kubernetes.io/component": "agent"}
        await run_pod(world.cluster, "podtide-agent-x", "n1", labels=labels)
        replica = world.replica()
        replica.start()
        await world.add_node("n3")
        await moment()
        await replica.stop()
        await moment(15)
        told = await give_back(world.cluster, world.allocator, OPTIONS, dry_run=False)
        assert ["podtide-agent-x runs on node n1" in words for words in told.objections] == [True, False]
        assert "node n3 joined after the take-over" in told.objections[1]


def migrate(podtide: Run, kubeconfig: Path, database: Path, *arguments: str) -> Any:
    where = ("--cluster-name", "east", "--network", "blue", "--database", f"sqlite:///{database}")
    return podtide("migrate", "cns", "--kubeconfig", str(kubeconfig), *where, *arguments)


def a_database(directory: Path) -> Path:
    path = directory / "allocator.db"

    async def make() -> None:
        async with await open_allocator(f"sqlite:///{path}", clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="green", name="others", cidrs=("10.7.0.0/24",)))

    asyncio.run(make())
    return path


async def draw_cns(drawn: DrawnCluster) -> None:
    await draw(drawn.cluster)


def test_the_command_goes_from_a_look_to_the_hand_over_and_back(podtide: Run, tmp_path: Path) -> None:
    database = a_database(tmp_path)
    with served(draw_cns, tmp_path) as kubeconfig:
        first = migrate(podtide, kubeconfig, database, "--dry-run")
        unreserved = podtide("check", "--kubeconfig", str(kubeconfig), "--database", f"sqlite:///{database}")
        reserved = migrate(podtide, kubeconfig, database, "--reserve", "-o", "json")
        where = ("--kubeconfig", str(kubeconfig), "--database", f"sqlite:///{database}")
        beside = podtide("check", *where)
        handed = migrate(podtide, kubeconfig, database, "--hand-over", "--node", "n1")
        between = podtide("check", *where)
        looked = migrate(podtide, kubeconfig, database, "--back", "--dry-run")
        back = migrate(podtide, kubeconfig, database, "--back")
        last = migrate(podtide, kubeconfig, database, "--dry-run")
    assert first.status == 0, first.err
    assert first.out.splitlines() == [
        "NODE  SUBNET  PRIMARY    ADDRESSES  CONTAINER",
        "n1    pods    10.1.0.10  3          6fe1d1c0-0000-4000-8000-000000101010",
        "n2    pods    10.1.0.20  3          6fe1d1c0-0000-4000-8000-000000101020",
        "",
        "subnets that the allocator does not have yet (1)",
        "  pods: 10.1.0.0/24",
        "",
        "next:",
        "  1. stop DNC's request controller, which writes these NodeNetworkConfigs",
        "  2. see that podtide's controller does not run, then: podtide migrate cns --reserve",
    ]
    assert "10.1.0.11" in unreserved.out, "a pod has what the allocator knows nothing of"
    document = json.loads(reserved.out)
    assert (document["done"], document["step"], document["objections"]) == (["n1", "n2"], "reserve", [])
    assert "handed over to podtide (1)\n  n1\n" in handed.out
    assert all(check.out.startswith("clean") for check in (beside, between)), between.out
    assert (looked.status, looked.out) == (0, "")
    assert "given back (1)\n  n1\n" in back.out
    assert last.out.splitlines()[1:3] == first.out.splitlines()[1:3]


async def draw_a_contradiction(drawn: DrawnCluster) -> None:
    await draw(drawn.cluster)
    for number in range(12):
        await run_pod(drawn.cluster, f"stray-{number}", "n1", f"10.1.0.{50 + number}")


def test_contradictions_are_told_and_are_for_a_person(podtide: Run, tmp_path: Path) -> None:
    database = a_database(tmp_path)
    with served(draw_a_contradiction, tmp_path) as kubeconfig:
        told = migrate(podtide, kubeconfig, database, "--reserve")
    assert told.status == 1
    assert "for you to mend (12)" in told.out
    assert "and 2 more (-o json shows all)" in told.out
    assert "next:" not in told.out


async def draw_nothing(drawn: DrawnCluster) -> None:
    await drawn.node("n1")


def test_a_cluster_without_cns_has_nothing_to_take_over(podtide: Run, tmp_path: Path) -> None:
    database = a_database(tmp_path)
    with served(draw_nothing, tmp_path) as kubeconfig:
        told = migrate(podtide, kubeconfig, database, "--dry-run")
    assert (told.status, told.out) == (0, "no NodeNetworkConfig here is another program's\n")


@pytest.mark.parametrize(
    "steps", [(), ("--reserve", "--hand-over"), ("--dry-run", "--reserve"), ("--reserve", "--node", "n1")]
)
def test_one_step_at_a_time(podtide: Run, tmp_path: Path, steps: tuple[str, ...]) -> None:
    told = migrate(podtide, tmp_path / "kubeconfig", tmp_path / "allocator.db", *steps)
    assert told.status == 2
    assert "--reserve" in told.err or "--hand-over" in told.err
