"""What a failure is about is found in its words, and its life is told as the trace has it."""

import pytest

from podtide.controller.program import LEASE
from podtide.core.pool.states import State
from podtide.core.ranges import parse_network
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.lease import Lease
from podtide.simulation.run.address_history import last_entries, last_states, subject_of
from podtide.simulation.run.report import TraceHash
from podtide.simulation.trace import ClusterWrite, PluginCall, PoolMove, Trace, Trouble

ADDRESS = parse_network("10.0.0.7/32")


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        ("invariant 1: 10.0.0.7 is assigned to both a and b, and 10.0.0.8 too", "10.0.0.7/32"),
        ("agent node-1 ended by BrokenPool: address 10.0.0.7 (name) is absent", "10.0.0.7/32"),
        ("invariant 1: 10.10.2.0/24 is freed, and pool sliced-node-2 has it still", "10.10.2.0/24"),
        ("invariant 4: fd00:30::5 is had by pod default/a, and pool b lost it", "fd00:30::5/128"),
        ("invariant 1: fd00:30::/120 is freed", "fd00:30::/120"),
        ("of fd00:30::5: nothing is known", "fd00:30::5/128"),
        ("nothing is held by [fd00:30::]", "fd00:30::/128"),
    ],
)
def test_the_first_address_or_slice_in_the_words_is_what_they_are_about(words: str, subject: str) -> None:
    assert subject_of(words) == parse_network(subject)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "invariant 6: 3 of 4 pods that fit have an address",
        "at 12:30:45 of day 1.2.3",
        "pool a-10.0.0.7 is gone",
    ],
)
def test_words_may_be_about_no_address(words: str) -> None:
    assert subject_of(words) is None
    assert last_states(None, Trace()) == ()


def call(verb: str, sandbox: str, words: str = "", *, at: float, network: str = "") -> PluginCall:
    return PluginCall(
        at=at,
        took_seconds=0.0,
        node="node-0",
        verb=verb,
        pod="default/a",
        sandbox=sandbox,
        ok=True,
        words=words,
        network=network,
    )


def move(state: State | None, *, at: float, ip: str = "10.0.0.7", owner: str = "") -> PoolMove:
    return PoolMove(at=at, node="node-0", ip=ip, name="n-1", state=state, owner=owner)


def test_a_del_of_another_sandbox_of_the_pod_and_the_move_that_it_caused_are_told() -> None:
    trace = Trace()
    trace.note_move(move(State.ASSIGNED, at=1.0, owner="default/a (sandbox new)"))
    trace.note(call("ADD", "new", "10.0.0.7", at=1.0))
    trace.note_move(move(State.AVAILABLE, at=2.0, ip="10.0.0.8"))
    trace.note(call("DEL", "old", at=3.0, network="another"))
    trace.note(Trouble(at=3.5, fault="sandbox-died", words="of default/a on node-0"))
    trace.note(Trouble(at=3.6, fault="sandbox-died", words="of default/aa on node-0"))
    trace.note_move(move(State.AVAILABLE, at=4.0))
    trace.note(call("DEL", "old", at=4.0))
    trace.note_move(move(None, at=5.0))
    assert last_states(ADDRESS, trace) == (
        "1.000 pool of node-0: 10.0.0.7 as n-1 is Assigned to default/a (sandbox new)",
        "1.000 ADD for default/a on node-0: 10.0.0.7 (sandbox new)",
        "3.500 sandbox-died: of default/a on node-0",
        "4.000 pool of node-0: 10.0.0.7 as n-1 is Available",
        "4.000 DEL for default/a on node-0: done (sandbox old)",
        "5.000 pool of node-0: 10.0.0.7 as n-1 is gone",
    )


def test_moves_within_a_pool_are_told_to_no_listener_and_so_are_no_part_of_the_hash() -> None:
    trace, taken = Trace(), TraceHash()
    trace.listeners.append(taken.take)
    trace.note_move(move(State.AVAILABLE, at=1.0))
    assert (trace.noted, trace.entries) == (0, [])
    assert taken.hexdigest() == TraceHash().hexdigest()


def test_moves_are_kept_only_where_entries_are() -> None:
    trace = Trace()
    trace.is_kept = False
    trace.note_move(move(State.AVAILABLE, at=1.0))
    assert list(trace.with_moves()) == []


def written(at: float, **allocations: IPAllocation) -> ClusterWrite:
    offsets = {key.removeprefix("at_"): entry for key, entry in allocations.items()}
    pool = IPPool(
        metadata=ObjectMeta(name="shared"), spec=IPPoolSpec(range="fd00::/120", allocations=offsets)
    )
    return ClusterWrite(at=at, program="agent", verb="replace", kind="IPPool", name="shared", item=pool)


def test_who_holds_an_address_of_a_secondary_network_is_told_when_it_changes() -> None:
    trace = Trace()
    first = IPAllocation(id="one", podref="default/a", ifname="net1")
    second = IPAllocation(id="two", podref="default/a", ifname="net1", earlier=["one"])
    other = IPAllocation(id="other", podref="default/b", ifname="net1")
    trace.note(written(1.0, at_7=first))
    trace.note(written(2.0, at_7=first, at_8=other))
    trace.note(written(3.0, at_7=second, at_8=other))
    trace.note(ClusterWrite(at=4.0, program="gc", verb="delete", kind="IPPool", name="shared", item=None))
    assert last_states(parse_network("fd00::7/128"), trace) == (
        "1.000 agent: replace IPPool shared: held by default/a net1 (sandbox one)",
        "3.000 agent: replace IPPool shared: no longer held by default/a net1 (sandbox one)",
        "3.000 agent: replace IPPool shared: held by default/a net1 (sandbox two, earlier one)",
        "4.000 gc: delete IPPool shared: no longer held by default/a net1 (sandbox two, earlier one)",
    )


def test_the_end_of_a_trace_is_its_last_thirty_entries_without_the_leaders_lease() -> None:
    trace = Trace()
    for number in range(40):
        trace.note(call("DEL", "old", at=float(number)))
        trace.note(
            ClusterWrite(
                at=float(number),
                program="leader",
                verb="replace",
                kind=Lease.api.kind,
                name=LEASE.name,
                item=None,
            )
        )
    told = last_entries(trace)
    assert len(told) == 30
    assert told[0] == "10.000 DEL for default/a on node-0: done"
    assert told[-1] == "39.000 DEL for default/a on node-0: done"
