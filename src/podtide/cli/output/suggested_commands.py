"""podtide's own commands as they are printed for people to copy, with the path and the flags that make them work."""

import shlex
import shutil
import sys
from pathlib import Path

from msgspec import Struct

from podtide.cli.connections.allocator import AllocatorLocation
from podtide.cli.connections.cluster import ClusterConnection
from podtide.cli.shell.program_name import PLUGIN, program_name, shown_name

_NAME = "podtide"


def own_command() -> str:
    """How to start this program: by its name if the shell finds it in PATH, else by its path."""
    started = Path(sys.argv[0])
    if program_name() == PLUGIN:
        return shown_name()
    found = shutil.which(_NAME)
    if found and started.name == _NAME and Path(found).resolve() == started.resolve():
        return _NAME
    if started.name == _NAME and started.is_file():
        return shlex.quote(str(started.resolve()))
    return f"{shlex.quote(sys.executable)} -m {_NAME}"


class SuggestedCommands(Struct, frozen=True, kw_only=True):
    """Commands with the flags for the same cluster and the same allocator as the command that prints them."""

    podtide: str = _NAME
    cluster_flags: str = ""
    allocator_flags: str = ""
    """Empty if no option says where the allocator is."""

    def check(self) -> str:
        """The command that checks the cluster, and the allocator if it is known."""
        return " ".join(filter(None, (self.podtide, "check", self.cluster_flags, self.allocator_flags)))

    def grow(self, network: str, subnet: str) -> str:
        """The command that grows a subnet; words in capitals, such as CIDR, are for a person to fill in."""
        where = self.allocator_flags or "--allocator URL"
        return f"{self.podtide} subnet grow {network or 'NETWORK'} {subnet} CIDR {where}"


def own_commands(there: ClusterConnection, location: AllocatorLocation | None) -> SuggestedCommands:
    """The commands for the cluster and the allocator that the options name."""
    cluster = _flags(("--kubeconfig", there.kubeconfig), ("--context", there.context))
    if location is None:
        return SuggestedCommands(podtide=own_command(), cluster_flags=cluster)
    allocator = _flags(
        ("--allocator", location.url),
        ("--token-file", location.token_file),
        ("--ca-file", location.ca_file),
        ("--database", location.database),
    )
    return SuggestedCommands(podtide=own_command(), cluster_flags=cluster, allocator_flags=allocator)


def kubectl_command(there: ClusterConnection) -> str:
    """How to start kubectl for the same cluster."""
    flags = _flags(("--kubeconfig", there.kubeconfig), ("--context", there.context))
    return f"kubectl {flags}" if flags else "kubectl"


def _flags(*options: tuple[str, object]) -> str:
    return " ".join(f"{flag} {shlex.quote(str(value))}" for flag, value in options if value)
