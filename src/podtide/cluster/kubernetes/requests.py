"""What is asked of the API server, verb by verb: paths, queries and bodies. Nothing here is sent.

What no server would take, or would take for something else (a name that is empty lists the whole kind), is Invalid
before it is sent.
"""

import re
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct, field

from podtide.cluster.merge_patch import merge_patch
from podtide.cluster.port import DeletePreconditions, Invalid, Patch
from podtide.resources.base import Api, Resource
from podtide.resources.codec import to_document

_NOT_NAMES = (".", "..")
_LONGEST_SHOWN = 40
_DIGITS = re.compile(r"[0-9]{1,20}")
_LARGEST = 2**64 - 1


class ApiRequest(Struct, frozen=True, kw_only=True):
    """One request; `doing` says in words what it is for: `get Pod default/web`."""

    doing: str
    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"


class ListSelection(Struct, frozen=True, kw_only=True):
    """The kind, namespace and selectors of a list or watch."""

    api: Api
    namespace: str
    fields: str = ""
    labels: str = ""


def get(api: Api, namespace: str, name: str) -> ApiRequest:
    """Read one object."""
    doing = _words("get", api, namespace, name)
    return ApiRequest(doing=doing, method="GET", path=_object(api, namespace, name, doing))


def list_page(of: ListSelection, *, limit: int, more: str = "") -> ApiRequest:
    """Read a page of a list. No resourceVersion: the answer must be as fresh as a read."""
    doing = _words("list", of.api, of.namespace)
    query = _selectors(of)
    if limit:
        query["limit"] = str(limit)
    if more:
        query["continue"] = more
    return ApiRequest(doing=doing, method="GET", path=_collection(of.api, of.namespace, doing), query=query)


def watch(of: ListSelection, *, resource_version: str, timeout_seconds: int) -> ApiRequest:
    """Watch objects."""
    doing = _words("watch", of.api, of.namespace)
    if not version_number(resource_version):
        # To the server, none at all and "0" mean "from any time you like", and other text is an error of its own.
        raise Invalid(
            f"cannot {doing}: {resource_version[:_LONGEST_SHOWN]!r} is not a resource version to watch from: "
            "use that of a list or of an event"
        )
    query = _selectors(of) | {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": resource_version,
        "timeoutSeconds": str(timeout_seconds),
    }
    return ApiRequest(doing=doing, method="GET", path=_collection(of.api, of.namespace, doing), query=query)


def create(item: Resource, manager: str) -> ApiRequest:
    """Create an object."""
    metadata = item.metadata
    doing = _words("create", item.api, metadata.namespace, metadata.name or metadata.generate_name)
    _check_namespace(item.api, metadata.namespace, doing)
    if metadata.resource_version:
        # The API server calls this an error of its own.
        raise Invalid(f"cannot {doing}: it carries a resource version: leave that out")
    return ApiRequest(
        doing=doing,
        method="POST",
        path=_collection(item.api, metadata.namespace, doing),
        query=_manager(manager, doing),
        body=msgspec.json.encode(to_document(item)),
    )


def replace(item: Resource, manager: str) -> ApiRequest:
    """Update an object."""
    return _put(item, manager, _words("replace", item.api, *_place(item)))


def replace_status(item: Resource, manager: str) -> ApiRequest:
    """Update an object's status."""
    return _put(item, manager, _words("replace the status of", item.api, *_place(item)), "/status")


def apply(item: Resource, manager: str, *, force: bool) -> ApiRequest:
    """Apply an object server-side."""
    doing = _words("apply", item.api, *_place(item))
    return ApiRequest(
        doing=doing,
        method="PATCH",
        path=_object(item.api, *_place(item), doing),
        query=_manager(manager, doing) | {"force": "true" if force else "false"},
        body=msgspec.json.encode(to_document(item, keep_unknown=False)),
        content_type="application/apply-patch+yaml",  # and JSON is YAML
    )


def patch(wanted: Patch[Any], manager: str) -> ApiRequest:
    """Merge changes into an object, or into its status."""
    place = wanted.kind.api, wanted.namespace, wanted.name
    doing = _words("patch the status of" if wanted.status else "patch", *place)
    try:
        body = merge_patch(wanted)
    except Invalid as error:
        raise Invalid(f"cannot {doing}: {error}") from error
    return ApiRequest(
        doing=doing,
        method="PATCH",
        path=_object(*place, doing) + ("/status" if wanted.status else ""),
        query=_manager(manager, doing),
        body=msgspec.json.encode(body),
        content_type="application/merge-patch+json",
    )


def delete(api: Api, namespace: str, name: str, wanted: DeletePreconditions) -> ApiRequest:
    """Delete an object."""
    expected = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    if preconditions := {field: value for field, value in expected.items() if value}:
        options["preconditions"] = preconditions
    if wanted.grace_seconds is not None:
        options["gracePeriodSeconds"] = wanted.grace_seconds
    doing = _words("delete", api, namespace, name)
    return ApiRequest(
        doing=doing,
        method="DELETE",
        path=_object(api, namespace, name, doing),
        body=msgspec.json.encode(options),
    )


def _put(item: Resource, manager: str, doing: str, subresource: str = "") -> ApiRequest:
    return ApiRequest(
        doing=doing,
        method="PUT",
        path=_object(item.api, *_place(item), doing) + subresource,
        query=_manager(manager, doing),
        body=msgspec.json.encode(to_document(item)),
    )


def _words(verb: str, api: Api, namespace: str, name: str = "") -> str:
    if name:
        return f"{verb} {api.kind} {namespace}/{name}" if namespace else f"{verb} {api.kind} {name}"
    return f"{verb} {api.kind} in {namespace}" if namespace else f"{verb} {api.kind}"


def _place(item: Resource) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name


def _collection(api: Api, namespace: str, doing: str) -> str:
    if namespace and not api.namespaced:
        raise Invalid(f"cannot {doing}: {api.kind} is in no namespace: leave it out")
    root = f"/apis/{api.group}/{api.version}" if api.group else f"/api/{api.version}"
    within = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{root}{within}/{api.plural}"


def _object(api: Api, namespace: str, name: str, doing: str) -> str:
    _check_namespace(api, namespace, doing)
    if not name or name in _NOT_NAMES or "/" in name or "%" in name:
        raise Invalid(f"cannot {doing}: {name!r} is not a valid name of a {api.kind}: say which one is meant")
    return f"{_collection(api, namespace, doing)}/{quote(name, safe='')}"


def _check_namespace(api: Api, namespace: str, doing: str) -> None:
    if api.namespaced and not namespace:
        raise Invalid(f"cannot {doing}: {api.kind} is a namespaced kind: say in which namespace")


def _selectors(of: ListSelection) -> dict[str, str]:
    selectors = {"fieldSelector": of.fields, "labelSelector": of.labels}
    return {name: value for name, value in selectors.items() if value}


def _manager(manager: str, doing: str) -> dict[str, str]:
    if not manager:
        raise Invalid(f"cannot {doing}: a write must name its field manager")
    return {"fieldManager": manager}


def version_number(version: str) -> int | None:
    """A resource version as the number that an API server counts in 64 bits; None when no server can have given it.

    To podtide versions are opaque (see `cluster.port`); only towards a server are they numbers. A version may come from
    anywhere: `int()` of text takes digits of any script, and raises at a few thousand of them.
    """
    if not _DIGITS.fullmatch(version):
        return None
    number = int(version)
    return number if number <= _LARGEST else None
