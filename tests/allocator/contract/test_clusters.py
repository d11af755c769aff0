"""Who a cluster is, at the allocator: names belong to uids, terms to one holder, containers to the cluster that made them."""

import pytest

from allocator.contract.harness import OpenAllocator, a_wish
from podtide.allocator.errors import AnotherCluster, AnotherTerm, NoSuchContainer
from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.terms import ClusterRecord, OpenedTerm, TermClaim
from podtide.core.subnet.cluster_identity import TERM_SECONDS


def a_claim(cluster: str = "east", uid: str = "uid-east", holder: str = "one") -> TermClaim:
    return TermClaim(cluster=cluster, cluster_uid=uid, holder=holder)


async def of_clusters(allocator: object, name: str) -> ClusterRecord:
    registry = await administered(allocator).list_clusters()
    return next(record for record in registry.clusters if record.name == name)


def administered(allocator: object) -> AdministeredAllocator:
    return allocator  # type: ignore[return-value]  # whoever is under test has no token, so it is the administration


async def test_a_name_belongs_to_the_uid_that_used_it_first(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        assert await under.allocator.open_term(a_claim()) == OpenedTerm()
        with pytest.raises(
            AnotherCluster, match="belongs to the cluster whose namespace kube-system has uid uid-east"
        ):
            await under.allocator.open_term(a_claim(uid="uid-other"))
        record = await of_clusters(under.allocator, "east")
        assert (record.uid, record.holder) == ("uid-east", "one")


async def test_wishes_under_a_name_are_refused_from_any_other_cluster(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.allocator.open_term(a_claim())
        held = await under.put("a", 2, cluster_uid="uid-east")
        assert held.cluster_uid == "uid-east"
        for stranger in ("uid-other", ""):
            with pytest.raises(AnotherCluster):
                await under.put("a", 3, 2, cluster_uid=stranger)
            with pytest.raises(AnotherCluster):
                await under.put("b", 3, cluster_uid=stranger)
        assert await under.allocator.get_container("a", cluster="east") == held
        with pytest.raises(NoSuchContainer):
            await under.allocator.get_container("b", cluster="east")


async def test_a_container_is_deleted_only_by_the_cluster_that_it_records(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 2, cluster_uid="uid-east")
        with pytest.raises(AnotherCluster, match="cluster forget east --uid uid-east"):
            await under.allocator.delete_container("a", cluster="east", cluster_uid="uid-other")
        assert (await under.stands()).containers == 1
        await under.allocator.delete_container("a", cluster="east", cluster_uid="uid-east")
        assert (await under.stands()).containers == 0


async def test_nobody_deletes_under_a_name_that_is_bound_without_saying_who_it_is(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 1)
        await under.allocator.open_term(a_claim())
        await under.put("a", 2, cluster_uid="uid-east")
        for container in ("a", "old", "never-known"):
            for stranger in ("", "uid-other"):
                with pytest.raises(
                    AnotherCluster, match="belongs to the cluster whose namespace kube-system"
                ):
                    await under.allocator.delete_container(container, cluster="east", cluster_uid=stranger)
        assert (await under.stands()).containers == 2
        await under.put("never-known", 1, cluster_uid="uid-east")  # no tombstone was left


async def test_what_a_container_without_uid_leaves_is_of_the_cluster_that_saw_its_node_go(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 1)
        await under.allocator.open_term(a_claim())
        await under.allocator.delete_container("old", cluster="east", cluster_uid="uid-east")
        (left,) = (await under.allocator.quarantined()).items
        assert left.cluster_uid == "uid-east"


async def test_a_container_without_uid_takes_that_of_the_first_wish(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        assert (await under.put("a", 2)).cluster_uid == ""
        assert (await of_clusters(under.allocator, "east")).without_uid == 1
        await under.allocator.open_term(a_claim())
        assert (await under.put("a", 2, cluster_uid="uid-east")).cluster_uid == "uid-east"
        record = await of_clusters(under.allocator, "east")
        assert (record.containers, record.without_uid) == (1, 0)


@pytest.mark.parametrize("name", ["east", "clone"])
async def test_a_second_live_term_under_the_same_uid_is_refused(
    open_allocator: OpenAllocator, name: str
) -> None:
    async with open_allocator() as under:
        await under.allocator.open_term(a_claim())
        with pytest.raises(AnotherTerm, match="one acts for the cluster with uid uid-east now"):
            await under.allocator.open_term(a_claim(name, holder="two"))
        under.clock.pass_by(TERM_SECONDS - 1)
        await under.allocator.open_term(a_claim())
        under.clock.pass_by(TERM_SECONDS - 1)
        with pytest.raises(AnotherTerm):
            await under.allocator.open_term(a_claim(name, holder="two"))
        under.clock.pass_by(1)
        await under.allocator.open_term(a_claim(name, holder="two"))


async def test_a_term_that_was_closed_leaves_the_next_holder_nothing_to_wait_for(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.allocator.open_term(a_claim())
        await under.allocator.close_term(a_claim(holder="two"))  # another's stays
        with pytest.raises(AnotherTerm):
            await under.allocator.open_term(a_claim(holder="two"))
        await under.allocator.close_term(a_claim())
        await under.allocator.open_term(a_claim(holder="two"))
        assert (await of_clusters(under.allocator, "east")).holder == "two"


async def test_clusters_with_uids_of_their_own_do_not_hold_each_other_up(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.allocator.open_term(a_claim())
        await under.allocator.open_term(a_claim("west", "uid-west", "two"))


async def test_a_name_can_be_moved_and_what_was_made_under_it_stays_with_its_maker(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.allocator.open_term(a_claim())
        await under.put("a", 2, cluster_uid="uid-east")
        await administered(under.allocator).move_cluster("east", uid="uid-new")
        await under.allocator.open_term(a_claim(uid="uid-new", holder="two"))
        with pytest.raises(AnotherCluster):
            await under.allocator.open_term(a_claim())
        record = await of_clusters(under.allocator, "east")
        assert (record.uid, record.containers, record.of_other_uids) == ("uid-new", 0, 1)
        assert await administered(under.allocator).forget_cluster("east", uid="uid-east") == 1
        record = await of_clusters(under.allocator, "east")
        assert (record.uid, record.of_other_uids) == ("uid-new", 0)


async def test_a_cluster_that_is_gone_for_ever_is_forgotten_with_all_it_had(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/28")
        await under.allocator.open_term(a_claim())
        await under.put("a", 2, cluster_uid="uid-east")
        await under.put("b", 9, cluster_uid="uid-east")
        with pytest.raises(Exception, match="no address left"):
            await under.put("c", 1, cluster_uid="uid-east")  # a newcomer that waits is forgotten, too
        assert await administered(under.allocator).forget_cluster("east") == 3
        stands = await under.stands()
        assert (stands.containers, stands.owed, stands.reserved, stands.quarantined) == (0, 0, 0, 0)
        assert (await administered(under.allocator).list_clusters()).clusters == ()
        await under.allocator.open_term(a_claim(uid="uid-next"))


async def test_containers_without_uid_can_be_forgotten_alone(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 1)
        await under.allocator.open_term(a_claim())
        await under.put("new", 1, cluster_uid="uid-east")
        assert await administered(under.allocator).forget_cluster("east", uid="") == 1
        record = await of_clusters(under.allocator, "east")
        assert (record.uid, record.containers, record.without_uid) == ("uid-east", 1, 0)
        assert a_wish("new", 1).cluster == "east"


async def test_forgetting_a_cluster_ends_what_it_had_in_quarantine(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        await under.put("gone", 3, cluster_uid="uid-old")
        await under.put("there", 2, cluster_uid="uid-east")
        await under.put("other", 1, cluster="west", cluster_uid="uid-west")
        await under.allocator.delete_container("gone", cluster="east", cluster_uid="uid-old")
        await under.allocator.delete_container("other", cluster="west", cluster_uid="uid-west")
        assert (await under.stands()).quarantined == 6
        assert await administered(under.allocator).forget_cluster("east", uid="uid-east") == 1
        assert (await under.stands()).quarantined == 6  # what another uid left is not its
        assert await administered(under.allocator).forget_cluster("east") == 0
        stands = await under.stands()
        assert (stands.quarantined, stands.reserved) == (2, 2)
        (left,) = (await under.allocator.quarantined()).items
        assert left.cluster == "west"
