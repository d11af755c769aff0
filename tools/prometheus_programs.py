"""Debian's Prometheus and promtool, for tests of the alerting rules and of the dashboard's queries.

The package is unpacked into the user's cache and not installed: installed, it would start a server on this machine. So
it takes no root either. Programs that are installed already are used as they are.
"""

import platform
import shutil
import sys
from pathlib import Path

from msgspec import Struct

from container_images.debian import fetch, update_package_lists
from control_plane.binaries import cache_directory, locked
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import Say

PACKAGE = "prometheus"


class PrometheusPrograms(Struct, frozen=True):
    """The two programs of the package."""

    prometheus: Path
    promtool: Path


def say_on_stderr(line: str) -> None:
    """Tell a person; a log gets the same lines."""
    print(f"prometheus: {line}", file=sys.stderr, flush=True)


def prometheus_programs(say: Say = say_on_stderr) -> PrometheusPrograms:
    """The programs, fetched first if they are not there. CannotBuild says what that lacks."""
    on_path = [shutil.which(name) for name in ("prometheus", "promtool")]
    if all(on_path):
        return PrometheusPrograms(*(Path(str(each)) for each in on_path))
    cache = cache_directory()
    unpacked = cache / f"debian-prometheus-{sys.platform}-{platform.machine()}"
    if not unpacked.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / "prometheus.lock", say):
            if not unpacked.exists():  # else whoever held the lock before us has fetched it
                _fetch(unpacked, say)
    return PrometheusPrograms(unpacked / "usr/bin/prometheus", unpacked / "usr/bin/promtool")


def _fetch(unpacked: Path, say: Say) -> None:
    if lacking := [name for name in ("apt-get", "dpkg") if shutil.which(name) is None]:
        raise CannotBuild(
            f"it is fetched by {' and '.join(lacking)}, which this machine lacks: install prometheus and promtool, version 2.42 or newer"
        )
    partial = unpacked.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    say(f"fetching Debian's package {PACKAGE} into {unpacked}, once")
    update_package_lists()
    try:
        fetch(PACKAGE, partial)
    except CannotBuild:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    partial.rename(unpacked)


if __name__ == "__main__":
    try:
        prometheus_programs()
    except CannotBuild as lack:
        say_on_stderr(str(lack))
        sys.exit(1)
