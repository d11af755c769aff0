import asyncio
import json
from collections.abc import Callable

import pytest
from msgspec import structs

from cluster.candidates import LEASE, Candidate, OwnClock, World, now
from cluster.faulty_cluster import Faults, Script
from podtide.cluster.lease_record import see
from podtide.cluster.port import ClusterError, Conflict, Forbidden, Throttled, Unavailable
from podtide.cluster.term import Term, TermOver
from podtide.resources.lease import Lease, LeaseSpec


async def two_candidates(first_faults: Faults | None = None) -> tuple[World, Candidate, Candidate]:
    """The first leads, the second stands by."""
    world = World()
    await world.ship_lease()
    first, second = Candidate(world, "first", first_faults), Candidate(world, "second")
    first.start()
    await asyncio.sleep(1)
    second.start()
    await asyncio.sleep(30)
    assert first.leads
    assert not second.terms
    return world, first, second


async def until(condition: Callable[[], bool], *, at_most_seconds: float) -> None:
    async with asyncio.timeout(at_most_seconds):
        while not condition():  # noqa: ASYNC110 - conditions here are of several parts, and time is virtual
            await asyncio.sleep(0.001)


async def test_a_lease_that_was_given_up_is_taken_at_once() -> None:
    world = World()
    await world.ship_lease()
    candidate = Candidate(world, "a")
    candidate.start()
    await asyncio.sleep(0.1)
    assert candidate.leads
    spec = (await world.lease()).spec
    assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("a", 15, 1)
    assert spec.acquire_time == spec.renew_time == "2025-06-15T15:06:40.000000Z"
    assert candidate.terms[0].number == 1


async def test_where_there_is_no_lease_one_is_made_and_taken_when_nobody_touched_it_for_its_time() -> None:
    world = World()
    candidate = Candidate(world, "a")
    candidate.start()
    await asyncio.sleep(14.9)
    assert (await world.lease()).spec.holder_identity == ""
    await asyncio.sleep(3)
    assert candidate.leads


async def test_the_leader_renews_and_who_stands_by_only_reads() -> None:
    world, first, second = await two_candidates()
    await asyncio.sleep(3600)
    assert len(first.terms) == 1
    assert first.leads
    assert 3600 / 2.4 <= first.cluster.calls["replace"] <= 3600 / 2 + 20
    assert set(second.cluster.calls) == {"get"}
    assert (await world.lease()).spec.lease_transitions == 1


async def test_a_leader_that_gives_up_is_succeeded_at_once() -> None:
    world, first, second = await two_candidates()
    await first.stop()
    assert (await world.lease()).spec.holder_identity == ""
    await asyncio.sleep(2.5)
    assert second.leads
    assert second.terms[0].number == 2


async def test_a_lease_that_somebody_wrote_since_the_last_renewal_is_given_up_all_the_same() -> None:
    world, first, second = await two_candidates()
    lease = await world.lease()
    noted = structs.replace(lease.metadata, annotations={"example.org/note": "hands off"})
    await world.server.replace(structs.replace(lease, metadata=noted), manager="kubectl")
    await first.stop()
    assert (await world.lease()).spec.holder_identity == ""
    await until(lambda: second.leads, at_most_seconds=2.5)


@pytest.mark.parametrize(
    "faults",
    [
        Script(get=[4], replace=[Conflict("a renewal that was cancelled has arrived"), 4]),
        Script(replace=[Unavailable("reset"), Throttled("busy", retry_after_seconds=4)]),
        Script(get=[60], replace=[60]),
    ],
    ids=["slow", "refusing", "hanging now and then"],
)
async def test_on_a_busy_server_the_lease_is_given_up_all_the_same(faults: Script) -> None:
    world, first, second = await two_candidates()
    first.cluster._faults = faults
    before = now()
    await first.stop()
    assert (await world.lease()).spec.holder_identity == ""
    assert now() - before <= 15
    await until(lambda: second.leads, at_most_seconds=2.5)


async def test_a_server_that_does_not_answer_is_asked_until_others_have_waited_long_enough() -> None:
    world, first, _second = await two_candidates()
    first.cluster._faults = Script(get=[60] * 9, replace=[60] * 9)
    before = now()
    await first.stop()
    assert now() - before == pytest.approx(15)
    assert "could not release the Lease" in world.lines.getvalue()


async def test_a_candidate_that_stops_while_it_takes_the_lease_gives_it_up() -> None:
    world = World()
    await world.ship_lease()
    faults = Script()
    faults.lost_answers["replace"] = [3]
    candidate = Candidate(world, "a", faults)
    candidate.start()
    await asyncio.sleep(1)
    assert (await world.lease()).spec.holder_identity == "a"
    await candidate.stop()
    assert not candidate.terms
    assert (await world.lease()).spec.holder_identity == ""


async def test_a_candidate_that_only_waited_leaves_the_lease_alone() -> None:
    _world, first, second = await two_candidates()
    calls = second.cluster.calls.total()
    await second.stop()
    assert second.cluster.calls.total() == calls
    assert first.leads


async def test_the_lease_is_given_up_only_when_all_that_the_leader_did_has_ended() -> None:
    world = World()
    await world.ship_lease()
    candidate = Candidate(world, "a")
    holders: list[str] = []

    async def lead(term: Term) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            for _ in range(3):
                await asyncio.sleep(1)
                holders.append((await world.lease()).spec.holder_identity)
                term.check()

    candidate.start(lead)
    await asyncio.sleep(10)
    await candidate.stop()
    assert holders == ["a", "a", "a"]
    assert (await world.lease()).spec.holder_identity == ""


async def test_a_leader_cut_off_from_the_api_stops_before_another_starts() -> None:
    _world, first, second = await two_candidates()
    cut_at = now()
    first.cluster._faults = Script(
        get=[Unavailable("no route")] * 1000, replace=[Unavailable("no route")] * 1000
    )
    while not second.leads:
        assert not (first.stopped_at and first.leads)
        await asyncio.sleep(0.01)
    assert not first.leads
    assert 7 <= first.stopped_at[0] - cut_at <= 10.1
    assert 12 <= now() - cut_at <= 15 + 2.5
    assert second.terms[0].number == 2


async def test_a_stalled_leader_leads_no_longer_though_nobody_has_told_it() -> None:
    world = World()
    await world.ship_lease()
    candidate = Candidate(world, "a")
    candidate.start()
    await asyncio.sleep(1)
    [term] = candidate.terms
    term.check()
    candidate.clock.ahead_seconds += 10  # no task ran meanwhile
    assert not term.valid
    assert term.remaining_seconds == 0
    with pytest.raises(TermOver, match=r"^term 1 is over: leave this to the next leader$"):
        term.check()
    await asyncio.sleep(5)
    assert not term.valid
    assert len(candidate.stopped_at) == 1


async def test_a_term_that_is_over_cannot_be_renewed() -> None:
    clock = OwnClock()
    term = Term(7, valid_until=10.0, clock=clock)
    term.renew(valid_until=5.0)
    assert term.remaining_seconds == 10.0
    clock.ahead_seconds = 10.0
    term.renew(valid_until=20.0)
    assert not term.valid


async def test_a_renewal_whose_answers_are_lost_now_and_then_does_not_end_the_term() -> None:
    faults = Script()
    _world, first, second = await two_candidates(faults)
    faults.lost_answers["replace"] = [Unavailable("reset"), Unavailable("reset"), None] * 100
    await asyncio.sleep(500)
    assert len(first.terms) == 1
    assert first.leads
    assert not second.terms


async def test_a_take_over_whose_answer_was_lost_still_makes_one_leader_and_one_term() -> None:
    world = World()
    await world.ship_lease()
    faults = Script()
    faults.lost_answers["replace"] = [Unavailable("reset")]
    first, second = Candidate(world, "first", faults), Candidate(world, "second")
    first.start()
    await asyncio.sleep(0.1)
    assert (await world.lease()).spec.holder_identity == "first"
    assert not first.terms
    second.start()
    await asyncio.sleep(60)
    assert [term.number for term in first.terms] == [1]
    assert first.leads
    assert not second.terms


async def test_a_take_over_that_arrives_late_counts_as_ours_though_we_tried_again() -> None:
    world = World()
    await world.ship_lease()
    candidate = Candidate(world, "a", Script(replace=[9.0, Unavailable("down")]))
    candidate.start()
    await asyncio.sleep(8.9)
    assert candidate.cluster.calls["replace"] == 2
    assert (await world.lease()).spec.holder_identity == ""
    await asyncio.sleep(10)
    assert [term.number for term in candidate.terms] == [1]
    assert candidate.leads


async def test_a_term_counts_from_before_its_lease_was_written_not_from_the_answer() -> None:
    world = World()
    await world.ship_lease()
    faults = Script()
    faults.lost_answers["replace"] = [4.0, 3.0]
    candidate = Candidate(world, "a", faults)
    candidate.start()
    await asyncio.sleep(4.01)
    [term] = candidate.terms
    assert term.remaining_seconds == pytest.approx(10 - 4.01)
    await until(lambda: candidate.cluster.calls["replace"] == 2, at_most_seconds=10)
    await asyncio.sleep(3.01)
    assert term.remaining_seconds == pytest.approx(10 - 3.01, abs=0.01)


async def test_a_lease_won_by_an_answer_that_came_too_late_is_renewed_before_anybody_leads() -> None:
    world = World()
    await world.ship_lease()
    faults = Script()
    faults.lost_answers["replace"] = [2.0]
    candidate = Candidate(world, "a", faults)
    candidate.start()
    await asyncio.sleep(1)
    candidate.clock.ahead_seconds += 20  # no task ran meanwhile
    await asyncio.sleep(1.1)
    assert not candidate.terms
    await asyncio.sleep(5)
    assert candidate.leads


async def test_a_leader_that_is_told_to_slow_down_does() -> None:
    world, first, _second = await two_candidates()
    before = first.cluster.calls["replace"]
    first.cluster._faults = Script(replace=[Throttled("busy", retry_after_seconds=6.0)])
    await asyncio.sleep(6.0)
    assert first.cluster.calls["replace"] == before + 1
    await asyncio.sleep(60)
    assert len(first.terms) == 1
    assert first.leads
    assert (await world.lease()).spec.lease_transitions == 1


async def test_when_the_lease_is_deleted_a_new_term_begins_after_its_time() -> None:
    world, first, second = await two_candidates()
    await world.server.delete(Lease, LEASE.name, LEASE.namespace)
    deleted_at = now()
    while not (first.leads and len(first.terms) > 1) and not second.leads:
        await asyncio.sleep(0.01)
        assert not (first.leads and second.leads)
    assert now() - deleted_at >= 15
    assert first.stopped_at[0] - deleted_at <= 2.6


async def test_numbers_of_terms_outlive_the_lease() -> None:
    world = World()
    await world.ship_lease()
    first = Candidate(world, "first")
    first.start()
    await asyncio.sleep(5)
    await world.server.delete(Lease, LEASE.name, LEASE.namespace)
    await asyncio.sleep(3)
    assert len(first.stopped_at) == 1
    await asyncio.sleep(30)
    assert [term.number for term in first.terms] == [1, 2]
    await world.server.delete(Lease, LEASE.name, LEASE.namespace)
    await asyncio.sleep(10)
    await first.stop()
    newcomer = Candidate(world, "newcomer")
    newcomer.start()
    await asyncio.sleep(30)
    assert [term.number for term in newcomer.terms] == [3]


async def test_a_former_leader_does_not_believe_a_lease_that_was_edited_back_to_it() -> None:
    world, first, second = await two_candidates()
    await first.stop()
    await asyncio.sleep(5)
    assert second.leads
    first.start()
    await asyncio.sleep(5)
    edited_at = now()
    await world.edit_holder("first")
    await until(lambda: len(first.terms + second.terms) == 3, at_most_seconds=30)
    assert now() >= edited_at + 15


@pytest.mark.parametrize("holder", ["", "second", "somebody"])
async def test_a_leader_whose_lease_was_edited_to_another_steps_down_and_nobody_is_elected_too_soon(
    holder: str,
) -> None:
    world, first, second = await two_candidates()
    edited_at = now()
    await world.edit_holder(holder)
    await asyncio.sleep(2.5)
    assert not first.leads
    assert not second.leads
    assert len(first.stopped_at) == 1
    await until(lambda: first.leads or second.leads, at_most_seconds=25)
    assert now() >= edited_at + 15


async def test_an_edit_that_leaves_the_holder_alone_changes_nothing() -> None:
    world, first, second = await two_candidates()
    for number in range(100):
        await asyncio.sleep(3)
        labels = {"touched": str(number)}
        await world.edit(
            lambda lease, labels=labels: structs.replace(  # type: ignore[misc]  # mypy cannot type a default here
                lease, metadata=structs.replace(lease.metadata, labels=labels)
            )
        )
    assert len(first.terms) == 1
    assert first.leads
    assert not second.terms


async def test_a_leader_whose_wall_clock_stands_still_is_seen_to_renew() -> None:
    _world, first, second = await two_candidates()
    first.clock.shown = first.clock.wall()
    await asyncio.sleep(300)
    assert first.leads
    assert not second.terms


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
async def test_wall_clocks_that_jump_change_nothing(jump: float) -> None:
    _world, first, second = await two_candidates()
    first.clock.shown = first.clock.wall() + jump
    await asyncio.sleep(100)
    second.clock.shown = second.clock.wall() - jump
    await asyncio.sleep(100)
    assert len(first.terms) == 1
    assert first.leads
    assert not second.terms


async def test_what_the_leader_returns_is_the_result_and_the_lease_is_given_up() -> None:
    world = World()
    await world.ship_lease()

    async def lead(term: Term) -> str:
        await asyncio.sleep(100)
        return f"done in term {term.number}"

    assert await Candidate(world, "a").election.run(lead) == "done in term 1"
    assert (await world.lease()).spec.holder_identity == ""


async def test_an_error_of_the_leader_reaches_the_caller_and_the_lease_is_given_up() -> None:
    world = World()
    await world.ship_lease()

    async def lead(_term: Term) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await Candidate(world, "a").election.run(lead)
    assert (await world.lease()).spec.holder_identity == ""


async def test_an_error_while_the_leader_is_stopped_is_not_swallowed() -> None:
    world = World()
    await world.ship_lease()

    async def lead(_term: Term) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            raise RuntimeError("cannot clean up")

    running = Candidate(world, "a").start(lead)
    await asyncio.sleep(1)
    running.cancel()
    with pytest.raises(RuntimeError, match="cannot clean up"):
        await running


async def test_a_leader_that_takes_its_time_to_stop_is_awaited_however_often_we_are_cancelled() -> None:
    world = World()
    await world.ship_lease()
    ended: list[float] = []

    async def lead(_term: Term) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(5)
            ended.append(now())

    running = Candidate(world, "a").start(lead)
    for _ in range(3):
        await asyncio.sleep(1)
        running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == [pytest.approx(6)]


async def test_who_lost_the_lease_and_ended_its_work_leads_again_as_soon_as_it_can() -> None:
    world = World()
    await world.ship_lease()
    candidate = Candidate(world, "a")
    candidate.start()
    await asyncio.sleep(5)
    candidate.cluster._faults = Script(get=[Unavailable("down")] * 7, replace=[Unavailable("down")])
    await asyncio.sleep(25)
    assert [term.number for term in candidate.terms] == [1, 2]
    assert candidate.leads


@pytest.mark.parametrize(
    ("error", "most"), [(Unavailable("down"), 1800), (Forbidden("no right to get leases"), 600)]
)
async def test_a_server_that_is_down_is_asked_every_few_seconds_and_that_is_said_once(
    error: ClusterError, most: int
) -> None:
    world = World()
    candidate = Candidate(world, "a", Script(get=[error] * 10_000))
    candidate.start()
    await asyncio.sleep(3600)
    assert 240 <= candidate.cluster.calls.total() <= most
    assert world.lines.getvalue().count("cannot stand for election") == 1


def test_a_lease_in_a_version_that_was_given_out_again_is_waited_for_anew() -> None:
    """A cluster restored from a backup: the number is the same, and the holder renewed it since."""
    first = see(None, LeaseSpec(holder_identity="a", renew_time="1"), "7", 0.0)
    assert see(first, LeaseSpec(holder_identity="a", renew_time="1"), "7", 10.0) is first
    assert see(first, LeaseSpec(holder_identity="a", renew_time="2"), "7", 14.0).free_at(15.0) == 29.0


async def test_who_waits_for_the_lease_says_so_once_for_each_holder() -> None:
    world = World()
    first, second = Candidate(world, "a"), Candidate(world, "b")
    first.start()
    await asyncio.sleep(60)
    second.start()
    await asyncio.sleep(600)
    waiting = [json.loads(line) for line in world.lines.getvalue().splitlines() if "waiting for" in line]
    assert [(line["identity"], line["holder"]) for line in waiting] == [("a", "none"), ("b", "a")]
    assert waiting[1]["reason"] == (
        "it is taken when its holder gives it up, or when it has not been renewed for 15s"
    )
    assert second.terms == []
