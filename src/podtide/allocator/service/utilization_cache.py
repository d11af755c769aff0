"""How full a subnet is, from memory: however many ask, the database is asked once per refresh."""

import asyncio

from msgspec import Struct

from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Utilization
from podtide.runtime.clock import Clock


class _Reading(Struct, frozen=True):
    """An answer that is there or on its way, and until when it is good."""

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
        """See `Allocator.utilization`. Those who ask while the database is being asked share its answer."""
        key = (network, name)
        reading = self._readings.get(key)
        if reading is None or self._clock.monotonic() >= reading.good_until:
            answer = asyncio.ensure_future(self._ask(network, name))
            reading = _Reading(answer, self._clock.monotonic() + self._refresh_seconds)
            self._readings[key] = reading
        # Whoever goes away in the meantime must not take the answer from the others.
        return await asyncio.shield(reading.answer)

    def forget(self, network: str, name: str) -> None:
        """The subnet changed: the next to ask gets it as it is now."""
        self._readings.pop((network, name), None)

    async def _ask(self, network: str, name: str) -> tuple[Utilization, ...]:
        try:
            return await self._allocator.utilization(network, name)
        except BaseException:
            self.forget(network, name)
            raise
