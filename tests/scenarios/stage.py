"""Where a scenario is played: the embedded cluster on virtual time, or a real API server on the machine's own.

A scenario is written once, in the times of the default settings. On the real API server the settings are quicker and
`stage.seconds` shortens what a scenario waits for in the same measure. That is only ever a time in which nothing may
happen: what must happen is waited for, and how long that may take (`stage.within`) is not shortened, for the machine
may be busy. So on virtual time a limit can prove that something is quick, and on the real API server none fails a
scenario because of the hour at which it is played.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from io import StringIO
from typing import Any

from msgspec import Struct, structs

from podtide.cluster.port import Cluster
from podtide.resources.base import Resource
from podtide.runtime.clock import Clock
from podtide.runtime.logging import make_logger
from podtide.runtime.settings import Settings
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.nodes.plugin_caller import AgentDoors
from podtide.simulation.world.embedded_world import opened_allocator, options_for
from podtide.simulation.world.world import World, WorldDefaults

_HURRIED = ("answer_wait", "starved_dwell", "shrink_delay", "cooldown", "poll")
"""Not what a busy machine would fail by: a leader that renews its Lease late has lost it."""


class Stage(Struct, frozen=True):
    """One place to play."""

    open_cluster: Callable[[], AbstractAsyncContextManager[Cluster]]
    clock: Clock
    hurry: float = 1.0
    """How many times quicker than by default everything is done that waits for its time."""
    quiet_seconds: float = 600.0
    """For how long nothing may happen where nothing should."""
    patience_seconds: float = 0.0
    """How long is waited at least for what should happen, whatever a scenario allows."""

    @property
    def is_virtual(self) -> bool:
        """Whether time jumps to where something happens, so that it measures the programs and not the machine."""
        return not self.patience_seconds

    def seconds(self, by_default: float) -> float:
        """A time in which nothing may happen, as it is here."""
        return by_default / self.hurry

    def within(self, seconds: float) -> float:
        """A limit for what should happen, as it is here."""
        return max(seconds, self.patience_seconds)

    def settings(self, **changes: Any) -> Settings:
        """The default settings, with changes, as they are here."""
        settings = structs.replace(Settings(), **changes)
        times = {f"{name}_seconds": getattr(settings, f"{name}_seconds") / self.hurry for name in _HURRIED}
        return structs.replace(settings, **times)

    def habits(self, **changes: Any) -> KubeletHabits:
        """The kubelets' habits, with changes, as they are here."""
        habits = structs.replace(KubeletHabits(), **changes)
        return structs.replace(
            habits,
            retry_seconds=habits.retry_seconds / self.hurry,
            sandbox_seconds=habits.sandbox_seconds / self.hurry,
        )

    @asynccontextmanager
    async def world(
        self,
        *cidrs: str,
        controller: bool = True,
        cluster_subnets: bool = True,
        defaults: WorldDefaults | None = None,
        doors: AgentDoors | None = None,
    ) -> AsyncIterator[World]:
        """A world with these subnets, by default with a controller at work, and audited throughout."""
        defaults = defaults or WorldDefaults(settings=self.settings(), habits=self.habits())
        log = make_logger(StringIO(), self.clock, level="warning")
        async with (
            self.open_cluster() as cluster,
            opened_allocator(cidrs, defaults.settings, self.clock) as allocator,
        ):
            options = options_for(cidrs, cluster_subnets=cluster_subnets)
            async with World(
                cluster,
                allocator,
                options,
                defaults=defaults,
                doors=doors,
                clock=self.clock,
                seed=1,
                log=log,
            ) as world:
                if controller:
                    world.start_controller()
                world.programs.start("auditor", world.auditor.run(every_seconds=0.25))
                yield world
                world.programs.check()
                await world.auditor.check()

    async def falls_silent(self, world: World, *kinds: type[Resource], settled_within: float) -> None:
        """See that nothing of these kinds is written any more.

        On virtual time there is one chance: so many seconds from now all is done, and then there is silence. A busy
        machine may be late, so there the silence may also begin later.
        """
        deadline = self.clock.monotonic() + self.patience_seconds
        await world.pass_time(self.seconds(settled_within))
        while written := await self._written(world, kinds):
            assert self.clock.monotonic() < deadline, f"nothing was to be done, and still there was {written}"

    async def _written(self, world: World, kinds: tuple[type[Resource], ...]) -> list[str]:
        world.trace.mark()
        await world.pass_time(self.quiet_seconds)
        return [str(write) for kind in kinds for write in world.trace.writes(kind)]
