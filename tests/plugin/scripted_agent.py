"""Agents that do what a test tells them to, right or wrong: a behaviour is a function of a connection."""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from msgspec import Struct

Behaviour = Callable[[socket.socket], object]

A_MOMENT_MILLISECONDS = 50
ACKNOWLEDGED = b"HTTP/1.0 200 OK\r\n\r\n"


class ScriptedAgent(AbstractContextManager["ScriptedAgent"]):
    """Listens on the path, and treats one connection after the other by the behaviour; then it is closed."""

    def __init__(self, path: Path, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # the end
                return
            with connection, suppress(ConnectionError):  # a plugin need not hear us out
                self._behaviour(connection)


class Request(Struct, frozen=True):
    """What a plugin sent."""

    head: bytes
    body: bytes

    @property
    def variables(self) -> dict[bytes, bytes]:
        """The environment in it."""
        pairs = (variable.partition(b"=") for variable in self.body.partition(b"\0\0")[0].split(b"\0"))
        return {name: value for name, _, value in pairs}

    @property
    def configuration(self) -> bytes:
        """What stood on stdin."""
        return self.body.partition(b"\0\0")[2]


def read_request(connection: socket.socket) -> Request:
    """Read exactly one request."""
    with connection.makefile("rb") as stream:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                raise ConnectionAbortedError
            head += line
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        return Request(head, stream.read(length))


def answer(stdout: bytes, *, exit_status: int = 0) -> bytes:
    """The body of an answer."""
    return b"%d %d\n%s" % (exit_status, len(stdout), stdout)


def saying(*pieces: bytes) -> Behaviour:
    """Read the request, send these bytes piece by piece, end the connection."""

    def behave(connection: socket.socket) -> None:
        read_request(connection)
        for piece in pieces:
            connection.sendall(piece)

    return behave


def answering(stdout: bytes, *, exit_status: int = 0) -> Behaviour:
    """Answer everybody alike, and at once."""
    return saying(ACKNOWLEDGED + answer(stdout, exit_status=exit_status))


def hanging_after(*pieces: bytes) -> Behaviour:
    """Read the request, send these bytes, and then nothing until the plugin is gone."""

    def behave(connection: socket.socket) -> None:
        read_request(connection)
        for piece in pieces:
            connection.sendall(piece)
        wait_until_gone(connection)

    return behave


def sip(connection: socket.socket) -> None:
    """Read so slowly that it would take minutes."""
    while not wait_until_gone(connection, A_MOMENT_MILLISECONDS):
        connection.recv(100)


def trickle(connection: socket.socket) -> None:
    """Acknowledge so slowly that it would take minutes."""
    read_request(connection)
    while not wait_until_gone(connection, A_MOMENT_MILLISECONDS):
        connection.sendall(b"x")


def wait_until_gone(connection: socket.socket, milliseconds: int | None = None) -> bool:
    """Whether the other side ended the connection in that time; nothing is read meanwhile."""
    hung_up = select.poll()
    hung_up.register(connection, select.POLLRDHUP)
    return bool(hung_up.poll(milliseconds))
