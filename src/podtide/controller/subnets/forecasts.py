"""The forecasts of the subnets that nodes of this cluster use, each made from the allocator's history once an hour.

One call for each subnet and hour, spread over the hour by the names of subnet and cluster: a new leader does not ask for
all of them at once, and clusters that share an allocator do not ask together. A subnet that got or lost a CIDR is
forecast again at once, from the days that were read before.

A forecast is for people. Where the allocator does not answer, or is of a release that has no such history, there is none,
or the last one stays, and nothing else waits for it.
"""

from zlib import crc32

from msgspec import Struct

from podtide.allocator.errors import AllocatorError
from podtide.allocator.recorded_days import RecordedDays, day_of, days_since, recorded_days
from podtide.allocator.subnets import Subnet
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.allocator_outage import with_deadline
from podtide.controller.counts import RunOutCounts
from podtide.controller.subnets.known_subnets import KnownSubnets
from podtide.controller.subnets.runs_out import SubnetForecast
from podtide.controller.term_context import TermContext
from podtide.core.errors import InvalidInput
from podtide.core.forecast.usage_forecast import forecast_usage
from podtide.core.subnet.exhaustion import Thresholds

EVERY_SECONDS = 3600.0
FIRST_SECONDS = 300.0
"""A new leader has more urgent things to do."""
_SPREAD_SECONDS = 600.0


class _ReadDays(Struct, frozen=True):
    """What the allocator remembered, and when it was asked."""

    days: RecordedDays
    at: float


class SubnetForecasts:
    """The latest forecast of each subnet."""

    def __init__(self, context: TermContext, subnets: KnownSubnets, queue: WorkQueue[str]) -> None:
        self._context = context
        self._subnets = subnets
        self._queue = queue
        self._seen: dict[str, Subnet] = {}
        self._read: dict[str, _ReadDays] = {}
        self._latest: dict[str, SubnetForecast] = {}
        self._is_told = False

    def latest(self, name: str) -> SubnetForecast | None:
        """The latest forecast; None until there is one."""
        return self._latest.get(name)

    def note(self, subnet: Subnet) -> None:
        """Note a subnet as it was read: queue it if it is new, or its CIDRs are others than before."""
        before = self._seen.get(subnet.name)
        self._seen[subnet.name] = subnet
        if before is None:
            self._queue.add_after(subnet.name, FIRST_SECONDS + self._spread(subnet.name))
        elif (before.cidrs, before.draining) != (subnet.cidrs, subnet.draining):
            self._queue.add(subnet.name)

    def forget(self, name: str) -> None:
        """Forget a subnet that no node uses any more."""
        for known in (self._seen, self._read, self._latest, self._context.counts.run_outs):
            known.pop(name, None)

    async def reconcile(self, name: str) -> float | None:
        """Forecast a subnet. Returns in how many seconds to do it again; None if no node uses it any more."""
        if name not in self._seen or not self._subnets.is_used(name):
            self.forget(name)
            return None
        read = await self._days(name)
        if read is None:
            return EVERY_SECONDS
        self._latest[name] = found = self._forecast(name, read.days)
        self._context.counts.run_outs[name] = _counts(found)
        return max(1.0, read.at + EVERY_SECONDS - self._context.clock.monotonic())

    async def _days(self, name: str) -> _ReadDays | None:
        """What the allocator remembers, asked for at most once an hour."""
        now, known = self._context.clock.monotonic(), self._read.get(name)
        if known is not None and now - known.at < EVERY_SECONDS:
            return known
        wall = self._context.clock.wall()
        network = self._context.options.network
        try:
            rows = await with_deadline(
                self._context.allocator.usage_history(
                    network, name, since=days_since(wall), until=wall, step="1d"
                ),
                f"read the history of subnet {name}",
            )
        except (AllocatorError, InvalidInput) as error:
            if not self._is_told:
                self._is_told = True
                self._context.log.info("a subnet has no forecast", subnet=name, error=str(error))
            return None
        read = self._read[name] = _ReadDays(recorded_days(rows), now)
        return read

    def _forecast(self, name: str, days: RecordedDays) -> SubnetForecast:
        settings = self._context.settings
        reserved, need = (
            forecast_usage(
                each,
                capacity=max(1, self._seen[name].capacity),
                thresholds=Thresholds(settings.lower_threshold, settings.upper_threshold),
                today=day_of(self._context.clock.wall()),
            )
            for each in (days.reserved, days.need)
        )
        return SubnetForecast(reserved, need)

    def _spread(self, name: str) -> float:
        return crc32(f"{self._context.options.cluster}/{name}".encode()) % _SPREAD_SECONDS


def _counts(found: SubnetForecast) -> RunOutCounts:
    reached = found.capacity
    if reached is None:
        return RunOutCounts()
    if reached.since is not None:
        return RunOutCounts(reached.since, reached.since, reached.since)
    return RunOutCounts(reached.expected, reached.earliest, reached.latest)
