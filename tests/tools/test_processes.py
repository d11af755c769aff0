import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.errors import DidNotStart
from control_plane.process import Nursery, Process
from patience import PATIENCE_SECONDS

OWNER = """
from control_plane.process import Nursery
import sys
nursery = Nursery()
child = nursery.start(["sleep", "1000"], nursery.directory / "sleep.log")
print(nursery.directory, child.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended and waits for its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(") ")[2][0] != "Z"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda each: each.name)
def test_nothing_outlives_the_process_that_started_it(end: signal.Signals) -> None:
    tools = Path(__file__).parent.parent.parent / "tools"
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        env={"PYTHONPATH": str(tools)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        directory, pid = owner.stdout.readline().split()
        assert Path(directory).is_dir()
        assert is_alive(int(pid))
        owner.send_signal(end)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while is_alive(int(pid)) or Path(directory).exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_program_that_ends_before_it_is_ready_is_shown_with_its_last_words(nursery: Nursery) -> None:
    process = Process(
        nursery, ["/bin/sh", "-c", "seq 100; echo no such file >&2; exit 3"], is_ready=lambda: False
    )
    with pytest.raises(DidNotStart) as failure:
        process.start()
    lines = str(failure.value).splitlines()
    assert lines[0] == "sh ended with status 3; its log ends so:"
    assert lines[-2:] == ["100", "no such file"]
    assert len(lines) < 20
    assert not process.is_running


def test_a_program_can_be_started_again_after_it_was_ended(nursery: Nursery) -> None:
    started = nursery.directory / "started"
    process = Process(
        nursery, ["/bin/sh", "-c", f"echo >> {started}; exec sleep 1000"], is_ready=started.exists
    )
    for end in (process.kill, process.stop):
        started.unlink(missing_ok=True)
        process.start()
        assert process.is_running
        end()
        assert not process.is_running


def test_ending_what_does_not_run_changes_nothing(nursery: Nursery) -> None:
    process = Process(nursery, ["/bin/true"], is_ready=lambda: True)
    process.kill()
    process.stop()
    assert not process.is_running
