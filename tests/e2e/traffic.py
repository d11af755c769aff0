"""What a pod's address is for: somebody calls it, and is answered by the pod that has it."""

import socket

from namespaces.namespace import Namespace
from patience import PATIENCE_SECONDS

PORT = 7


def called_from(caller: Namespace, callee: Namespace, address: str) -> str:
    """Whose address the callee sees when it is called by its own, over TCP."""
    with (
        callee.inside(lambda: socket.create_server((address, PORT))) as server,
        caller.inside(lambda: socket.create_connection((address, PORT), PATIENCE_SECONDS)),
    ):
        server.settimeout(PATIENCE_SECONDS)
        connection, peer = server.accept()
        connection.close()
    caller_address: str = peer[0]
    return caller_address
