"""The design papers' tables: T0 to T3, how it should be, and T0 to T7, how it is with the reactive pool."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import StringIO

import pytest

from burst_story import (
    CIDR,
    GRANT_SECONDS,
    MORE_PODS,
    NODE,
    PODTIDE,
    REACTIVE,
    SANDBOX_SECONDS,
    Contestant,
    burst,
    defaults_for,
    first_pod,
)
from podtide.agent.request.sizing_policy import Decided, PoolSituation
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.logging import make_logger
from podtide.simulation.nodes.agents_in_process import AgentsInProcess
from podtide.simulation.trace import ClusterWrite, Entry, PluginCall
from podtide.simulation.world.world import World
from scenarios.looking import has_exactly
from scenarios.stage import Stage

LULL_SECONDS = 60.0


class WithoutPrimaries:
    """The papers' first formula, which does not deduct primaries."""

    states_demand = False

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        return decide_request(situation.demand, scaler)


class UnhurriedRuntime(AgentsInProcess):
    """The runtime of a node on which making a sandbox takes longer than any write of a request.

    The reactive pool asks for more as soon as fewer than 8 addresses are left. Here the next ADD comes when that is
    written, however long it takes: so what was first does not depend on how busy the API server is.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(clock=stage.clock, log=make_logger(StringIO(), stage.clock))
        self._asked_for = self._given = 0
        self._written = asyncio.Event()

    def hear(self, entry: Entry) -> None:
        match entry:
            case ClusterWrite(verb="apply", item=NodeNetworkConfig() as config):
                self._asked_for = config.spec.requested_ip_count
            case PluginCall(verb="ADD", ok=True):
                self._given += 1
        if self._asked_for - self._given >= 8:
            self._written.set()
        else:
            self._written.clear()

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        if environment["CNI_COMMAND"] == "ADD":
            await self._written.wait()
        return await super().call(node, environment, stdin)


@asynccontextmanager
async def before_the_burst(
    stage: Stage, contestant: Contestant, held: int, runtime: UnhurriedRuntime | None = None
) -> AsyncIterator[World]:
    """T0: a node with one pod, which holds so many addresses."""
    settings, grant_seconds = stage.settings(), GRANT_SECONDS
    if not stage.is_virtual:
        # Pods come as quickly as the server takes them: neither agent nor plugin may lose patience before the last.
        settings = stage.settings(gather_seconds=2.0, gather_at_most_seconds=60.0, add_wait_seconds=60.0)
        # Long beside a dozen calls of the plugin, which go through no server.
        grant_seconds = 2.0
    defaults = defaults_for(contestant, settings, stage.habits(sandbox_seconds=SANDBOX_SECONDS))
    async with stage.world(CIDR, controller=False, defaults=defaults, doors=runtime) as world:
        if runtime is not None:
            world.trace.listeners.append(runtime.hear)
        await first_pod(world, grant_seconds)
        await world.until(lambda: has_exactly(world, NODE, held), within=60)
        world.trace.mark()
        yield world


@pytest.mark.parametrize(
    ("contestant", "before", "after"),
    [(PODTIDE, 15, 47), (Contestant("without primaries", WithoutPrimaries(), waits=True), 16, 48)],
    ids=["with the primary deducted", "without"],
)
async def test_a_burst_of_35_pods_needs_one_request(
    stage: Stage, contestant: Contestant, before: int, after: int
) -> None:
    async with before_the_burst(stage, contestant, before) as world:
        outcome = await burst(world, lull_seconds=stage.seconds(LULL_SECONDS))
        assert outcome.requests == (after,)
        assert outcome.allocator_calls == 1
        assert outcome.failed_adds == 0
        assert world.running_pods() == 1 + MORE_PODS
        assert await has_exactly(world, NODE, after)


def served_before(entries: list[Entry], until: Entry) -> int:
    """How many ADDs had succeeded when this happened."""
    earlier = entries[: entries.index(until)]
    return sum(isinstance(entry, PluginCall) and entry.verb == "ADD" and entry.ok for entry in earlier)


async def test_the_reactive_pool_asks_batch_by_batch_and_fails_pods_in_between(stage: Stage) -> None:
    # T0: P0 has one of 16.
    async with before_the_burst(stage, REACTIVE, 16, UnhurriedRuntime(stage)) as world:
        outcome = await burst(world, lull_seconds=stage.seconds(LULL_SECONDS))
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


async def test_side_by_side_podtide_writes_less_fails_nothing_and_is_ready_sooner(stage: Stage) -> None:
    outcomes = []
    for contestant, held in ((PODTIDE, 15), (REACTIVE, 16)):
        async with before_the_burst(stage, contestant, held) as world:
            outcomes.append(await burst(world, lull_seconds=stage.seconds(LULL_SECONDS)))
    podtide, reactive = outcomes
    assert len(podtide.requests) < len(reactive.requests)
    assert podtide.failed_adds == 0 < reactive.failed_adds
    if stage.is_virtual:
        assert podtide.ready_seconds < reactive.ready_seconds
    else:  # seconds of the machine prove nothing, but every grant that pods have to wait for takes its time
        assert podtide.allocator_calls < reactive.allocator_calls
