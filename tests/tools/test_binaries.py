import json
import re
import threading
import zipfile
from pathlib import Path

import pytest

from control_plane import go_toolchain
from control_plane.__main__ import build
from control_plane.binaries import NEEDED_BY_ALL, PACKAGES, built, provided
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import find_go, find_or_install_go, install_go
from control_plane.versions import MODULE, Versions, pinned

VERSIONS = Versions(kubernetes="1.36.3", etcd="3.6.8", go="1.26.0")
# Builds by writing its arguments where the program should be.
GO = """
case "$1 $2" in
    "env GOVERSION") echo go{release} ;;
    "env GOOS") echo linux ;;
    "env GOARCH") echo amd64 ;;
    "mod download") echo '{download}' ;;
    build*) {build} ;;
esac
"""
WRITE_TARGET = 'while [ "$1" != -o ]; do shift; done; echo "$3" > "$2"; echo "$3" >> "$BUILT"'


def quiet(_line: str) -> None:
    """Nobody needs to know."""


class Machine:
    """Commands of our own, and no others: no Go but the one a test puts there."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cache = directory / "cache"
        self.commands = directory / "commands"
        self.commands.mkdir()
        self._built = directory / "built"
        monkeypatch.setenv("PATH", str(self.commands))
        monkeypatch.setenv("BUILT", str(self._built))
        monkeypatch.setattr(go_toolchain, "USUAL_PLACE", directory / "nowhere")

    def command(self, name: str, script: str) -> Path:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def go(self, release: str = "1.26.0", build: str = WRITE_TARGET, download: str = "") -> Path:
        return self.command("go", GO.format(release=release, build=build, download=download))

    @property
    def packages_built(self) -> list[str]:
        return self._built.read_text().split() if self._built.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_versions_are_those_of_go_mod() -> None:
    versions = pinned((MODULE / "go.mod").read_text())
    assert re.fullmatch(r"1\.36\.\d+", versions.kubernetes)
    assert re.fullmatch(r"3\.[5-9]\.\d+", versions.etcd)


def test_every_staging_module_is_replaced_by_the_release_that_goes_with_kubernetes() -> None:
    text = (MODULE / "go.mod").read_text()
    replaced = dict(re.findall(r"^\t(k8s\.io/\S+) => \1 v(\S+)$", text, flags=re.MULTILINE))
    assert {"k8s.io/api", "k8s.io/client-go", "k8s.io/kubectl"} <= set(replaced)
    assert set(replaced.values()) == {pinned(text).kubernetes.replace("1.", "0.", 1)}


def test_every_program_is_a_tool_of_the_module() -> None:
    tools = re.search(r"^tool \((.*?)^\)", (MODULE / "go.mod").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert tools is not None
    assert set(tools[1].split()) == set(PACKAGES.values())


def test_what_is_built_once_is_found_without_go(machine: Machine) -> None:
    machine.go()
    first = built(VERSIONS, machine.cache, quiet)
    assert first.kube_apiserver.read_text().strip() == "k8s.io/kubernetes/cmd/kube-apiserver"
    (machine.commands / "go").unlink()
    assert built(VERSIONS, machine.cache, quiet) == first
    assert sorted(machine.packages_built) == sorted(PACKAGES.values())


def test_another_version_is_built_beside_the_first(machine: Machine) -> None:
    machine.go()
    first = built(VERSIONS, machine.cache, quiet)
    second = built(Versions(kubernetes="1.36.4", etcd="3.6.8", go="1.26.0"), machine.cache, quiet)
    assert first.etcd.exists()
    assert second.etcd.exists()
    assert first.etcd != second.etcd


def test_whoever_waits_is_told_which_program_is_built(machine: Machine) -> None:
    machine.go()
    lines: list[str] = []
    built(VERSIONS, machine.cache, lines.append)
    assert lines[0].startswith("building Kubernetes 1.36.3 and etcd 3.6.8 into ")
    assert lines[1:] == [
        f"{name} ({count} of {len(PACKAGES)})" for count, name in enumerate(PACKAGES, start=1)
    ]


def test_half_a_build_is_never_taken_for_a_whole_one(machine: Machine) -> None:
    machine.go(build=f"{WRITE_TARGET}; echo compiling >&2; echo out of memory >&2; exit 1")
    with pytest.raises(
        CannotBuild, match=r"^etcd cannot be built: out of memory \(to see all of it: cd .*\)$"
    ):
        built(VERSIONS, machine.cache, quiet)
    machine.go()
    built(VERSIONS, machine.cache, quiet)
    assert machine.packages_built.count(PACKAGES["etcd"]) == 2


def test_two_who_build_at_once_build_once(machine: Machine) -> None:
    machine.go(build=f"{WRITE_TARGET}; exec /bin/sleep 0.02")
    threads = [threading.Thread(target=built, args=(VERSIONS, machine.cache, quiet)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(machine.packages_built) == sorted(PACKAGES.values())


def test_without_go_the_error_says_what_to_install_and_what_would_do_instead(machine: Machine) -> None:
    with pytest.raises(CannotBuild) as failure:
        built(VERSIONS, machine.cache, quiet)
    sentence = str(failure.value)
    assert sentence.startswith("Go is not installed, and this is built with Go 1.26.0: install any Go")
    assert "KUBEBUILDER_ASSETS" in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("release", ["1.26.0", "1.26.8", "1.27rc1", "2.0"])
def test_a_go_that_is_new_enough_is_used_as_it_is(machine: Machine, release: str) -> None:
    go = machine.go(release)
    assert find_go("1.26.0", machine.cache, quiet) == go


@pytest.mark.parametrize("release", ["1.25.9", "1.19.8", "1.4"])
def test_an_old_go_fetches_the_one_that_is_needed(machine: Machine, release: str, tmp_path: Path) -> None:
    prefix = "golang.org/toolchain@v0.0.1-go1.26.0.linux-amd64"
    archive = tmp_path / "toolchain.zip"
    with zipfile.ZipFile(archive, "w") as files:
        for name in ("bin/go", "pkg/tool/linux_amd64/compile", "src/_go.mod", "src/fmt/print.go"):
            files.writestr(f"{prefix}/{name}", name)
    machine.go(release, download=json.dumps({"Zip": str(archive)}))
    lines: list[str] = []
    go = find_go("1.26.0", machine.cache, lines.append)
    assert lines == [f"fetching Go 1.26.0, because {machine.commands / 'go'} is older"]
    root = go.parent.parent
    executable = {
        str(path.relative_to(root)): bool(path.stat().st_mode & 0o100)
        for path in root.rglob("*")
        if path.is_file()
    }
    assert executable == {
        "bin/go": True,
        "pkg/tool/linux_amd64/compile": True,
        "src/go.mod": False,
        "src/fmt/print.go": False,
    }
    (machine.commands / "go").unlink()
    assert find_go("1.26.0", machine.cache, quiet) == go


def test_a_go_that_cannot_be_fetched_is_one_sentence(machine: Machine) -> None:
    machine.command(
        "go", 'if [ "$1" = mod ]; then echo trying >&2; echo no network >&2; exit 1; fi; echo go1.19.8'
    )
    with pytest.raises(CannotBuild, match=r"^go mod download .* failed: no network$"):
        find_go("1.26.0", machine.cache, quiet)


@pytest.mark.parametrize(
    ("user", "expected"),
    [(0, ["update -qq", "install -y -qq --no-install-recommends golang-go"]), (1000, [])],
)
def test_root_gets_debian_s_go_and_nobody_else_does(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, expected: list[str]
) -> None:
    calls = tmp_path / "calls"
    calls.touch()
    machine.command("apt-get", f'echo "$*" >> {calls}')
    monkeypatch.setattr("os.getuid", lambda: user)
    install_go(quiet)
    assert calls.read_text().splitlines() == expected


@pytest.fixture
def installs(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where each run of apt-get by root leaves a line."""
    calls = tmp_path / "calls"
    calls.touch()
    machine.command("apt-get", f"echo >> {calls}")
    monkeypatch.setattr("os.getuid", lambda: 0)
    return calls


def test_go_is_installed_when_there_is_something_to_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installs: Path
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(CannotBuild, match=r"^Go is not installed"):  # this apt-get installs nothing
        build()
    assert installs.read_text() == "\n\n"


def test_nothing_is_installed_for_what_was_built_before(machine: Machine, installs: Path) -> None:
    machine.go()
    first = built(VERSIONS, machine.cache, quiet)
    (machine.commands / "go").unlink()
    assert built(VERSIONS, machine.cache, quiet, find_or_install_go) == first
    assert installs.read_text() == ""


def test_nothing_is_installed_for_somebody_else_s_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installs: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(somebody_s(tmp_path, *NEEDED_BY_ALL)))
    build()
    assert installs.read_text() == ""


def test_nothing_is_installed_beside_a_go_that_was_fetched_before(machine: Machine, installs: Path) -> None:
    kept = machine.cache / "go-1.26.0" / "bin" / "go"
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert find_or_install_go("1.26.0", machine.cache, quiet) == kept
    assert installs.read_text() == ""


def test_a_go_that_is_there_is_left_alone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.go("1.19.8")
    machine.command("apt-get", "exit 1")
    monkeypatch.setattr("os.getuid", lambda: 0)
    lines: list[str] = []
    install_go(lines.append)
    assert lines == []


def somebody_s(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).touch()
    return directory


def test_somebody_else_s_set_may_lack_controllers_and_scheduler(tmp_path: Path) -> None:
    found = provided(somebody_s(tmp_path, "etcd", "kube-apiserver", "kubectl"))
    assert found.kubectl == tmp_path / "kubectl"
    assert found.kube_controller_manager is None
    assert found.kube_scheduler is None


def test_a_set_that_cannot_run_an_api_server_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    somebody_s(tmp_path, "kubectl", "kube-scheduler")
    with pytest.raises(
        CannotBuild, match=rf"KUBEBUILDER_ASSETS is {tmp_path}, which lacks etcd, kube-apiserver: "
    ):
        provided(tmp_path)
