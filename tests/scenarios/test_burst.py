"""The design papers' tables: T0 to T3, how it should be, and T0 to T7, how it is with the reactive pool."""

from io import StringIO

import pytest

from podtide.agent.policy import Decided, Situation
from podtide.core.scaler import Scaler
from podtide.core.scaling import decide_request
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import Logger, make_logger
from podtide.simulation.burst import (
    MORE_PODS,
    NODE,
    PODTIDE,
    REACTIVE,
    Contestant,
    before_the_burst,
    burst,
    requests_of,
)
from podtide.simulation.trace import Entry, PluginCall
from podtide.simulation.world import Customs
from scenarios.looking import granted, requested
from scenarios.stage import Stage


class WithoutPrimaries:
    """The papers' first formula, which does not deduct primaries."""

    def decide(self, situation: Situation, scaler: Scaler) -> Decided:
        return decide_request(situation.demand, scaler)


CLOCK = LoopClock()


@pytest.fixture
def log() -> Logger:
    return make_logger(StringIO(), CLOCK)


@pytest.mark.parametrize(
    ("contestant", "before", "after"),
    [(PODTIDE, 15, 47), (Contestant("without primaries", WithoutPrimaries(), waits=True), 16, 48)],
    ids=["with the primary deducted", "without"],
)
async def test_a_burst_of_35_pods_needs_one_request(
    contestant: Contestant, before: int, after: int, log: Logger
) -> None:
    async with before_the_burst(contestant, clock=CLOCK, log=log) as world:
        assert await granted(world, NODE) == before
        outcome = await burst(world)
        assert outcome.requests == (after,)
        assert outcome.allocator_calls == 1
        assert outcome.failed_adds == 0
        assert world.running_pods() == 1 + MORE_PODS
        assert await granted(world, NODE) == after


async def test_the_burst_is_one_request_on_a_real_api_server_too(any_stage: Stage) -> None:
    # Here pods come as quickly as the server takes them: the agent must not lose its patience before the last.
    settings = any_stage.settings(gather_seconds=2.0, gather_at_most_seconds=30.0)
    async with any_stage.world("10.0.0.0/16", customs=Customs(settings=settings)) as world:
        await world.add_node(NODE)
        await world.workload.add_pods(NODE, 1)
        await world.until(lambda: world.running_pods() == 1, within=60)
        assert await requested(world, NODE) == 15
        world.trace.mark()
        await world.workload.add_pods(NODE, MORE_PODS)
        await world.until(lambda: world.running_pods() == 1 + MORE_PODS, within=60)
        assert requests_of(world) == (47,)
        assert len(world.trace.allocator_calls()) == 1
        assert world.trace.plugin_calls("ADD", ok=False) == []


def served_before(entries: list[Entry], until: Entry) -> int:
    """How many ADDs had succeeded when this happened."""
    earlier = entries[: entries.index(until)]
    return sum(isinstance(entry, PluginCall) and entry.verb == "ADD" and entry.ok for entry in earlier)


async def test_the_reactive_pool_asks_batch_by_batch_and_fails_pods_in_between(log: Logger) -> None:
    async with before_the_burst(REACTIVE, clock=CLOCK, log=log) as world:
        assert await granted(world, NODE) == 16  # T0, and P0 has one of them
        outcome = await burst(world)
        entries = list(world.trace.since_mark())
        second, third = world.trace.writes(NodeNetworkConfig, "apply")
        assert outcome.requests == (32, 48)

        # T2: with P8's address 7 are left, fewer than 8, and another batch is asked for.
        assert 1 + served_before(entries, second) == 9
        # T3: P16 gets none, and is torn down.
        failed = world.trace.plugin_calls("ADD", ok=False)
        first_stuck = failed[0]
        assert first_stuck.pod == "default/pod-16"
        assert 1 + served_before(entries, first_stuck) == 16
        # T5: with P24's address 7 are left again, and the next batch is asked for.
        assert 1 + served_before(entries, third) == 25
        # T6: the next to come finds none once more.
        stuck_again = next(call for call in failed if served_before(entries, call) > 15)
        assert 1 + served_before(entries, stuck_again) == 32
        # T7: with the third batch all are served.
        assert world.running_pods() == 1 + MORE_PODS

        in_order: tuple[Entry, ...] = (
            second,
            first_stuck,
            torn_down(entries, first_stuck),
            third,
            stuck_again,
            torn_down(entries, stuck_again),
        )
        positions = [entries.index(entry) for entry in in_order]
        assert positions == sorted(positions)
        assert all(torn_down(entries, call) for call in failed)


def torn_down(entries: list[Entry], failed: PluginCall) -> PluginCall:
    """The DEL of a sandbox whose ADD failed."""
    (found,) = [
        entry
        for entry in entries
        if isinstance(entry, PluginCall) and entry.verb == "DEL" and entry.sandbox == failed.sandbox
    ]
    return found


async def test_side_by_side_podtide_writes_less_fails_nothing_and_is_ready_sooner(log: Logger) -> None:
    outcomes = {}
    for contestant in (PODTIDE, REACTIVE):
        async with before_the_burst(contestant, clock=CLOCK, log=log) as world:
            outcomes[contestant.name] = await burst(world)
    podtide, reactive = outcomes.values()
    assert len(podtide.requests) < len(reactive.requests)
    assert podtide.failed_adds == 0 < reactive.failed_adds
    assert podtide.ready_seconds < reactive.ready_seconds
