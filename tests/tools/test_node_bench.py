import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec import structs

from container_images import cache
from control_plane.binaries import Binaries
from control_plane.errors import CannotBuild
from left_out import leave_out
from node_bench import cgroups
from node_bench.image_store import ImageStore
from node_bench.programs import ALL, node_programs

BINARIES = Binaries(
    etcd=Path("etcd"),
    kube_apiserver=Path("kube-apiserver"),
    kubectl=Path("kubectl"),
    kube_controller_manager=None,
    kube_scheduler=None,
    kubelet=Path("kubelet"),
    kube_proxy=Path("kube-proxy"),
)


@pytest.fixture
def group() -> Iterator[str]:
    """The name of a node's cgroup that nobody has."""
    if os.geteuid() or not os.access(cgroups.ROOT, os.W_OK):
        leave_out("cgroups", "making them takes root")
    name = f"pt{uuid4().hex[:8]}test"
    yield name
    cgroups.end(name)


def started_in(groups: list[Path], command: str) -> subprocess.Popen[bytes]:
    join = " && ".join(f"echo 0 > {group}/cgroup.procs" for group in groups)
    return subprocess.Popen(["/bin/sh", "-c", f"{join} && {command}"])


def test_all_processes_of_a_node_end_with_its_cgroup_whatever_they_became(group: str) -> None:
    groups = cgroups.make(group)
    # One with a session of its own and a parent that is gone, which ignores every signal that can be ignored.
    orphan = "(setsid sh -c 'trap \"\" TERM HUP INT; echo started; sleep 1000' &) ; exec sleep 1000"
    with started_in(groups, orphan) as process:
        while len(cgroups.processes(group)) < 3:
            pass
        cgroups.end(group)
        assert process.wait(10) == -9
    assert not cgroups.processes(group)
    assert not [each for each in cgroups.hierarchies() if (each / group).exists()]


def test_groups_that_a_kubelet_made_below_go_too(group: str) -> None:
    groups = cgroups.make(group)
    for each in groups:
        (each / "kubepods" / "pod1").mkdir(parents=True)
    cgroups.end(group)
    assert not [each for each in groups if each.exists()]


def test_ending_what_is_not_there_is_fine() -> None:
    cgroups.end("pt-nobody-has-this-name")


def test_a_copy_of_the_image_store_shares_layers_and_not_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache.images_directory().mkdir(parents=True)
    store = ImageStore([Path("podtide-1.tar")], Path("containerd-2"))
    used = tmp_path / "used"
    layer, database = Path("io.containerd.snapshotter/fs/bin/sh"), Path("io.containerd.metadata/meta.db")
    for path in (layer, database):
        (used / path).parent.mkdir(parents=True)
        (used / path).write_text("first")
    store.keep(used)
    assert store.is_kept
    store.copy_to(tmp_path / "node")
    assert (tmp_path / "node" / layer).samefile(used / layer)
    (used / database).write_text("second")
    store.keep(used)  # as another process does that was later
    store.copy_to(tmp_path / "another")
    assert (tmp_path / "another" / database).read_text() == "first"
    assert [path.name for path in cache.images_directory().iterdir()] == [store.name]
    assert (tmp_path / "node" / database).read_text() == "first"
    assert not ImageStore([Path("podtide-2.tar")], Path("containerd-2")).is_kept


def test_every_program_of_a_node_has_a_version_and_a_name_of_its_own() -> None:
    assert len({program.file for program in ALL}) == len(ALL)
    for program in ALL:
        assert program.pins.program


@pytest.mark.parametrize("program", ["kubelet", "kube_proxy"])
def test_a_set_of_programs_without_a_kubelet_is_refused(program: str) -> None:
    if os.geteuid():
        leave_out("real nodes", "they take root")
    with pytest.raises(CannotBuild, match="lacks kubelet or kube-proxy"):
        node_programs(structs.replace(BINARIES, **{program: None}), print, lambda *_: Path("go"))
