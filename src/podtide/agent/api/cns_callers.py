"""Who may use the API of Azure CNS over TCP: processes of root, and of the agent's own user.

Every user of the machine reaches a loopback port, and whoever may call this API can take a pod's address from it. A
token would keep out the very clients that it is there for: azure-ipam and azure-vnet know of none. They run as root,
as every CNI plugin does; so the kernel is asked whose the connection is, and nothing has to be configured. The unix
socket needs none of this: it is for its owner alone.
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
    """Lets everybody see how the agent is, and nobody but root ask for more."""
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
