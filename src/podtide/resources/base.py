"""What all Kubernetes objects share: metadata, the API they belong to, and what is kept of the unknown.

A struct names only the fields podtide uses, so decoding a pod of four kilobytes touches a dozen
values. What a struct does not name is kept aside in `original` where the object is one that podtide
replaces whole, so that a read-modify-write loses nothing of anybody else's (see `codec`).

Two conventions keep the wire as Kubernetes wants it:

- a field equal to its default is left out (`omitempty`);
- a number that must be sent even when it is zero has `default_factory=int`, which msgspec never omits.
"""

from typing import Any, ClassVar

from msgspec import Struct, field


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A part of an object. `merge_key` names the field that identifies an item in a list of such parts."""

    merge_key: ClassVar[str | None] = None


class OwnerReference(Part, frozen=True):
    """Who owns an object: when the owner goes, the garbage collector takes the object too."""

    merge_key: ClassVar[str | None] = "uid"

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Part, frozen=True):
    """The metadata podtide reads and writes. Timestamps are RFC 3339 text, as on the wire."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: list[str] = field(default_factory=list)
    owner_references: list[OwnerReference] = field(default_factory=list)


class Column(Part, frozen=True):
    """One column of `kubectl get`."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    description: str = ""


class Api(Struct, frozen=True, kw_only=True):
    """Where a kind lives in the Kubernetes API, and what its CRD says beyond the schema."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    status_subresource: bool = False
    keeps_unknown: bool = True
    """False for kinds podtide only reads, or reads by the thousand: their unknown fields are dropped."""
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    field_selectors: tuple[str, ...] = ("metadata.name", "metadata.namespace")
    """The field paths the API server lets a list or watch be narrowed by."""

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version


class Original:
    """The JSON document an object was decoded from, kept so that a replace can carry unknown fields.

    It says nothing about the object's meaning, so any two compare equal.
    """

    __slots__ = ("document",)

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Original) or other is None

    def __hash__(self) -> int:
        return 0


class Resource(Part, frozen=True):
    """A whole object. Subclasses set `api` and add `spec`, `status` or whatever the kind has."""

    api: ClassVar[Api]

    metadata: ObjectMeta = ObjectMeta()
    original: Original | None = field(default=None, name="~original")

    @property
    def key(self) -> "Key":
        """Namespace and name: what a reconciler is handed."""
        return Key(self.metadata.namespace, self.metadata.name)


class Key(Struct, frozen=True, order=True):
    """An object's namespace ("" for cluster-scoped kinds) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
