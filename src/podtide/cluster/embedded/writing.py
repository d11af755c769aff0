"""What a write makes of an object: the rules of the API server, as pure functions from document to document.

Each takes the object as it is and what was asked, and returns the object as it will be, or raises why not. Nothing here
stores anything; an unchanged result means that there is nothing to store.
"""

from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podtide.cluster.embedded.defaulting import NO_DEFAULTS, Defaults, defaults_in
from podtide.cluster.embedded.field_shapes import FieldShape, field_shape_of
from podtide.cluster.embedded.kind_behaviour import KindBehaviour, behaviour_of
from podtide.cluster.embedded.managed_fields import (
    Entry,
    Owned,
    Writer,
    after_apply,
    after_create,
    after_update,
    is_entry,
)
from podtide.cluster.embedded.naming import check_metadata
from podtide.cluster.embedded.records import Document
from podtide.cluster.embedded.validation import NO_DEMANDS, FieldRules, demands_in
from podtide.cluster.port import Conflict, DeletePreconditions, Invalid
from podtide.resources.base import Api, Resource
from podtide.resources.crds import crd, rules_of_parts
from podtide.resources.timestamps import to_time

_SERVERS_OWN = frozenset(
    (
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    )
)
_IDENTITY = frozenset(("name", "namespace"))
_NO_CONTENT = _SERVERS_OWN | _IDENTITY
_PRECONDITIONS = (("uid", "uid"), ("resourceVersion", "resource version"))
_DEFAULT_GRACE_SECONDS = 30


class KindRules(Struct, frozen=True):
    """How the API server validates and writes objects of one kind."""

    api: Api
    behaviour: KindBehaviour
    shape: FieldShape
    no_content: frozenset[str]
    """The fields of a document that a writer of the whole object has no say in, or not in the same way."""
    defaults: Defaults = NO_DEFAULTS
    demands: FieldRules = NO_DEMANDS

    def describe(self, document: Document) -> str:
        """`Pod default/web`."""
        metadata = document["metadata"]
        return describe(self.api, metadata.get("namespace", ""), metadata.get("name", ""))


@cache
def rules_of(kind: type[Resource]) -> KindRules:
    """The rules for a kind."""
    status = {"status"} if kind.api.status_subresource else set()
    no_content = frozenset({"apiVersion", "kind", "metadata"} | status)
    rules = KindRules(kind.api, behaviour_of(kind.api), field_shape_of(kind), no_content)
    if not kind.api.is_custom:
        return rules
    (version,) = crd(kind)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    return replace(rules, defaults=defaults_in(schema), demands=demands_in(schema, rules_of_parts(kind)))


def describe(api: Api, namespace: str, name: str) -> str:
    """An object's name in messages: `Pod default/web`."""
    return f"{api.kind} {namespace}/{name}" if namespace else f"{api.kind} {name}"


def created(document: Document, rules: KindRules, writer: Writer, uid: str) -> Document:
    """A new object."""
    document = rules.defaults.fill(document)
    content = _content(document, rules)
    if rules.behaviour.keeps_first_status and "status" in document:
        content["status"] = document["status"]
    return _born(document, after_create(content, rules.shape, writer), rules, writer, uid)


def replaced(old: Document, document: Document, rules: KindRules, writer: Writer) -> Document:
    """The object with `document` in its place."""
    _check_replace(old, document, rules)
    before, after = _content(old, rules), _content(rules.defaults.fill(document), rules)
    entries = _restated_entries(document) or _entries(old)
    if before == after and entries == _entries(old):
        return old
    return _successor(old, after_update(entries, before, after, rules.shape, writer), rules)


def status_replaced(old: Document, document: Document, rules: KindRules, writer: Writer) -> Document:
    """The object with the status of `document`."""
    _check_replace(old, document, rules)
    before, after = _status(old), _status(rules.defaults.fill(document))
    if before == after:
        return old
    kept = {name: value for name, value in old.items() if name != "status"}
    metadata = dict(old["metadata"])
    if rules.behaviour.knows_status_owners:
        metadata["managedFields"] = after_update(_entries(old), before, after, rules.shape, writer).entries
    return {**kept, "metadata": metadata, **after}


def first_applied(document: Document, rules: KindRules, writer: Writer, uid: str) -> Document:
    """A new object with all that `document` states."""
    if "uid" in document["metadata"]:
        raise Conflict(
            f"{rules.describe(document)} is gone, and the apply was meant for that one: read again"
        )
    owned = after_apply(Owned({}, []), _content(document, rules), rules.shape, writer, force=False)
    return _born(document, _filled(owned, rules), rules, writer, uid)


def applied(old: Document, document: Document, rules: KindRules, writer: Writer, *, force: bool) -> Document:
    """The object with all that `document` states."""
    _check_preconditions(old, rules, document["metadata"])
    before = Owned(_content(old, rules), _entries(old))
    owned = after_apply(before, _content(document, rules), rules.shape, writer, force=force)
    return _successor(old, _filled(owned, rules), rules)


def deleted(old: Document, rules: KindRules, now: float, options: DeletePreconditions) -> Document | None:
    """The object marked for deletion, or None when nothing keeps it; a pod on a node gets the grace period."""
    metadata = old["metadata"]
    expected = {"uid": options.uid, "resourceVersion": options.resource_version}
    _check_preconditions(old, rules, {field: value for field, value in expected.items() if value})
    grace = _grace_seconds(old, rules, options.grace_seconds)
    if not metadata.get("finalizers") and not grace:
        return None
    if "deletionTimestamp" in metadata and grace >= metadata["deletionGracePeriodSeconds"]:
        return old
    marked = {
        **metadata,
        "deletionTimestamp": to_time(now + grace),
        "deletionGracePeriodSeconds": grace,
    }
    if "generation" in metadata and "deletionTimestamp" not in metadata:
        marked["generation"] += 1
    return {**old, "metadata": marked}


def is_released(document: Document) -> bool:
    """Whether the object is marked for deletion and has no finalizers left."""
    metadata = document["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata["deletionGracePeriodSeconds"]
    )


def _check_preconditions(old: Document, rules: KindRules, expected: dict[str, Any]) -> None:
    """Raise Conflict when the uid or resourceVersion is not the object's."""
    metadata = old["metadata"]
    for field, what in _PRECONDITIONS:
        if field in expected and expected[field] != metadata[field]:
            raise Conflict(
                f"{rules.describe(old)} has {what} {metadata[field]}, and the write was meant for {expected[field]}: "
                "read it again and decide again"
            )


def _check_replace(old: Document, document: Document, rules: KindRules) -> None:
    _check_preconditions(old, rules, document["metadata"])
    if rules.behaviour.replace_needs_version and "resourceVersion" not in document["metadata"]:
        raise Invalid(
            f"{rules.describe(old)} can only be replaced by what carries its resource version: read it first"
        )


def _filled(owned: Owned, rules: KindRules) -> Owned:
    """The object with the defaults of what was applied. No manager owns a default."""
    return replace(owned, content=rules.defaults.fill(owned.content))


def _born(document: Document, owned: Owned, rules: KindRules, writer: Writer, uid: str) -> Document:
    check_metadata(rules.api.kind, document["metadata"])
    metadata = _identity(document) | {"uid": uid, "creationTimestamp": writer.time}
    if rules.behaviour.counts_generations:
        metadata["generation"] = 1
    born = _assembled(metadata, owned, rules)
    if rules.behaviour.first_status:
        born["status"] = rules.behaviour.first_status
    return born


def _successor(old: Document, owned: Owned, rules: KindRules) -> Document:
    """The object with new content, and with the metadata that the server sets."""
    servers = {name: value for name, value in old["metadata"].items() if name in _SERVERS_OWN}
    new = _assembled(_identity(old) | servers, owned, rules)
    if rules.api.status_subresource and "status" in old:
        new["status"] = old["status"]
    _check_successor(old, new, rules)
    if "generation" in servers and _meaning(old, rules) != _meaning(new, rules):
        new["metadata"]["generation"] += 1
    return new


def _check_successor(old: Document, new: Document, rules: KindRules) -> None:
    check_metadata(rules.api.kind, new["metadata"])
    if "deletionTimestamp" not in old["metadata"]:
        return
    added = set(new["metadata"].get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ())
    if added:
        raise Invalid(
            f"{rules.describe(old)} is being deleted: no finalizer can be added ({', '.join(sorted(added))})"
        )


def _content(document: Document, rules: KindRules) -> Document:
    """The fields that a client may write: neither identity nor what only the server or the status endpoint sets."""
    content = {name: value for name, value in document.items() if name not in rules.no_content}
    metadata = {name: value for name, value in document["metadata"].items() if name not in _NO_CONTENT}
    if metadata:
        content["metadata"] = metadata
    return content


def _status(document: Document) -> Document:
    return {"status": document["status"]} if "status" in document else {}


def _meaning(document: Document, rules: KindRules) -> Document:
    """The fields whose changes `generation` counts."""
    return {name: value for name, value in _content(document, rules).items() if name != "metadata"}


def _identity(document: Document) -> dict[str, Any]:
    return {name: value for name, value in document["metadata"].items() if name in _IDENTITY}


def _assembled(servers: dict[str, Any], owned: Owned, rules: KindRules) -> Document:
    """The whole document, from the server's metadata and what managers own."""
    metadata = servers | owned.content.get("metadata", {}) | {"managedFields": owned.entries}
    head = {"apiVersion": rules.api.api_version, "kind": rules.api.kind, "metadata": metadata}
    return head | {name: value for name, value in owned.content.items() if name != "metadata"}


def _entries(document: Document) -> list[Entry]:
    entries: list[Entry] = document["metadata"].get("managedFields") or []
    return entries


def _restated_entries(document: Document) -> list[Entry] | None:
    """The managedFields that the client itself sent: kubectl does so when it migrates to server-side apply."""
    stated = document["metadata"].get("managedFields")
    return stated if isinstance(stated, list) and all(map(is_entry, stated)) else None


def _grace_seconds(document: Document, rules: KindRules, asked: int | None) -> int:
    """How long a delete leaves the object to its kubelet."""
    spec = document.get("spec") or {}
    finished = (document.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
    if not rules.behaviour.waits_for_kubelet or not spec.get("nodeName") or finished:
        return 0
    grace: int = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
    return grace if asked is None else asked
