"""The servers of the agent's API: the plugin's unix socket, and a TCP port for clients of Azure CNS.

The unix socket has all paths; the loopback's TCP port, where clients of Azure CNS look for it, all but the plugin's, for
processes of root alone.

The unix socket is for root alone, and for one agent at a time. An agent that was killed leaves its socket behind as a stale
file; the next agent replaces it. A socket that accepts connections belongs to a running agent, and stays. The agent removes
its own file before it stops listening: after that, the file might be its successor's.
"""

import os
import socket
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.cns_api import CnsApi
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.metrics import AgentMetrics
from podtide.agent.api.plugin_connections import PluginConnections
from podtide.agent.api.routes import AgentApi, Routes
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.port import Addresses
from podtide.core.errors import FixError
from podtide.runtime.clock import Clock
from podtide.runtime.http_port import http_server, serving_http
from podtide.runtime.listening import CannotListen, ListenAddress
from podtide.runtime.logging import Logger
from podtide.runtime.open_port import OpenPort
from podtide.runtime.port_limits import PortLimits

_LONGEST_PATH_BYTES = 107
"""The limit of Linux for the path of a socket, without the terminator."""

_BACKLOG = 1024
"""All pods of a node may start at once."""

_ANSWER_SECONDS = 1.0


class SocketInUse(FixError):
    """Another agent listens on the socket."""


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket that listens at this path. Its file is removed at the end; the server closes the socket."""
    length = len(os.fsencode(path))
    if length > _LONGEST_PATH_BYTES:
        raise CannotListen(
            f"the socket's path {path} has {length} bytes, and a socket's may have {_LONGEST_PATH_BYTES}: "
            "name a shorter one"
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_stale(path)
        listener = _bind(path)
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {path} ({error.strerror}): correct the path or its permissions"
        ) from error
    made = path.stat().st_ino
    try:
        yield listener
    finally:
        with suppress(FileNotFoundError):
            if path.stat().st_ino == made:
                path.unlink()


def _bind(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)  # no other user can connect at any time, as between bind and chmod
    try:
        listener.bind(os.fspath(path))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(mask)
    return listener


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise CannotListen(f"cannot listen on {path}: the file there is not a socket; name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        visitor.settimeout(_ANSWER_SECONDS)
        try:
            visitor.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except (TimeoutError, BlockingIOError):
            pass  # its queue of connections is full, so an agent is there
    raise SocketInUse(f"another agent listens on {path}: stop that one, or name another path")


_PLUGIN_LIMITS = PortLimits(connections=1024, descriptor_share=6)
"""All pods of a node may start at once, and each ADD may have to wait.

They hold for connections without a request, for calls that wait and for the HTTP server's connections, each."""
_CNS_LIMITS = PortLimits()


def make_api(  # noqa: PLR0913 - what is served, what is told of it, and what it runs in
    addresses: Addresses,
    notes: DeletionNotes,
    networks: SecondaryNetworks | None = None,
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
        server = await serving_there.enter_async_context(http_server(routes.application(for_plugin=True)))
        connections = PluginConnections(api.calls, add_wait_seconds=api.add_wait_seconds, clock=api.clock)
        serving_there.push_async_callback(connections.close)
        listener = serving_there.enter_context(listening(socket))
        connections.open(OpenPort(listener, server, limits=_PLUGIN_LIMITS))
        if listen is not None:
            listen = await serving_there.enter_async_context(
                serving_http(routes.application(for_plugin=False), listen, limits=_CNS_LIMITS)
            )
        yield listen
