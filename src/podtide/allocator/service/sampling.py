"""Utilization is written down from time to time, also where nothing changes: a flat line is history too."""

import asyncio
from typing import NoReturn, Protocol

from podtide.allocator.errors import AllocatorError
from podtide.runtime.logging import Logger

EVERY_SECONDS = 60.0


class HistoryKeeper(Protocol):
    """An allocator that keeps a history."""

    async def sample(self) -> None:
        """Record every subnet's utilization, unless that was done a moment ago."""
        ...


async def keep_sampling(allocator: HistoryKeeper, log: Logger) -> NoReturn:
    """Sample every subnet's utilization, without end. Replicas need not coordinate: a recent sample is not repeated."""
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        try:
            await allocator.sample()
        except AllocatorError as error:
            log.warning("utilization was not recorded", reason=str(error))
