"""A store that went back grants nothing until every cluster has reported, and then holds exactly what nodes have."""

import pytest
from msgspec.structs import replace

from allocator.contract.harness import (
    AllocatorUnderTest,
    OpenAllocator,
    a_wish,
    addresses,
    end_due,
    everything,
)
from allocator.contract.test_clusters import a_claim, administered, of_clusters
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.errors import AnotherCluster, StoreRecovering
from podtide.allocator.limits import MOST_SEEN
from podtide.allocator.terms import HeldAddress, HeldContainer, SeenVersion, TermClaim
from podtide.core.errors import InvalidInput
from podtide.core.machine_identity import MachineIdentity

EAST, WEST = "uid-east", "uid-west"
FIRST = 1_750_000_000_000
"""The number of a recovery that begins when the clock was not moved."""


def as_held(container: AllocatedContainer, recovery: int = FIRST, **changed: object) -> HeldContainer:
    """What a NodeNetworkConfig shows of a container."""
    fields = {
        "id": container.id,
        "network": container.network,
        "subnet": container.subnet,
        "cluster": container.cluster,
        "cluster_uid": container.cluster_uid,
        "node": container.node,
        "primary": container.primary,
        "version": container.version,
        "request_uid": container.request_uid,
        "generation": container.generation,
        "recovery": recovery,
        "addresses": tuple(HeldAddress(each.name, each.ip) for each in container.addresses),
        **changed,
    }
    return HeldContainer(**fields)  # type: ignore[arg-type]  # as HeldContainer checks


def claim_seen(version: int, cluster: str = "east") -> TermClaim:
    seen = (SeenVersion("blue", "pods", version),)
    return TermClaim(cluster=cluster, cluster_uid=f"uid-{cluster}", holder=f"of-{cluster}", seen=seen)


async def two_nodes(under: AllocatorUnderTest) -> tuple[AllocatedContainer, AllocatedContainer]:
    """Nodes a of east and w of west, each with a term of its cluster."""
    await under.subnet("10.1.0.0/26")
    await under.allocator.open_term(claim_seen(0))
    await under.allocator.open_term(claim_seen(0, "west"))
    a = await under.put("a", 3, cluster_uid=EAST)
    w = await under.put("w", 3, cluster="west", cluster_uid=WEST)
    return a, w


async def go_back(under: AllocatorUnderTest, seen: int = 100) -> int:
    """Let the store learn that it went back: the number of the recovery."""
    opened = await under.allocator.open_term(claim_seen(seen))
    assert opened.recovering
    return opened.recovery


async def finish(under: AllocatorUnderTest, recovery: int, *clusters: str) -> None:
    for cluster in clusters:
        await under.allocator.finish_report(cluster, cluster_uid=f"uid-{cluster}", recovery=recovery)


async def test_versions_grow_over_all_containers_of_a_subnet(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        assert a.version < w.version < (await under.put("a", 4, 2, cluster_uid=EAST)).version


async def test_versions_go_on_above_those_of_a_removed_subnet(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        before = await under.put("a", 3)
        await under.delete("a")
        under.clock.pass_by(1000)
        await end_due(under.allocator)
        await under.allocator.remove_subnet("blue", "pods")
        await under.subnet()
        assert (await under.put("b", 1)).version > before.version


async def test_a_term_tells_how_far_the_store_has_come_by_deletions_too(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        _a, w = await two_nodes(under)
        (before,) = (await under.allocator.open_term(claim_seen(0))).reached
        assert before == SeenVersion("blue", "pods", w.version)
        await under.allocator.delete_container("a", cluster="east", cluster_uid=EAST)
        (after,) = (await under.allocator.open_term(claim_seen(0))).reached
        assert after.version > before.version
        opened = await under.allocator.open_term(claim_seen(after.version + 1))
        assert opened.recovering
        assert opened.reached == (SeenVersion("blue", "pods", after.version + 1),)


async def test_a_term_tells_of_the_subnets_alone_that_the_claim_names(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_nodes(under)
        await under.subnet("10.2.0.0/28", "others")
        await under.subnet("10.1.0.0/28", network="green")
        here, there = SeenVersion("blue", "others", 0), SeenVersion("blue", "not-there", 0)
        claim = TermClaim(cluster="east", cluster_uid=EAST, holder="of-east", seen=(here, there))
        assert (await under.allocator.open_term(claim)).reached == (here,)


@pytest.mark.parametrize("place", [0, MOST_SEEN, 2 * MOST_SEEN])
async def test_a_claim_may_name_more_subnets_than_one_request_takes(
    open_allocator: OpenAllocator, place: int
) -> None:
    async with open_allocator() as under:
        await two_nodes(under)
        nowhere = tuple(SeenVersion("blue", f"a{number}", 0) for number in range(2 * MOST_SEEN))
        for version, recovers in ((0, False), (99, True)):
            seen = (*nowhere[:place], SeenVersion("blue", "pods", version), *nowhere[place:])
            opened = await under.allocator.open_term(
                TermClaim(cluster="east", cluster_uid=EAST, holder="of-east", seen=seen)
            )
            assert [each.subnet for each in opened.reached] == ["pods"]
            assert bool(opened.recovering) is recovers


async def test_a_wish_that_has_seen_more_than_the_store_makes_it_grant_nothing(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        assert (await under.put("a", 3, cluster_uid=EAST, seen=w.version)) == a
        with pytest.raises(StoreRecovering, match="cluster east has seen version 50 in subnet pods"):
            await under.put("a", 4, 2, cluster_uid=EAST, seen=50)
        for again in ("a", "new"):
            with pytest.raises(StoreRecovering):
                await under.put(again, 5, 3, cluster_uid=EAST)
        with pytest.raises(StoreRecovering):
            await under.put("w", 4, 2, cluster="west", cluster_uid=WEST)
        for node in ("a", "never-known"):
            with pytest.raises(StoreRecovering):
                await under.allocator.delete_container(node, cluster="east", cluster_uid=EAST)
        with pytest.raises(StoreRecovering):
            await under.allocator.remove_subnet("blue", "pods")
        registry = await administered(under.allocator).list_clusters()
        assert registry.awaited == ("east", "west")
        assert "version 50" in registry.recovering


@pytest.mark.parametrize("stranger", ["uid-other", ""])
async def test_what_another_cluster_under_the_name_has_seen_stops_nobody(
    open_allocator: OpenAllocator, stranger: str
) -> None:
    async with open_allocator() as under:
        await two_nodes(under)
        for node in ("a", "new"):
            with pytest.raises(AnotherCluster):
                await under.put(node, 4, 2, cluster_uid=stranger, seen=10_000)
            with pytest.raises(AnotherCluster):
                await under.allocator.move_container(a_wish(node, 4, 2, cluster_uid=stranger, seen=10_000))
        assert (await administered(under.allocator).list_clusters()).recovering == ""
        assert (await under.put("a", 4, 2, cluster_uid=EAST)).version < 10


async def test_no_quarantine_ends_while_the_store_does_not_know_who_else_has_the_addresses(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        await under.allocator.delete_container("a", cluster="east", cluster_uid=EAST)
        recovery = await go_back(under)
        under.clock.pass_by(1000)
        with pytest.raises(StoreRecovering):
            await end_due(under.allocator)
        assert (await under.stands()).quarantined == len(everything(a))
        await under.allocator.adopt_container(as_held(w, recovery))
        await finish(under, recovery, "east", "west")
        await end_due(under.allocator)
        assert (await under.stands()).quarantined == 0


async def a_store_that_forgot_west(under: AllocatorUnderTest) -> None:
    """It went back to before west joined, and noticed by what east has seen; nobody knew that west was to be awaited."""
    await under.subnet("10.1.0.0/26")
    await under.allocator.open_term(claim_seen(0))
    await finish(under, await go_back(under), "east")
    assert (await under.put("a", 3, cluster_uid=EAST)).version > 100


async def test_a_cluster_that_the_store_forgot_makes_it_grant_nothing_until_it_has_reported(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await a_store_that_forgot_west(under)
        a = await under.allocator.get_container("a", cluster="east")
        under.clock.pass_by(60)
        opened = await under.allocator.open_term(claim_seen(40, "west"))
        assert "cluster west has seen version 40 in subnet pods, and the store does not know it" in (
            opened.recovering
        )
        assert opened.recovery > FIRST
        assert (await under.allocator.open_term(claim_seen(40, "west"))).recovery == opened.recovery
        assert (await administered(under.allocator).list_clusters()).awaited == ("east", "west")
        with pytest.raises(StoreRecovering):
            await under.put("a", 4, 2, cluster_uid=EAST)
        # What east was given of it meanwhile is told, and stays where it is; the rest is west's again.
        twice, own = a.addresses[0], HeldAddress("w-40-45", "10.1.0.45")
        number = twice.name.rpartition("-")[2]
        w = as_held(
            a,
            opened.recovery,
            id="w",
            cluster="west",
            cluster_uid=WEST,
            node="node-w",
            primary="10.1.0.44",
            version=40,
            addresses=(HeldAddress(f"w-40-{number}", twice.ip), own),
        )
        assert await under.allocator.adopt_container(as_held(a, opened.recovery)) == ()
        (complaint,) = await under.allocator.adopt_container(w)
        assert twice.ip in complaint
        await finish(under, opened.recovery, "east", "west")
        held = await under.allocator.get_container("w", cluster="west")
        assert everything(held) == {"10.1.0.44", own.ip}
        assert await under.put("a", 3, 2, cluster_uid=EAST, seen=101) == replace(a, generation=2)
        assert (await under.allocator.open_term(claim_seen(40, "west"))).recovering == ""


async def test_a_cluster_is_not_forgotten_that_is_new_or_known_by_name_uid_or_container(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await a_store_that_forgot_west(under)
        await under.put("from-before-uids", 1, cluster="old")
        await under.put("under-a-moved-name", 1, cluster="moved", cluster_uid="uid-first")
        await administered(under.allocator).move_cluster("moved", uid="uid-second")
        unknown_subnet = (SeenVersion("blue", "elsewhere", 0),)
        for claim in (
            claim_seen(0, "new"),
            claim_seen(40, "old"),
            claim_seen(40, "new"),
            replace(claim_seen(40, "renamed"), cluster_uid="uid-new", holder="of-new"),
            replace(claim_seen(40, "moved"), cluster_uid="uid-second"),
            replace(claim_seen(40, "first"), cluster_uid="uid-first"),
            replace(claim_seen(40, "nowhere"), seen=unknown_subnet),
        ):
            assert (await under.allocator.open_term(claim)).recovering == "", claim.cluster


async def test_a_recovery_that_goes_on_waits_for_a_forgotten_cluster_and_does_not_begin_anew(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await a_store_that_forgot_west(under)
        under.clock.pass_by(60)
        recovery = await go_back(under, 200)
        under.clock.pass_by(60)
        assert (await under.allocator.open_term(claim_seen(40, "west"))).recovery == recovery
        await finish(under, recovery, "east")
        assert (await administered(under.allocator).list_clusters()).awaited == ("west",)
        await finish(under, recovery, "west")
        assert (await administered(under.allocator).list_clusters()).recovering == ""


async def test_a_cluster_that_was_forgotten_by_a_word_and_lives_after_all_is_heard(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        await administered(under.allocator).forget_cluster("west")
        assert (await under.stands()).reserved == len(everything(a))
        recovery = (await under.allocator.open_term(claim_seen(w.version, "west"))).recovery
        assert await under.allocator.adopt_container(as_held(a, recovery)) == ()
        (complaint,) = await under.allocator.adopt_container(as_held(w, recovery))
        assert "was deleted" in complaint
        await finish(under, recovery, "east", "west")
        assert not everything(await under.put("a", 50, 2, cluster_uid=EAST)) & everything(w)


async def test_it_grants_again_with_the_last_report_and_not_before(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        assert await under.allocator.adopt_container(as_held(a)) == ()
        await finish(under, recovery, "east")
        assert (
            await under.allocator.open_term(claim_seen(100))
        ).recovery == 0  # nothing more is asked of east
        with pytest.raises(StoreRecovering):
            await under.put("a", 4, 2, cluster_uid=EAST)
        assert (await of_clusters(under.allocator, "west")).reported is False
        assert (await under.allocator.open_term(claim_seen(0, "west"))).recovery == recovery
        assert await under.allocator.adopt_container(as_held(w)) == ()
        await finish(under, recovery, "west")
        assert (await under.allocator.open_term(claim_seen(100))).recovering == ""
        grown = await under.put("a", 4, 2, cluster_uid=EAST, seen=100)
        assert addresses(a) < addresses(grown)
        assert grown.version > 100
        assert not everything(grown) & everything(w)


async def test_what_the_store_forgot_is_held_again_exactly_and_given_to_nobody_else(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        lost = ("10.1.0.40", "10.1.0.41")
        more = as_held(
            a,
            version=90,
            generation=7,
            addresses=(
                *as_held(a).addresses,
                *(HeldAddress(f"a-90-{ip.rpartition('.')[2]}", ip) for ip in lost),
            ),
        )
        newcomer = as_held(
            a,
            id="n",
            node="node-n",
            primary="10.1.0.50",
            request_uid="request-n",
            addresses=(HeldAddress("n-80-51", "10.1.0.51"),),
        )
        assert await under.allocator.adopt_container(more) == ()
        assert await under.allocator.adopt_container(more) == ()  # again, after a lost answer
        assert await under.allocator.adopt_container(newcomer) == ()
        await under.allocator.adopt_container(as_held(w))
        await finish(under, recovery, "east", "west")
        held = await under.allocator.get_container("a", cluster="east")
        assert as_held(held) == more
        assert as_held(await under.allocator.get_container("n", cluster="east")) == newcomer
        everyone = await under.put("z", 60, cluster="west", cluster_uid=WEST)
        assert not everything(everyone) & {*lost, "10.1.0.50", "10.1.0.51", *everything(a), *everything(w)}
        assert (await under.stands()).reserved == 61


async def test_what_the_store_still_had_for_a_node_goes_to_quarantine(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        less = as_held(a, addresses=as_held(a).addresses[:1])
        assert await under.allocator.adopt_container(less) == ()
        await under.allocator.adopt_container(as_held(w))
        await finish(under, recovery, "east", "west")
        stands = await under.stands()
        assert (stands.quarantined, stands.reserved) == (2, 8)


async def test_a_report_takes_addresses_from_rows_that_no_report_has_confirmed(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        # Since the backup a gave an address back, and w got it, and a's primary of another subnet's day, too.
        passed_on = as_held(a).addresses[0]
        number = passed_on.name.rpartition("-")[2]
        grown = as_held(
            w, version=60, addresses=(*as_held(w).addresses, HeldAddress(f"w-60-{number}", passed_on.ip))
        )
        assert await under.allocator.adopt_container(grown) == ()
        assert await under.allocator.adopt_container(as_held(a, addresses=as_held(a).addresses[1:])) == ()
        await finish(under, recovery, "east", "west")
        assert as_held(await under.allocator.get_container("w", cluster="west")) == grown
        assert passed_on.ip not in everything(await under.allocator.get_container("a", cluster="east"))


@pytest.mark.parametrize("later_first", [True, False])
async def test_of_two_nodes_that_report_an_address_the_later_grant_has_it(
    open_allocator: OpenAllocator,
    later_first: bool,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        twice = as_held(a).addresses[0]
        later = HeldAddress(f"w-50-{twice.name.rpartition('-')[2]}", twice.ip)
        reports = [as_held(a), as_held(w, version=50, addresses=(*as_held(w).addresses, later))]
        for report in reversed(reports) if later_first else reports:
            await under.allocator.adopt_container(report)
        await finish(under, recovery, "east", "west")
        assert twice.ip in everything(await under.allocator.get_container("w", cluster="west"))
        assert twice.ip not in everything(await under.allocator.get_container("a", cluster="east"))


async def test_an_address_that_two_nodes_report_stays_with_the_later_grant_and_is_told(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        twice = as_held(a).addresses[0]
        number = twice.name.rpartition("-")[2]
        claimed = as_held(w, addresses=(HeldAddress(f"w-0-{number}", twice.ip),), primary=a.primary)
        assert await under.allocator.adopt_container(as_held(a)) == ()
        complaints = await under.allocator.adopt_container(claimed)
        assert len(complaints) == 2
        assert all("another node that reported it got it later" in each for each in complaints)
        await finish(under, recovery, "east", "west")
        assert everything(await under.allocator.get_container("a", cluster="east")) == everything(a)
        again = await under.put("w", 1, 2, cluster="west", cluster_uid=WEST)
        assert not everything(again) & everything(a)


async def test_what_can_be_nobodys_is_kept_in_quarantine(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        odd = as_held(a, addresses=(*as_held(a).addresses, HeldAddress("somebody-else-1-45", "10.1.0.45")))
        (complaint,) = await under.allocator.adopt_container(odd)
        assert "10.1.0.45" in complaint
        assert await under.allocator.adopt_container(as_held(w)) == ()
        await finish(under, recovery, "east", "west")
        assert (await under.stands()).quarantined == 1
        assert "10.1.0.45" not in everything(await under.put("z", 50, cluster="west", cluster_uid=WEST))


async def test_a_deleted_containers_addresses_are_kept_in_quarantine(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        await under.allocator.delete_container("a", cluster="east", cluster_uid=EAST)
        under.clock.pass_by(1000)
        await end_due(under.allocator)
        assert (await under.stands()).reserved == 4
        recovery = await go_back(under)
        (complaint,) = await under.allocator.adopt_container(as_held(a, recovery))
        assert "was deleted" in complaint
        stands = await under.stands()
        assert (stands.quarantined, stands.reserved) == (4, 8)
        await under.allocator.adopt_container(as_held(w, recovery))
        await finish(under, recovery, "east", "west")


async def test_an_address_that_the_subnet_no_longer_has_keeps_the_report_open(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, _w = await two_nodes(under)
        await go_back(under)
        grown = as_held(a, addresses=(*as_held(a).addresses, HeldAddress("a-90-64", "10.2.0.1")))
        with pytest.raises(InvalidInput, match="podtide subnet grow"):
            await under.allocator.adopt_container(grown)


async def test_a_report_of_an_earlier_recovery_does_not_count(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, _w = await two_nodes(under)
        recovery = await go_back(under)
        with pytest.raises(InvalidInput, match="report anew"):
            await under.allocator.adopt_container(as_held(a, recovery - 1, addresses=()))
        assert await under.allocator.get_container("a", cluster="east") == a
        with pytest.raises(InvalidInput, match="report anew"):
            await finish(under, recovery - 1, "east")
        await finish(under, recovery, "east", "west")
        assert await go_back(under, 200) == recovery + 1
        assert (await under.allocator.open_term(claim_seen(0, "west"))).recovery == recovery + 1


async def test_a_command_ends_the_wait(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await two_nodes(under)
        await go_back(under)
        await administered(under.allocator).end_recovery()
        await under.put("a", 4, 2, cluster_uid=EAST, seen=100)


async def test_reports_to_a_store_that_did_not_go_back_change_nothing(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, _w = await two_nodes(under)
        assert await under.allocator.adopt_container(as_held(a, addresses=())) == ()
        await finish(under, 0, "east")
        assert await under.allocator.get_container("a", cluster="east") == a


async def test_a_cluster_without_nodes_is_awaited_like_any_other(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        await under.allocator.open_term(a_claim("north", "uid-north"))
        recovery = await go_back(under)
        await under.allocator.adopt_container(as_held(a))
        await under.allocator.adopt_container(as_held(w))
        await finish(under, recovery, "east", "west")
        assert (await administered(under.allocator).list_clusters()).awaited == ("north",)


async def test_a_store_that_recovers_waits_no_longer_for_a_cluster_that_is_forgotten(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        # Since the backup w gave an address back, and a got it.
        passed_on = as_held(w).addresses[0]
        number = passed_on.name.rpartition("-")[2]
        grown = as_held(
            a, version=60, addresses=(*as_held(a).addresses, HeldAddress(f"a-60-{number}", passed_on.ip))
        )
        assert await under.allocator.adopt_container(grown) == ()
        await finish(under, recovery, "east")
        assert await administered(under.allocator).forget_cluster("west") == 1
        assert (await administered(under.allocator).list_clusters()).recovering == ""
        stands = await under.stands()
        assert (stands.reserved, stands.quarantined, stands.containers) == (5, 0, 1)
        assert as_held(await under.allocator.get_container("a", cluster="east")) == grown


async def test_a_forgotten_cluster_leaves_a_store_that_nobody_has_reported_to_waiting(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_nodes(under)
        await go_back(under)
        await administered(under.allocator).forget_cluster("west")
        assert (await administered(under.allocator).list_clusters()).awaited == ("east",)
        await administered(under.allocator).forget_cluster("east")
        assert (await administered(under.allocator).list_clusters()).recovering


async def test_nothing_is_left_with_a_container_whose_machine_has_its_primary_in_another_by_now(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        # Since the backup a's machine was registered again, got its addresses under another uid, and gave two of them back.
        (kept, *_others) = as_held(a).addresses
        number = kept.name.rpartition("-")[2]
        again = as_held(a, id="a2", version=60, addresses=(HeldAddress(f"a2-60-{number}", kept.ip),))
        assert await under.allocator.adopt_container(again) == ()
        assert await under.allocator.adopt_container(as_held(w)) == ()
        await finish(under, recovery, "east", "west")
        containers = (await under.allocator.list_containers()).items
        assert [container.id for container in containers] == ["a2", "w"]
        stands = await under.stands()
        assert (stands.containers, stands.owed, stands.reserved, stands.quarantined) == (2, 0, 8, 2)
        (left,) = (await under.allocator.quarantined(node=a.node)).items
        assert left.container == "a"
        under.clock.pass_by(1000)
        await end_due(under.allocator)
        assert (await under.stands()).reserved == 6


async def test_a_node_that_is_removed_after_a_recovery_finds_its_addresses_when_it_comes_again(
    open_allocator: OpenAllocator,
) -> None:
    machine = MachineIdentity("machine-1", "uuid-1", "boot-1")
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        less = as_held(a, addresses=as_held(a).addresses[:1])  # the rest is in quarantine, and of no machine
        assert await under.allocator.adopt_container(less) == ()
        await under.allocator.adopt_container(as_held(w))
        await finish(under, recovery, "east", "west")
        held = await under.put("a", 1, 2, cluster_uid=EAST, machine=machine)
        await under.allocator.delete_container("a", cluster="east", cluster_uid=EAST)
        moved = await under.allocator.move_container(
            a_wish("a2", 1, node=a.node, cluster_uid=EAST, machine=machine)
        )
        assert everything(held) <= {*moved.moved}
        assert moved.container.primary == held.primary


async def test_no_cidr_leaves_a_subnet_before_it_is_known_again_who_has_something_of_it(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        await under.allocator.grow_subnet("blue", "pods", ("10.2.0.0/26",))
        recovery = await go_back(under)
        shrunk = await under.allocator.shrink_subnet("blue", "pods", ("10.2.0.0/26",))
        assert shrunk.draining == ("10.2.0.0/26",)
        more = as_held(a, version=90, addresses=(*as_held(a).addresses, HeldAddress("a-90-69", "10.2.0.5")))
        assert await under.allocator.adopt_container(more) == ()
        assert await under.allocator.adopt_container(as_held(w)) == ()
        await finish(under, recovery, "east", "west")
        assert as_held(await under.allocator.get_container("a", cluster="east")) == more
        assert (await under.stands()).draining_reserved == 1
        await under.put("a", 3, 5, cluster_uid=EAST, release=("a-90-69",))
        assert (await under.stands()).cidrs == ("10.1.0.0/26",)


async def test_cidrs_that_are_added_again_have_the_numbers_that_names_were_made_of(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        # Since the backup the subnet grew by three CIDRs, and lost the first of them.
        await under.allocator.grow_subnet("blue", "pods", ("10.3.0.0/28", "10.4.0.0/28"))
        with_third = as_held(
            a, version=90, addresses=(*as_held(a).addresses, HeldAddress("a-90-85", "10.3.0.5"))
        )
        with_both = as_held(
            w,
            version=91,
            addresses=(
                *as_held(w).addresses,
                HeldAddress("w-91-86", "10.3.0.6"),
                HeldAddress("w-91-102", "10.4.0.6"),
            ),
        )
        assert await under.allocator.adopt_container(with_third) == ()
        assert await under.allocator.adopt_container(with_both) == ()
        await finish(under, recovery, "east", "west")
        assert as_held(await under.allocator.get_container("a", cluster="east")) == with_third
        assert as_held(await under.allocator.get_container("w", cluster="west")) == with_both
        stands = await under.stands()
        assert (stands.capacity, stands.reserved, stands.quarantined) == (61 + 13 + 13, 11, 0)


async def test_names_of_numbers_that_are_in_use_are_no_grants(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        recovery = await go_back(under)
        await under.allocator.grow_subnet("blue", "pods", ("10.3.0.0/28",))
        # It had the numbers of one that the store of that day has.
        (complaint,) = await under.allocator.adopt_container(
            as_held(a, version=90, addresses=(*as_held(a).addresses, HeldAddress("a-90-37", "10.3.0.5")))
        )
        assert "10.3.0.5 of node node-a" in complaint
        (complaint,) = await under.allocator.adopt_container(
            as_held(w, version=91, addresses=(*as_held(w).addresses, HeldAddress("w-91-86", "10.3.0.6")))
        )
        assert "10.3.0.6 of node node-w" in complaint  # by now it is in use
        await finish(under, recovery, "east", "west")
        assert (await under.stands()).quarantined == 2


async def test_what_a_node_gave_up_before_it_was_reported_is_gone_by_a_version_of_its_own(
    open_allocator: OpenAllocator,
) -> None:
    """Or an older status, in which the node was shown more, would be no older by its version."""
    async with open_allocator() as under:
        a, w = await two_nodes(under)
        await go_back(under)
        kept = as_held(a).addresses[1:]
        assert await under.allocator.adopt_container(as_held(a, addresses=kept, gave_up=1)) == ()
        assert await under.allocator.adopt_container(as_held(w)) == ()
        now = await under.allocator.get_container("a", cluster="east")
        assert now.version > max(a.version, w.version)
        assert (await under.allocator.get_container("w", cluster="west")).version == w.version


async def test_what_another_program_still_serves_is_held_again_under_new_names(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await two_nodes(under)
        recovery = await go_back(under)
        foreign = HeldContainer(
            id="f",
            network="blue",
            subnet="pods",
            cluster="east",
            cluster_uid=EAST,
            node="node-f",
            primary="10.1.0.40",
            version=0,
            request_uid="request-f",
            generation=3,
            recovery=recovery,
            addresses=(HeldAddress("their-name", "10.1.0.41"), HeldAddress("another", "10.1.0.42")),
            is_foreign=True,
        )
        for _ in range(2):
            assert await under.allocator.adopt_container(foreign) == ()
        await finish(under, recovery, "east", "west")
        held = await under.allocator.get_container("f", cluster="east")
        assert (held.primary, addresses(held)) == ("10.1.0.40", {"10.1.0.41", "10.1.0.42"})
        assert all(each.name.startswith("f-") for each in held.addresses)
        assert not (await under.allocator.quarantined(node="node-f")).items
        less = await under.put("f", 1, 4, cluster_uid=EAST, node="node-f", release=(held.addresses[0].name,))
        assert addresses(less) == addresses(held) - {held.addresses[0].ip}
