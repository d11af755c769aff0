"""What a run came to, and how docs/benchmarks.md tells it."""

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

from msgspec import Struct

from cni_programs import WHEREABOUTS
from control_plane.versions import MODULE, pinned
from peers.contenders import Contender
from peers.figures import Figure, requests_text
from peers.line_up import HOST_LOCAL
from peers.results import Result
from peers.sizes import Sizes
from peers.table import markdown, pairs

_CHECKED = "In every turn the addresses of all pods were checked to be different, and all pools to be empty after the DELs"
_PACKAGES = "/usr/bin/dpkg-query"


class Outcome(Struct, frozen=True):
    """A run, by the names of contenders."""

    contenders: Sequence[Contender]
    sizes: Sizes
    figures: Mapping[str, list[Figure]]
    results: dict[str, Mapping[str, Result]]
    """By load, and then by contender."""

    @property
    def faults(self) -> list[str]:
        """What was not as it must be, and whose it is."""
        return [
            f"{name}, {load}: {fault}"
            for load, results in self.results.items()
            for name, result in results.items()
            for fault in result.faults
        ]


def section(outcome: Outcome) -> Iterator[str]:
    """The tables of all pairs, and what an ADD asks for."""
    for pair in pairs(outcome.contenders):
        yield from markdown(pair, outcome.figures)
        yield ""
    yield "What one ADD asks of the API server, by verb and resource:"
    yield ""
    one = outcome.results[outcome.sizes.one.name]
    yield from (f"- {each}" for each in requests_text({name: result.adds for name, result in one.items()}))
    yield ""
    yield f"{_CHECKED}{'. They were but for:' if outcome.faults else ': they were.'}"
    yield ""
    yield from (f"- {fault}" for fault in outcome.faults)
    if outcome.faults:
        yield ""


def conditions(load_before: float, seconds: float) -> Iterator[str]:
    """On what the figures were taken."""
    kubernetes = pinned((MODULE / "go.mod").read_text())
    yield (
        f"Of one run of the command, {seconds / 60:.0f} minutes on {os.cpu_count()} cores ({platform.machine()}), "
        f"with a load average of {load_before:.1f} before it: kube-apiserver {kubernetes.kubernetes}, "
        f"etcd {kubernetes.etcd} (without fsync), Whereabouts {WHEREABOUTS.pins.program}, "
        f"host-local of {_package_of_host_local()}, podtide {version('podtide')} on Python {platform.python_version()}."
    )
    yield ""


def _package_of_host_local() -> str:
    """Its name and version, by Debian."""
    owner = _ask_dpkg("--search", str(HOST_LOCAL)).partition(":")[0]
    return _ask_dpkg("--show", "--showformat=${Package} ${Version}", owner) if owner else "no known package"


def _ask_dpkg(*question: str) -> str:
    try:
        asked = subprocess.run([_PACKAGES, *question], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return asked.stdout.strip()
