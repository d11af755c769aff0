"""A cgroup per node, with all that runs on it, whatever its parents: so that a node can be ended as a whole.

Every process of a node is in its group of every hierarchy (cgroup v1) or in its one group (v2), because children stay where
their parents are, and the kubelet makes the groups of pods below it (`cgroupRoot`). What belongs to a node is therefore
known by a name alone, also to another process than the one that made it. Only the standard library is imported: the
cleaning program runs without any other.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
END_SECONDS = 30.0
POLL_SECONDS = 0.02


def hierarchies() -> list[Path]:
    """Where groups can be made: the one of cgroup v2, or all of v1."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [each for each in ROOT.iterdir() if (each / "cgroup.procs").exists() and not each.is_symlink()]


def make(name: str) -> list[Path]:
    """The node's groups, ready for processes."""
    groups = [each / name for each in hierarchies()]
    for group in groups:
        group.mkdir()
        for file in (
            "cpuset.cpus",
            "cpuset.mems",
        ):  # those of v1 begin empty, and an empty group takes no process
            if (group / file).exists() and (group.parent / file).exists():
                (group / file).write_text((group.parent / file).read_text())
    if groups == [ROOT / name]:
        enabled = " ".join(f"+{each}" for each in (ROOT / "cgroup.controllers").read_text().split())
        (ROOT / "cgroup.subtree_control").write_text(enabled)
        # In v2 a group with children has no processes of its own.
        own = ROOT / name / "system"
        own.mkdir()
        (ROOT / name / "cgroup.subtree_control").write_text(enabled)
        return [own]
    return groups


def end(name: str) -> None:
    """Kill everything in the node's groups, and remove them."""
    groups = [each / name for each in hierarchies() if (each / name).exists()]
    deadline = time.monotonic() + END_SECONDS
    while left := processes(name):
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of {name} do not end: {sorted(left)}")
        time.sleep(POLL_SECONDS)
    for group in groups:
        _remove(group, deadline)


def processes(name: str) -> set[int]:
    """The ids of all processes in the groups of that name."""
    return {process for each in hierarchies() for process in _processes(each / name)}


def _processes(group: Path) -> Iterator[int]:
    for directory, _, _ in os.walk(group):
        with suppress(OSError):  # the group is gone
            yield from map(int, (Path(directory) / "cgroup.procs").read_text().split())


def _remove(group: Path, deadline: float) -> None:
    for directory, _, _ in os.walk(group, topdown=False):
        while Path(directory).exists():
            try:
                Path(directory).rmdir()
            except OSError:  # its last process is not wholly gone yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)
