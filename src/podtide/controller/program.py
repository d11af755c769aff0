"""The request controller as a program: its parameters, and how it runs, alone or as one of several replicas."""

from typing import NoReturn

from podtide.allocator.port import Allocator
from podtide.cluster.leader_election import LeaderElection
from podtide.cluster.port import Cluster
from podtide.cluster.term import Term
from podtide.controller.counts import ControllerCounts
from podtide.controller.fencing import Check, unguarded
from podtide.controller.leader import Leader
from podtide.controller.leadership import LEASE
from podtide.controller.options import ControllerOptions
from podtide.runtime.runtime import Runtime

__all__ = ["LEASE", "Controller", "ControllerCounts", "ControllerOptions"]

ALONE = "only-controller"
"""The holder's name at the allocator of a controller that is not elected: there is only one."""


class Controller:
    """One replica of the request controller. It can be cancelled at any await: every write is idempotent."""

    def __init__(
        self,
        cluster: Cluster,
        allocator: Allocator,
        options: ControllerOptions,
        *,
        runtime: Runtime,
    ) -> None:
        self.metrics = ControllerCounts()
        self._cluster = cluster
        self._allocator = allocator
        self._options = options
        self._runtime = runtime

    @property
    def unreadiness(self) -> str:
        """Why this replica cannot do its work; "" when it can, or when it does not lead.

        A leader without an allocator grants nothing, which people should see. Standbys are ready: they call nothing, and a
        rolling update must be able to go on to them (docs/controller.md).
        """
        error = self.metrics.allocator_error
        return (
            f"the allocator does not answer, and is tried again every few seconds: {error}" if error else ""
        )

    async def run(self) -> NoReturn:
        """Run as the only controller, without an election, until cancelled."""
        await self._lead(unguarded, ALONE)

    async def run_elected(self, identity: str) -> NoReturn:
        """Take part in the election, and run while this replica leads, until cancelled.

        `identity` must be unique to this process, such as the host name and a new uuid.
        """
        election = LeaderElection(self._cluster, LEASE, identity, runtime=self._runtime)

        async def lead(term: Term) -> NoReturn:
            await self._lead(term.check, identity)

        await election.run(lead)
        raise AssertionError("the election ended without being cancelled")

    async def _lead(self, check: Check, holder: str) -> NoReturn:
        leading = Leader(
            self._cluster,
            self._allocator,
            self._options,
            check,
            holder=holder,
            counts=self.metrics,
            runtime=self._runtime,
        )
        await leading.run()
