"""Reservations and pools that disagree are made to agree, and no address that lives is ever unreserved."""

import asyncio
from typing import Any

from msgspec.structs import replace

from controller.repair.world import AT_ONCE, GRACE, RepairWorld, a_world
from podtide.cluster.port import Page, R
from podtide.core.audit.networks import audit_settled_networks
from podtide.networks.pods import NETWORK_STATUS_ANNOTATIONS
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import PodPhase

POOL = "10.0.0.0-24"


async def a_guarded_network(world: RepairWorld, **more: Any) -> None:
    await world.attachment(range="10.0.0.0/24", **more)


async def test_a_dead_pods_allocation_and_reservation_go_together_the_reservation_last() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        await world.reservation("10.0.0.1", "ns/gone")
        await world.look_twice()
        assert await world.held(POOL) == {}
        assert await world.reserved() == {}
        assert world.counted.writes == ["replace IPPool", "delete OverlappingRangeIPReservation"]


async def test_a_reservation_outlives_an_allocation_that_could_not_be_released() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/gone"})
        await world.reservation("10.0.0.1", "ns/gone")
        plain = world.counted.replace

        async def replace_late(item: R, *, manager: str) -> R:
            await world.take(POOL, "200", f"ns/busy-{len(world.counted.writes)}")
            return await plain(item, manager=manager)

        world.counted.replace = replace_late  # type: ignore[method-assign]  # agents are always quicker
        await world.repair(AT_ONCE).look()
        assert (await world.held(POOL))["1"] == "ns/gone"
        assert await world.reserved() == {"10.0.0.1": "ns/gone"}


async def test_a_pod_whose_network_status_nobody_can_read_stops_no_repair_of_others() -> None:
    for depth in (1_200, 100_000):
        async with a_world() as world:
            await a_guarded_network(world)
            pod = await world.pod("ns/hostile")
            annotations = {NETWORK_STATUS_ANNOTATIONS[0]: f'[{{"dns": {"[" * depth + "]" * depth}}}]'}
            await world.cluster.replace(
                replace(pod, metadata=replace(pod.metadata, annotations=annotations)), manager="tenant"
            )
            await world.pool(POOL, "10.0.0.0/24", {"9": "ns/gone"})
            for name, holder in (("10.0.0.1", "ns/hostile"), ("10.0.0.9", "ns/gone")):
                await world.reservation(name, holder)
            await world.look_twice()
            assert await world.held(POOL) == {}
            assert "10.0.0.9" not in await world.reserved()
            assert (
                "10.0.0.1" in await world.reserved()
            )  # of what a pod has that says nothing, nothing is freed


async def test_trap_reservations_of_named_networks_and_ipv6_not_found_here_names_are_denormalised() -> None:
    """Design T23: names of reservations are turned back into addresses."""
    async with a_world() as world:
        await world.attachment("blue", range="fd00::/64", network_name="blue")
        await world.attachment("red", range="10.0.0.0/24", network_name="red")
        await world.pod("ns/alive")
        await world.pool("blue-fd00---64", "fd00::/64", {"1": "ns/alive", "2": "ns/gone"})
        await world.pool("red-10.0.0.0-24", "10.0.0.0/24", {"1": "ns/alive", "2": "ns/gone"})
        for name, pod in (
            ("blue-fd00--1", "ns/alive"),
            ("blue-fd00--2", "ns/gone"),
            ("red-10.0.0.1", "ns/alive"),
            ("red-10.0.0.2", "ns/gone"),
        ):
            await world.reservation(name, pod)
        await world.look_twice()
        assert await world.reserved() == {"blue-fd00--1": "ns/alive", "red-10.0.0.1": "ns/alive"}
        assert audit_settled_networks(await world.picture()) == ()


async def test_a_reservation_of_a_network_that_no_definition_describes_any_more_is_released_all_the_same() -> (
    None
):
    async with a_world() as world:
        await world.pod("ns/alive")
        await world.pool("old-10.9.0.0-24", "10.9.0.0/24", {"1": "ns/alive"})
        await world.reservation("old-10.9.0.1", "ns/alive")
        await world.reservation("old-10.9.0.2", "ns/gone")
        await world.look_twice()
        assert await world.reserved() == {"old-10.9.0.1": "ns/alive"}


async def test_what_an_add_that_broke_off_reserved_is_released_after_the_grace_period() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        pod = await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", {"2": f"ns/web@{pod.metadata.uid}"})
        await world.reservation("10.0.0.1", f"ns/web@{pod.metadata.uid}")
        await world.reservation("10.0.0.2", f"ns/web@{pod.metadata.uid}")
        repair = world.repair()
        await repair.look()
        assert len(await world.reserved()) == 2
        await asyncio.sleep(GRACE)
        await repair.look()
        assert await world.reserved() == {"10.0.0.2": "ns/web"}


async def test_an_add_that_takes_its_own_reservation_up_again_keeps_it() -> None:
    """It writes its new sandbox into it, so what was judged is another version."""
    async with a_world() as world:
        await a_guarded_network(world)
        pod = await world.pod("ns/web", phase=PodPhase.PENDING)
        await world.pool(POOL, "10.0.0.0/24")
        await world.reservation("10.0.0.1", f"ns/web@{pod.metadata.uid}")
        repair = world.repair()
        await repair.look()
        await asyncio.sleep(GRACE)
        plain = world.counted.list

        async def list_and_add(kind: type[R], namespace: str = "", **more: Any) -> Page[R]:
            page = await plain(kind, namespace, **more)
            if kind is IPPool:  # only now does the ADD come, after the pools were read
                there = await world.cluster.get(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
                changed = replace(there, spec=replace(there.spec, container_id="sandbox-2"))
                await world.cluster.replace(changed, manager="agent")
                await world.take(POOL, "1", f"ns/web@{pod.metadata.uid}", "sandbox-2")
            return page

        world.counted.list = list_and_add  # type: ignore[method-assign]  # the cluster moves while it is read
        await repair.look()
        assert await world.reserved() == {"10.0.0.1": "ns/web"}
        assert world.counts.repairs.total() == 0


async def test_trap_a_patch_that_failed_is_answered_as_success_here_such_an_address_stays_its_pods() -> None:
    """Design T15: the pool is unchanged, the reservation is all that shows what the pod has."""
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pod("ns/shows-it", shown=["10.0.0.1"])
        await world.pod("ns/shows-nothing")
        await world.pod("ns/shows-another", shown=["10.0.0.9"])
        await world.pool(POOL, "10.0.0.0/24", {"9": "ns/shows-another"})
        await world.reservation("10.0.0.1", "ns/shows-it")
        await world.reservation("10.0.0.2", "ns/shows-nothing")
        await world.reservation("10.0.0.3", "ns/shows-another")
        await world.reservation("10.0.0.9", "ns/shows-another")
        await world.look_twice()
        assert await world.reserved() == {
            "10.0.0.1": "ns/shows-it",
            "10.0.0.2": "ns/shows-nothing",
            "10.0.0.9": "ns/shows-another",
        }


async def test_an_allocation_without_reservation_in_a_guarded_network_gets_one() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        pod = await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", {"1": f"ns/web@{pod.metadata.uid}"})
        await world.look_twice()
        [made] = (await world.cluster.list(OverlappingRangeIPReservation, SYSTEM_NAMESPACE)).items
        assert (made.metadata.name, made.spec.podref, made.spec.pod_uid) == (
            "10.0.0.1",
            "ns/web",
            pod.metadata.uid,
        )
        assert (made.spec.container_id, made.spec.ifname) == ("sandbox", "net1")
        assert world.counts.repairs["reservation-restored"] == 1


async def test_a_network_that_is_not_guarded_gets_no_reservations() -> None:
    async with a_world() as world:
        await a_guarded_network(world, enable_overlapping_ranges=False)
        await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        await world.look_twice()
        assert await world.reserved() == {}


async def test_slices_and_further_ranges_are_guarded_too() -> None:
    async with a_world() as world:
        await world.attachment(
            network_name="blue",
            ipRanges=[
                {"range": "10.0.0.0/16", "node_slice_size": "/24"},
                {"range": "fd00::/48", "node_slice_size": "/64"},
            ],
        )
        await world.pod("ns/web")
        await world.pool("blue-n1", "10.0.0.0/24", {"1": "ns/web"}, node="n1", network="blue")
        await world.pool(
            "blue-fd00---48-n1", "fd00::/64", {"1": "ns/web"}, node="n1", network="blue-fd00---48"
        )
        await world.look_twice()
        assert await world.reserved() == {"blue-10.0.0.1": "ns/web", "blue-fd00--1": "ns/web"}


async def test_an_allocation_that_is_gone_by_then_gets_no_reservation() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        plain = world.counted.get

        async def get_late(kind: type[R], name: str, namespace: str = "") -> R:
            if kind is IPPool:
                await world.take(POOL, "1", "ns/other")
            return await plain(kind, name, namespace)

        world.counted.get = get_late  # type: ignore[method-assign]  # a DEL is quicker
        await world.repair(AT_ONCE).look()
        assert await world.reserved() == {}


async def test_a_reservation_that_somebody_else_makes_first_is_as_good() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pod("ns/web")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/web"})
        plain = world.counted.get

        async def get_late(kind: type[R], name: str, namespace: str = "") -> R:
            if kind is IPPool:
                await world.reservation("10.0.0.1", "ns/web")
            return await plain(kind, name, namespace)

        world.counted.get = get_late  # type: ignore[method-assign]  # an agent is quicker
        await world.repair(AT_ONCE).look()
        assert await world.reserved() == {"10.0.0.1": "ns/web"}
        assert world.counts.repairs["reservation-restored"] == 0


async def test_a_dead_pods_reservation_of_an_address_that_lives_changes_hands_without_a_gap() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        pod = await world.pod("ns/alive")
        await world.pool(POOL, "10.0.0.0/24", {"1": f"ns/alive@{pod.metadata.uid}"})
        before = await world.reservation("10.0.0.1", "ns/gone")
        await world.look_twice()
        after = await world.cluster.get(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        assert after.metadata.uid == before.metadata.uid
        assert (after.spec.podref, after.spec.pod_uid) == ("ns/alive", pod.metadata.uid)
        assert world.counted.writes == ["replace OverlappingRangeIPReservation"]


async def test_a_reservation_that_changed_hands_is_no_longer_marked_as_its_makers() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pod("ns/alive")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/alive"})
        made = await world.reservation("10.0.0.1", "ns/gone")
        marked = replace(made.metadata, annotations={NODE_ANNOTATION: "node-a", "example.org/note": "kept"})
        await world.cluster.replace(replace(made, metadata=marked), manager="agent")
        await world.look_twice()
        after = await world.cluster.get(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        assert after.spec.podref == "ns/alive"
        assert after.metadata.annotations == {"example.org/note": "kept"}


async def test_the_reservation_of_a_stateful_sets_pod_follows_it_when_it_comes_back() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        back = await world.pod("ns/web-0")
        await world.pool(POOL, "10.0.0.0/24", {"1": f"ns/web-0@{back.metadata.uid}"})
        await world.reservation("10.0.0.1", "ns/web-0@the-earlier-one")
        await world.look_twice()
        after = await world.cluster.get(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
        assert after.spec.pod_uid == back.metadata.uid


async def test_a_correction_that_somebody_else_was_quicker_with_is_left_to_them() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pod("ns/alive")
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/alive"})
        await world.reservation("10.0.0.1", "ns/gone")
        plain = world.counted.replace

        async def replace_late(item: R, *, manager: str) -> R:
            await world.cluster.delete(OverlappingRangeIPReservation, "10.0.0.1", SYSTEM_NAMESPACE)
            return await plain(item, manager=manager)

        world.counted.replace = replace_late  # type: ignore[method-assign]  # an agent is quicker
        await world.repair(AT_ONCE).look()
        assert world.counts.repairs["reservation-corrected"] == 0


async def test_two_living_pods_that_claim_an_address_are_told_of_once_and_left_alone() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.pod("ns/has-it")
        await world.pod("ns/reserved-it", shown=["10.0.0.1"])
        await world.pool(POOL, "10.0.0.0/24", {"1": "ns/has-it"})
        await world.reservation("10.0.0.1", "ns/reserved-it")
        await world.look_twice(await world.look_twice())
        assert await world.held(POOL) == {"1": "ns/has-it"}
        assert await world.reserved() == {"10.0.0.1": "ns/reserved-it"}
        assert world.lines.getvalue().count("both live: delete one of them") == 1


async def test_a_reservation_that_names_no_pod_is_left_alone() -> None:
    async with a_world() as world:
        await a_guarded_network(world)
        await world.reservation("10.0.0.1", "by-hand")
        await world.look_twice()
        assert await world.reserved() == {"10.0.0.1": "by-hand"}
