"""A PostgreSQL server for tests and benchmarks: from this machine's own binaries, in a directory that vanishes with us.

It listens on a socket in that directory and nowhere else, and it orders texts as a dictionary does, not by their bytes, as
servers in the wild do. PostgreSQL refuses to run as root; then it runs as the user `postgres` or `nobody`.
"""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from control_plane.process import Nursery

OWNER = "podtide"
DATABASE = "podtide"
READY_SECONDS = 60.0
POLL_SECONDS = 0.02
INSTALLED = Path("/usr/lib/postgresql")


class NoPostgresql(Exception):
    """There are no binaries of PostgreSQL, or they do not run. `str()` of it says why, and what would help."""


def binaries() -> Path:
    """Where `initdb` and `postgres` are: of the newest version that is installed."""
    found = sorted(INSTALLED.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise NoPostgresql("its programs are not installed: `apt-get install postgresql` installs them")
    return (found[-1] if found else Path(str(on_path))).parent


class PostgresqlPrograms:
    """PostgreSQL's programs, run in a directory of their own by somebody who is not root."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._binaries = binaries()
        self._as_somebody = _as_somebody(directory)

    def command(self, program: str, *arguments: str | Path) -> list[str | Path]:
        """The command that starts a program."""
        return [*self._as_somebody, self._binaries / program, *arguments]

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run a program to its end; what it printed."""
        command = self.command(program, *arguments)
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=self.directory)
        if done.returncode:
            raise NoPostgresql(f"{program} failed: {' '.join(done.stderr.split())}")
        return done.stdout

    def make_data(self, data: Path) -> None:
        """Make the directory of a server without any database of ours yet."""
        self.run(
            "initdb", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu",
            "--icu-locale=en", f"--username={OWNER}", f"--pgdata={data}",
        )  # fmt: skip

    def serve(
        self, nursery: Nursery, data: Path, settings: Mapping[str, str], *address: str | Path
    ) -> subprocess.Popen[bytes]:
        """Start a server, and return when it answers at the address, given as options of `pg_isready`."""
        log = data.with_suffix(".log")
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = nursery.start(self.command("postgres", "-D", data, *flags), log)
        probe: list[str | Path] = [self._binaries / "pg_isready", "--quiet", *address]
        deadline = time.monotonic() + READY_SECONDS
        while subprocess.run(probe, check=False).returncode:
            if server.poll() is not None or time.monotonic() > deadline:
                raise NoPostgresql(f"its server did not start: {' '.join(log.read_text().split()[-40:])}")
            time.sleep(POLL_SECONDS)
        return server


def durability(*, durable: bool) -> dict[str, str]:
    """Settings of a server that waits for the disk, as in production, or does not: tests need not."""
    waits = "on" if durable else "off"
    return {"fsync": waits, "full_page_writes": waits, "synchronous_commit": waits}


class PostgresqlServer:
    """A server. `durable` makes it wait for the disk, as it does in production; tests need not."""

    def __init__(self, *, durable: bool = False) -> None:
        binaries()  # raises where there are none, before a directory is made
        self._nursery = Nursery()
        self._directory = self._nursery.directory
        self._durable = durable
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._nursery.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.send_signal(signal.SIGINT)  # "fast": ends sessions, and leaves no shared memory behind
        self._server.wait()
        self._nursery.close()

    @property
    def url(self) -> str:
        """The URL of its one database."""
        return f"postgresql://{OWNER}@/{DATABASE}?host={self._directory}"

    def _start(self) -> None:
        programs, data = PostgresqlPrograms(self._directory), self._directory / "data"
        programs.make_data(data)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._directory),
            **durability(durable=self._durable),
        }
        self._server = programs.serve(self._nursery, data, settings, "-h", self._directory)
        programs.run("createdb", "-h", self._directory, "-U", OWNER, DATABASE)


def _as_somebody(directory: Path) -> list[str]:
    """What to put before a command so that it does not run as root; the directory becomes that user's."""
    if os.geteuid():
        return []
    names = {user.pw_name: user for user in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    os.chown(directory, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
