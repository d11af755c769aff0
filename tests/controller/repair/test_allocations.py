"""Allocations whose pods are gone are released, and those of the living never are."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from controller.repair.world import AT_ONCE, GRACE, PATIENCE, RepairWorld, a_world
from podtide.cluster.port import Conflict, Page, R
from podtide.cluster.term import TermOver
from podtide.resources.ip_pool import IPPool, IPPoolStatus
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.pod import Pod, PodPhase

POOL = "10.0.0.0-24"


async def test_an_address_whose_pod_is_gone_is_released_after_the_grace_period() -> None:
    async with a_world() as world:
        await world.pod("ns/alive")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/alive", "2": "ns/gone"})
        repair = world.repair()
        await repair.look()
        await asyncio.sleep(GRACE - 1)
        await repair.look()
        assert await world.held(POOL) == {"1": "ns/alive", "2": "ns/gone"}
        await asyncio.sleep(1)
        await repair.look()
        assert await world.held(POOL) == {"1": "ns/alive"}
        assert world.counts.repairs["allocation-released"] == 1
        assert "its pod is gone" in world.lines.getvalue()


async def test_an_address_of_a_pod_that_has_ended_on_a_node_that_is_there_waits_for_no_quarantine() -> None:
    async with a_world() as world:
        await world.pod("ns/job", phase=PodPhase.SUCCEEDED)
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/job"})
        repair = world.repair()
        await repair.look()
        await asyncio.sleep(PATIENCE.leak_grace_seconds)
        await repair.look()
        assert await world.held(POOL) == {}


async def test_a_pod_of_a_removed_node_keeps_its_address_of_a_shared_pool_until_the_quarantine_ends() -> None:
    """The cluster soon removes such pods, and then nobody knows that it was one: its machine may live on."""
    async with a_world("n2") as world:
        await world.pod("ns/web", node="n2")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        await world.cluster.delete(Node, "n2")
        await asyncio.sleep(1)
        repair = world.repair()
        await repair.look()
        await asyncio.sleep(40)
        await world.remove_pod("ns/web")
        await repair.look()
        await asyncio.sleep(PATIENCE.quarantine_seconds - 41)
        await repair.look()
        assert await world.held(POOL) == {"1": "ns/web"}
        await asyncio.sleep(1)
        await repair.look()
        assert await world.held(POOL) == {}


async def test_a_restarted_controller_counts_anew() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        await world.repair().look()
        await asyncio.sleep(GRACE)
        again = world.repair()
        await again.look()
        assert await world.held(POOL) == {"1": "ns/gone"}
        await asyncio.sleep(GRACE)
        await again.look()
        assert await world.held(POOL) == {}


@pytest.mark.parametrize("phase", [PodPhase.PENDING, PodPhase.RUNNING, PodPhase.UNKNOWN])
async def test_an_address_is_its_pods_from_the_first_moment_to_the_last(phase: PodPhase) -> None:
    async with a_world() as world:
        await world.pod("ns/web", phase=phase)
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        await world.look_twice()
        assert await world.held(POOL) == {"1": "ns/web"}


async def test_a_pod_that_is_being_deleted_keeps_its_address_until_it_is_gone() -> None:
    async with a_world() as world:
        await world.pod("ns/web")
        await world.cluster.delete(Pod, "web", "ns")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        await world.look_twice()
        assert await world.held(POOL) == {"1": "ns/web"}


@pytest.mark.parametrize("phase", [PodPhase.SUCCEEDED, PodPhase.FAILED])
async def test_a_pod_that_has_ended_needs_no_address(phase: PodPhase) -> None:
    async with a_world() as world:
        await world.pod("ns/job", phase=phase)
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/job"})
        await world.look_twice()
        assert await world.held(POOL) == {}


async def test_the_pod_of_a_stateful_set_that_came_back_keeps_working() -> None:
    """Its name is alive: what is held by name stays, and what the earlier pod held by uid goes."""
    async with a_world() as world:
        now = await world.pod("ns/web-0")
        held = {"1": "ns/web-0", "2": f"ns/web-0@{now.metadata.uid}", "3": "ns/web-0@the-earlier-one"}
        await world.pool(POOL, "10.0.0.0/24", held)
        await world.look_twice()
        assert await world.held(POOL) == {"1": "ns/web-0", "2": "ns/web-0"}


async def test_an_entry_that_the_pod_took_over_when_it_came_back_is_not_the_one_that_was_judged() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web-0@the-earlier-one"})
        repair = world.repair()
        await repair.look()
        await asyncio.sleep(GRACE)
        back = await world.pod("ns/web-0")
        await world.take(POOL, "1", f"ns/web-0@{back.metadata.uid}", "sandbox-2")
        await repair.look()
        await asyncio.sleep(GRACE)
        await repair.look()
        assert await world.held(POOL) == {"1": "ns/web-0"}


async def test_an_address_without_uid_that_the_pod_of_its_name_does_not_show_is_released() -> None:
    """Whereabouts writes no uid: what an earlier pod of a StatefulSet left behind has the name of the one that lives."""
    async with a_world() as world:
        await world.pod("ns/web-0", shown=["10.0.0.9"])
        await world.pool(POOL, "10.0.0.0/24", {"5": "ns/web-0", "9": "ns/web-0"})
        repair = world.repair()
        await repair.look()
        await asyncio.sleep(GRACE - 1)
        await repair.look()
        assert await world.held(POOL) == {"5": "ns/web-0", "9": "ns/web-0"}
        await asyncio.sleep(1)
        await repair.look()
        assert await world.held(POOL) == {"9": "ns/web-0"}
        assert "the pod of its name shows other addresses" in world.lines.getvalue()


async def test_its_reservation_goes_with_it() -> None:
    async with a_world() as world:
        await world.pod("ns/web-0", shown=["10.0.0.9"])
        await world.pool(POOL, "10.0.0.0/24", {"5": "ns/web-0", "9": "ns/web-0"})
        await world.reservation("10.0.0.5", "ns/web-0")
        await world.reservation("10.0.0.9", "ns/web-0")
        await world.look_twice()
        await world.look_twice()
        assert await world.held(POOL) == {"9": "ns/web-0"}
        assert await world.reserved() == {"10.0.0.9": "ns/web-0"}


@pytest.mark.parametrize(
    ("shown", "phase"),
    [
        (None, PodPhase.RUNNING),
        ([], PodPhase.RUNNING),
        (["10.0.0.5"], PodPhase.RUNNING),
        (["10.9.0.1", "10.0.0.5"], PodPhase.RUNNING),
        (["10.0.0.9"], PodPhase.PENDING),
    ],
)
async def test_an_address_without_uid_is_kept_unless_its_pod_runs_and_shows_others(
    shown: list[str] | None, phase: PodPhase
) -> None:
    async with a_world() as world:
        await world.pod("ns/web-0", shown=shown, phase=phase)
        await world.pool(POOL, "10.0.0.0/24", {"5": "ns/web-0"})
        await world.look_twice()
        assert await world.held(POOL) == {"5": "ns/web-0"}


async def test_a_pod_that_shows_the_address_when_it_is_asked_for_keeps_it() -> None:
    async with a_world() as world:
        await world.pod("ns/web-0", shown=["10.0.0.9"])
        await world.pool(POOL, "10.0.0.0/24", {"5": "ns/web-0"})
        repair = world.repair()
        await repair.look()
        await asyncio.sleep(GRACE)
        await world.remove_pod("ns/web-0")
        await world.pod("ns/web-0", shown=["10.0.0.5"])
        await repair.look()
        assert await world.held(POOL) == {"5": "ns/web-0"}


async def test_an_address_with_the_uid_of_the_living_pod_is_its_own_whatever_it_shows() -> None:
    async with a_world() as world:
        pod = await world.pod("ns/web-0", shown=["10.0.0.9"])
        await world.pool(POOL, "10.0.0.0/24", {"5": f"ns/web-0@{pod.metadata.uid}"})
        await world.look_twice()
        assert await world.held(POOL) == {"5": "ns/web-0"}


async def test_a_static_pod_is_known_by_the_hash_of_its_configuration() -> None:
    async with a_world() as world:
        await world.pod("kube-system/etcd-n1", config_hash="hash")
        await world.pool(POOL, "10.0.0.0/24", {"1": "kube-system/etcd-n1@hash"})
        await world.look_twice()
        assert await world.held(POOL) == {"1": "kube-system/etcd-n1"}


async def test_a_pod_on_a_node_that_is_gone_holds_nothing() -> None:
    async with a_world("n2") as world:
        await world.pod("ns/here", node="n1")
        await world.pod("ns/stranded", node="n2")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/here", "2": "ns/stranded"})
        await world.cluster.delete(Node, "n2")
        await asyncio.sleep(1)
        await world.look_twice()
        assert await world.held(POOL) == {"1": "ns/here"}


async def test_a_node_that_only_the_copies_lack_keeps_its_pods_addresses() -> None:
    async with a_world() as world:
        world.counted.turn_deaf(Node)
        await world.node("new")
        await world.pod("ns/web", node="new")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        await world.look_twice()
        assert await world.held(POOL) == {"1": "ns/web"}
        world.counted.hear()


async def test_what_names_no_pod_is_left_alone() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "", "2": "by-hand"})
        await world.look_twice()
        assert await world.held(POOL) == {"1": "", "2": "by-hand"}


async def test_offsets_of_any_size_are_released() -> None:
    async with a_world() as world:
        far = str(2**64 + 5)
        await world.pool("fd00---32", "fd00::/32", {"1": "ns/gone", far: "ns/gone", "no offset": "ns/gone"})
        await world.look_twice()
        assert await world.held("fd00---32") == {}


async def test_a_pod_that_lists_lack_and_the_cluster_has_is_alive() -> None:
    """Absence from a list frees nothing: the pod itself is asked for."""
    async with a_world() as world:
        await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        world.counted.hidden.add("web")
        await world.look_twice()
        assert await world.held(POOL) == {"1": "ns/web"}


# --- design T23: the reconciler frees addresses that are in use -------------------------------------------------------


async def test_trap_pods_listed_before_allocations_here_allocations_come_first() -> None:
    """A pod that comes and is given an address while a look is under way is never taken for gone."""
    async with a_world() as world:
        await world.pod("ns/first")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/first"})
        lists: list[str] = []
        plain = world.counted.list

        async def list_and_meddle(kind: type[R], namespace: str = "", **more: Any) -> Page[R]:
            page = await plain(kind, namespace, **more)
            lists.append(kind.api.kind)
            if len(lists) <= 4:
                name = f"ns/late-{len(lists)}"
                await world.pod(name)
                await world.take(POOL, str(10 + len(lists)), name)
            return page

        world.counted.list = list_and_meddle  # type: ignore[method-assign]  # the cluster moves while it is read
        await world.repair(AT_ONCE).look()
        assert lists == ["NetworkAttachmentDefinition", "OverlappingRangeIPReservation", "IPPool", "Pod"]
        assert sorted(await world.held(POOL)) == ["1", "11", "12", "13", "14"]


async def test_trap_a_pending_pods_address_freed_here_it_is_kept() -> None:
    async with a_world() as world:
        await world.pod("ns/starting", phase=PodPhase.PENDING, node="")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/starting"})
        await world.repair(AT_ONCE).look()
        assert await world.held(POOL) == {"1": "ns/starting"}


async def test_trap_slice_pools_not_repaired_here_they_are() -> None:
    async with a_world() as world:
        await world.attachment(range="10.0.0.0/16", network_name="blue", node_slice_size="/24")
        await world.pod("ns/alive")
        await world.pool(
            "blue-n1", "10.0.0.0/24", {"1": "ns/alive", "2": "ns/gone"}, node="n1", network="blue"
        )
        await world.pool("blue-n2-10.0.1.0-24", "10.0.1.0/24", {"1": "ns/gone"})
        await world.look_twice()
        assert await world.held("blue-n1") == {"1": "ns/alive"}
        assert await world.held("blue-n2-10.0.1.0-24") == {}


# --- writes -----------------------------------------------------------------------------------------------------------


async def test_a_release_never_undoes_what_an_agent_wrote_meanwhile() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        await world.pod("ns/new")
        plain = world.counted.replace
        tries = 0

        async def replace_late(item: R, *, manager: str) -> R:
            nonlocal tries
            tries += 1
            if tries == 1:
                await world.take(POOL, "2", "ns/new")
            return await plain(item, manager=manager)

        world.counted.replace = replace_late  # type: ignore[method-assign]  # an agent is quicker
        await world.repair(AT_ONCE).look()
        assert tries == 2
        assert await world.held(POOL) == {"2": "ns/new"}


async def test_an_address_that_was_given_to_another_meanwhile_stays_with_it() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        await world.reservation("10.0.0.1", "ns/gone")
        plain = world.counted.get

        async def get_late(kind: type[R], name: str, namespace: str = "") -> R:
            if kind is IPPool:
                await world.take(POOL, "1", "ns/gone", "another-sandbox")
            return await plain(kind, name, namespace)

        world.counted.get = get_late  # type: ignore[method-assign]  # an agent is quicker
        await world.repair(AT_ONCE).look()
        assert await world.held(POOL) == {"1": "ns/gone"}
        assert await world.reserved() == {"10.0.0.1": "ns/gone"}  # it may be the other sandbox's now


async def test_a_pool_that_is_written_all_the_time_is_left_for_the_next_look() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        await world.pool("10.1.0.0-24", "10.1.0.0/24", {"1": "ns/gone"})
        world.faults.steps["replace"] = [Conflict("busy")] * 5
        repair = world.repair(AT_ONCE)
        await repair.look()
        assert await world.held(POOL) == {"1": "ns/gone"}
        assert await world.held("10.1.0.0-24") == {}
        await repair.look()
        assert await world.held(POOL) == {}


async def test_a_pool_that_is_gone_by_then_needs_no_release() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        plain = world.counted.list

        async def list_and_delete(kind: type[R], namespace: str = "", **more: Any) -> Page[R]:
            page = await plain(kind, namespace, **more)
            if kind is Pod:
                await world.cluster.delete(IPPool, POOL, SYSTEM_NAMESPACE)
            return page

        world.counted.list = list_and_delete  # type: ignore[method-assign]  # the slices controller is quicker
        await world.repair(AT_ONCE).look()
        assert world.counted.writes == []


async def test_all_that_leaked_from_a_pool_is_one_write() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {str(offset): f"ns/gone-{offset}" for offset in range(1, 100)})
        await world.repair(AT_ONCE).look()
        assert world.counted.writes == ["replace IPPool"]
        assert world.counts.repairs["allocation-released"] == 99


async def test_a_leader_whose_term_is_over_releases_nothing() -> None:
    def over() -> None:
        raise TermOver("over")

    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        with pytest.raises(TermOver):
            await world.repair(AT_ONCE, check=over).look()
        assert await world.held(POOL) == {"1": "ns/gone"}


async def test_what_others_wrote_into_a_pool_survives() -> None:
    async with a_world() as world:
        pool = await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"}, node="n1", network="blue")
        await world.repair(AT_ONCE).look()
        after = await world.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
        assert after.metadata.annotations == pool.metadata.annotations
        assert after.spec.range == "10.0.0.0/24"


async def counted(world: RepairWorld, used: int | None) -> None:
    pool = await world.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
    await world.cluster.replace(replace(pool, status=IPPoolStatus(used=used, capacity=254)), manager="agent")


async def status(world: RepairWorld) -> IPPoolStatus | None:
    return (await world.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)).status


@pytest.mark.parametrize("held", [{}, {"1": "ns/web"}])
async def test_a_count_that_a_patch_of_whereabouts_left_wrong_is_corrected_by_one_pass(
    held: dict[str, str],
) -> None:
    async with a_world() as world:
        await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", held)
        await counted(world, 7)
        await world.repair().look()
        assert await status(world) == IPPoolStatus(used=len(held), capacity=254)
        assert world.counts.repairs.total() == 0


async def test_a_pool_with_a_right_count_or_none_is_not_written() -> None:
    async with a_world() as world:
        await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        await world.repair().look()
        assert await status(world) is None
        await counted(world, 1)
        before = await world.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE)
        await world.repair().look()
        assert await world.cluster.get(IPPool, POOL, SYSTEM_NAMESPACE) == before


async def test_a_released_address_is_not_counted_any_more() -> None:
    async with a_world() as world:
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        await counted(world, 1)
        await world.look_twice()
        assert await status(world) == IPPoolStatus(used=0, capacity=254)
