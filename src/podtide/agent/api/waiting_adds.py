"""ADDs that found no free address and wait for the one that is on its way, first come first served.

A sandbox's interface is in the queue once, however many calls wait for it. A call that stops waiting leaves the queue:
nothing is assigned to a caller that is gone. One that wants particular addresses does not hold up the others.
"""

import asyncio

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.port import Overtaken
from podtide.core.errors import PodtideError
from podtide.core.pool.pool import Address, Owner

Key = tuple[str, str]


class _Waiter:
    """A sandbox's interface in the queue, with the number of calls that wait for it."""

    def __init__(self, owner: Owner, wanted: tuple[str, ...]) -> None:
        self.owner = owner
        self.wanted = wanted
        self.callers = 0
        self.answer: asyncio.Future[tuple[Address, ...]] = asyncio.get_running_loop().create_future()


class Place:
    """The place of one call in the queue."""

    def __init__(self, queue: "WaitingAdds", key: Key, waiter: _Waiter) -> None:
        self._queue = queue
        self._key = key
        self._waiter = waiter
        self._is_left = False
        waiter.callers += 1

    async def wait(self, seconds: float) -> tuple[Address, ...] | None:
        """The addresses, or None when the time is over. Overtaken when a DEL came."""
        answer = self._waiter.answer
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(answer)
        except TimeoutError:
            return answer.result() if answer.done() else None
        finally:
            self.leave()

    def leave(self) -> None:
        """Give up the place. The last call to leave takes its sandbox out of the queue. Idempotent."""
        if not self._is_left:
            self._is_left = True
            self._waiter.callers -= 1
            self._queue.remove_if_unused(self._key, self._waiter)


class WaitingAdds:
    """The queue. A sandbox in it counts as demand."""

    def __init__(self, journaled: JournaledPool) -> None:
        self._journaled = journaled
        self._waiters: dict[Key, _Waiter] = {}

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def is_ahead_of(self, wanted: tuple[str, ...]) -> bool:
        """Whether an ADD in the queue must be served before one that wants these: not if either wants particular ones."""
        return bool(self._waiters) and not wanted and any(not each.wanted for each in self._waiters.values())

    def join(self, owner: Owner, wanted: tuple[str, ...]) -> Place:
        """A place at the end of the queue, or with the call of the same sandbox and interface that waits already."""
        key = (owner.sandbox, owner.interface)
        waiter = self._waiters.get(key)
        if waiter is None:
            waiter = self._waiters[key] = _Waiter(owner, wanted)
            self._journaled.asked(owner)
        return Place(self, key, waiter)

    def serve(self) -> None:
        """Assign free addresses in the order of the queue, as far as they go."""
        is_dry = False
        for key, waiter in tuple(self._waiters.items()):
            if is_dry and not waiter.wanted:
                continue
            try:
                addresses = self._journaled.assign(waiter.owner, waiter.wanted)
            except PodtideError as error:
                self._remove(key).answer.set_exception(error)
                continue
            if addresses is not None:
                self._remove(key).answer.set_result(addresses)
            elif not waiter.wanted:
                is_dry = True

    def overtake(self, key: Key) -> None:
        """A DEL came for the sandbox's interface: its ADD fails with Overtaken."""
        if key in self._waiters:
            sandbox, interface = key
            self._remove(key).answer.set_exception(
                Overtaken(f"sandbox {sandbox} ({interface}) was deleted while its ADD waited for an address")
            )

    def remove_if_unused(self, key: Key, waiter: _Waiter) -> None:
        """Take a sandbox's interface out of the queue if no call waits for it any more."""
        if not waiter.callers and self._waiters.get(key) is waiter:
            self._remove(key)

    def _remove(self, key: Key) -> _Waiter:
        waiter = self._waiters.pop(key)
        self._journaled.gave_up(waiter.owner)
        # Where no caller is left to receive an error, asyncio would log it as never retrieved.
        waiter.answer.add_done_callback(_retrieve)
        return waiter


def _retrieve(answer: "asyncio.Future[tuple[Address, ...]]") -> None:
    if not answer.cancelled():
        answer.exception()
