"""Which objects are owned by something that is gone.

An object with owners is deleted when the last of them is gone. Owners are identified by uid: one that never existed
counts as gone, and so does one in another namespace, which cannot own the object. Of several owners, those that are
gone are removed from ownerReferences.
"""

from enum import Enum, auto

from msgspec import Struct

from podtide.cluster.embedded.records import Document, ObjectVersion, Transition
from podtide.cluster.embedded.table import ObjectTable


class CollectorAction(Enum):
    """What the garbage collector does with an object."""

    STAYS = auto()
    LOSES_OWNERS = auto()
    GOES = auto()


class Dependent(Struct, frozen=True):
    """An object by its key, whatever version of it there is."""

    table: ObjectTable
    key: str

    def __hash__(self) -> int:
        return hash((id(self.table), self.key))

    @property
    def record(self) -> ObjectVersion | None:
        """The object as it is now."""
        return self.table.records.get(self.key)


class Dependents:
    """Owners and dependents, updated with every write; `suspects` are objects of which an owner may be gone."""

    def __init__(self) -> None:
        self.suspects: dict[Dependent, None] = {}
        self._alive: dict[str, str] = {}
        self._owned_by: dict[str, dict[Dependent, None]] = {}

    def note(self, table: ObjectTable, transition: Transition) -> None:
        """Update the index with a write."""
        old, new = transition.old, transition.new
        if new is None or old is None:
            self._come_or_go(old, new)
        before, after = old.owners if old else (), new.owners if new else ()
        if before != after:
            self._relate(Dependent(table, transition.key), before, after)

    def fate(self, record: ObjectVersion) -> CollectorAction:
        """What to do with this object."""
        gone = sum(not self._is_alive(owner, record) for owner in record.owners)
        if not gone:
            return CollectorAction.STAYS
        return CollectorAction.GOES if gone == len(record.owners) else CollectorAction.LOSES_OWNERS

    def without_gone_owners(self, record: ObjectVersion) -> Document:
        """The object with only those owner references whose owners exist."""
        document = record.document()
        references = document["metadata"]["ownerReferences"]
        alive = [reference for reference in references if self._is_alive(reference["uid"], record)]
        return {**document, "metadata": {**document["metadata"], "ownerReferences": alive}}

    def _is_alive(self, owner: str, record: ObjectVersion) -> bool:
        return owner in self._alive and self._alive[owner] in {"", record.namespace}

    def _come_or_go(self, old: ObjectVersion | None, new: ObjectVersion | None) -> None:
        if new is not None:
            self._alive[new.uid] = new.namespace
        if old is not None:
            del self._alive[old.uid]
            self.suspects |= self._owned_by.get(old.uid, {})

    def _relate(self, dependent: Dependent, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        for owner in before:
            owned = self._owned_by.get(owner, {})
            owned.pop(dependent, None)
            if not owned:
                self._owned_by.pop(owner, None)
        for owner in after:
            self._owned_by.setdefault(owner, {})[dependent] = None
        if after:
            self.suspects[dependent] = None
