"""ADDs that found no free address and wait for the one that is on its way, first come first served.

A sandbox's interface stands in the line once, however many calls ask for it. Whoever stops waiting leaves: nothing is
taken for a caller that is gone. One that wants very particular addresses does not hold up the others.
"""

import asyncio

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.port import Overtaken
from podtide.core.errors import PodtideError
from podtide.core.pool.pool import Address, Owner

Key = tuple[str, str]


class _Waiter:
    """One sandbox's interface, and how many calls wait for it."""

    def __init__(self, owner: Owner, wanted: tuple[str, ...]) -> None:
        self.owner = owner
        self.wanted = wanted
        self.callers = 0
        self.answer: asyncio.Future[tuple[Address, ...]] = asyncio.get_running_loop().create_future()


class WaitingAdds:
    """The line. Whoever stands in it is demand."""

    def __init__(self, journaled: JournaledPool) -> None:
        self._journaled = journaled
        self._waiters: dict[Key, _Waiter] = {}

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def is_ahead_of(self, wanted: tuple[str, ...]) -> bool:
        """Whether somebody in the line must be served first: not before one who wants what they do not get."""
        return not wanted and any(not waiter.wanted for waiter in self._waiters.values())

    async def wait(self, owner: Owner, wanted: tuple[str, ...], seconds: float) -> tuple[Address, ...] | None:
        """Stand in the line. None when the time is over; Overtaken when a DEL came."""
        key = (owner.sandbox, owner.interface)
        waiter = self._waiters.get(key)
        if waiter is None:
            waiter = self._waiters[key] = _Waiter(owner, wanted)
            self._journaled.asked(owner)
        waiter.callers += 1
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(waiter.answer)
        except TimeoutError:
            return waiter.answer.result() if waiter.answer.done() else None
        finally:
            waiter.callers -= 1
            if not waiter.callers and self._waiters.get(key) is waiter:
                self._leave(key)

    def serve(self) -> None:
        """Give what is free to those who wait, as far as it goes."""
        is_dry = False
        for key, waiter in tuple(self._waiters.items()):
            if is_dry and not waiter.wanted:
                continue
            try:
                addresses = self._journaled.assign(waiter.owner, waiter.wanted)
            except PodtideError as error:
                self._leave(key).answer.set_exception(error)
                continue
            if addresses is not None:
                self._leave(key).answer.set_result(addresses)
            elif not waiter.wanted:
                is_dry = True

    def overtake(self, key: Key) -> None:
        """The sandbox's interface is gone: whoever waits for it waits in vain."""
        if key in self._waiters:
            sandbox, interface = key
            self._leave(key).answer.set_exception(
                Overtaken(f"sandbox {sandbox} ({interface}) was deleted while its ADD waited for an address")
            )

    def _leave(self, key: Key) -> _Waiter:
        waiter = self._waiters.pop(key)
        self._journaled.gave_up(waiter.owner)
        # If no caller is left to hear of an error, nobody was meant to.
        waiter.answer.add_done_callback(_retrieve)
        return waiter


def _retrieve(answer: "asyncio.Future[tuple[Address, ...]]") -> None:
    if not answer.cancelled():
        answer.exception()
