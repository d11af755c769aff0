"""One version of one object, and the step from one version to the next.

A record holds the object as JSON text. That keeps it small, makes it what the file holds, and means that nothing a
caller was given shares a byte with it: whoever reads gets an object decoded for them. Watchers alone share one decoded
object per version, however many they are.
"""

from typing import Any, TypeVar

import msgspec

from podtide.resources.base import Resource
from podtide.resources.codec import decode

R = TypeVar("R", bound=Resource)
Document = dict[str, Any]


class Record:
    """One version of one object. `key` is `namespace/name`, in whose order Kubernetes lists."""

    __slots__ = (
        "_shared",
        "encoded",
        "fields",
        "key",
        "labels",
        "name",
        "namespace",
        "owners",
        "uid",
        "version",
    )

    def __init__(self, document: Document, encoded: bytes, version: int, fields: dict[str, str]) -> None:
        metadata = document["metadata"]
        self.namespace: str = metadata.get("namespace", "")
        self.name: str = metadata["name"]
        self.key = key_of(self.namespace, self.name)
        self.uid: str = metadata["uid"]
        self.version = version
        self.encoded = encoded
        self.labels: dict[str, str] = metadata.get("labels") or {}
        self.fields = fields
        self.owners = tuple(owner["uid"] for owner in metadata.get("ownerReferences") or ())
        self._shared: Resource | None = None

    def document(self) -> Document:
        """The object as a JSON document of the caller's own."""
        document: Document = msgspec.json.decode(self.encoded)
        return document

    def decode(self, kind: type[R]) -> R:
        """The object as a struct of the caller's own."""
        return decode(kind, self.encoded)

    def shared(self, kind: type[R]) -> R:
        """The object as one struct that all who ask for it share."""
        if not isinstance(self._shared, kind):
            self._shared = self.decode(kind)
        return self._shared


class Transition:
    """One write: the object before (None: it was created) and after (None: it is gone)."""

    __slots__ = ("_departed", "new", "old", "version")

    def __init__(self, version: int, old: Record | None, new: Record | None) -> None:
        self.version = version
        self.old = old
        self.new = new
        self._departed: Record | None = None

    @property
    def key(self) -> str:
        """The object it happened to."""
        record = self.new or self.old
        assert record is not None, "a transition has a before or an after"
        return record.key

    @property
    def departed(self) -> Record:
        """The object as it was before, at the version of its departure: what a DELETED event carries."""
        if self._departed is None:
            assert self.old is not None, "only what was there can depart"
            document = self.old.document()
            self._departed = stamped(document, self.version, self.old.fields)
        return self._departed


def key_of(namespace: str, name: str) -> str:
    """What an object is filed under."""
    return f"{namespace}/{name}"


def stamped(document: Document, version: int, fields: dict[str, str]) -> Record:
    """A record of the document, which gets the version as its resourceVersion."""
    document["metadata"]["resourceVersion"] = str(version)
    return Record(document, msgspec.json.encode(document), version, fields)
