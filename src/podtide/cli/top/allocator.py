"""What the allocator says of its subnets, asked again and again while `podtide top` is looked at."""

import asyncio

from podtide.allocator.port import Allocator, AllocatorError, Subnet
from podtide.cli.top.overview import Overview, ReservedBy


class PolledAllocator:
    """The last answer. Without an allocator there is none, and nothing to complain of."""

    def __init__(self, allocator: Allocator | None, flag: str = "--server") -> None:
        self.subnets: tuple[Subnet, ...] = ()
        """Empty while it does not answer: an old number would look like a true one."""
        self.complaint = ""
        """Why it does not answer now."""
        self._allocator = allocator
        self._flag = flag
        """What said where it is."""
        self._has_answered = False

    def trouble(self, overview: Overview | None) -> str:
        """Why RESERVED is not the allocator's number, of everything or of some subnets; "" when it is."""
        if self.complaint or not self._has_answered or overview is None:
            return self.complaint
        unknown = sorted(
            line.name for line in overview.subnets if line.reserved_by is not ReservedBy.ALLOCATOR
        )
        if not unknown:
            return ""
        which = f"subnet {unknown[0]}" if len(unknown) == 1 else f"subnets {', '.join(unknown)}"
        return f"RESERVED of {which} is what objects show: the allocator has none of the name; correct {self._flag}"

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
            self._has_answered = True
        except AllocatorError as error:
            self.subnets, self.complaint = (), f"RESERVED is what objects show: {error}"
