"""Events: a transition that people should know of, written once, on the object it happened to.

They are best effort: conditions carry the state. So an Event that cannot be written is logged, and nothing waits for
it.
"""

from podtide.cluster.port import ClusterError
from podtide.controller.fencing import MANAGER, GuardedWrites
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.event import Event, EventSource, EventType, ObjectReference
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_LONGEST_MESSAGE = 1024
"""Kubernetes accepts no more."""


class EventRecorder:
    """Writes Events."""

    def __init__(self, writes: GuardedWrites, clock: Clock, log: Logger) -> None:
        self._writes = writes
        self._clock = clock
        self._log = log

    async def record(self, about: Resource, reason: str, message: str, *, warning: bool) -> None:
        """Write an Event on an object."""
        now = to_time(self._clock.wall())
        namespace = about.metadata.namespace or "default"
        event = Event(
            metadata=ObjectMeta(generate_name=f"{about.metadata.name}.", namespace=namespace),
            involved_object=ObjectReference.to(about),
            type=EventType.WARNING if warning else EventType.NORMAL,
            reason=reason,
            message=message[:_LONGEST_MESSAGE],
            source=EventSource(component=MANAGER),
            count=1,
            first_timestamp=now,
            last_timestamp=now,
        )
        self._log.info("event", about=f"{about.api.kind} {about.key}", reason=reason, message=message)
        try:
            await self._writes.create(event)
        except ClusterError as error:
            self._log.warning("an Event could not be written", reason=reason, error=str(error))
