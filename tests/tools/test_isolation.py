import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from container_images.isolation import run_isolated
from control_plane.errors import CannotBuild
from left_out import leave_out
from patience import PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def may_make_namespaces() -> None:
    if os.getuid() != 0:
        leave_out("namespaces", "they take root")


def quiet(_: str) -> None: ...


def run(script: str, log: Path) -> None:
    run_isolated(["sh", "-c", script], what="it", log=log, say=quiet, environment=dict(os.environ))


def test_what_it_says_is_in_the_log_and_the_last_line_in_the_error(tmp_path: Path) -> None:
    run("echo hello", tmp_path / "log")
    assert (tmp_path / "log").read_text() == "hello\n"
    with pytest.raises(CannotBuild, match=rf"^it failed: no luck \(all of it is in {tmp_path}/log\)$"):
        run("echo trying; echo no luck >&2; exit 3", tmp_path / "log")


def test_what_it_mounts_and_starts_is_gone_when_it_ends(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    mounted = f"mount -t tmpfs tmpfs {tmp_path}/place && touch {tmp_path}/place/file"
    run(f"{mounted}; sleep 600 & readlink /proc/self/ns/pid", tmp_path / "log")
    assert list((tmp_path / "place").iterdir()) == []
    assert processes_in((tmp_path / "log").read_text().strip()) == []


def processes_in(namespace: str) -> list[int]:
    """Who is in a PID namespace, as `readlink` names it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is not ours to look at
            if str((process / "ns" / "pid").readlink()) == namespace:
                found.append(int(process.name))
    return found


@pytest.mark.real_time
def test_it_dies_with_whoever_asked_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    script = f"readlink /proc/self/ns/pid > {tmp_path}/fifo; sleep 600; true"
    ask = f"from pathlib import Path; import test_isolation; test_isolation.run({script!r}, Path({str(tmp_path / 'log')!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", ask],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    ) as whoever:
        try:
            namespace = (tmp_path / "fifo").read_text().strip()
            handles = [os.pidfd_open(process) for process in processes_in(namespace)]
        finally:
            whoever.kill()
    assert handles
    for handle in handles:
        ended, _, _ = select.select([handle], [], [], PATIENCE_SECONDS)
        os.close(handle)
        assert ended
