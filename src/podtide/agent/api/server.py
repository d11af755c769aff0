"""The servers of the agent's API: the plugin's unix socket, and a TCP port for clients of Azure CNS.

The unix socket has all paths; the loopback's TCP port, where clients of Azure CNS look for it, all but the plugin's, for
processes of root alone.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.cns_api import CnsApi
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.metrics import AgentMetrics
from podtide.agent.api.plugin_connections import PluginConnections
from podtide.agent.api.plugin_protocol import MOST_REQUEST_BYTES
from podtide.agent.api.routes import AgentApi, Routes
from podtide.agent.api.unix_socket import listening
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.pool.manual_release import ManualReleases
from podtide.agent.port import Addresses
from podtide.runtime.clock import Clock
from podtide.runtime.http_server import HttpServer, serving_http
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import Logger
from podtide.runtime.open_port import OpenPort
from podtide.runtime.port_limits import PortLimits

_PLUGIN_LIMITS = PortLimits(connections=1024, descriptor_share=6)
"""All pods of a node may start at once, and each ADD may have to wait.

They hold for connections without a request, for calls that wait and for the HTTP server's connections, each."""
_CNS_LIMITS = PortLimits()


def make_api(  # noqa: PLR0913 - what is served, what is told of it, and what it runs in
    addresses: Addresses,
    notes: DeletionNotes,
    networks: SecondaryNetworks | None = None,
    manual_releases: ManualReleases | None = None,
    *,
    add_wait_seconds: float,
    is_running: Callable[[], bool],
    clock: Clock,
    log: Logger,
) -> AgentApi:
    """The API over a node's addresses: the CNI calls and the API of Azure CNS, counted by the same metrics."""
    metrics = AgentMetrics(addresses, networks.counts if networks is not None else None)
    return AgentApi(
        calls=CniCalls(addresses, notes, networks, clock=clock, log=log, count=metrics.count),
        cns=CnsApi(addresses, notes, clock=clock, log=log, count=metrics.count),
        metrics=metrics,
        addresses=addresses,
        manual_releases=manual_releases,
        is_running=is_running,
        clock=clock,
        log=log,
        add_wait_seconds=add_wait_seconds,
    )


@asynccontextmanager
async def serving(
    api: AgentApi, socket: Path, listen: ListenAddress | None = None
) -> AsyncIterator[ListenAddress | None]:
    """Serve until the context ends; then no connection is accepted any more, and calls that wait are refused.

    Yields the TCP address that it listens on besides the socket: `listen`, with the port that was found if it named none.
    """
    routes = Routes(api)
    async with AsyncExitStack() as serving_there:
        server = HttpServer(routes.handler(for_plugin=True), most_body_bytes=MOST_REQUEST_BYTES)
        serving_there.push_async_callback(server.close)
        serving_there.callback(routes.stop)
        connections = PluginConnections(api.calls, add_wait_seconds=api.add_wait_seconds, clock=api.clock)
        serving_there.push_async_callback(connections.close)
        listener = serving_there.enter_context(listening(socket))
        connections.open(OpenPort(listener, server, limits=_PLUGIN_LIMITS))
        if listen is not None:
            handler = routes.handler(for_plugin=False)
            listen = await serving_there.enter_async_context(
                serving_http(handler, listen, limits=_CNS_LIMITS, most_body_bytes=MOST_REQUEST_BYTES)
            )
            serving_there.callback(routes.stop)
        yield listen
