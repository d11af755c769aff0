"""Access control for the API of Azure CNS over TCP: processes of root, and of the agent's own user.

Every user of the machine can connect to a loopback port, and a caller of this API can free a pod's address. A token would
exclude the very clients that it is there for: azure-ipam and azure-vnet cannot send one. They run as root, as every CNI
plugin does; so the kernel is asked for the owner of the connection, and nothing has to be configured. The unix socket
needs none of this: its file mode admits its owner alone.
"""

import os
from http import HTTPStatus

from podtide.runtime.http_server import Handler, HttpRequest, HttpResponse, text_response
from podtide.runtime.logging import Logger
from podtide.runtime.loopback_caller import caller_uid

_FOR_ANYBODY = frozenset({"/healthz", "/readyz", "/metrics"})
_ROOT = 0


def only_for_root(handler: Handler, log: Logger) -> Handler:
    """A handler that refuses callers other than root, except for health checks and metrics."""
    allowed = frozenset({_ROOT, os.geteuid()})

    async def check(request: HttpRequest) -> HttpResponse:
        if request.path in _FOR_ANYBODY:
            return await handler(request)
        uid = None if request.socket is None else caller_uid(request.socket)
        if uid in allowed:
            return await handler(request)
        who = "a user that the kernel does not name" if uid is None else f"user {uid}"
        log.warning("refused a caller of the CNS API that is not root", uid=uid, path=request.path)
        return text_response(
            f"{request.path} is for root, and {who} asks: call it as root, as container runtimes do, or by the "
            "agent's unix socket\n",
            HTTPStatus.FORBIDDEN,
        )

    return check
