"""DELs that came while the agent was away: the plugin leaves a note for each, and the agent carries them out.

A note is a file beside the socket, named `<container id>@<interface>`; its content is the body of the request that
could not be made (plugin/PROTOCOL.md). It is taken away after its DEL is in the journal, so a crash in between carries
it out twice, which changes nothing. What must not happen is that an old DEL undoes a newer ADD of the same sandbox:
before an ADD its note goes first, and an ADD whose note cannot be carried out is refused.

A note that says something else than its name frees nothing. It is reported and taken away: the address it may have
meant is found by the collection of leaks.
"""

import asyncio
import errno
from pathlib import Path
from typing import NoReturn, Protocol

from podtide.agent.owners import owner_of
from podtide.agent.plugin_protocol import decode_call
from podtide.agent.port import Addresses
from podtide.cni.arguments import parse_environment
from podtide.cni.errors import InvalidEnvironment
from podtide.cni.versions import Verb
from podtide.core.errors import FixError, InvalidInput, PodtideError, RetryError
from podtide.core.pool import Owner
from podtide.runtime.logging import Logger

DIRECTORY_NAME = "deleted"
_LOOK_EVERY_SECONDS = 5.0


class StuckNote(RetryError):
    """A note cannot be read or taken away, so nobody knows whether its DEL is still to come."""


class Notes(Protocol):
    """Where DELs may lie that were not carried out."""

    def carry_out(self, sandbox: str, interface: str) -> bool:
        """Carry out the note of this sandbox's interface, and answer whether there was one."""
        ...


class DeletionNotes:
    """The notes in the directory beside the socket, which is made if it is not there."""

    def __init__(self, socket: Path, addresses: Addresses, *, log: Logger) -> None:
        self._directory = socket.parent / DIRECTORY_NAME
        self._addresses = addresses
        self._log = log
        self._complaints: list[str] = []
        try:
            socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"{self._directory} cannot be made ({error.strerror}), where DELs are left while the agent is away: "
                "correct the socket's path or its permissions"
            ) from error

    def carry_out(self, sandbox: str, interface: str) -> bool:
        """Carry out the note of this sandbox's interface; StuckNote if it cannot be told whether there is one."""
        name = f"{sandbox}@{interface}"
        if "/" in name or "\0" in name:
            return False  # nobody can have left a file of that name
        return self._carry_out(name)

    def carry_out_all(self) -> None:
        """Carry out every note there is. What does not work out now is reported, and stays for the next time."""
        complaints = []
        for name in self._names():
            try:
                self._carry_out(name)
            except PodtideError as error:
                complaints.append(str(error))
        self._complain(complaints)

    async def keep_carrying_out(self) -> NoReturn:
        """Look for notes every few seconds: a plugin that found no answer in time leaves one while the agent lives."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
            self.carry_out_all()

    def _names(self) -> list[str]:
        """The notes there are; a name that begins with a dot is one that is still being written."""
        try:
            return sorted(note.name for note in self._directory.iterdir() if not note.name.startswith("."))
        except OSError as error:
            self._complain([f"{self._directory} cannot be read: {error.strerror}"])
            return []

    def _carry_out(self, name: str) -> bool:
        path = f"{self._directory}/{name}"
        try:
            with open(path, "rb") as note:  # noqa: PTH123 - a Path takes twice as long, and most ADDs find no note
                body = note.read()
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return False
            raise StuckNote(
                f"the note {path} cannot be read ({error.strerror}): correct that, or remove it"
            ) from error
        try:
            owner = _owner(name, body)
        except FixError as error:
            self._log.warning(
                "a note was no DEL, and nothing was freed by it", note=repr(name), error=str(error)
            )
        else:
            given = self._addresses.delete(owner)
            self._log.info(
                "carried out a DEL that was left in a note",
                sandbox=owner.sandbox,
                ifname=owner.interface,
                pod=owner.name,
                namespace=owner.namespace,
                addresses=[each.ip for each in given],
            )
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            raise StuckNote(f"the note {path} cannot be removed ({error.strerror}): correct that") from error
        return True

    def _complain(self, complaints: list[str]) -> None:
        """Say it once, however often it is tried."""
        if complaints and complaints != self._complaints:
            self._log.warning(
                "cannot carry out the notes of DELs; will go on trying", error="; ".join(complaints)
            )
        self._complaints = complaints


def _owner(name: str, body: bytes) -> Owner:
    """Whom the note is about; FixError when its content is not a DEL of what its name says."""
    environment, _ = decode_call(body)
    call = parse_environment(environment)
    if call.verb is not Verb.DEL or f"{call.container_id}@{call.ifname}" != name:
        raise InvalidEnvironment(
            f"it is {call.verb} of {call.container_id}@{call.ifname}; a note is a DEL of what its name says"
        )
    return owner_of(call)
