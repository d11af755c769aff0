"""DELs that came while the agent was away: the plugin leaves a note for each, and the agent carries them out.

A note is a file beside the socket, named `<container id>@<interface>`; its content is the body of the request that
could not be made (plugin/PROTOCOL.md). It is taken away after its DEL is in the journal, so a crash in between carries
it out twice, which changes nothing. What must not happen is that an old DEL undoes a newer ADD of the same sandbox:
before an ADD its note goes first, and an ADD whose note cannot be carried out is refused.

A DEL of a secondary network is written to the cluster, so its note is carried out as soon as the cluster is there, and
not before the agent serves.

A note that says something else than its name frees nothing. It is reported and taken away: the address it may have
meant is found by the collection of leaks.
"""

import asyncio
import errno
from pathlib import Path
from typing import NoReturn, Protocol

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
from podtide.runtime.logging import Logger

DIRECTORY_NAME = "deleted"
_LOOK_EVERY_SECONDS = 5.0


class StuckNote(RetryError):
    """A note cannot be read or taken away, so nobody knows whether its DEL is still to come."""


class Notes(Protocol):
    """Where DELs may lie that were not carried out."""

    def carry_out(self, sandbox: str, interface: str) -> bool:
        """Carry out the note of this sandbox's interface in the node's pool, and answer whether there was one."""
        ...

    async def carry_out_anywhere(self, sandbox: str, interface: str) -> bool:
        """The same, also if the note is a secondary network's, which has to wait for the cluster."""
        ...


class _Note(Struct, frozen=True, kw_only=True):
    """A DEL that was not carried out."""

    path: str
    owner: Owner | None
    """Whom it is about; None when it says something else than its name."""
    stdin: bytes
    is_secondary: bool


class DeletionNotes:
    """The notes in the directory beside the socket, which is made if it is not there."""

    def __init__(
        self, socket: Path, addresses: Addresses, networks: SecondaryNetworks | None = None, *, log: Logger
    ) -> None:
        self._directory = socket.parent / DIRECTORY_NAME
        self._addresses = addresses
        self._networks = networks
        self._log = log
        self._complaints: list[str] = []
        self._one_at_a_time = asyncio.Lock()
        try:
            socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"{self._directory} cannot be made ({error.strerror}), where DELs are left while the agent is away: "
                "correct the socket's path or its permissions"
            ) from error

    def carry_out(self, sandbox: str, interface: str) -> bool:
        """See `Notes.carry_out`. StuckNote if it cannot be told whether there is one, or if it has to wait."""
        note = self._read(f"{sandbox}@{interface}")
        if note is not None and note.is_secondary:
            raise StuckNote(f"the DEL in the note {note.path} waits for the cluster: try again")
        return note is not None and self._carry_out(note)

    async def carry_out_anywhere(self, sandbox: str, interface: str) -> bool:
        """See `Notes.carry_out_anywhere`. StuckNote if it cannot be told whether there is one."""
        return await self._carry_out_anywhere(f"{sandbox}@{interface}")

    def carry_out_all(self) -> None:
        """Carry out every note that needs no cluster. What does not work out is reported, and stays for the next time."""
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
        """Look for notes every few seconds: a plugin that found no answer in time leaves one while the agent lives."""
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
        """The notes there are; a name that begins with a dot is one that is still being written."""
        try:
            return sorted(note.name for note in self._directory.iterdir() if not note.name.startswith("."))
        except OSError as error:
            self._complain([f"{self._directory} cannot be read: {error.strerror}"])
            return []

    def _read(self, name: str) -> _Note | None:
        """The note of that name, if there is one."""
        if "/" in name or "\0" in name:
            return None  # nobody can have left a file of that name
        path = f"{self._directory}/{name}"
        try:
            with open(path, "rb") as note:  # noqa: PTH123 - a Path takes twice as long, and most ADDs find no note
                body = note.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise StuckNote(
                f"the note {path} cannot be read ({error.strerror}): correct that, or remove it"
            ) from error
        try:
            owner, stdin = _understood(name, body)
        except FixError as error:
            self._log.warning(
                "a note was no DEL, and nothing was freed by it", note=repr(name), error=str(error)
            )
            return _Note(path=path, owner=None, stdin=b"", is_secondary=False)
        is_secondary = self._networks is not None and _is_secondary(stdin)
        return _Note(path=path, owner=owner, stdin=stdin, is_secondary=is_secondary)

    def _carry_out(self, note: _Note) -> bool:
        if note.owner is not None:
            self._tell(note.owner, [each.ip for each in self._addresses.delete(note.owner)])
        return self._take_away(note)

    async def _carry_out_anywhere(self, name: str) -> bool:
        note = self._read(name)
        if note is None:
            return False
        async with self._one_at_a_time:
            # Who came first may have carried it out by now, and then an ADD may have followed.
            note = self._read(name)
            if note is None:
                return False
            if self._networks is None or note.owner is None or not note.is_secondary:
                return self._carry_out(note)
            freed = await self._networks.delete(note.owner, read_for_deletion(note.stdin))
            self._tell(note.owner, list(map(str, freed)))
            return self._take_away(note)

    def _take_away(self, note: _Note) -> bool:
        try:
            Path(note.path).unlink(missing_ok=True)
        except OSError as error:
            raise StuckNote(
                f"the note {note.path} cannot be removed ({error.strerror}): correct that"
            ) from error
        return True

    def _tell(self, owner: Owner, addresses: list[str]) -> None:
        self._log.info(
            "carried out a DEL that was left in a note",
            sandbox=owner.sandbox,
            ifname=owner.interface,
            pod=owner.name,
            namespace=owner.namespace,
            addresses=addresses,
        )

    def _complain(self, complaints: list[str]) -> None:
        """Say it once, however often it is tried."""
        if complaints and complaints != self._complaints:
            self._log.warning(
                "cannot carry out the notes of DELs; will go on trying", error="; ".join(complaints)
            )
        self._complaints = complaints


def _understood(name: str, body: bytes) -> tuple[Owner, bytes]:
    """Whom the note is about, and the configuration; FixError when its content is not a DEL of what its name says."""
    environment, stdin = decode_call(body)
    call = parse_environment(environment)
    if call.verb is not Verb.DEL or f"{call.container_id}@{call.ifname}" != name:
        raise InvalidEnvironment(
            f"it is {call.verb} of {call.container_id}@{call.ifname}; a note is a DEL of what its name says"
        )
    return owner_of(call), stdin


def _is_secondary(stdin: bytes) -> bool:
    try:
        return may_have_ranges(stdin)
    except InvalidInput:
        return False  # the note names its sandbox, and that is enough for the node's pool
