"""What all Kubernetes objects share: metadata, the API they belong to, and what is kept of the unknown.

A struct names only the fields podtide uses, so decoding a pod of four kilobytes touches a dozen values. What a struct
does not name is kept aside in `original` where the object is one that podtide replaces whole, so that a
read-modify-write loses nothing that others wrote (see `codec`).

Three conventions keep the wire as Kubernetes wants it, and the CRDs follow them:

- a field with a plain default is optional and left out when it equals the default (`omitempty`);
- a field with an `always` default is sent whatever its value, and the CRD defaults it;
- a field without a default is required.
"""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from msgspec import Meta, Struct, field

from podtide.resources.rules import Rule
from podtide.runtime.foreign_json import decode_json

T = TypeVar("T")

# Formats are for the CRD alone: in Python an int has no size, and what an API server let pass is read as it is.
Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
Count = Annotated[int, Meta(ge=0, extra_json_schema={"format": "int64"})]
Cidr = Annotated[str, Meta(extra_json_schema={"format": "cidr"})]


def always(value: T, *, name: str | None = None) -> T:
    """A default that is sent even when unchanged: a request for 0 addresses is a statement, not an omission."""
    # msgspec omits what is identical to a plain default, and never what a factory of ours returned.
    return field(default_factory=lambda: value, name=name)


class OpenEnum(StrEnum):
    """Words of an API that others may add to: an unknown one is read, kept and written back as it is.

    The CRD lists the known ones. A peer's newer version must not blind the programs that watch its objects.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """A part of an object. In a list or map of such parts, `merge_key` is the wire name of the field that says which."""

    merge_key: ClassVar[str | None] = None
    rules: ClassVar[tuple[Rule, ...]] = ()
    """What an API server holds the fields to, taken together. Reading does not: what is stored is read as it is."""


class OwnerReference(Part, frozen=True, kw_only=True):
    """Who owns an object: when the owner goes, the garbage collector takes the object too."""

    merge_key: ClassVar[str | None] = "uid"

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Part, frozen=True, kw_only=True):
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


class Column(Part, frozen=True, kw_only=True):
    """One column of `kubectl get`."""

    name: str
    type: Literal["string", "integer", "number", "boolean", "date"]
    json_path: str = field(name="jsonPath")
    description: str = ""
    priority: int = 0
    """0 is always shown, more only with `-o wide`."""


AGE = Column(name="Age", type="date", json_path=".metadata.creationTimestamp")


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

    @property
    def is_custom(self) -> bool:
        """Whether an API server knows this kind only by a CRD: Kubernetes keeps groups in k8s.io to itself."""
        return bool(self.group) and not self.group.endswith(".k8s.io")

    @property
    def list_kind(self) -> str:
        """The kind of a list of these."""
        return f"{self.kind}List"

    @property
    def singular(self) -> str:
        """What `kubectl get` also takes for the plural."""
        return self.plural.removesuffix("s")


class Original:
    """The JSON document an object was decoded from, kept so that a replace can carry unknown fields.

    Few objects are ever replaced by those who read them: what was text stays text until its document is asked for.
    It says nothing about the object's meaning, so any two compare equal.
    """

    __slots__ = ("_source",)

    def __init__(self, source: dict[str, Any] | bytes) -> None:
        self._source = source

    @property
    def document(self) -> dict[str, Any]:
        """The document, which the caller must not change. UnreadableJson where its unknown parts are nested too deeply."""
        if isinstance(self._source, bytes):
            self._source = decode_json(self._source, dict[str, Any])
        return self._source

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Original) or other is None

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "Original(...)"


class Resource(Part, frozen=True, kw_only=True):
    """A whole object. Subclasses set `api` and add `spec`, `status` or whatever the kind has."""

    api: ClassVar[Api]

    metadata: ObjectMeta = ObjectMeta()
    original: Original | None = field(default=None, name="~original")

    @property
    def key(self) -> "Key":
        """Namespace and name, which a reconciler is called with."""
        return Key(self.metadata.namespace, self.metadata.name)


class Key(Struct, frozen=True, order=True):
    """An object's namespace ("" for cluster-scoped kinds) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
