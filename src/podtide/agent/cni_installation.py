"""Installs the CNI plugin and the configuration list of the primary network where the container runtime reads them.

A runtime takes a configuration list as the sign that the node's network works, and starts pods. So nothing is installed
before the agent can serve them, and the list comes last, after the executable that it names. Each file appears by a
rename, whole and at once; the temporary file has a name that no runtime reads. They are removed in the reverse order.

Both directories are shared with other programs. Podtide's own files are recognised by their content: the plugin contains
the path of the agent's socket, the list names podtide as its IPAM. Any other file under these names is left as it is.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from podtide.cni.conflist import IPAM_TYPE, PrimaryNetwork, is_podtide_conflist, render_conflist
from podtide.core.errors import FixError, InvalidInput, PodtideError
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.logging import Logger

CONFLIST = "10-podtide.conflist"
PLUGIN = IPAM_TYPE
PLUGIN_FOR_WHEREABOUTS = "whereabouts"
"""The plugin's name in network configurations that were written for Whereabouts."""

_PLUGIN_MARK = b"/run/podtide/agent.sock"
_LOOK_EVERY_SECONDS = 30.0


class ForeignFile(FixError):
    """A file of another program is in the place of ours."""


class RuntimeDirectories(Struct, frozen=True, kw_only=True):
    """The directories in which a node's runtime looks for plugins and for networks."""

    plugins: Path
    networks: Path | None
    """None where another program provides the primary network."""


class Installation(Struct, frozen=True, kw_only=True):
    """The files to install, and where."""

    where: RuntimeDirectories
    plugin: Path
    """The executable to copy."""
    network: PrimaryNetwork
    for_whereabouts: bool = False
    """Whether to install the plugin under the name of Whereabouts as well."""


async def keep_installed(installation: Installation, ready: asyncio.Event, log: Logger) -> NoReturn:
    """Install once the agent is ready, and again what was removed or could not be written."""
    await ready.wait()
    complaint = ""
    while True:
        try:
            for path in install(installation):
                log.info("installed", path=str(path))
            complaint = ""
        except PodtideError as error:
            if str(error) != complaint:
                complaint = str(error)
                log.warning("cannot install; will go on trying", error=complaint)
        await asyncio.sleep(_LOOK_EVERY_SECONDS)


def install(installation: Installation) -> list[Path]:
    """Install what is missing or differs. Returns the files that were written. ForeignFile if another program's is there."""
    where, executable = installation.where, read_plugin(installation.plugin)
    wanted = [(_plugin(where, PLUGIN), executable)]
    if installation.for_whereabouts:
        wanted.append((_plugin(where, PLUGIN_FOR_WHEREABOUTS), executable))
    if where.networks is not None:
        wanted.append((_conflist(where.networks), render_conflist(installation.network)))
    return [place.path for place, content in wanted if place.put(content)]


def uninstall(where: RuntimeDirectories) -> Iterator[Path]:
    """Remove podtide's files. Returns those that were removed."""
    places = [_plugin(where, PLUGIN_FOR_WHEREABOUTS), _plugin(where, PLUGIN)]
    if where.networks is not None:
        places.insert(0, _conflist(where.networks))
    for place in places:
        if place.clear():
            yield place.path


def read_plugin(path: Path) -> bytes:
    """The content of the plugin's executable. InvalidInput if the file cannot be read or is not the plugin."""
    try:
        executable = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"the plugin {path} cannot be read ({error.strerror}): name the plugin's executable file"
        ) from error
    if not _is_podtide_plugin(executable):
        raise InvalidInput(f"{path} is not podtide's plugin: name the plugin's executable file")
    return executable


class _Place(Struct, frozen=True):
    """A file in a directory that is shared with other programs."""

    directory: Path
    name: str
    mode: int
    is_ours: Callable[[bytes], bool]

    @property
    def path(self) -> Path:
        return self.directory / self.name

    def put(self, content: bytes) -> bool:
        """Write this content. Returns False if the file has it already."""
        disk = DirectoryDisk(self.directory)
        found = disk.read(self.name)
        if found is not None and not self.is_ours(found):
            raise ForeignFile(
                f"{self.path} is another program's, and is left as it is: remove it, or move it away"
            )
        if found == content:
            return False
        disk.replace(self.name, content, mode=self.mode)
        return True

    def clear(self) -> bool:
        """Remove our file. Returns whether there was one."""
        if not self.directory.is_dir():
            return False
        disk = DirectoryDisk(self.directory)
        found = disk.read(self.name)
        if found is None or not self.is_ours(found):
            return False
        disk.remove(self.name)
        return True


def _plugin(where: RuntimeDirectories, name: str) -> _Place:
    return _Place(where.plugins, name, 0o755, _is_podtide_plugin)


def _conflist(networks: Path) -> _Place:
    return _Place(networks, CONFLIST, 0o644, is_podtide_conflist)


def _is_podtide_plugin(executable: bytes) -> bool:
    return _PLUGIN_MARK in executable
