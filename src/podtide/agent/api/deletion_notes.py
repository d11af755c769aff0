"""DELs that the plugin called while the agent did not answer: the plugin leaves a note for each, the agent carries it out.

A note is a file in the directory `deleted` beside the socket, named `<container id>@<interface>`; its content is the body
of the request that was not answered (plugin/PROTOCOL.md). It is removed after its DEL is in the journal, so after a crash
in between the DEL is carried out again, which is idempotent. An old DEL must not undo a newer ADD of the same sandbox:
before an ADD its note is carried out, and an ADD whose note cannot be carried out is refused.

A DEL of a secondary network is written to the cluster, so its note is carried out as soon as the cluster can be reached,
and not before the agent serves.

A note whose content is not a DEL of what its name says frees nothing. It is logged and removed: the address it may have
meant is found by the leak collector.
"""

import asyncio
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from podtide.agent.api.plugin_protocol import decode_call, owner_of
from podtide.agent.networks.configuration_cache import may_have_ranges, read_for_deletion
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.port import Addresses
from podtide.cni.arguments import parse_environment
from podtide.cni.errors import InvalidEnvironment
from podtide.cni.versions import Verb
from podtide.core.errors import FixError, InvalidInput, PodtideError, RetryError
from podtide.core.pool.pool import Owner
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import Disk, DiskError
from podtide.runtime.logging import Logger

DIRECTORY_NAME = "deleted"
_LOOK_EVERY_SECONDS = 5.0
_LONGEST_NAME_BYTES = 255
"""Of a file, on Linux."""


class StuckNote(RetryError):
    """A note cannot be read, removed or carried out yet, so its DEL may still be to come."""


class _Note(Struct, frozen=True, kw_only=True):
    """A DEL that was not carried out."""

    name: str
    owner: Owner | None
    """The sandbox's interface; None when the content is not a DEL of what the name says."""
    stdin: bytes
    is_secondary: bool


def note_name(sandbox: str, interface: str) -> str:
    """The name of the file in which the plugin leaves the DEL of this sandbox's interface."""
    return f"{sandbox}@{interface}"


class DeletionNotes:
    """The notes on a disk."""

    def __init__(
        self, disk: Disk, addresses: Addresses, networks: SecondaryNetworks | None = None, *, log: Logger
    ) -> None:
        self._disk = disk
        self._addresses = addresses
        self._networks = networks
        self._log = log
        self._complaints: list[str] = []
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def beside(
        cls, socket: Path, addresses: Addresses, networks: SecondaryNetworks | None = None, *, log: Logger
    ) -> "DeletionNotes":
        """The notes beside the agent's socket. Their directory and the socket's are made for the owner alone."""
        directory = socket.parent / DIRECTORY_NAME
        try:
            socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"{directory} cannot be made ({error.strerror}), where DELs are left while the agent is away: "
                "correct the socket's path or its permissions"
            ) from error
        return cls(DirectoryDisk(directory), addresses, networks, log=log)

    def carry_out(self, sandbox: str, interface: str) -> bool:
        """Carry out the note of this sandbox's interface in the node's pool. Returns whether there was one.

        StuckNote if it cannot be read, or belongs to a secondary network and has to wait for the cluster.
        """
        note = self._read(note_name(sandbox, interface))
        if note is None:
            return False
        if note.is_secondary:
            raise StuckNote(f"the DEL in the note {note.name} waits for the cluster: try again")
        self._carry_out(note)
        return True

    async def carry_out_anywhere(self, sandbox: str, interface: str) -> bool:
        """`carry_out`, which also waits for the cluster if the note belongs to a secondary network."""
        return await self._carry_out_anywhere(note_name(sandbox, interface))

    def carry_out_all(self) -> None:
        """Carry out every note that needs no cluster. What fails is logged, and stays for the next time."""
        complaints = []
        for name in self._names():
            try:
                note = self._read(name)
                if note is not None and not note.is_secondary:
                    self._carry_out(note)
            except PodtideError as error:
                complaints.append(str(error))
        self._complain(complaints)

    async def keep_carrying_out(self) -> NoReturn:
        """Carry out notes every few seconds: a plugin that got no answer in time leaves one while the agent runs."""
        while True:
            complaints = []
            for name in self._names():
                try:
                    await self._carry_out_anywhere(name)
                except PodtideError as error:
                    complaints.append(str(error))
            self._complain(complaints)
            await asyncio.sleep(_LOOK_EVERY_SECONDS)

    def _names(self) -> list[str]:
        try:
            return self._disk.names()
        except DiskError as error:
            self._complain([f"the notes cannot be read: {error}"])
            return []

    def _read(self, name: str) -> _Note | None:
        """The note of that name, if there is one."""
        if "/" in name or "\0" in name or len(name.encode(errors="surrogateescape")) > _LONGEST_NAME_BYTES:
            return None  # no file can have that name
        try:
            body = self._disk.read(name)
        except DiskError as error:
            raise StuckNote(f"the note {name} cannot be read: {error}; correct that, or remove it") from error
        if body is None:
            return None
        try:
            owner, stdin = _decode(name, body)
        except FixError as error:
            self._log.warning(
                "removed a deletion note that is not a DEL of what its name says; nothing was freed",
                note=repr(name),
                error=str(error),
            )
            return _Note(name=name, owner=None, stdin=b"", is_secondary=False)
        is_secondary = self._networks is not None and _is_secondary(stdin)
        return _Note(name=name, owner=owner, stdin=stdin, is_secondary=is_secondary)

    def _carry_out(self, note: _Note) -> None:
        if note.owner is not None:
            self._log_freed(note.owner, [each.ip for each in self._addresses.delete(note.owner)])
        self._remove(note)

    async def _carry_out_anywhere(self, name: str) -> bool:
        if self._read(name) is None:
            return False
        async with self._one_at_a_time:
            # Read again: another caller may have carried it out meanwhile, and then an ADD may have followed.
            note = self._read(name)
            if note is None:
                return False
            if self._networks is None or note.owner is None or not note.is_secondary:
                self._carry_out(note)
                return True
            freed = await self._networks.delete(note.owner, read_for_deletion(note.stdin))
            self._log_freed(note.owner, list(map(str, freed)))
            self._remove(note)
            return True

    def _remove(self, note: _Note) -> None:
        try:
            self._disk.remove(note.name)
        except DiskError as error:
            raise StuckNote(f"the note {note.name} cannot be removed: {error}") from error

    def _log_freed(self, owner: Owner, addresses: list[str]) -> None:
        self._log.info(
            "carried out a DEL that was left in a note",
            sandbox=owner.sandbox,
            ifname=owner.interface,
            pod=owner.name,
            namespace=owner.namespace,
            addresses=addresses,
        )

    def _complain(self, complaints: list[str]) -> None:
        """Log it once, however often it is tried."""
        if complaints and complaints != self._complaints:
            self._log.warning(
                "cannot carry out the notes of DELs; will go on trying", error="; ".join(complaints)
            )
        self._complaints = complaints


def _decode(name: str, body: bytes) -> tuple[Owner, bytes]:
    """The owner and the configuration in a note; FixError when its content is not a DEL of what its name says."""
    environment, stdin = decode_call(body)
    call = parse_environment(environment)
    if call.verb is not Verb.DEL or note_name(call.container_id, call.ifname) != name:
        raise InvalidEnvironment(
            f"it is {call.verb} of {call.container_id}@{call.ifname}; a note is a DEL of what its name says"
        )
    return owner_of(call), stdin


def _is_secondary(stdin: bytes) -> bool:
    try:
        return may_have_ranges(stdin)
    except InvalidInput:
        return False  # the note names its sandbox, and that is enough for the node's pool
