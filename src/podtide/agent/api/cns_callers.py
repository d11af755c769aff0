"""Access control for the API of Azure CNS over TCP: processes of root, and of the agent's own user.

Every user of the machine can connect to a loopback port, and a caller of this API can free a pod's address. A token would
exclude the very clients that it is there for: azure-ipam and azure-vnet cannot send one. They run as root, as every CNI
plugin does; so the kernel is asked for the owner of the connection, and nothing has to be configured. The unix socket
needs none of this: its file mode admits its owner alone.
"""

import os
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from podtide.runtime.logging import Logger
from podtide.runtime.loopback_caller import caller_uid

_FOR_ANYBODY = frozenset({"/healthz", "/readyz", "/metrics"})
_ROOT = 0


def only_for_root(log: Logger) -> Middleware:
    """A middleware that refuses callers other than root, except for health checks and metrics."""
    allowed = frozenset({_ROOT, os.geteuid()})

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in _FOR_ANYBODY:
            return await handler(request)
        uid = _uid_of(request)
        if uid in allowed:
            return await handler(request)
        who = "a user that the kernel does not name" if uid is None else f"user {uid}"
        log.warning("refused a caller of the CNS API that is not root", uid=uid, path=request.path)
        return web.Response(
            status=HTTPStatus.FORBIDDEN,
            text=f"{request.path} is for root, and {who} asks: call it as root, as container runtimes do, or by the "
            "agent's unix socket\n",
        )

    return check


def _uid_of(request: web.Request) -> int | None:
    connection = request.transport.get_extra_info("socket") if request.transport is not None else None
    return None if connection is None else caller_uid(connection)
