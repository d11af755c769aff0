"""A Go that is new enough, wherever it comes from.

Debian's Go is often years older than what Kubernetes asks for. But Go's own releases are published as modules, too, and
any old Go can fetch one and check it against the public checksum database: so an old Go is all a machine needs.
"""

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

from control_plane.errors import CannotBuild

Say = Callable[[str], None]
"""Tells a person what is going on, one line at a time."""

FindGo = Callable[[str, Path, Say], Path]
"""`find_go`, or `find_or_install_go` where a person asked for a build."""

USUAL_PLACE = Path("/usr/local/go/bin/go")
"""Where Go's own instructions put it, which is often not on the PATH."""


def find_go(required: str, cache: Path, say: Say) -> Path:
    """The `go` command of a release not older than `required`; one that is fetched for it is kept in `cache`."""
    kept = _kept_go(required, cache)
    if kept.exists():
        return kept
    go = _installed_go()
    if go is None:
        raise CannotBuild(
            f"Go is not installed, and this is built with Go {required}: install any Go (Debian: sudo apt-get "
            "install golang-go; a newer one is fetched if it is too old), or, for the control plane alone, set "
            "KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and kubectl"
        )
    if _release(ask(go, "env", "GOVERSION")) >= _release(f"go{required}"):
        return go
    say(f"fetching Go {required}, because {go} is older")
    _fetch(go, required, kept.parent.parent)
    return kept


def find_or_install_go(required: str, cache: Path, say: Say) -> Path:
    """As `find_go`; where there is none, one is installed first if that can be."""
    if not _kept_go(required, cache).exists():
        install_go(say)
    return find_go(required, cache, say)


def install_go(say: Say) -> None:
    """Have Debian's Go installed if there is none and we may: as root, on a machine with apt-get."""
    apt_get = shutil.which("apt-get")
    if _installed_go() or os.getuid() != 0 or not apt_get:
        return
    say("apt-get install golang-go")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "golang-go"]):
        # A failure is left to `find_go`, which says what is missing then.
        subprocess.run([apt_get, *arguments], check=False, env=environment)


def go_environment() -> dict[str, str]:
    """The environment to run `go` in: as it is found, except that nobody's habits change what is built.

    Without cgo no C compiler is needed, and without GOROOT the Go that runs is the one that was found.
    """
    found = {name: value for name, value in os.environ.items() if name != "GOROOT"}
    return found | {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def _kept_go(required: str, cache: Path) -> Path:
    return cache / f"go-{required}" / "bin" / "go"


def _installed_go() -> Path | None:
    found = shutil.which("go") or shutil.which(USUAL_PLACE)
    return Path(found) if found else None


def _release(text: str) -> tuple[int, ...]:
    """`go1.26.3` → (1, 26, 3). What is no release (a build from source, say) counts as the oldest."""
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(number or 0) for number in found.groups()) if found else (0,)


def _fetch(go: Path, release: str, directory: Path) -> None:
    """Fetch a release of Go as a module, and unpack it as Go itself does."""
    platform = ask(go, "env", "GOOS") + "-" + ask(go, "env", "GOARCH")
    module = f"golang.org/toolchain@v0.0.1-go{release}.{platform}"
    archive = json.loads(ask(go, "mod", "download", "-json", module))["Zip"]
    partial = directory.with_name(f"{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            path = partial / name.removeprefix(f"{module}/")
            if path.name == "_go.mod":  # a module cannot have another's go.mod inside, so they travel renamed
                path = path.with_name("go.mod")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files.read(name))
            if {"bin", "tool"} & set(path.relative_to(partial).parts[:2]):
                path.chmod(0o755)
    partial.rename(directory)


def ask(go: Path, *arguments: str) -> str:
    """What a `go` command says, on its standard output."""
    # From a directory without a go.mod, because an old Go refuses to say anything where a newer one is asked for.
    answer = subprocess.run(
        [go, *arguments], cwd="/", check=False, capture_output=True, text=True, env=go_environment()
    )
    if answer.returncode != 0:
        raise CannotBuild(f"go {' '.join(arguments)} failed: {last_line(answer.stderr or answer.stdout)}")
    return answer.stdout.strip()


def last_line(text: str) -> str:
    """Where programs say why they gave up."""
    return text.strip().rpartition("\n")[2]
