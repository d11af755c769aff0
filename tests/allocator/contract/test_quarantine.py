"""What removed nodes left: nobody's until somebody who looked says so, or moved to the Node that the machine is now."""

import pytest

from allocator.contract.harness import (
    QUARANTINE_SECONDS,
    AllocatorUnderTest,
    OpenAllocator,
    a_wish,
    addresses,
    everything,
    names,
)
from podtide.allocator.containers import AllocatedContainer, MoveResult
from podtide.allocator.errors import AnotherCluster, NoSuchContainer, StaleWish, SubnetFull
from podtide.allocator.quarantine import Quarantined
from podtide.core.errors import InvalidInput
from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity

MACHINE = MachineIdentity("machine-1", "uuid-1", "boot-1")
BOOTED = MachineIdentity("machine-1", "uuid-1", "boot-2")
ANOTHER = MachineIdentity("machine-1", "uuid-2", "boot-1")


async def removed(
    under: AllocatorUnderTest, id_: str = "old", count: int = 4, machine: MachineIdentity = MACHINE
) -> AllocatedContainer:
    """A node that had addresses and is no more."""
    held = await under.put(id_, count, node="worker", machine=machine)
    await under.delete(id_)
    return held


async def move(
    under: AllocatorUnderTest,
    id_: str = "new",
    count: int = 0,
    machine: MachineIdentity = MACHINE,
    **more: object,
) -> MoveResult:
    return await under.allocator.move_container(
        a_wish(id_, count, **{"node": "worker", "machine": machine} | more)  # type: ignore[arg-type]  # as a_wish
    )


async def in_quarantine(under: AllocatorUnderTest, **narrowed: object) -> tuple[Quarantined, ...]:
    return (await under.allocator.quarantined(**narrowed)).items  # type: ignore[arg-type]  # the port's own


async def test_quarantine_does_not_end_by_time(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await removed(under, count=12)
        under.clock.pass_by(100 * QUARANTINE_SECONDS)
        assert (await under.stands()).quarantined == 13
        with pytest.raises(SubnetFull):
            await under.put("other", 1)
        (left,) = await in_quarantine(under, cluster="east", due=True)
        assert set(left.addresses) == everything(held)
        assert (left.container, left.cluster, left.node, left.subnet) == ("old", "east", "worker", "pods")
        assert (left.machine, left.seconds_left) == (MACHINE, 0.0)


async def test_quarantine_ends_by_a_word_for_exactly_these_addresses(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await removed(under)
        one, *others = sorted(everything(held))
        ended = await under.allocator.end_quarantine("old", (one,), cluster="east", reason="no pod shows it")
        assert ended == 1
        (left,) = await in_quarantine(under)
        assert set(left.addresses) == set(others)
        stands = await under.stands()
        assert (stands.quarantined, stands.reserved) == (4, 4)


async def test_a_late_word_frees_nothing_that_lives(open_allocator: OpenAllocator) -> None:
    """The same again, and the same after the addresses went to another node and that was removed too."""
    async with open_allocator() as under:
        await under.subnet()
        left = tuple(everything(await removed(under)))
        assert await under.allocator.end_quarantine("old", left, cluster="east", reason="looked") == 5
        assert await under.allocator.end_quarantine("old", left, cluster="east", reason="looked") == 0
        other = await under.put("other", 12)
        assert everything(other) >= set(left)
        assert await under.allocator.end_quarantine("old", left, cluster="east", reason="looked") == 0
        await under.delete("other")
        assert await under.allocator.end_quarantine("old", left, cluster="east", reason="looked") == 0
        assert (await under.stands()).quarantined == 13
        assert (
            await under.allocator.end_quarantine(
                "other", (*left, "192.0.2.1"), cluster="east", reason="looked"
            )
            == 5
        )


async def test_a_quarantine_ends_for_a_reason_and_by_addresses(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await removed(under)
        for wrong, reason in (((), " "), (("many",), "looked")):
            with pytest.raises(InvalidInput):
                await under.allocator.end_quarantine("old", wrong, cluster="east", reason=reason)
        with pytest.raises(NoSuchContainer):
            await under.allocator.end_quarantine("old", (), cluster="west", reason="looked")


async def test_what_is_in_quarantine_is_listed_by_pages_and_narrowed(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        for id_ in ("a", "b", "c"):
            await under.put(id_, 2)
            await under.delete(id_)
        await under.put("far", 1, cluster="west")
        await under.allocator.delete_container("far", cluster="west")
        first = await under.allocator.quarantined(cluster="east", limit=2)
        second = await under.allocator.quarantined(cluster="east", limit=2, more=first.more)
        assert [each.container for each in (*first.items, *second.items)] == ["a", "b", "c"]
        assert second.more == ""
        assert [each.container for each in await in_quarantine(under, node="node-b")] == ["b"]
        assert len(await in_quarantine(under)) == 4
        assert await in_quarantine(under, due=True) == ()
        under.clock.pass_by(QUARANTINE_SECONDS - 1.0)
        await under.put("d", 2)
        await under.delete("d")
        under.clock.pass_by(1.0)
        assert [each.container for each in await in_quarantine(under, cluster="east", due=True)] == [
            "a",
            "b",
            "c",
        ]
        (waiting,) = await in_quarantine(under, node="node-d")
        assert waiting.seconds_left == pytest.approx(QUARANTINE_SECONDS - 1.0)


async def test_a_clock_that_was_400_days_ahead_holds_nothing_beyond_a_quarantine_from_now(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        under.clock.pass_by(400 * 86_400.0)
        await removed(under)
        under.clock.pass_by(-400 * 86_400.0)
        (left,) = await in_quarantine(under)
        assert left.seconds_left == pytest.approx(QUARANTINE_SECONDS)
        under.clock.pass_by(QUARANTINE_SECONDS)
        assert len(await in_quarantine(under, due=True)) == 1


async def test_the_same_machine_and_boot_gets_its_addresses_back_under_new_names(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await removed(under)
        got = await move(under)
        assert (got.container.primary, addresses(got.container)) == (held.primary, addresses(held))
        assert not set(names(held)) & set(names(got.container))
        assert (set(got.moved), got.missing) == (everything(held), 0)
        assert await in_quarantine(under) == ()
        stands = await under.stands()
        assert (stands.quarantined, stands.reserved, stands.containers) == (0, 5, 1)


async def test_a_move_needs_no_free_address(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await removed(under, count=5)
        await under.put("other", 12)
        assert (await under.stands()).reserved == 13
        assert everything((await move(under)).container) == everything(held)


async def test_a_move_made_again_changes_nothing(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await removed(under)
        first = await move(under)
        again = await move(under)
        assert (again.container, again.moved, again.missing) == (first.container, (), 0)


async def test_a_move_grants_what_is_missing_to_the_count_too(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await removed(under)
        got = (await move(under, count=6)).container
        assert addresses(got) > addresses(held)
        assert (len(got.addresses), got.owed) == (6, 0)
        assert len(set(names(got))) == 6


async def test_nothing_moves_to_a_container_that_is_there_already(open_allocator: OpenAllocator) -> None:
    """An agent without records would take what comes later for what nobody has."""
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 2, node="worker", machine=MACHINE)
        new = await under.put("new", 1, node="worker", machine=MACHINE)
        await under.delete("old")
        got = await move(under, count=1)
        assert (got.container, got.moved) == (new, ())
        assert (await under.stands()).quarantined == 3


async def test_a_newcomer_that_waits_for_a_first_address_gets_what_its_machine_left(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 2, node="worker", machine=MACHINE)
        await under.put("other", 9)
        with pytest.raises(SubnetFull):
            await under.put("new", 0, node="worker", machine=MACHINE)
        await under.delete("old")
        assert len((await move(under)).moved) == 3
        assert (await under.stands()).owed == 0


@pytest.mark.parametrize("machine", [BOOTED, ANOTHER, UNKNOWN_MACHINE, MachineIdentity(boot_id="boot-1")])
async def test_another_machine_or_boot_gets_nothing_of_it(
    open_allocator: OpenAllocator, machine: MachineIdentity
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await removed(under)
        got = await move(under, machine=machine)
        assert got.moved == ()
        assert not everything(got.container) & everything(held)
        assert (await under.stands()).quarantined == 5


@pytest.mark.parametrize("more", [{"node": "another"}, {"cluster": "west"}, {"subnet": "pods-2"}])
async def test_nothing_moves_to_another_name_cluster_or_subnet(
    open_allocator: OpenAllocator, more: dict[str, str]
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.subnet("10.2.0.0/28", name="pods-2")
        await removed(under)
        assert (await move(under, **more)).moved == ()  # type: ignore[arg-type]  # as a_wish checks
        assert (await under.stands()).quarantined == 5


@pytest.mark.parametrize(("recorded", "uid"), [("uid-old", "uid-new"), ("", "uid-new"), ("uid-old", "")])
async def test_nothing_moves_to_a_cluster_of_another_uid_under_the_name(
    open_allocator: OpenAllocator, recorded: str, uid: str
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 4, node="worker", machine=MACHINE, cluster_uid=recorded)
        await under.allocator.delete_container("old", cluster="east", cluster_uid=recorded)
        assert (await move(under, cluster_uid=uid)).moved == ()
        assert (await under.stands()).quarantined == 5
        assert len((await move(under, "its-own", cluster_uid=recorded)).moved) == 5


@pytest.mark.parametrize("stranger", ["uid-other", ""])
async def test_a_quarantine_is_ended_only_by_the_cluster_that_it_records(
    open_allocator: OpenAllocator, stranger: str
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await under.put("old", 2, cluster_uid="uid-east")
        await under.allocator.delete_container("old", cluster="east", cluster_uid="uid-east")
        ips = tuple(everything(held))
        with pytest.raises(AnotherCluster, match="cluster forget east --uid uid-east"):
            await under.allocator.end_quarantine(
                "old", ips, cluster="east", cluster_uid=stranger, reason="no pod here shows it"
            )
        assert (await under.stands()).quarantined == 3
        ended = await under.allocator.end_quarantine(
            "old", ips, cluster="east", cluster_uid="uid-east", reason="no pod here shows it"
        )
        assert ended == 3


async def test_a_machine_that_says_nothing_of_itself_is_not_recognised(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await removed(under, machine=UNKNOWN_MACHINE)
        assert (await move(under, machine=UNKNOWN_MACHINE)).moved == ()


async def test_a_wish_that_says_nothing_of_the_machine_leaves_what_was_stated(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 2, node="worker", machine=MACHINE)
        await under.put("old", 2, 2, node="worker")
        await under.put("old", 2, 3, node="worker", machine=MachineIdentity(boot_id="boot-3"))
        await under.delete("old")
        assert len((await move(under)).moved) == 3


async def test_a_machine_booted_under_its_node_is_recognised_by_its_last_boot(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("old", 2, node="worker", machine=MACHINE)
        await under.put("old", 2, node="worker", machine=BOOTED)
        await under.delete("old")
        assert len((await move(under, machine=BOOTED)).moved) == 3


async def test_what_went_to_others_does_not_move_and_is_counted(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        held = await removed(under)
        gone = (held.primary, held.addresses[0].ip)
        await under.allocator.end_quarantine("old", gone, cluster="east", reason="looked")
        others = await under.put("other", 9 - 1)
        assert everything(others) > set(gone)
        got = await move(under)
        assert (len(got.moved), got.missing) == (3, 2)
        assert not set(got.moved) & everything(others)
        assert everything(got.container) == set(got.moved)


async def test_a_node_registered_twice_gets_back_what_both_left(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        first = await under.put("first", 2, node="worker", machine=MACHINE)
        second = await under.put("second", 3, node="worker", machine=MACHINE)
        await under.delete("first")
        await under.delete("second")
        got = await move(under)
        assert set(got.moved) == everything(first) | everything(second)
        assert got.container.primary in {first.primary, second.primary}


async def test_nothing_moves_to_a_container_that_is_gone_or_by_an_older_wish(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("new", 1, 2, node="other", machine=MACHINE)
        await removed(under)
        with pytest.raises(StaleWish):
            await move(under, node="other")
        await under.delete("new")
        with pytest.raises(StaleWish):
            await move(under, node="other", generation=3)
        assert (await under.stands()).quarantined == 7
