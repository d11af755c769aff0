"""What only the real disk can show: the kernel's errors, and kill -9."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import DiskFailed, Locked, NotPermitted, WrongPath

WRITER = """
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from podtide.runtime.directory_disk import DirectoryDisk
disk = DirectoryDisk(Path(sys.argv[1]))
held = disk.lock("agent.lock")
log = disk.open_log("journal", 0)
number = 0
while True:
    record = str(number) * 3000
    log.append(f"{record};".encode())
    log.sync()
    disk.replace("pool", f"{record};".encode())
    print(number, flush=True)
    number += 1
"""


def as_written(number: int) -> str:
    return f"{str(number) * 3000};"


@pytest.mark.parametrize("kill_after", [0, 1, 20])
def test_what_was_acknowledged_survives_kill_9_and_nothing_is_half_replaced(
    tmp_path: Path, kill_after: int
) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == kill_after:
                break
        disk = DirectoryDisk(tmp_path)
        with pytest.raises(
            Locked, match=f"process {writer.pid} holds it; stop that one, or choose another directory"
        ):
            disk.lock("agent.lock")
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([kill_after, *map(int, writer.stdout)])
    disk.lock("agent.lock")
    journal = (disk.read("journal") or b"").decode()
    promised = "".join(as_written(number) for number in range(acknowledged + 1))
    assert journal.startswith(promised)
    assert as_written(acknowledged + 1).startswith(journal[len(promised) :])
    assert (disk.read("pool") or b"").decode() in {as_written(acknowledged), as_written(acknowledged + 1)}


def test_what_a_killed_replace_left_behind_is_used_up_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".pool.new").write_bytes(b"half a file from a former li")
    disk = DirectoryDisk(tmp_path)
    assert disk.read("pool") is None
    disk.replace("pool", b"whole")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"pool": b"whole"}


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    disk = DirectoryDisk(tmp_path / "deep" / "state")
    disk.replace("pool", b"")
    disk.open_log("journal", 0)
    disk.lock("agent.lock")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "deep" / "state").iterdir()}
    assert modes == {"pool": 0o600, "journal": 0o600, "agent.lock": 0o600}
    assert (tmp_path / "deep" / "state").stat().st_mode & 0o777 == 0o700


def test_a_file_where_the_directory_should_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(
        WrongPath, match=r"^cannot make .*/state: file exists; make sure the directory is there"
    ):
        DirectoryDisk(tmp_path / "state")


def test_a_directory_that_vanished_is_said(tmp_path: Path) -> None:
    disk = DirectoryDisk(tmp_path / "state")
    (tmp_path / "state").rmdir()
    with pytest.raises(WrongPath, match=r"^cannot write .*/state/pool: no such file or directory; make sure"):
        disk.replace("pool", b"")


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root may write anywhere, so a test that runs as root becomes nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_directory_without_permission_is_said(tmp_path: Path) -> None:
    disk = DirectoryDisk(tmp_path)
    tmp_path.chmod(0o000)
    attempts: list[Callable[[], object]] = [
        lambda: disk.read("pool"),
        lambda: disk.replace("pool", b""),
        lambda: disk.open_log("journal", 0),
        lambda: disk.lock("agent.lock"),
    ]
    with as_an_ordinary_user():
        for attempt in attempts:
            with pytest.raises(NotPermitted, match=r"permission denied; run as a user who may, or choose"):
                attempt()
    tmp_path.chmod(0o700)


def test_a_place_where_nobody_may_write_is_said() -> None:
    with pytest.raises((NotPermitted, WrongPath), match=r"^cannot make /proc/podtide: .*; "):
        DirectoryDisk(Path("/proc/podtide"))


def test_after_a_failed_sync_a_log_is_not_trusted_again(tmp_path: Path) -> None:
    log = DirectoryDisk(tmp_path).open_log("journal", 0)
    log.append(b"who knows")
    descriptor, log._descriptor = log._descriptor, os.open("/dev/null", os.O_WRONLY)  # fsync refuses a device
    with pytest.raises(DiskFailed, match=r"^cannot sync .*journal: .*; check the disk, then start again$"):
        log.sync()
    log.close()
    log._descriptor = descriptor
    with pytest.raises(DiskFailed, match="open it again"):
        log.append(b"more")
    with pytest.raises(DiskFailed, match="open it again"):
        log.sync()
    log.close()
