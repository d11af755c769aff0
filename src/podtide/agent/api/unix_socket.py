"""The unix socket for the plugin: for root alone, and for one agent at a time.

An agent that was killed leaves its socket behind as a stale file; the next agent replaces it. A socket that accepts
connections belongs to a running agent, and stays. The agent removes its own file before it stops listening: after that,
the file might be its successor's.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from podtide.core.errors import FixError
from podtide.runtime.listening import CannotListen

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
