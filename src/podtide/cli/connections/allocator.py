"""How a command reaches an allocator: a running one by its URL (--allocator), or its database (--database)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from podtide.allocator.errors import NotAllowed
from podtide.allocator.port import AdministeredAllocator, Allocator
from podtide.cli.options.paths import ExistingFile
from podtide.core.errors import InvalidInput, PodtideError
from podtide.runtime.clock import SystemClock

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = ExistingFile()
_OPTIONS = ("url", "token_file", "ca_file", "database")
_DEADLINE_SECONDS = 3.0
"""Short, because a person waits for the answer."""


class AllocatorLocation(Struct, frozen=True, kw_only=True):
    """The options that say where the allocator is, checked."""

    url: str | None
    token_file: Path | None
    ca_file: Path | None
    database: str | None
    deadline_seconds: float = _DEADLINE_SECONDS

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.database):
            raise InvalidInput("say where the subnets are: either --allocator URL, or --database URL")
        if self.database and (self.token_file or self.ca_file):
            raise InvalidInput("--token-file and --ca-file are for --allocator: a database asks for neither")

    def waiting(self, seconds: float) -> "AllocatorLocation":
        """The same, but retrying for so long while the allocator does not answer yet."""
        if self.database:
            raise InvalidInput("--wait is for --allocator: a database answers at once")
        return replace(self, deadline_seconds=seconds)

    def asked_in_vain(self, error: PodtideError) -> str:
        """The message that the allocator could not be asked, and which option to correct.

        It says nothing of the controller, which reaches the allocator by other options.
        """
        flag = "--database" if self.database else self._at_fault(error)
        where = "could not ask the allocator" + ("'s database" if self.database else f" at {self.url}")
        return f"{where}: {error}" if flag in str(error) else f"{where} ({error}): correct {flag}"

    def _at_fault(self, error: PodtideError) -> str:
        """The option that the error is about: errors name the files that were read."""
        if self.ca_file and str(self.ca_file) in str(error):
            return "--ca-file"
        if isinstance(error, NotAllowed) or (self.token_file and str(self.token_file) in str(error)):
            return "--token-file"
        return "--allocator"

    def ask_as_administration(self, question: Callable[[AdministeredAllocator], Awaitable[T]]) -> T:
        """Runs a question that needs the administrator's token, and returns the answer."""
        return asyncio.run(self._ask(question))

    def ask(self, question: Callable[[Allocator], Awaitable[T]]) -> T:
        """Runs a question, and returns the answer."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: Callable[[AdministeredAllocator], Awaitable[T]]) -> T:
        async with self.allocator() as allocator:
            return await question(allocator)

    @asynccontextmanager
    async def allocator(self) -> AsyncIterator[AdministeredAllocator]:
        """Yields the allocator, open until the context ends."""
        if self.url:
            from podtide.allocator.client import AllocatorAddress, AllocatorTimeouts, HttpAllocator  # noqa: PLC0415 - only one of the two ways is taken

            server = AllocatorAddress(url=self.url, token_file=self.token_file, authority=self.ca_file)
            async with HttpAllocator(
                server, timeouts=AllocatorTimeouts(deadline_seconds=self.deadline_seconds)
            ) as there:
                yield there
        else:
            from podtide.allocator.store import open_allocator  # noqa: PLC0415 - as above

            assert self.database
            async with await open_allocator(self.database, clock=SystemClock()) as here:
                yield here


def allocator_options(command: Command) -> Command:
    """Adds these options to a command, which gets an `AllocatorLocation` as `location`."""
    return _with_options(command, is_optional=False)


def optional_allocator_options(command: Command) -> Command:
    """The same for a command that works without an allocator: it gets None if none of the options is given."""
    return _with_options(command, is_optional=True)


def _with_options(command: Command, *, is_optional: bool) -> Command:
    @wraps(command)
    def reaching(**given: Any) -> Any:
        where = {option: given.pop(option) for option in _OPTIONS}
        is_unset = is_optional and all(value is None for value in where.values())
        return command(location=None if is_unset else AllocatorLocation(**where), **given)

    for option in (
        click.option(
            "--database",
            metavar="URL",
            help="The allocator's database itself, instead of a running allocator.",
        ),
        click.option("--ca-file", type=_FILE, help="The CA certificate of the allocator, as PEM."),
        click.option("--token-file", type=_FILE, help="The file with the token for the allocator."),
        click.option(
            "--allocator",
            "url",
            metavar="URL",
            help="The URL of a running allocator, such as https://allocator:8080.",
        ),
    ):
        reaching = option(reaching)
    return reaching  # type: ignore[return-value]  # its options are the command's and these
