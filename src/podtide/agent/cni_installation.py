"""The node's plugin and primary network, put where its container runtime looks for them.

To a runtime, a configuration list is the word that the node's network works: from then on it starts pods. So nothing is
installed before the agent can serve them, and the list comes last, when the executable it asks for is there. Each
appears by a rename, whole and at once, and what is written beside it meanwhile has a name that no runtime reads. They are
taken away in the other order.

Both directories are shared with other programs. A file of ours is known by what it says: the plugin names the agent's
socket, the list names our IPAM. Whatever else is found under these names is somebody's, and stays.
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
"""The name under which networks that were made for Whereabouts look for their plugin."""

_PLUGIN_MARK = b"/run/podtide/agent.sock"
_LOOK_EVERY_SECONDS = 30.0


class ForeignFile(FixError):
    """What is there is not podtide's to replace."""


class RuntimeDirectories(Struct, frozen=True, kw_only=True):
    """Where a node's runtime looks for plugins and for networks."""

    plugins: Path
    networks: Path | None
    """None where the primary network is another program's."""


class Installation(Struct, frozen=True, kw_only=True):
    """What to install where."""

    where: RuntimeDirectories
    plugin: Path
    """The executable to copy."""
    network: PrimaryNetwork
    for_whereabouts: bool = False
    """Whether the plugin is to be there under Whereabouts' name, too."""


async def keep_installed(installation: Installation, ready: asyncio.Event, log: Logger) -> NoReturn:
    """Install once the agent is ready, and again what somebody took away or a full disk refused."""
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
    """Put in place what is not there as it should be, and answer what that was. ForeignFile if another's is there."""
    where, executable = installation.where, read_plugin(installation.plugin)
    wanted = [(_plugin(where, PLUGIN), executable)]
    if installation.for_whereabouts:
        wanted.append((_plugin(where, PLUGIN_FOR_WHEREABOUTS), executable))
    if where.networks is not None:
        wanted.append((_conflist(where.networks), render_conflist(installation.network)))
    return [place.path for place, content in wanted if place.put(content)]


def uninstall(where: RuntimeDirectories) -> Iterator[Path]:
    """Take away what is podtide's, and answer what that was."""
    places = [_plugin(where, PLUGIN_FOR_WHEREABOUTS), _plugin(where, PLUGIN)]
    if where.networks is not None:
        places.insert(0, _conflist(where.networks))
    for place in places:
        if place.clear():
            yield place.path


def read_plugin(path: Path) -> bytes:
    """The plugin's executable, if that is what it is."""
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
    """A file in a directory that others use, too."""

    directory: Path
    name: str
    mode: int
    is_ours: Callable[[bytes], bool]

    @property
    def path(self) -> Path:
        return self.directory / self.name

    def put(self, content: bytes) -> bool:
        """Have this content there; whether that took a write."""
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
        """Have nothing of ours there; whether there was something."""
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
