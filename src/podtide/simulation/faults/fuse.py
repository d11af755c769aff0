"""A fuse in a program's lines: it blows at a given request, and the program is to end there.

A request is the only place where a program's doings and the world's can come apart. So a crash is aimed at one of the
next requests, just before it is sent or just after it was carried out, and not left to when the program happens to wait.
"""

import asyncio

from podtide.simulation.faults.line_fault import Send, T


class Fuse:
    """Blows at the request number `requests` from now. Whoever waits for `blown` then ends the program."""

    def __init__(self, requests: int, *, after: bool) -> None:
        self.blown = asyncio.Event()
        self._left = requests
        self._after = after

    async def pass_through(self, send: Send[T]) -> T:
        """Carry out a request. Where the fuse blows, nothing comes back any more."""
        self._left -= 1
        if self._left > 0:
            return await send()
        if self._left == 0 and self._after:
            await send()
        self.blown.set()
        forever: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        return await forever
