"""The plugin under test, started as a runtime starts it. Every test runs on both executables: there is one contract."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import msgspec

from podtide.cni.errors import ErrorCode

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "plugin" / "podtide.py"
BINARY = ROOT / "plugin" / "target" / "release" / "podtide"

GENEROUS_SECONDS = 60.0
"""No plugin takes that long by itself: whoever does hangs, and the test fails."""

CONFIGURATION = b'{"cniVersion": "1.0.0", "name": "pods", "type": "bridge", "ipam": {"type": "podtide"}}'
ATTACHMENT = {"CNI_CONTAINERID": "sandbox-1", "CNI_IFNAME": "eth0", "CNI_NETNS": "/var/run/netns/one"}


class CniError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A CNI error: these keys and no other."""

    cni_version: str
    code: int
    msg: str
    details: str


class Outcome(msgspec.Struct, frozen=True):
    """How a plugin ended."""

    exit_status: int
    stdout: bytes

    @property
    def document(self) -> Any:
        """What it printed, which is one JSON document."""
        return msgspec.json.decode(self.stdout)

    @property
    def error(self) -> CniError:
        """The CNI error that it printed: in one line, with the words for its code that the agent uses too."""
        assert self.exit_status == 1
        error = msgspec.json.decode(self.stdout, type=CniError)
        assert b"\n" not in self.stdout.rstrip(b"\n")
        assert error.details == ErrorCode(error.code).meaning
        return error


class Started(AbstractContextManager["Started"]):
    """A plugin that runs; it does not outlive the test."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def feed(self, configuration: bytes) -> None:
        """Give it all of stdin, and go on while it works."""
        assert self.process.stdin is not None
        with self.process.stdin as stdin:
            stdin.write(configuration)
        self.process.stdin = None

    def outcome(self, configuration: bytes = b"") -> Outcome:
        """Wait until it ended by itself. It says nothing on stderr, whatever happens."""
        stdout, stderr = self.process.communicate(configuration, timeout=GENEROUS_SECONDS)
        assert stderr == b""
        return Outcome(self.process.returncode, stdout)


class Plugin(msgspec.Struct, frozen=True):
    """An executable, and the agent's socket that it is to use."""

    path: Path
    socket: Path

    def start(
        self,
        verb: str,
        environment: Mapping[str, str | bytes] = ATTACHMENT,
        *,
        stdin: int | IO[bytes] = subprocess.PIPE,
        stdout: int | IO[bytes] = subprocess.PIPE,
        before: tuple[str, ...] = (),
    ) -> Started:
        """Start it for this verb; `before` is a command that starts what follows it."""
        given = {"CNI_COMMAND": verb, "CNI_PATH": "/opt/cni/bin", "PODTIDE_SOCKET": str(self.socket)}
        process = subprocess.Popen(
            [*before, self.path],
            env=given | dict(environment),
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
        return Started(process)

    def run(
        self,
        verb: str,
        environment: Mapping[str, str | bytes] = ATTACHMENT,
        *,
        configuration: bytes = CONFIGURATION,
    ) -> Outcome:
        """Run it to its end."""
        with self.start(verb, environment) as started:
            return started.outcome(configuration)


def build() -> Path:
    """The executable in Rust, built from the sources as they are. NoRust where it cannot be."""
    cargo = shutil.which("cargo")
    # rustup puts a cargo on the path that cannot do anything until a toolchain is chosen.
    if cargo is None or subprocess.run([cargo, "--version"], check=False, capture_output=True).returncode:
        raise NoRust("cargo is not installed: get Rust (Debian: `apt-get install cargo`), then `make plugin`")
    command = [cargo, "build", "--release", "--locked", "--offline", "--quiet"]
    built = subprocess.run(command, cwd=ROOT / "plugin", check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return BINARY


class NoRust(Exception):
    """There is no Rust on this machine. `str()` of it says what would help."""


def without_privileges() -> tuple[str, ...]:
    """What to put before a command so that file permissions hold for it, as they do not for root."""
    return () if os.geteuid() else ("setpriv", "--inh-caps=-all", "--bounding-set=-all", "--")
