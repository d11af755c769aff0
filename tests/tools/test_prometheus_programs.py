"""Prometheus comes from Debian's package, unpacked once outside the repository; where it cannot be had, it says why."""

from pathlib import Path

import pytest

from control_plane.errors import CannotBuild
from prometheus_programs import prometheus_programs

# Downloads by naming what it was asked for, and extracts by making the two programs.
APT_GET = '#!/bin/sh\n[ "$1" = update ] && exit 0\necho "$*" >> {calls}\n: > prometheus.deb\n'
DPKG = '#!/bin/sh\n/bin/mkdir -p "$3/usr/bin"\n: > "$3/usr/bin/prometheus"\n: > "$3/usr/bin/promtool"\n'


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of all commands of a machine with an empty cache."""
    commands = tmp_path / "commands"
    commands.mkdir()
    monkeypatch.setenv("PATH", str(commands))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return commands


def command(commands: Path, name: str, text: str) -> None:
    (commands / name).write_text(text)
    (commands / name).chmod(0o755)


def test_the_package_is_fetched_once_and_not_installed(commands: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    command(commands, "apt-get", APT_GET.format(calls=calls))
    command(commands, "dpkg", DPKG)
    said: list[str] = []
    programs = prometheus_programs(said.append)
    assert prometheus_programs(said.append) == programs
    assert programs.promtool.is_relative_to(tmp_path / "cache")
    assert programs.prometheus.exists()
    assert calls.read_text() == "download --quiet prometheus\n"
    assert len(said) == 1


def test_programs_that_are_installed_are_used(commands: Path) -> None:
    for name in ("prometheus", "promtool"):
        command(commands, name, "#!/bin/sh\n")
    assert prometheus_programs().promtool == commands / "promtool"


def test_a_machine_without_apt_is_told_what_to_install(commands: Path) -> None:
    with pytest.raises(CannotBuild, match="install prometheus and promtool"):
        prometheus_programs()
    assert not list(commands.iterdir())


def test_half_a_package_is_never_taken_for_a_whole_one(commands: Path, tmp_path: Path) -> None:
    command(commands, "apt-get", APT_GET.format(calls=tmp_path / "calls"))
    command(commands, "dpkg", "#!/bin/sh\necho no space left >&2\nexit 2\n")
    for _ in range(2):
        with pytest.raises(CannotBuild, match="no space left"):
            prometheus_programs(lambda _line: None)
