"""Two PostgreSQL servers for tests and benchmarks: a primary and its streaming standby, to be killed and promoted.

Both listen on ports of the loopback address, so that a URL can name both, as the URL of a pair in the wild does. A
synchronous standby has every commit before the client hears of it; an asynchronous one may be cut off, and then lacks
the last ones when it is promoted.
"""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from control_plane.process import Nursery
from postgresql_server import DATABASE, OWNER, NoPostgresql, PostgresqlPrograms, binaries, durability

_LOOPBACK = "127.0.0.1"
_STANDBY = "standby"
_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.02


class PostgresqlPair:
    """A primary and a standby. `durable` makes both wait for the disk, as they do in production."""

    def __init__(self, *, synchronous: bool = True, durable: bool = False) -> None:
        binaries()  # raises where there are none, before a directory is made
        self._synchronous = synchronous
        self._durability = durability(durable=durable)
        self._nursery = Nursery()
        self._programs = PostgresqlPrograms(self._nursery.directory)
        self._primary_data = self._nursery.directory / "primary"
        self._standby_data = self._nursery.directory / "standby"
        self._primary_port, self._standby_port = _free_port(), _free_port()
        self._primary: subprocess.Popen[bytes] | None = None
        self._standby: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._start_primary()
            self._start_standby()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def url(self) -> str:
        """The URL of the database, with both servers."""
        hosts = f"{_LOOPBACK}:{self._primary_port},{_LOOPBACK}:{self._standby_port}"
        return f"postgresql://{OWNER}@{hosts}/{DATABASE}"

    def freeze_primary(self) -> None:
        """Let the primary hang: connections stay open and new ones are accepted, and nothing is ever answered."""
        assert self._primary is not None
        for pid in _family(self._primary.pid):
            os.kill(pid, signal.SIGSTOP)

    def kill_primary(self) -> None:
        """Kill the primary with all of its processes, as a machine that loses power does."""
        if self._primary is None:
            return
        for pid in _family(self._primary.pid):
            os.kill(pid, signal.SIGKILL)
        self._primary.wait()
        self._primary = None
        _remove_shared_memory(self._primary_data)

    def cut_off_standby(self) -> None:
        """Let the standby receive nothing more, while the primary goes on: only for an asynchronous one."""
        for statement in ("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"):
            self._ask(self._standby_port, statement)
        self._wait_for("SELECT count(*) FROM pg_stat_replication", "0")

    def promote(self) -> None:
        """Make the standby the primary; returns when it takes writes."""
        self._programs.run("pg_ctl", "promote", "-D", self._standby_data)

    def _start_primary(self) -> None:
        self._programs.make_data(self._primary_data)
        settings = {**self._settings(self._primary_port), "synchronous_commit": "on"}
        self._primary = self._serve(self._primary_data, self._primary_port, settings)
        self._programs.run("createdb", "-h", _LOOPBACK, "-p", str(self._primary_port), "-U", OWNER, DATABASE)
        if self._synchronous:  # in force when the standby is there: until then every commit would wait for it
            self._ask(self._primary_port, f"ALTER SYSTEM SET synchronous_standby_names = '{_STANDBY}'")

    def _start_standby(self) -> None:
        origin = f"host={_LOOPBACK} port={self._primary_port} user={OWNER} application_name={_STANDBY}"
        self._programs.run(
            "pg_basebackup", "--pgdata", self._standby_data, "--dbname", origin, "--write-recovery-conf",
            "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        # When it is promoted there is no standby that it could wait for.
        settings = {**self._settings(self._standby_port), "synchronous_standby_names": ""}
        self._standby = self._serve(self._standby_data, self._standby_port, settings)
        self._ask(self._primary_port, "SELECT pg_reload_conf()")
        expected = "sync" if self._synchronous else "async"
        self._wait_for("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'", expected)

    def _settings(self, port: int) -> dict[str, str]:
        return {
            "listen_addresses": _LOOPBACK,
            "port": str(port),
            "unix_socket_directories": "",
            "dynamic_shared_memory_type": "mmap",  # in the data directory, so that nothing is left when it is killed
            **self._durability,
        }

    def _serve(self, data: Path, port: int, settings: dict[str, str]) -> subprocess.Popen[bytes]:
        return self._programs.serve(self._nursery, data, settings, "-h", _LOOPBACK, "-p", str(port))

    def _ask(self, port: int, statement: str) -> str:
        options = ("-h", _LOOPBACK, "-p", str(port), "-U", OWNER, "-d", DATABASE, "-AtX")
        return self._programs.run("psql", *options, "-c", statement).strip()

    def _wait_for(self, question: str, answer: str) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while (found := self._ask(self._primary_port, question)) != answer:
            if time.monotonic() > deadline:
                raise NoPostgresql(
                    f"{question!r} still gives {found!r} after {_WAIT_SECONDS:.0f} s, not {answer!r}"
                )
            time.sleep(_POLL_SECONDS)

    def _close(self) -> None:
        self.kill_primary()
        if self._standby is not None:
            self._standby.send_signal(
                signal.SIGINT
            )  # "fast": ends sessions, and leaves no shared memory behind
            self._standby.wait()
        self._nursery.close()


def _free_port() -> int:
    with socket.create_server((_LOOPBACK, 0)) as free:
        return int(free.getsockname()[1])


def _family(pid: int) -> list[int]:
    """A server and its children, which are not in its process group."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def _remove_shared_memory(data: Path) -> None:
    """Remove the segment by which a server that was killed kept a second one out of its directory."""
    _key, segment = (data / "postmaster.pid").read_text().splitlines()[6].split()
    subprocess.run(["/usr/bin/ipcrm", "--shmem-id", segment], check=True)
