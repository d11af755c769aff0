"""What living pods show is kept from everybody by a store that went back, also where no NodeNetworkConfig tells of it."""

import pytest

from allocator.contract.harness import AllocatorUnderTest, OpenAllocator, addresses, end_due
from allocator.contract.test_recovering import EAST, FIRST, as_held, finish, go_back, two_nodes
from podtide.allocator.errors import AnotherCluster
from podtide.allocator.terms import HeldAddress, ShownAddresses
from podtide.core.errors import InvalidInput
from podtide.core.machine_identity import MachineIdentity


def shown(*ips: str, node: str = "node-gone", **changed: object) -> ShownAddresses:
    """What pods bound to a node of east show."""
    fields = {
        "network": "blue",
        "subnet": "pods",
        "cluster": "east",
        "cluster_uid": EAST,
        "recovery": FIRST,
        **changed,
    }
    return ShownAddresses(node=node, addresses=ips, **fields)  # type: ignore[arg-type]  # as ShownAddresses checks


async def quarantined_of(under: AllocatorUnderTest, node: str) -> set[str]:
    """What is in quarantine under a node's name."""
    page = await under.allocator.quarantined(cluster="east", node=node)
    return {ip for left in page.items for ip in left.addresses}


async def test_what_pods_of_a_forgotten_node_show_goes_to_nobody(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        theirs = {"10.1.0.40", "10.1.0.41"}
        for _again in range(2):  # after a lost answer, the same
            await under.allocator.keep_for_pods(shown(*theirs))
            assert await quarantined_of(under, "node-gone") == theirs
        for held in (a, w):
            assert await under.allocator.adopt_container(as_held(held)) == ()
        await finish(under, recovery, "east", "west")
        everything_left = await under.put("new", 60, cluster_uid=EAST)
        assert not addresses(everything_left) & theirs
        assert (await under.stands()).quarantined == 2
        under.clock.pass_by(1000)
        await end_due(under.allocator)  # the controller's word, once no pod shows them
        assert theirs <= addresses(await under.put("new", 60, 2, cluster_uid=EAST))


async def test_what_a_report_has_confirmed_stays_where_it_is(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        assert await under.allocator.adopt_container(as_held(a)) == ()
        assert await under.allocator.adopt_container(as_held(w)) == ()
        assert await under.allocator.keep_for_pods(shown(*addresses(a), *addresses(w), "10.1.0.50")) == 1
        await finish(under, recovery, "east", "west")
        assert addresses(await under.allocator.get_container("a", cluster="east")) == addresses(a)
        assert addresses(await under.allocator.get_container("w", cluster="west")) == addresses(w)


async def test_what_another_node_gave_back_since_the_backup_is_kept_under_the_name_of_who_shows_it(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        await go_back(under)
        # a of this cluster and w of another gave one back each, and node-gone got both; w's cluster reports last.
        from_a, from_w = as_held(a).addresses[0], as_held(w).addresses[0]
        assert await under.allocator.adopt_container(as_held(a, addresses=as_held(a).addresses[1:])) == ()
        assert await quarantined_of(under, a.node) == {from_a.ip}
        assert await under.allocator.keep_for_pods(shown(from_a.ip, from_w.ip)) == 2
        assert await under.allocator.adopt_container(as_held(w, addresses=as_held(w).addresses[1:])) == ()
        assert await quarantined_of(under, a.node) == set()
        assert (await under.allocator.quarantined(cluster="west")).items == ()
        assert await quarantined_of(under, "node-gone") == {from_a.ip, from_w.ip}


async def test_what_the_store_knows_of_the_removed_node_stays_its_machines(
    open_allocator: OpenAllocator,
) -> None:
    machine = MachineIdentity("machine-1", "uuid-1", "boot-1")
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        still_there = await under.put("gone", 2, cluster_uid=EAST, node="node-gone", machine=machine)
        left = await under.put("left", 2, cluster_uid=EAST, node="node-gone", machine=machine)
        await under.allocator.delete_container("left", cluster="east", cluster_uid=EAST)
        recovery = await go_back(under)
        both = addresses(still_there) | addresses(left)
        assert await under.allocator.keep_for_pods(shown(*both)) == 0
        for held in (a, w):
            assert await under.allocator.adopt_container(as_held(held)) == ()
        await finish(under, recovery, "east", "west")
        await under.allocator.delete_container("gone", cluster="east", cluster_uid=EAST)
        page = await under.allocator.quarantined(cluster="east", node="node-gone")
        assert {each.machine for each in page.items} == {machine}
        assert both <= await quarantined_of(under, "node-gone")


async def test_a_primary_of_an_older_day_is_kept_for_the_pod_that_has_it_now(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        assert await under.allocator.keep_for_pods(shown(a.primary)) == 1
        assert await under.allocator.adopt_container(as_held(w)) == ()
        await finish(under, recovery, "east", "west")
        assert await quarantined_of(under, "node-gone") == {a.primary}
        assert await quarantined_of(under, a.node) == addresses(a)
        stands = await under.stands()
        assert (stands.containers, stands.reserved, stands.quarantined) == (1, 8, 4)


async def test_a_report_of_pods_changes_nothing_when_it_is_late_odd_or_anothers(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_nodes(under)
        assert await under.allocator.keep_for_pods(shown("10.1.0.40")) == 0  # nothing went back
        recovery = await go_back(under)
        with pytest.raises(InvalidInput, match="report anew"):
            await under.allocator.keep_for_pods(shown("10.1.0.40", recovery=recovery - 1))
        with pytest.raises(AnotherCluster):
            await under.allocator.keep_for_pods(shown("10.1.0.40", cluster_uid="uid-other"))
        with pytest.raises(InvalidInput):
            await under.allocator.keep_for_pods(shown("10.1.0.40", node="Bad Name/"))
        # The gateway, the broadcast address and what is elsewhere are no pod's of this subnet.
        assert await under.allocator.keep_for_pods(shown("10.1.0.1", "10.1.0.63", "10.9.0.1")) == 0
        assert (await under.stands()).quarantined == 0


async def test_a_grant_that_is_reported_later_takes_what_pods_of_a_removed_node_were_thought_to_have(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        _a, w = await two_nodes(under)
        await go_back(under)
        assert await under.allocator.keep_for_pods(shown("10.1.0.40")) == 1
        more = as_held(w, version=60, addresses=(*as_held(w).addresses, HeldAddress("w-60-40", "10.1.0.40")))
        assert await under.allocator.adopt_container(more) == ()
        assert (await under.stands()).quarantined == 0
