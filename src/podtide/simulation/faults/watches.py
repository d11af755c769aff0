"""Watches that break, fall behind, or cannot be resumed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random

from podtide.cluster.port import Gone, R, Unavailable, WatchEvent
from podtide.simulation.faults.line_fault import WatchFault, Weather

_MEAN_LIFE_SECONDS = 20.0
_LATEST_SECONDS = 3.0


class DroppedWatch(WatchFault):
    """A watch whose connection breaks, or which the server ends, as it does every few minutes."""

    name = "dropped-watch"
    rate = 0.5

    async def befall(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, weather: Weather
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """End after some time, in good order or not."""
        ends_at = asyncio.get_running_loop().time() + chance.expovariate(1 / _MEAN_LIFE_SECONDS)
        breaks = chance.random() < 0.5  # noqa: PLR2004 - one as likely as the other
        async with aclosing(events):
            while True:
                try:
                    async with asyncio.timeout_at(ends_at if weather.is_bad else None):
                        event = await anext(events)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    if breaks:
                        raise Unavailable("the watch's connection broke") from None
                    return
                yield event


class GoneWatch(WatchFault):
    """410: the server has compacted its history and cannot resume the watch."""

    name = "gone"
    rate = 0.1

    async def befall(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, weather: Weather
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """Refuse to begin."""
        del chance, weather
        await events.aclose()
        nothing: tuple[WatchEvent[R], ...] = ()
        for event in nothing:
            yield event
        raise Gone("too old resource version: list anew")


class LateWatch(WatchFault):
    """A watch that is behind: an API server with a slow cache. The order is kept."""

    name = "late-watch"
    rate = 0.3

    async def befall(
        self, events: AsyncGenerator[WatchEvent[R], None], chance: Random, weather: Weather
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """Hand on every event some time after it came."""
        longest = chance.uniform(0.0, _LATEST_SECONDS)
        async with aclosing(events):
            async for event in events:
                if weather.is_bad:
                    await asyncio.sleep(chance.uniform(0.0, longest))
                yield event
