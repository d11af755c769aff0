"""An agent whose API server is away for a while: how soon new pods have their addresses when it is back."""

import asyncio

import pytest

from agent.node_bench import Bench
from podtide.agent.port import OutOfContact
from podtide.cluster.port import Unavailable
from podtide.resources.pod import Pod

AWAY_AT = 100.0


class Away:
    """From `AWAY_AT` on the server is away for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.back_at = AWAY_AT + seconds

    async def before(self, _call: str) -> None:
        if AWAY_AT <= asyncio.get_running_loop().time() < self.back_at:
            raise Unavailable("connection refused")

    async def after(self, _call: str) -> None:
        return


async def keep_adding(bench: Bench, pod: Pod) -> tuple[str, ...]:
    """As a kubelet does, with less patience."""
    while True:
        try:
            return await bench.add(pod.metadata.name, pod)
        except OutOfContact:
            await asyncio.sleep(0.5)


@pytest.mark.parametrize("away_seconds", [25.0, 600.0])
async def test_pods_bound_while_the_server_was_away_have_addresses_within_seven_seconds_of_its_return(
    away_seconds: float,
) -> None:
    away = Away(away_seconds)
    bench = Bench(faults=away)
    await bench.join()
    async with bench.controller(), bench.running():
        await asyncio.sleep(AWAY_AT - bench.clock.monotonic())
        bench.server.server.close_watches()
        await asyncio.sleep(away_seconds - 10)
        pods = await bench.schedule_many(20)
        await asyncio.sleep(10)
        async with asyncio.timeout(7):
            added = await asyncio.gather(*(keep_adding(bench, pod) for pod in pods))
        assert len(set(added)) == 20


async def test_a_node_that_was_out_of_contact_gives_addresses_within_six_seconds_though_nothing_changed() -> (
    None
):
    away = Away(600.0)
    bench = Bench(faults=away)
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        await asyncio.sleep(AWAY_AT - bench.clock.monotonic())
        bench.server.server.close_watches()
        await asyncio.sleep(599)
        assert not agent.addresses.state().in_contact
        await asyncio.sleep(7)
        assert agent.addresses.state().in_contact


async def test_a_request_that_could_not_be_written_is_within_six_seconds_of_the_servers_return() -> None:
    away = Away(60.0)
    bench = Bench(faults=away)
    await bench.join()
    async with bench.controller(), bench.running():
        await asyncio.sleep(AWAY_AT - bench.clock.monotonic() - 0.05)
        await bench.schedule_many(
            20
        )  # the event comes through, and the write of what follows from it does not
        await asyncio.sleep(60.05)
        assert (await bench.config()).spec.requested_ip_count == 15
        await asyncio.sleep(6)
        assert (await bench.config()).spec.requested_ip_count == 31
