"""How full a subnet is, from memory: however many ask, the database is asked once per refresh.

It is also written down from time to time, where nothing changes too: a flat line is history.
"""

import asyncio
from typing import NoReturn, Protocol

from msgspec import Struct

from podtide.allocator.errors import AllocatorError
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Utilization
from podtide.core.subnet.usage_series import READING_EVERY_SECONDS
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger


class HistoryKeeper(Protocol):
    """An allocator that keeps a history."""

    async def sample(self) -> None:
        """Record how every subnet is used, unless a replica did within the last minute."""
        ...


async def keep_sampling(allocator: HistoryKeeper, log: Logger) -> NoReturn:
    """Record how every subnet is used, without end. Replicas need not coordinate: a recent reading is not repeated."""
    while True:
        await asyncio.sleep(READING_EVERY_SECONDS)
        try:
            await allocator.sample()
        except AllocatorError as error:
            log.warning("utilization was not recorded", reason=str(error))


class _Reading(Struct, frozen=True):
    """An answer that is there or in flight, and until when it is valid."""

    answer: "asyncio.Task[tuple[Utilization, ...]]"
    good_until: float


class UtilizationCache:
    """Readings no older than `refresh_seconds`."""

    def __init__(self, allocator: Allocator, clock: Clock, refresh_seconds: float) -> None:
        self._allocator = allocator
        self._clock = clock
        self._refresh_seconds = refresh_seconds
        self._readings: dict[tuple[str, str], _Reading] = {}

    async def read(self, network: str, name: str) -> tuple[Utilization, ...]:
        """The subnet's utilization, at most as old as the cache allows. Concurrent readers share one query."""
        key = (network, name)
        reading = self._readings.get(key)
        if reading is None or self._clock.monotonic() >= reading.good_until:
            answer = asyncio.ensure_future(self._ask(network, name))
            reading = _Reading(answer, self._clock.monotonic() + self._refresh_seconds)
            self._readings[key] = reading
        # Whoever goes away in the meantime must not take the answer from the others.
        return await asyncio.shield(reading.answer)

    def forget(self, network: str, name: str) -> None:
        """Invalidate the subnet's entry, because it changed."""
        self._readings.pop((network, name), None)

    async def _ask(self, network: str, name: str) -> tuple[Utilization, ...]:
        try:
            return await self._allocator.utilization(network, name)
        except BaseException:
            self.forget(network, name)
            raise
