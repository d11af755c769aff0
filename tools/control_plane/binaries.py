"""Where the control plane's programs are: in KUBEBUILDER_ASSETS if that is set, else built once into the user's cache.

The cache is outside the repository, with a directory per set of versions. A program appears there by a rename, so that
half a build is never taken for a whole one, and a lock makes a second process wait for the first one's.
"""

import fcntl
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from control_plane.building import build
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import FindGo, Say, find_go
from control_plane.versions import MODULE, RELEASE, Versions, pinned

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
    "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
}
"""What is built, by the name it gets."""

VERSION_PACKAGE = "k8s.io/component-base/version"

NEEDED_BY_ALL = ("etcd", "kube-apiserver", "kubectl")


class Binaries(Struct, frozen=True):
    """The programs. Sets made by others often lack what may be None here, and few tests need it."""

    etcd: Path
    kube_apiserver: Path
    kubectl: Path
    kube_controller_manager: Path | None
    kube_scheduler: Path | None
    kubelet: Path | None
    kube_proxy: Path | None


def say_on_stderr(line: str) -> None:
    """Tell a person; a log gets the same lines."""
    print(f"control plane: {line}", file=sys.stderr, flush=True)


def binaries(say: Say = say_on_stderr, find: FindGo = find_go) -> Binaries:
    """The programs, built first if they are not there, which takes minutes. CannotBuild says what that lacks.

    Go is looked for, by `find`, only when there is something to build.
    """
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        return provided(Path(assets))
    if not MODULE.exists():
        known = sorted(
            path.name.removeprefix("control-plane-") for path in MODULE.parent.glob("control-plane-*")
        )
        raise CannotBuild(f"no sources are pinned for Kubernetes {RELEASE}: use one of {', '.join(known)}")
    return built(pinned((MODULE / "go.mod").read_text()), cache_directory(), say, find)


def cache_directory() -> Path:
    """Where what was built is kept, by version, outside the repository."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podtide" / "control-plane"


def provided(directory: Path) -> Binaries:
    """Somebody else's set, if it can run an API server."""
    if lacking := [name for name in NEEDED_BY_ALL if not (directory / name).exists()]:
        raise CannotBuild(
            f"KUBEBUILDER_ASSETS is {directory}, which lacks {', '.join(lacking)}: complete it, or unset "
            "KUBEBUILDER_ASSETS to have everything built"
        )
    return _binaries_in(directory)


def built(versions: Versions, cache: Path, say: Say, find: FindGo = find_go) -> Binaries:
    """Our own set: what the cache does not have is built into it."""
    machine = f"{sys.platform}-{platform.machine()}"
    directory = cache / f"kubernetes-{versions.kubernetes}-etcd-{versions.etcd}-{machine}"
    if _missing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with locked(cache / "lock", say):
            _build_missing(versions, directory, cache, say, find)
    return _binaries_in(directory)


def _build_missing(versions: Versions, directory: Path, cache: Path, say: Say, find: FindGo) -> None:
    missing = _missing(directory)
    if not missing:
        return  # whoever held the lock before us has built it
    go = find(versions.go, cache, say)
    say(f"building Kubernetes {versions.kubernetes} and etcd {versions.etcd} into {directory}, once")
    for count, name in enumerate(missing, start=1):
        say(f"{name} ({count} of {len(missing)})")
        build(go, PACKAGES[name], directory / name, say, module=MODULE, stamps=_stamps(versions))


def _stamps(versions: Versions) -> dict[str, str]:
    """The version that Kubernetes' own build would have stamped."""
    major, minor, _ = versions.kubernetes.split(".")
    stamps = {"gitVersion": f"v{versions.kubernetes}", "gitMajor": major, "gitMinor": minor}
    return {f"{VERSION_PACKAGE}.{name}": value for name, value in stamps.items()}


def _missing(directory: Path) -> list[str]:
    return [name for name in PACKAGES if not (directory / name).exists()]


def _binaries_in(directory: Path) -> Binaries:
    def present(name: str) -> Path | None:
        return directory / name if (directory / name).exists() else None

    return Binaries(
        etcd=directory / "etcd",
        kube_apiserver=directory / "kube-apiserver",
        kubectl=directory / "kubectl",
        kube_controller_manager=present("kube-controller-manager"),
        kube_scheduler=present("kube-scheduler"),
        kubelet=present("kubelet"),
        kube_proxy=present("kube-proxy"),
    )


@contextmanager
def locked(file: Path, say: Say) -> Iterator[None]:
    """Alone with the cache. The system gives the lock back however its holder ends."""
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building it: waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
