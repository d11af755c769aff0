"""The auditor finds what is wrong with a picture, with how it came about, and with the database."""

import asyncio

import pytest
from msgspec import Struct

from podtide.core.audit.invariants import Grant, NodeView, Picture, PodView, Violation
from podtide.core.pool.states import State
from podtide.simulation.checks.audit_loop import Auditor, InvariantBroken
from podtide.simulation.trace import AllocatorCall, Trace
from simulated_cluster import attend

HOLDS = Picture(
    grants=(Grant("nc", "node", "pods", "10.0.0.2", {"a": "10.0.0.3"}),),
    nodes=(NodeView("node", {"10.0.0.3": State.ASSIGNED}),),
    pods=(PodView("web", "node", ("10.0.0.3",)),),
)
GIVEN_TWICE = Picture(pods=(PodView("web", "node", ("10.0.0.3",)), PodView("db", "node", ("10.0.0.3",))))
TAKEN_AWAY = Picture(grants=(Grant("nc", "node", "pods", "10.0.0.2", {}),), nodes=(NodeView("node", {}),))


class Sights(Struct):
    """What the auditor is shown."""

    shown: Picture = HOLDS
    in_the_database: tuple[Violation, ...] = ()
    findings: tuple[Violation, ...] = ()
    adds_up: bool = True
    past: bool = False

    async def counts_add_up(self) -> bool:
        return self.adds_up

    async def picture(self) -> Picture:
        return self.shown

    async def is_of_the_past(self) -> bool:
        return self.past

    async def audit_database(self) -> tuple[Violation, ...]:
        return self.in_the_database

    def auditor(self, trace: Trace | None = None) -> Auditor:
        return Auditor(self, trace or Trace())


async def test_a_picture_that_fits_together_is_let_pass() -> None:
    auditor = Sights().auditor()
    await auditor.check()
    await auditor.check()
    assert auditor.audits == 2


async def test_an_address_given_twice_is_found() -> None:
    with pytest.raises(InvariantBroken, match=r"10\.0\.0\.3 is assigned to both web and db"):
        await Sights(GIVEN_TWICE).auditor().check()


async def test_an_address_that_left_its_node_unasked_is_found_in_the_next_picture() -> None:
    sights = Sights()
    auditor = sights.auditor()
    await auditor.check()
    sights.shown = TAKEN_AWAY
    with pytest.raises(InvariantBroken, match="had not named it"):
        await auditor.check()


async def test_what_is_wrong_in_the_database_is_found() -> None:
    sights = Sights(in_the_database=(Violation(2, "pods", "an address is lost"),))
    with pytest.raises(InvariantBroken, match="an address is lost"):
        await sights.auditor().check()


async def test_it_looks_after_something_happened_and_only_then() -> None:
    trace = Trace()
    auditor = Sights().auditor(trace)
    running = asyncio.create_task(auditor.run(every_seconds=1.0))
    await asyncio.sleep(3600)
    assert auditor.audits == 1
    trace.note(AllocatorCall(at=3600.0, program="controller", call="put_container", subject="node"))
    await asyncio.sleep(10)
    assert auditor.audits == 2
    running.cancel()


async def test_what_the_book_found_is_told_at_the_next_step() -> None:
    sights = Sights()
    auditor = sights.auditor()
    await auditor.look()
    sights.findings = (Violation(1, "10.0.0.3", "it is in two hands"),)
    with pytest.raises(InvariantBroken, match="in two hands"):
        await auditor.look()


async def test_everything_is_read_anew_after_some_steps_and_when_counts_do_not_add_up() -> None:
    sights = Sights()
    auditor = sights.auditor()
    for _ in range(49):
        await auditor.look()
    assert auditor.audits == 0
    await auditor.look()
    assert auditor.audits == 1
    sights.adds_up = False
    await auditor.look()
    assert auditor.audits == 2


async def test_the_more_there_is_the_more_seldom_it_is_read_also_where_nodes_have_but_a_primary() -> None:
    grants = tuple(Grant(f"nc-{n}", f"node-{n}", "pods", f"10.0.{n}.1", {}) for n in range(200))
    auditor = Sights(Picture(grants=grants)).auditor()
    await auditor.check()
    for _ in range(199):
        await auditor.look()
    assert auditor.audits == 1
    await auditor.look()
    assert auditor.audits == 2


async def test_an_attendant_looks_after_every_step() -> None:
    trace, sights = Trace(), Sights()
    attending = asyncio.create_task(attend(sights.auditor(trace), trace))
    await asyncio.sleep(1)
    sights.findings = (Violation(1, "10.0.0.3", "it is in two hands"),)
    await asyncio.sleep(1)
    assert not attending.done()
    trace.note(AllocatorCall(at=2.0, program="controller", call="put_container", subject="node"))
    with pytest.raises(InvariantBroken, match="in two hands"):
        await attending


async def test_an_allocator_that_went_back_is_no_witness_until_it_has_recovered() -> None:
    sights = Sights(TAKEN_AWAY, past=True)
    auditor = sights.auditor()
    await Sights(HOLDS).auditor().check()
    await auditor.check()
    sights.shown = GIVEN_TWICE
    await auditor.check()
    sights.past = False
    with pytest.raises(InvariantBroken):
        await auditor.check()


async def test_what_was_before_an_allocator_went_back_is_not_held_against_it() -> None:
    sights = Sights(HOLDS)
    auditor = sights.auditor()
    await auditor.check()
    sights.shown = TAKEN_AWAY
    auditor.begin_anew()
    await auditor.check()


async def test_what_the_book_finds_counts_while_the_allocator_is_of_the_past() -> None:
    sights = Sights(past=True, findings=(Violation(1, "10.0.0.3", "given twice"),))
    with pytest.raises(InvariantBroken, match="given twice"):
        await sights.auditor().check()
