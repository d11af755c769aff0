"""What the allocator needs of a database, whichever it is."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from podtide.allocator.store.container_writes import SubnetOperation
from podtide.allocator.store.drivers.mark import MarkFile
from podtide.allocator.store.script import Script
from podtide.core.errors import InvalidInput

T = TypeVar("T")


class InvalidDatabaseUrl(InvalidInput):
    """Text that is not the URL of a database."""


class Database(Protocol):
    """Runs scripts, each in a transaction: all of it is on the disk when the answer comes, or nothing is.

    A script is given as a function of the time, because it starts again when a transaction is retried.
    AllocatorUnavailable when the database cannot be reached or does not answer.
    """

    name: str
    """What errors call it; without its password."""
    mark: MarkFile | None
    """What stands beside it; None where a server tells by itself that it went back, or nothing lasts."""

    async def read(self, script: Callable[[float], Script[T]]) -> T:
        """Run a read-only script; it sees one snapshot."""
        ...

    async def write(self, script: Callable[[float], Script[T]]) -> T:
        """Run a script in a transaction of its own."""
        ...

    async def migrate(self, script: Callable[[float], Script[T]]) -> T:
        """`write` a script whose statements may take long."""
        ...

    async def call(self, network: str, subnet: str, call: SubnetOperation[T]) -> T:
        """Carry out an operation in a subnet's transaction, together with others that wait for the same."""
        ...

    async def close(self) -> None:
        """Finish what is in flight, and close the database."""
        ...
