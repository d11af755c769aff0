"""Where a scenario is played: the embedded cluster on virtual time, or a real API server on the machine's own.

A scenario is written once, in the times of the default settings. On the real API server the settings are quicker and
`stage.seconds` shortens what a scenario waits for in the same measure; how long something may take at most is not
shortened, for the machine may be busy.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from io import StringIO
from typing import Any

from msgspec import Struct, structs

from podtide.cluster.port import Cluster
from podtide.runtime.clock import Clock
from podtide.runtime.logging import make_logger
from podtide.runtime.settings import Settings
from podtide.simulation.embedded_world import opened_allocator, options_for
from podtide.simulation.kubelet import Habits
from podtide.simulation.world import Customs, World

_HURRIED = (
    "dwell",
    "shrink_delay",
    "cooldown",
    "poll",
    "leader_lease",
    "leader_renew_deadline",
    "leader_retry",
)


class Stage(Struct, frozen=True):
    """One place to play."""

    open_cluster: Callable[[], AbstractAsyncContextManager[Cluster]]
    clock: Clock
    hurry: float = 1.0
    """How many times quicker than by default everything is done that waits for its time."""
    quiet_seconds: float = 600.0
    """For how long nothing may happen where nothing should."""

    def seconds(self, by_default: float) -> float:
        """A time as it is here."""
        return by_default / self.hurry

    def settings(self, **changes: Any) -> Settings:
        """The default settings, with changes, as they are here."""
        settings = structs.replace(Settings(), **changes)
        times = {f"{name}_seconds": getattr(settings, f"{name}_seconds") / self.hurry for name in _HURRIED}
        return structs.replace(settings, **times)

    @asynccontextmanager
    async def world(
        self,
        *cidrs: str,
        controller: bool = True,
        cluster_subnets: bool = True,
        customs: Customs | None = None,
    ) -> AsyncIterator[World]:
        """A world with these subnets, by default with a controller at work, and audited throughout."""
        customs = customs or Customs(settings=self.settings(), habits=self.habits())
        log = make_logger(StringIO(), self.clock, level="warning")
        async with (
            self.open_cluster() as cluster,
            opened_allocator(cidrs, customs.settings, self.clock) as allocator,
        ):
            options = options_for(cidrs, cluster_subnets=cluster_subnets)
            async with World(
                cluster, allocator, options, customs=customs, clock=self.clock, seed=1, log=log
            ) as world:
                if controller:
                    world.start_controller()
                world.programs.start("auditor", world.auditor.run(every_seconds=0.25))
                yield world
                world.programs.check()
                await world.auditor.check()

    def habits(self, **changes: Any) -> Habits:
        """The kubelets' habits, as they are here."""
        habits = structs.replace(Habits(), **changes)
        return structs.replace(habits, retry_seconds=habits.retry_seconds / self.hurry)
