"""Whether leader, allocator, API server and agents do their part, as far as the page can tell. No I/O.

Health changes by time alone, too: a Lease that is not renewed, an agent that does not answer. `renew` looks at these.
"""

from msgspec import structs

from podtide.controller.leadership import NEVER_LED, leader_in
from podtide.dashboard.agent_silence import AgentSilence
from podtide.dashboard.records import Health, LeaderHealth, PartHealth
from podtide.resources.lease import Lease

_RENEWED_EVERY_SECONDS = 10.0
"""A leader renews its Lease every two seconds. The page learns of it this often, or all clients would be written to."""


class ClusterHealth:
    """The health of the programs. What is noted is `shown` after the next `renew`."""

    def __init__(self) -> None:
        self.shown = Health()
        self.agents = AgentSilence()
        self.is_due = True
        """Whether something was noted since the last `renew`."""
        self._allocator = self.shown.allocator
        self._api = self.shown.api
        self._lease: Lease | None = None
        self._is_lease_read = False
        self._shown_renewal = 0.0

    def note_lease(self, lease: Lease | None) -> None:
        """The leader's Lease; None if there is none."""
        self._lease, self._is_lease_read = lease, True
        self.is_due = True

    def note_lease_read(self) -> None:
        """The Lease was looked for, whether it is there or not."""
        self._is_lease_read = self.is_due = True

    def note_allocator(self, health: PartHealth) -> None:
        """Whether the allocator answers."""
        self._allocator, self.is_due = health, True

    def note_api(self, health: PartHealth) -> None:
        """Whether the API server answers."""
        self._api, self.is_due = health, True

    def renew(self, now: float) -> bool:
        """Look at everything anew. Returns whether anything is shown otherwise than before."""
        self.is_due = False
        before = self.shown
        self.shown = Health(
            leader=self._leader(now), allocator=self._allocator, api=self._api, agents=self.agents.health(now)
        )
        return self.shown != before

    def _leader(self, now: float) -> LeaderHealth:
        before = self.shown.leader
        if self._lease is None:
            return LeaderHealth(message=NEVER_LED.obstacle) if self._is_lease_read else before
        spec = self._lease.spec
        obstacle = leader_in(spec, now).obstacle
        leader = LeaderHealth(
            holder=spec.holder_identity or None,
            since=spec.acquire_time,
            renewed=spec.renew_time,
            ok=not obstacle,
            message=obstacle,
        )
        same = structs.replace(leader, renewed=before.renewed) == before
        if same and now - self._shown_renewal < _RENEWED_EVERY_SECONDS:
            return before
        self._shown_renewal = now
        return leader
