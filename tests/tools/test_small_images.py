import os
import select
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from container_images.small_images import PAUSE, WORKLOAD, pause_image, pause_program, workload_image
from control_plane.errors import CannotBuild
from left_out import leave_out
from patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.slow, pytest.mark.real_time]


def built(make: Callable[[], Path], pytestconfig: pytest.Config) -> Path:
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # the first time takes minutes: let its progress be seen
            return make()
    except CannotBuild as reason:
        leave_out("container images", reason)


@pytest.fixture
def pause(pytestconfig: pytest.Config) -> Path:
    return built(pause_program, pytestconfig)


def unpacked(archive: Path, root: Path) -> str:
    """The image's root file system into `root`; its name."""
    root.mkdir()
    with tarfile.open(archive) as parts:
        index = msgspec.json.decode((parts.extractfile("index.json") or pytest.fail("no index")).read())
        (image,) = index["manifests"]
        layer = max(parts.getmembers(), key=lambda part: part.size)
        with tarfile.open(fileobj=parts.extractfile(layer)) as files:
            files.extractall(root, filter="tar")
    return str(image["annotations"]["io.containerd.image.name"])


def children_of(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_first_process_of_a_namespace_reaps_orphans_and_leaves_when_asked(pause: Path) -> None:
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", pause]) as unshare:  # noqa: S607 - the machine's own
        try:
            wait_until(lambda: children_of(unshare.pid) != [])
            (first,) = children_of(unshare.pid)
            wait_until(lambda: Path(f"/proc/{first}/exe").readlink() == pause)
            subprocess.run(
                ["nsenter", "--target", str(first), "--pid", "sh", "-c", "sleep 600 &"],  # noqa: S607 - the machine's own
                check=True,
            )
            wait_until(lambda: children_of(first) != [])
            (orphan,) = children_of(first)
            os.kill(orphan, signal.SIGKILL)
            wait_until(lambda: children_of(first) == [])
            handle = os.pidfd_open(first)
            os.kill(first, signal.SIGTERM)
            assert select.select([handle], [], [], PATIENCE_SECONDS)[0]
            os.close(handle)
            assert unshare.wait(PATIENCE_SECONDS) == 0
        finally:
            unshare.kill()


def test_the_pause_image_is_one_static_program(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    assert unpacked(built(pause_image, pytestconfig), tmp_path / "root") == PAUSE
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["pause"]
    with subprocess.Popen(["chroot", tmp_path / "root", "/pause"]) as running:  # noqa: S607 - the machine's own
        wait_until(lambda: Path(f"/proc/{running.pid}/exe").readlink().name == "pause")
        wait_until(lambda: "SigCgt:\t0000000000000000" not in Path(f"/proc/{running.pid}/status").read_text())
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE_SECONDS) in (0, -signal.SIGINT)


@pytest.mark.parametrize("program", ["sh", "ping", "nc", "httpd", "wget", "ip"])
def test_the_workload_image_has_what_a_test_runs_in_a_pod(
    pytestconfig: pytest.Config, tmp_path: Path, program: str
) -> None:
    assert unpacked(built(workload_image, pytestconfig), tmp_path / "root") == WORKLOAD
    asked = subprocess.run(
        ["chroot", tmp_path / "root", "/bin/sh", "-c", f"{program} --help 2>&1; test -x /pause"],  # noqa: S607 - the machine's own
        check=True,
        capture_output=True,
        text=True,
    )
    assert "BusyBox" in asked.stdout
