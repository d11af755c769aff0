"""Whose a connection within this machine is, told by the kernel."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from left_out import leave_out
from podtide.runtime.loopback_caller import caller_uid

NOBODY = 65534
BOTH_FAMILIES = pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")], ids=["IPv4", "IPv6"]
)


@contextmanager
def accepted(family: int, host: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection of this process to itself: the end that called, and the end that was called."""
    with (
        socket.create_server((host, 0), family=family) as listener,
        socket.create_connection(listener.getsockname()[:2]) as caller,
        listener.accept()[0] as called,
    ):
        yield caller, called


@BOTH_FAMILIES
def test_the_kernel_knows_the_user_at_the_other_end(family: int, host: str) -> None:
    with accepted(family, host) as (_, called):
        assert caller_uid(called) == os.geteuid()


@BOTH_FAMILIES
def test_another_user_is_told_from_us(family: int, host: str) -> None:
    if os.geteuid() or not shutil.which("setpriv"):
        leave_out("callers of other users", "only root can be another user: run the tests as root")
    with socket.create_server((host, 0), family=family) as listener:
        place = listener.getsockname()[:2]
        calling = f"import socket, sys; c = socket.create_connection({place!r}); sys.stdin.read()"
        command = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", sys.executable, "-I", "-c", calling]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            called, _ = listener.accept()
            with called:
                assert caller_uid(called) == NOBODY
                process.kill()
                process.wait()
                assert caller_uid(called) is None


def test_a_call_by_an_address_that_is_mapped_into_ipv6_is_recognised() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_INET6) as caller,
    ):
        caller.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        called, _ = listener.accept()
        with called:
            assert caller_uid(called) == os.geteuid()


@BOTH_FAMILIES
def test_of_a_connection_that_is_being_closed_nobody_is_known(family: int, host: str) -> None:
    """The kernel says 0 of some of them, and 0 is root."""
    with accepted(family, host) as (caller, called):
        caller.shutdown(socket.SHUT_WR)
        assert caller_uid(called) is None
        caller.close()
        assert caller_uid(called) is None


def test_a_socket_that_is_connected_to_nobody_is_nobodys() -> None:
    with socket.socket() as alone:
        assert caller_uid(alone) is None
