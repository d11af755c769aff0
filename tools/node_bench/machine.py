"""A machine that a node runs on: namespaces, mounts and a cgroup, which can lose its power and be booted again.

Everything that runs on it is below its init in a process namespace, so that killing that is a power cut. What the machine
wrote to its disk is there when it boots again; its memory, its network interfaces and its /run are not.
"""

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from control_plane.errors import DidNotStart
from node_bench import cgroups
from node_bench.fabric import ROUTER, ROUTER_V6, Fabric, Place

BOOT = Path(__file__).with_name("boot.sh")
BOOT_SECONDS = 30.0
POLL_SECONDS = 0.02
COMMAND_SECONDS = 120.0


class MachineSpec(Struct, frozen=True, kw_only=True):
    """What a machine is."""

    name: str
    """The node's."""
    group: str
    """The name of its cgroup and of its cable, which no other machine has."""
    directory: Path
    """Its disk."""
    place: Place
    init: Path
    """The program that waits as its first process."""


class Machine:
    """One machine."""

    def __init__(self, spec: MachineSpec, fabric: Fabric) -> None:
        self.name = spec.name
        self.group = spec.group
        self.place = spec.place
        self.directory = spec.directory
        self._init = spec.init
        self._fabric = fabric
        self._unshare: subprocess.Popen[bytes] | None = None
        self.directory.mkdir(parents=True)
        self._number()

    @property
    def is_on(self) -> bool:
        """Whether it has power."""
        return self._unshare is not None

    @property
    def pid(self) -> int:
        """The id, on this machine, of its init."""
        assert self._unshare is not None, f"{self.name} has no power"
        children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children").read_text().split()
        return int(children[0])

    @property
    def inside(self) -> tuple[str, ...]:
        """What to put before a command that is to run on it."""
        return ("nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--uts", "--ipc", "--")

    def path(self, path: str) -> Path:
        """A file of the running machine, as this process reaches it."""
        return Path(f"/proc/{self.pid}/root{path}")

    def write(self, path: str, text: str) -> None:
        """Put a file on its disk, below /etc, /opt or /var, whether it has power or not."""
        if self.is_on:
            target = self.path(path)
        else:
            _, top, rest = path.split("/", 2)
            target = self.directory / top / "upper" / rest
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def power_on(self) -> None:
        """Boot it, and come back when its init waits."""
        assert not self.is_on, f"{self.name} has power"
        (self.directory / "booted").unlink(missing_ok=True)
        groups = cgroups.make(self.group)
        join = " && ".join(f"echo 0 > {group}/cgroup.procs" for group in groups)
        namespaces = "--mount --net --pid --uts --ipc --fork --kill-child --propagation private --mount-proc"
        boot = [str(each) for each in (BOOT, self.directory, self.name, uuid.uuid4(), self._init)]
        with (self.directory / "console.log").open("ab") as console:
            self._unshare = subprocess.Popen(
                ["sh", "-c", f'{join} && exec unshare {namespaces} sh "$@"', "sh", *boot],  # noqa: S607 - this machine's sh
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self._wait_for_boot(self._unshare)
        self._fabric.plug_in(self.group, self.pid)
        for command in (
            f"address add {self.place.address}/16 dev eth0",
            f"address add {self.place.address_v6}/64 dev eth0",
            "link set eth0 up",
            f"route add default via {ROUTER}",
            f"-6 route add default via {ROUTER_V6}",
        ):
            self.run("ip", *command.split())

    def power_cut(self) -> None:
        """End everything on it at once."""
        if self._unshare:
            self._unshare.kill()
            cgroups.end(self.group)
            self._unshare.wait()
            self._unshare = None

    def wipe(self) -> None:
        """Take its disk away, as replacing the machine does; it has no power then."""
        self.power_cut()
        shutil.rmtree(self.directory)
        self.directory.mkdir()
        self._number()

    def run(self, *command: str | Path, check: bool = True, stdin: str = "") -> str:
        """What a command prints that ends by itself."""
        done = self.attempt(*command, stdin=stdin)
        if check and done.returncode:
            raise AssertionError(f"{self.name}: {' '.join(map(str, command))}: {done.stdout}{done.stderr}")
        return done.stdout

    def attempt(self, *command: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command that ends by itself. Whether it failed is for the caller to look at."""
        return subprocess.run(
            [*self.inside, *command],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_SECONDS,
            env=self.environment,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What its programs run in: their own directory comes first, so that they find each other."""
        return {
            "PATH": f"{self.directory}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": os.environ.get("LANG", "C.UTF-8"),
        }

    def processes(self) -> Sequence[int]:
        """The ids, on this machine, of all that runs on it."""
        return sorted(cgroups.processes(self.group))

    def _number(self) -> None:
        self.write("/etc/machine-id", f"{uuid.uuid4().hex}\n")

    def _wait_for_boot(self, unshare: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + BOOT_SECONDS
        while not (self.directory / "booted").exists():
            if unshare.poll() is not None or time.monotonic() > deadline:
                console = (self.directory / "console.log").read_text(errors="replace")
                self.power_cut()
                raise DidNotStart(f"{self.name} does not boot; its console says:\n{console}")
            time.sleep(POLL_SECONDS)
