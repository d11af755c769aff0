"""Whatever happens in whatever order, these hold."""

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec import structs

from agent.node_bench import Bench
from cluster.faulty_cluster import Script
from examples import examples
from podtide.cluster.port import Unavailable
from podtide.core.errors import PodtideError
from podtide.core.pool.pool import Address
from podtide.core.pool.states import State
from podtide.core.subnet.scaling import decide_request
from podtide.core.subnet.statement_refresh import makes_a_difference
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.pod import Pod
from podtide.resources.statement_annotation import number_in, statement_in
from podtide.runtime import virtual_time
from podtide.runtime.randomness import seeded_randomness

GATHER = 0.1
STEPS = st.one_of(
    st.tuples(st.just("schedule"), st.integers(1, 12)),
    st.tuples(st.just("add"), st.integers(1, 12)),
    st.tuples(st.just("delete"), st.integers(1, 12)),
    st.tuples(st.just("remove"), st.integers(1, 12)),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.05, 0.3, 5.0, 40.0, 400.0])),
    st.tuples(
        st.just("subnet"),
        st.sampled_from([(16, 0.5), (8, 0.5), (1, 1.0), (1, 0.0), (4, 0.25), None, "clear"]),
    ),
    st.tuples(st.just("state"), st.booleans()),
    st.tuples(st.just("capacity"), st.integers(0, 40)),
    st.tuples(st.just("edit"), st.integers(0, 60)),
    st.tuples(st.just("fail"), st.sampled_from(["apply", "lost answer", "watches", "history"])),
    st.tuples(st.just("end"), st.sampled_from(["process", "power"])),
)


class Story:
    """Pods and sandboxes come and go; what each sandbox was given is remembered."""

    def __init__(self) -> None:
        self.faults = Script()
        self.bench = Bench(faults=self.faults)
        self.pods: list[Pod] = []
        self.sandboxes: dict[str, tuple[str, ...]] = {}
        self.made = 0
        self.life = AsyncExitStack()

    async def begin(self) -> None:
        await self.bench.join()
        await self.life.enter_async_context(self.bench.running(sync=False))

    async def step(self, what: str, how: Any) -> None:
        await getattr(self, what)(how)
        self.check()

    async def schedule(self, count: int) -> None:
        for _ in range(count):
            self.made += 1
            self.pods.append(await self.bench.schedule(f"pod-{self.made}"))

    async def add(self, count: int) -> None:
        await asyncio.gather(*(self.add_to(pod) for pod in self.pods[:count]))

    async def delete(self, count: int) -> None:
        for sandbox in sorted(self.sandboxes)[:count]:
            assert self.bench.delete(sandbox) == self.sandboxes.pop(sandbox)

    async def remove(self, count: int) -> None:
        for pod in self.pods[:count]:
            await self.bench.remove(pod)
        del self.pods[:count]

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def capacity(self, count: int) -> None:
        self.bench.capacity = count

    async def state(self, exhausted: bool) -> None:
        await self.bench.set_state(exhausted=exhausted)

    async def edit(self, count: int) -> None:
        await self.bench.edit_request(count)

    async def end(self, what: str) -> None:
        await self.life.aclose()
        if what == "power":  # with which the sandboxes went, too
            self.bench.disk.crash(seeded_randomness(self.made))
            self.sandboxes.clear()
        await self.life.enter_async_context(self.bench.running(sync=False))

    async def add_to(self, pod: Pod) -> None:
        self.made += 1
        sandbox = f"sandbox-{self.made}"
        try:
            self.sandboxes[sandbox] = await self.bench.add(sandbox, pod)
        except PodtideError:
            return  # no address in time

    async def subnet(self, how: tuple[int, float] | str | None) -> None:
        is_there = bool((await self.bench.server.list(ClusterSubnet)).items)
        if isinstance(how, tuple):
            batch, buffer = how
            write = self.bench.set_subnet if is_there else self.bench.make_subnet
            await write(batch=batch, buffer=buffer, top=16, exhausted=batch == 1)
        elif is_there:
            await (self.bench.clear_subnet() if how == "clear" else self.bench.drop_subnet())

    async def fail(self, how: str) -> None:
        if how == "apply":
            self.faults.steps["apply"].append(Unavailable("down"))
        elif how == "lost answer":
            self.faults.lost_answers["apply"].append(Unavailable("the connection broke"))
        elif how == "watches":
            self.bench.server.server.close_watches()
        else:
            self.bench.server.server.expire_history()
            self.bench.server.server.close_watches()

    def check(self) -> None:
        """What holds at every moment."""
        agent, cluster = self.bench.agent, self.bench.cluster
        by_ip = {address.ip: address for address in agent.addresses.all_addresses()}
        lost = [name for name, addresses in self.sandboxes.items() if not is_held(by_ip, name, addresses)]
        assert len(lost) <= agent.addresses.state().collected_leaks, "an address was taken from its sandbox"
        for sandbox in lost:
            del self.sandboxes[sandbox]
        given = [ip for addresses in self.sandboxes.values() for ip in addresses]
        assert len(given) == len(set(given)), "an address was given twice"
        named = {name for config in cluster.applied[-1:] for name in config.spec.ips_not_in_use}
        in_use = {address.name for address in by_ip.values() if address.state is State.ASSIGNED}
        assert not named & in_use, "what a pod has was named for release"
        gaps = [later - earlier for earlier, later in pairwise(cluster.applied_at)]
        assert all(gap > GATHER * 0.99 for gap in gaps), "two writes in the time in which one is gathered"
        assert agent.addresses.state().alarms == 0


def is_held(by_ip: dict[str, Address], sandbox: str, addresses: tuple[str, ...]) -> bool:
    holder = by_ip[addresses[0]].owner if addresses[0] in by_ip else None
    return holder is not None and holder.sandbox == sandbox


async def live_through(steps: list[tuple[str, Any]]) -> None:
    story = Story()
    await story.begin()
    async with story.life, story.bench.controller():
        for what, how in steps:
            await story.step(what, how)
        story.faults.steps.clear()
        story.faults.lost_answers.clear()
        story.bench.capacity = 1000
        # A kubelet starts every pod in the end: one that never asks may have what an agent without records cannot see.
        await story.add(len(story.pods))
        await asyncio.sleep(500)
        await story.bench.grant()
        await asyncio.sleep(500)
        story.check()
        state = story.bench.agent.addresses.state()
        assert state.demand is not None
        assert state.scaler is not None
        request = decide_request(state.demand, state.scaler, state.primaries).request
        assert state.requested == request
        assert len(list(story.bench.agent.addresses.all_addresses())) == request
        config = await story.bench.config()
        assert config.spec.ips_not_in_use == []
        statement = statement_in(config.metadata.annotations, request)
        assert statement is not None
        assert statement.scaler == state.scaler
        now = structs.replace(statement, demand=state.demand)
        assert not makes_a_difference(statement, now), "a larger batch would be decided from another demand"
        numbers = [
            number for each in story.bench.cluster.applied if (number := number_in(each.metadata.annotations))
        ]
        assert numbers == sorted(numbers)
        writes = len(story.bench.cluster.applied)
        await asyncio.sleep(600)
        assert len(story.bench.cluster.applied) == writes, "constant demand, and something was written"


@examples(50, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=20))
def test_no_address_is_given_twice_and_the_request_settles_at_the_demand(
    steps: list[tuple[str, Any]],
) -> None:
    virtual_time.run(live_through(steps))
