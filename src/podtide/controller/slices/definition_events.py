"""What is wrong with a NetworkAttachmentDefinition, said once: it has no status that could carry it."""

from podtide.controller.events import EventRecorder
from podtide.resources.base import Key
from podtide.resources.network_attachment import NetworkAttachmentDefinition


class DefinitionEvents:
    """Writes Events on definitions, and remembers what it said."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._said: dict[Key, set[tuple[str, str]]] = {}

    async def say(self, about: NetworkAttachmentDefinition, reason: str, message: str) -> None:
        """Say it, unless it was said of this very definition before."""
        said = self._said.setdefault(about.key, set())
        if (about.metadata.uid, message) not in said:
            said.add((about.metadata.uid, message))
            await self._events.record(about, reason, message, warning=True)

    def forget(self, key: Key) -> None:
        """The definition is gone."""
        self._said.pop(key, None)
