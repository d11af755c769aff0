"""Requests to one pool: assign an address to a sandbox's interface, free what it has, or compare pool and record."""

import asyncio
from typing import Generic, TypeVar

from podtide.core.networks.allocations import Allocation
from podtide.core.networks.reservations import Key
from podtide.core.networks.round import Placed
from podtide.core.ranges import IPAddress
from podtide.networks.network import NetworkRange

T = TypeVar("T")


class PoolRequest(Generic[T]):
    """A request that waits for a round, and its answer."""

    def __init__(self, key: Key, wanted: NetworkRange, *, guarded: bool) -> None:
        self.key = key
        self.wanted = wanted
        self.guarded = guarded
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.answer.add_done_callback(_retrieve)

    @property
    def is_over(self) -> bool:
        """Whether it is answered, or its caller has given up."""
        return self.answer.done()

    def succeed(self, answer: T) -> None:
        """It is done, and written."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        """It failed: raise this in the caller."""
        if not self.answer.done():
            self.answer.set_exception(error)


class Adding(PoolRequest[Placed]):
    """An ADD: the Node must be the one with this uid."""

    def __init__(self, holder: Allocation, wanted: NetworkRange, *, guarded: bool, node_uid: str) -> None:
        super().__init__((holder.id, holder.ifname), wanted, guarded=guarded)
        self.holder = holder
        self.node_uid = node_uid


class Releasing(PoolRequest[tuple[IPAddress, ...]]):
    """A DEL."""


class Mending(PoolRequest[float | None]):
    """A comparison of the pool with what sandboxes have. The answer is in how many seconds to repeat it, if at all."""

    def __init__(self, wanted: NetworkRange) -> None:
        super().__init__(("", ""), wanted, guarded=False)


def _retrieve(answer: "asyncio.Future[T]") -> None:
    if not answer.cancelled():
        answer.exception()  # marks it as retrieved: asyncio would log an error whose caller is gone
