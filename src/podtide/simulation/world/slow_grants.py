"""An allocator whose grants take their time, as one behind a cloud's API does: "several seconds", say the design papers."""

import asyncio

from podtide.allocator.interceptor import AllocatorInterceptor, AllocatorOperation, T
from podtide.allocator.port import Allocator


class SlowGrants(AllocatorInterceptor):
    """The Allocator port, with every `put_container` delayed by so many seconds."""

    def __init__(self, inner: Allocator, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Delay a grant, and carry it out even if its caller is cancelled meanwhile; pass everything else on."""
        if request.verb != "put_container":
            return await request.send(self._inner)
        await asyncio.sleep(self._seconds)
        return await asyncio.shield(request.send(self._inner))
