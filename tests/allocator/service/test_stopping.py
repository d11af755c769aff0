"""From listening to the last answer."""

import asyncio
import signal
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import pytest

from allocator.contract.harness import a_wish
from allocator.service.program import running
from allocator.service.running import a_client, a_log, ask, open_store, served
from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.service.application import make_service
from podtide.allocator.service.certificate import Certificate, InvalidCertificate
from podtide.allocator.service.server import serving
from podtide.allocator.service.utilization import keep_sampling
from podtide.allocator.store import DatabaseAllocator
from podtide.allocator.subnets import SubnetSpec
from podtide.core.subnet.usage_series import READING_EVERY_SECONDS
from podtide.runtime.clock import LoopClock, SystemClock
from podtide.runtime.listening import CannotListen, ListenAddress


class Slow(DatabaseAllocator):
    """Takes a wish, and answers it when it is told to."""

    def __init__(self, store: DatabaseAllocator) -> None:
        self._store = store
        self.taken = asyncio.Event()
        self.go_on = asyncio.Event()

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        self.taken.set()
        await self.go_on.wait()
        return await self._store.put_container(wish)


@pytest.mark.real_time
async def test_what_is_under_way_is_answered_before_the_service_ends() -> None:
    async with await open_store() as store:
        await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        slow = Slow(store)
        async with AsyncExitStack() as longer:
            async with served(slow) as url:
                client = await longer.enter_async_context(a_client(url))
                asked = asyncio.create_task(client.put_container(a_wish("a", 3)))
                await slow.taken.wait()
                asyncio.get_running_loop().call_later(0.3, slow.go_on.set)
            # The service has ended, and nobody is there to ask again.
            assert len((await asked).addresses) == 3


@pytest.mark.real_time
async def test_a_port_that_is_taken_is_said_to_be_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = ListenAddress("127.0.0.1", taken.getsockname()[1])
        async with await open_store() as store:
            service = make_service(store, log=a_log(), clock=SystemClock(), randomness=Random(1))
            with pytest.raises(CannotListen, match=r"cannot listen on 127\.0\.0\.1"):
                async with serving(service, address):
                    pass


def test_a_certificate_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert", tmp_path / "key"
    with pytest.raises(InvalidCertificate, match="No such file"):
        Certificate(certificate, key, a_log())
    certificate.write_text("x")
    key.write_text("x")
    with pytest.raises(InvalidCertificate, match="cannot be used"):
        Certificate(certificate, key, a_log())


async def test_utilization_is_written_down_every_minute_also_when_nothing_changes() -> None:
    clock = LoopClock()
    async with await open_store(clock) as store:
        await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        sampling = asyncio.create_task(keep_sampling(store, a_log()))
        await asyncio.sleep(5 * READING_EVERY_SECONDS + 1)
        sampling.cancel()
        readings = await store.history("blue", "pods", since=0, until=clock.wall() + 1)
        assert len(readings) >= 5


@pytest.mark.slow
def test_a_program_that_is_told_to_stop_ends_well(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'subnets.db'}"
    with running("--database", database, "--listen", "127.0.0.1:0") as program:
        assert asyncio.run(ask(program.url, "GET", "/readyz")).status == 200
        assert program.end(signal.SIGTERM) == 0
        assert any("no tokens" in event for event in program.events())
        assert program.events()[-2:] == ["stopping", "stopped"]


@pytest.mark.slow
def test_while_it_drains_it_answers_and_is_not_ready_and_a_second_signal_ends_that(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'subnets.db'}"
    with running("--database", database, "--listen", "127.0.0.1:0", "--drain", "1h") as program:
        program.process.send_signal(signal.SIGTERM)
        while (answer := asyncio.run(ask(program.url, "GET", "/readyz"))).status == 200:
            pass
        assert (answer.status, answer.text) == (503, "stopping")
        assert asyncio.run(ask(program.url, "GET", "/subnets")).status == 200
        assert program.end(signal.SIGTERM) == 0
