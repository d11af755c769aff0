"""An allocator whose grants take their time, as one behind a cloud's API does: "several seconds", say the design papers."""

import asyncio

from podtide.allocator.port import AllocatedContainer, Allocator, Wish
from podtide.runtime.clock import Clock
from podtide.simulation.trace import Trace
from podtide.simulation.world.recording import RecordingAllocator


class SlowGrants(RecordingAllocator):
    """The Allocator port as one program uses it, each change of what a node holds so many seconds late."""

    def __init__(self, inner: Allocator, program: str, seconds: float, *, clock: Clock, trace: Trace) -> None:
        super().__init__(inner, program, clock=clock, trace=trace)
        self._seconds = seconds

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """See `Allocator.put_container`."""
        await asyncio.sleep(self._seconds)
        return await super().put_container(wish)
