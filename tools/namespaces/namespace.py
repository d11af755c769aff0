"""Network namespaces of this machine, as nodes, pods and the network between nodes.

A thread can enter a namespace by itself, and what it opens there stays there: so tests open sockets and write settings
inside without starting a program for it.
"""

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from msgspec import Struct

COMMAND_SECONDS = 120.0
_JANITOR = Path(__file__).with_name("janitor.py")
_DIRECTORY = Path("/var/run/netns")
_NETWORK_NAMESPACE = 0x4000_0000  # CLONE_NEWNET; Python has os.setns from 3.12 on
_Result = TypeVar("_Result")


class CannotMake(Exception):
    """What was to be made of namespaces and what is in them cannot be; `str()` of it says what `ip` says."""


class Namespace(Struct, frozen=True):
    """One namespace, made by `ip netns`."""

    name: str

    @property
    def path(self) -> Path:
        """What container runtimes hand to plugins."""
        return _DIRECTORY / self.name

    @property
    def prefix(self) -> tuple[str, ...]:
        """What to put before a command that is to run inside."""
        return ("ip", "netns", "exec", self.name)

    def ip(self, *arguments: str) -> str:
        """What `ip` says inside."""
        return _run("ip", "-netns", self.name, *arguments)

    def inside(self, function: Callable[[], _Result]) -> _Result:
        """Call a function inside. Sockets that it opens belong to the namespace for good."""
        # In a thread of its own, which ends then: one that has entered must not do anything else.
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(self._enter).result()
            return thread.submit(function).result()

    def forward(self) -> None:
        """Let it pass on what is not for itself, as routers do."""
        self.inside(lambda: Path("/proc/sys/net/ipv4/ip_forward").write_text("1"))

    def _enter(self) -> None:
        with self.path.open() as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NETWORK_NAMESPACE):
                raise OSError(ctypes.get_errno(), f"cannot enter {self.path}")


def lacking() -> str:
    """What this machine lacks to have namespaces; "" if nothing."""
    if not shutil.which("ip"):
        return "install iproute2 (Debian: apt-get install iproute2)"
    try:
        with made("probe"):
            return ""
    except CannotMake:
        return "making them takes root with all its rights (try: ip netns add probe)"


@contextmanager
def made(*purposes: str) -> Iterator[Sequence[Namespace]]:
    """New namespaces, whose names nobody else has and people can tell apart, until the context or this process ends."""
    chance = uuid4().hex[:8]
    namespaces = [Namespace(f"podtide-{chance}-{purpose}") for purpose in purposes]
    command = [sys.executable, "-I", "-S", str(_JANITOR), *(each.name for each in namespaces)]
    # In a session of its own, so that Ctrl-C at a terminal does not keep it from its work.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        for namespace in namespaces:
            _run("ip", "netns", "add", namespace.name)
            namespace.ip("link", "set", "lo", "up")
        yield namespaces


def linked(one: Namespace, name: str, other: Namespace, other_name: str) -> None:
    """Put a cable between two namespaces: an interface of this name in each."""
    one.ip("link", "add", name, "type", "veth", "peer", "name", other_name, "netns", other.name)
    one.ip("link", "set", name, "up")
    other.ip("link", "set", other_name, "up")


def _run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    if done.returncode:
        raise CannotMake(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
