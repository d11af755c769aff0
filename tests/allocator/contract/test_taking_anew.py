"""Wishes of request objects that went back, as after a restore of etcd: taken anew, and nothing that lives is touched."""

import pytest

from allocator.contract.harness import (
    QUARANTINE_SECONDS,
    OpenAllocator,
    addresses,
    end_due,
    everything,
    names,
)
from podtide.allocator.containers import LastWish
from podtide.allocator.errors import NoSuchContainer, StaleWish
from podtide.core.errors import InvalidInput


async def test_a_request_that_went_back_is_taken_anew(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, generation=7)
        later = await under.put("a", 5, generation=12)
        with pytest.raises(StaleWish):
            await under.put("a", 3, generation=7)
        last = LastWish(request_uid=later.request_uid, generation=later.generation)
        anew = await under.put("a", 3, generation=7, instead_of=last)
        assert (addresses(anew), anew.version, anew.generation) == (addresses(later), later.version, 7)
        assert await under.put("a", 3, generation=7, instead_of=last) == anew  # after a lost answer
        assert (await under.put("a", 6, generation=8)).wanted == 6


async def test_names_given_up_before_the_backup_are_nobodys_by_now(open_allocator: OpenAllocator) -> None:
    """Their addresses may be other nodes', or this very node's again, by other names."""
    async with open_allocator() as under:
        await under.subnet()
        first = await under.put("a", 4, generation=6)
        given_up = tuple(names(first)[:2])
        await under.put("a", 2, generation=7, release=given_up)
        full = await under.put("a", 12, generation=12)  # all there is, those two again among it
        assert addresses(first) <= addresses(full)
        last = LastWish(request_uid="request-a", generation=12)
        anew = await under.put("a", 2, generation=7, release=given_up, instead_of=last)
        assert addresses(anew) == addresses(full)


async def test_it_is_taken_instead_of_the_last_wish_and_of_no_other(open_allocator: OpenAllocator) -> None:
    """So a duplicate that comes late does not undo what was told since."""
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 5, generation=12)
        for wrong in (LastWish(request_uid="request-a", generation=11), LastWish()):
            with pytest.raises(StaleWish):
                await under.put("a", 3, generation=7, instead_of=wrong)
        last = LastWish(request_uid="request-a", generation=12)
        await under.put("a", 3, generation=7, instead_of=last)
        await under.put("a", 4, generation=8)
        with pytest.raises(StaleWish):
            await under.put("a", 3, generation=7, instead_of=last)


async def test_a_wish_from_before_the_restore_that_comes_late_takes_nothing_away(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        late = names(await under.put("a", 5, generation=11))[:2]
        now = await under.put("a", 5, generation=12)
        anew = await under.put(
            "a", 3, generation=7, instead_of=LastWish(request_uid="request-a", generation=12)
        )
        given_up = await under.put("a", 3, generation=12, release=tuple(late))
        assert addresses(given_up) == addresses(now) - {
            each.ip for each in anew.addresses if each.name in late
        }
        with pytest.raises(StaleWish):
            await under.put("a", 4, generation=8)
        last = LastWish(request_uid="request-a", generation=12)
        assert (await under.put("a", 4, generation=8, instead_of=last)).wanted == 4


async def test_a_request_that_was_deleted_and_is_back_is_taken_anew(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3, request_uid="first")
        held = await under.put("a", 3, request_uid="second")
        with pytest.raises(StaleWish):
            await under.put("a", 4, request_uid="first", generation=2)
        last = LastWish(request_uid="second", generation=1)
        anew = await under.put("a", 4, request_uid="first", generation=2, instead_of=last)
        assert addresses(anew) > addresses(held)
        with pytest.raises(StaleWish):
            await under.put("a", 9, request_uid="second", generation=5)


async def test_a_node_that_is_back_has_a_container_again_by_names_never_used(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        before = await under.put("a", 3)
        await under.delete("a")
        with pytest.raises(NoSuchContainer):
            await under.allocator.get_container("a", cluster="east")
        again = await under.put("a", 3, instead_of=LastWish())
        assert not everything(again) & everything(before)  # those rest in quarantine
        assert not set(names(again)) & set(names(before))
        stands = await under.stands()
        assert (stands.reserved, stands.containers, stands.quarantined) == (8, 1, 4)
        under.clock.pass_by(QUARANTINE_SECONDS + 1)
        await end_due(under.allocator)
        assert (await under.stands()).reserved == 4
        assert await under.put("a", 3, release=tuple(names(before))) == again


async def test_a_node_that_waits_for_its_first_address_may_go_back(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/30")
        await under.put("a", 0)
        with pytest.raises(Exception, match="no address left"):
            await under.put("b", 2, generation=5)
        with pytest.raises(Exception, match="no address left"):
            await under.put("b", 1, generation=3, instead_of=LastWish())
        await under.delete("a")
        under.clock.pass_by(QUARANTINE_SECONDS + 1)
        await end_due(under.allocator)
        assert (await under.put("b", 0, generation=4)).generation == 4


async def test_it_moves_no_container_and_takes_none_of_another_cluster(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.subnet("10.2.0.0/28", "other")
        await under.put("a", 1, generation=5)
        last = LastWish(request_uid="request-a", generation=5)
        with pytest.raises(InvalidInput):
            await under.put("a", 1, generation=3, subnet="other", instead_of=last)
        with pytest.raises(InvalidInput):
            await under.put("a", 1, generation=3, node="another", instead_of=last)
        with pytest.raises(NoSuchContainer):
            await under.put("a", 1, generation=3, cluster="west", instead_of=last)
        assert (await under.allocator.get_container("a", cluster="east")).generation == 5


@pytest.mark.parametrize("wrong", [LastWish(request_uid="no name"), LastWish(request_uid="a", generation=-1)])
async def test_what_was_never_told_is_refused(open_allocator: OpenAllocator, wrong: LastWish) -> None:
    async with open_allocator() as under:
        await under.subnet()
        with pytest.raises(InvalidInput):
            await under.put("a", 1, instead_of=wrong)
