"""One version of one object, and the step from one version to the next.

A record holds the object as JSON text. That keeps it small, makes it what the file holds, and means that nothing a
caller was given shares a byte with it: each read decodes an object of its own. The writer of a version and its watchers
share one decoded object, however many they are; it is freed with the version. An object that was written is often
written again at once, so its document is kept for a while, for the next write alone.

Records and transitions are out of the garbage collector's sight (`gc=False`): they are many, and in no cycle.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podtide.cluster.embedded.selectors import NAME, NAMESPACE
from podtide.resources.base import Resource
from podtide.resources.codec import decode, from_written

R = TypeVar("R", bound=Resource)
Document = dict[str, Any]

_NO_LABELS: dict[str, str] = {}
_encoder = msgspec.json.Encoder()
_documents = msgspec.json.Decoder()


class ObjectVersion(Struct, eq=False, gc=False):
    """One version of one object. `key` is `namespace/name`, in whose order Kubernetes lists."""

    key: str
    namespace: str
    name: str
    uid: str
    version: int
    encoded: bytes
    labels: dict[str, str]
    fields: dict[str, str]
    owners: tuple[str, ...]
    _shared: Resource | None = None
    _written: Document | None = None

    def document(self) -> Document:
        """The object as a JSON document that the caller may change."""
        document: Document = _documents.decode(self.encoded)
        return document

    def written(self) -> Document:
        """The object as a shared JSON document, which must not be changed."""
        return self._written or self.document()

    def keep_written(self, document: Document | None) -> None:
        """Cache the document for the next write, or drop it."""
        self._written = document

    def decode(self, kind: type[R]) -> R:
        """The object as a struct of the caller's own."""
        return decode(kind, self.encoded)

    def shared(self, kind: type[R]) -> R:
        """The object as a struct that all readers share."""
        item = self._shared
        if not isinstance(item, kind):
            item = self._shared = decode(kind, self.encoded)
        return item

    def share(self, kind: type[Resource]) -> None:
        """Decode the shared struct from the document just written; InvalidInput if it does not fit the kind."""
        self._shared = from_written(kind, self.written(), self.encoded)

    def let_go(self) -> None:
        """Drop everything that is decoded, because this version is history. It is decoded again on demand."""
        self._shared = self._written = None


class Transition(Struct, eq=False, gc=False):
    """One write: the object before (None: it was created) and after (None: it is gone)."""

    version: int
    old: ObjectVersion | None
    new: ObjectVersion | None
    _departed: ObjectVersion | None = None

    @property
    def key(self) -> str:
        """The object it happened to."""
        record = self.new or self.old
        assert record is not None, "a transition has a before or an after"
        return record.key

    @property
    def departed(self) -> ObjectVersion:
        """The object's last state, at the version of its deletion: the content of a DELETED event."""
        if self._departed is None:
            assert self.old is not None, "only what was there can depart"
            self._departed = stamped(self.old.document(), self.version, self.old.fields)
        return self._departed

    def departed_as(self, kind: type[R]) -> R:
        """`departed` as a struct, made from the one that is there already."""
        assert self.old is not None, "only what was there can depart"
        item = self.old.shared(kind)
        return replace(item, metadata=replace(item.metadata, resource_version=str(self.version)))


def key_of(namespace: str, name: str) -> str:
    """The key that an object is stored under."""
    return f"{namespace}/{name}"


def stamped(document: Document, version: int, fields: dict[str, str]) -> ObjectVersion:
    """A record of the document, which gets the version as its resourceVersion; `fields` are as in `record_of`."""
    document["metadata"]["resourceVersion"] = str(version)
    return record_of(document, _encoder.encode(document), version, fields)


def record_of(document: Document, encoded: bytes, version: int, fields: dict[str, str]) -> ObjectVersion:
    """A record of the document, of which the text is known, and the fields to select by besides name and namespace."""
    metadata = document["metadata"]
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    owners = metadata.get("ownerReferences")
    return ObjectVersion(
        key_of(namespace, name),
        namespace,
        name,
        metadata["uid"],
        version,
        encoded,
        metadata.get("labels") or _NO_LABELS,
        {**fields, NAME: name, NAMESPACE: namespace},
        tuple(owner["uid"] for owner in owners) if owners else (),
    )
