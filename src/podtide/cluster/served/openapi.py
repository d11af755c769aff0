"""OpenAPI documents, one per group and version, with as much in them as kubectl reads.

It reads the schemas for `kubectl explain`, and in the operations looks for the parameter `fieldValidation`: a server that
has it is left to find unknown fields by itself (`admission`). Schemas are those of the CRDs; of the kinds every
cluster has they show the fields that podtide knows.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec

from podtide import __version__
from podtide.cluster.served.discovery import root_of
from podtide.resources.base import Api, Resource
from podtide.resources.crds import crd

Document = dict[str, Any]

_FIELD_VALIDATION = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}


def openapi_documents(kinds: Iterable[type[Resource]]) -> dict[str, bytes]:
    """The documents by their path, and under /openapi/v3 the list of them."""
    by_root: dict[str, list[type[Resource]]] = {}
    for kind in kinds:
        by_root.setdefault(root_of(kind.api), []).append(kind)
    documents = {f"/openapi/v3{root}": msgspec.json.encode(_document(of)) for root, of in by_root.items()}
    # The hash lets a client keep a document for ever: another one has another address.
    paths = {
        path.removeprefix("/openapi/v3/"): {
            "serverRelativeURL": f"{path}?hash={hashlib.sha256(body).hexdigest()}"
        }
        for path, body in documents.items()
    }
    return documents | {"/openapi/v3": msgspec.json.encode({"paths": paths})}


@cache
def schema_of(kind: type[Resource]) -> Document:
    """The schema of a kind, which the caller must not change."""
    schema: Document = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _document(kinds: list[type[Resource]]) -> Document:
    return {
        "openapi": "3.0.0",
        "info": {"title": "podtide", "version": __version__},
        "paths": {_item_path(kind.api): _operations(kind.api) for kind in kinds},
        "components": {"schemas": {_schema_name(kind.api): _schema(kind) for kind in kinds}},
    }


def _item_path(api: Api) -> str:
    within = "/namespaces/{namespace}" if api.namespaced else ""
    return f"{root_of(api)}{within}/{api.plural}/{{name}}"


def _operations(api: Api) -> Document:
    patch = {
        "parameters": [_FIELD_VALIDATION],
        "responses": {},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _group_version_kind(api),
    }
    return {"patch": patch}


def _schema(kind: type[Resource]) -> Document:
    return schema_of(kind) | {"x-kubernetes-group-version-kind": [_group_version_kind(kind.api)]}


def _schema_name(api: Api) -> str:
    return ".".join((*reversed(api.group.split(".")), api.version, api.kind)).lstrip(".")


def _group_version_kind(api: Api) -> Document:
    return {"group": api.group, "version": api.version, "kind": api.kind}
