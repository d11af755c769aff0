"""What a cluster does while nobody calls a plugin: it renews Leases, and every program takes a little processor time.

That is a rate. What it comes to in the seconds of a turn is taken from what was counted in them.
"""

from collections import Counter

from msgspec import Struct

from peers.request_counts import Asked


class Background(Struct, frozen=True, kw_only=True):
    """What was counted in so many idle seconds."""

    seconds: float
    requests: Counter[Asked]
    api_server_cpu_seconds: float = 0.0
    agent_cpu_seconds: float = 0.0
    """Of one agent, on average."""

    def requests_per_call(self, counts: Counter[Asked], seconds: float, calls: int) -> dict[Asked, float]:
        """What each call asked for, of what was counted in so many seconds; nothing is less than 0."""
        each = {
            asked: self._per_call(count, self.requests[asked], seconds, calls)
            for asked, count in sorted(counts.items())
        }
        return {asked: count for asked, count in each.items() if count > 0}

    def api_server_cpu_per_call(self, cpu_seconds: float, seconds: float, calls: int) -> float:
        """The processor time that each call took of the API server."""
        return self._per_call(cpu_seconds, self.api_server_cpu_seconds, seconds, calls)

    def agents_cpu_per_call(self, cpu_seconds: float, agents: int, seconds: float, calls: int) -> float:
        """The processor time that each call took of so many agents."""
        return self._per_call(cpu_seconds, agents * self.agent_cpu_seconds, seconds, calls)

    def _per_call(self, counted: float, idle: float, seconds: float, calls: int) -> float:
        return max(0.0, counted - idle * seconds / self.seconds) / calls
