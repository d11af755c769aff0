"""The socket on which the plugin finds the agent: root's alone, and one agent's at a time.

An agent that was killed leaves its socket behind as a file that nobody listens on; the next one takes its place. One
that somebody listens on is another agent's, and stays. The agent's own file is taken away before it stops listening:
after that, it might be its successor's.
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
"""What Linux has room for in a socket's address, with the terminator."""

_BACKLOG = 1024
"""A node's pods may all start at once."""

_ANSWER_SECONDS = 1.0


class SocketInUse(FixError):
    """Another agent listens there."""


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Listen at this path, and take the file away at the end. Who serves on the socket closes it."""
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
    mask = os.umask(0o177)  # so that nobody else can connect, not even before its mode could be changed
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
        raise CannotListen(f"cannot listen on {path}: it is no socket but something else; name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        visitor.settimeout(_ANSWER_SECONDS)
        try:
            visitor.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except (TimeoutError, BlockingIOError):
            pass  # so many wait to be let in that there is somebody who does
    raise SocketInUse(f"another agent listens on {path}: stop that one, or name another path")
