"""What the allocator says of its subnets, asked again and again while `podtide top` is looked at."""

import asyncio

from podtide.allocator.port import Allocator, AllocatorError, Subnet


class AskedAllocator:
    """The last answer. Without an allocator there is none, and nothing to complain of."""

    def __init__(self, allocator: Allocator | None) -> None:
        self.subnets: tuple[Subnet, ...] = ()
        """Empty while it does not answer: an old number would look like a true one."""
        self.complaint = ""
        """Why it does not answer now."""
        self._allocator = allocator

    async def run(self, interval_seconds: float) -> None:
        """Ask until cancelled."""
        while True:
            await self.ask()
            await asyncio.sleep(interval_seconds)

    async def ask(self) -> None:
        """Ask once."""
        if self._allocator is None:
            return
        try:
            self.subnets, self.complaint = await self._allocator.list_subnets(), ""
        except AllocatorError as error:
            self.subnets, self.complaint = (), f"RESERVED is what objects show: {error}"
