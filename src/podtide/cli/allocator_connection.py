"""How a command reaches an allocator: a running one by its URL, or the database itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from podtide.allocator.port import AdministeredAllocator, Allocator, NotAllowed
from podtide.cli.named_file import ExistingFile
from podtide.core.errors import InvalidInput, PodtideError
from podtide.runtime.clock import SystemClock

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = ExistingFile()
_DEADLINE_SECONDS = 3.0
"""A person waits for the answer."""


class Reach(Struct, frozen=True, kw_only=True):
    """Where the allocator is, as the options say."""

    server: str | None
    token_file: Path | None
    ca_file: Path | None
    database: str | None

    def __post_init__(self) -> None:
        if bool(self.server) == bool(self.database):
            raise InvalidInput(
                "say where the subnets are: either --server URL of an allocator, or --database URL"
            )
        if self.database and (self.token_file or self.ca_file):
            raise InvalidInput("--token-file and --ca-file are for --server: a database asks for neither")

    def asked_in_vain(self, error: PodtideError) -> str:
        """That the allocator could not be asked, and which option to correct. It says nothing of others, who go other ways."""
        flag = "--database" if self.database else self._at_fault(error)
        where = "could not ask the allocator" + ("'s database" if self.database else f" at {self.server}")
        return f"{where}: {error}" if flag in str(error) else f"{where} ({error}): correct {flag}"

    def _at_fault(self, error: PodtideError) -> str:
        """The option that said what the error is about: errors name the files that were read."""
        if self.ca_file and str(self.ca_file) in str(error):
            return "--ca-file"
        if isinstance(error, NotAllowed) or (self.token_file and str(self.token_file) in str(error)):
            return "--token-file"
        return "--server"

    def ask_as_administration(self, question: Callable[[AdministeredAllocator], Awaitable[T]]) -> T:
        """The answer to a question that a cluster may not ask."""
        return asyncio.run(self._ask(question))

    def ask(self, question: Callable[[Allocator], Awaitable[T]]) -> T:
        """The answer to one question."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: Callable[[AdministeredAllocator], Awaitable[T]]) -> T:
        async with self.allocator() as allocator:
            return await question(allocator)

    @asynccontextmanager
    async def allocator(self) -> AsyncIterator[AdministeredAllocator]:
        """The allocator, until the context ends."""
        if self.server:
            from podtide.allocator.client import (  # noqa: PLC0415 - only one of the two ways is taken
                AllocatorAddress,
                AllocatorTimeouts,
                HttpAllocator,
            )

            server = AllocatorAddress(url=self.server, token_file=self.token_file, authority=self.ca_file)
            async with HttpAllocator(
                server, timeouts=AllocatorTimeouts(deadline_seconds=_DEADLINE_SECONDS)
            ) as there:
                yield there
        else:
            from podtide.allocator.store import open_allocator  # noqa: PLC0415 - as above

            assert self.database
            async with await open_allocator(self.database, clock=SystemClock()) as here:
                yield here


def reach_options(command: Command) -> Command:
    """Adds the options that say where; the command gets a `Reach` as `reach`."""
    return _with_options(command, may_be_nowhere=False)


def optional_reach_options(command: Command) -> Command:
    """The same for a command that can do without: where no option says anything, it gets None."""
    return _with_options(command, may_be_nowhere=True)


def _with_options(command: Command, *, may_be_nowhere: bool) -> Command:
    @wraps(command)
    def reaching(**given: Any) -> Any:
        where = {option: given.pop(option) for option in Reach.__struct_fields__}
        is_nowhere = may_be_nowhere and all(value is None for value in where.values())
        return command(reach=None if is_nowhere else Reach(**where), **given)

    for option in (
        click.option("--database", metavar="URL", help="The database, where no allocator need run."),
        click.option("--ca-file", type=_FILE, help="Who signs the allocator's certificate, as PEM."),
        click.option("--token-file", type=_FILE, help="The token to show to the allocator."),
        click.option("--server", metavar="URL", help="A running allocator, such as https://allocator:8080."),
    ):
        reaching = option(reaching)
    return reaching  # type: ignore[return-value]  # its options are the command's and these
