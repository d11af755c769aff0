"""The HTTP server around the agent's API: from listening to the last answer.

On the unix socket there is everything; on the loopback's TCP port, where clients of Azure CNS look for it, everything
but the plugin's path.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from aiohttp import web

from podtide.agent.cni_calls import CniCalls
from podtide.agent.cns_api import CnsApi
from podtide.agent.metrics import Metrics
from podtide.agent.networks.secondary import SecondaryNetworks
from podtide.agent.notes import Notes
from podtide.agent.plugin_door import PluginDoor
from podtide.agent.port import Addresses
from podtide.agent.routes import AgentApi, Routes
from podtide.agent.unix_socket import listening
from podtide.runtime.clock import Clock
from podtide.runtime.listening import ListenAddress, cannot_listen
from podtide.runtime.logging import Logger

_LAST_ANSWERS_SECONDS = 2.0


def make_api(  # noqa: PLR0913 - what is served, what is told of it, and what it runs in
    addresses: Addresses,
    notes: Notes,
    networks: SecondaryNetworks | None = None,
    *,
    add_wait_seconds: float,
    is_running: Callable[[], bool],
    clock: Clock,
    log: Logger,
) -> AgentApi:
    """The API over a node's addresses: both ways to ask for one, counted by the same metrics."""
    metrics = Metrics(addresses, networks.counts if networks is not None else None)
    return AgentApi(
        calls=CniCalls(addresses, notes, networks, clock=clock, log=log, count=metrics.count),
        cns=CnsApi(addresses, notes, clock=clock, log=log, count=metrics.count),
        metrics=metrics,
        addresses=addresses,
        is_running=is_running,
        clock=clock,
        log=log,
        add_wait_seconds=add_wait_seconds,
    )


@asynccontextmanager
async def serving(
    api: AgentApi, socket: Path, listen: ListenAddress | None = None
) -> AsyncIterator[ListenAddress | None]:
    """Serve until the context ends; then nobody new is let in, who waits is sent away, and answers are given.

    Yields where it listens besides the socket: `listen`, with the port that was found if none was named.
    """
    routes = Routes(api)
    async with AsyncExitStack() as serving_there:
        runner = await serving_there.enter_async_context(_runner(routes.application(for_plugin=True)))
        assert runner.server is not None  # it is there from its setup on
        door = PluginDoor(api.calls, runner.server, clock=api.clock, log=api.log)
        serving_there.push_async_callback(door.close)
        door.open(serving_there.enter_context(listening(socket)))
        if listen is not None:
            runner = await serving_there.enter_async_context(_runner(routes.application(for_plugin=False)))
            listen = await _listen(runner, listen)
        yield listen


@asynccontextmanager
async def _runner(application: web.Application) -> AsyncIterator[web.AppRunner]:
    # A client that goes away while its ADD waits ends the wait: its handler is cancelled.
    runner = web.AppRunner(
        application, handler_cancellation=True, access_log=None, shutdown_timeout=_LAST_ANSWERS_SECONDS
    )
    await runner.setup()
    try:
        yield runner
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, address: ListenAddress) -> ListenAddress:
    try:
        await web.TCPSite(runner, address.host, address.port).start()
    except OSError as error:
        raise cannot_listen(address, error) from error
    return ListenAddress(address.host, runner.addresses[0][1])
