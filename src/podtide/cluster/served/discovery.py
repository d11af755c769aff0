"""What a client asks first: which groups, versions and kinds there are, and what can be done with them."""

from collections.abc import Iterable
from typing import Any

from podtide import __version__
from podtide.resources.base import Api

Document = dict[str, Any]

_KUBERNETES_MINOR = "36"
"""The Kubernetes whose behaviour is kept, so that clients know what to expect."""
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_STATUS_VERBS = ["get", "patch", "update"]


def version() -> Document:
    """The document that `kubectl version` shows of the server."""
    return {
        "major": "1",
        "minor": _KUBERNETES_MINOR,
        "gitVersion": f"v1.{_KUBERNETES_MINOR}.0+podtide-{__version__}",
    }


def discovery(apis: Iterable[Api]) -> dict[str, Document]:
    """The documents of discovery by their path."""
    resources: dict[str, list[Document]] = {}
    for api in apis:
        resources.setdefault(api.api_version, []).extend(_resources(api))
    groups: dict[str, list[str]] = {}
    for api_version in resources:
        group, slash, _ = api_version.rpartition("/")
        if slash:
            groups.setdefault(group, []).append(api_version)
    documents = {_root(api_version): _resource_list(api_version, of) for api_version, of in resources.items()}
    documents |= {f"/apis/{name}": _described("APIGroup") | _group(name, of) for name, of in groups.items()}
    documents["/api"] = {
        "kind": "APIVersions",
        "versions": [api_version for api_version in resources if "/" not in api_version],
        "serverAddressByClientCIDRs": [],
    }
    documents["/apis"] = _described("APIGroupList") | {"groups": [_group(*each) for each in groups.items()]}
    return documents


def root_of(api: Api) -> str:
    """The path below which a kind is served."""
    return _root(api.api_version)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _described(kind: str) -> Document:
    return {"kind": kind, "apiVersion": "v1"}


def _group(name: str, api_versions: list[str]) -> Document:
    versions = [{"groupVersion": each, "version": each.rpartition("/")[2]} for each in api_versions]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(api_version: str, resources: list[Document]) -> Document:
    return _described("APIResourceList") | {"groupVersion": api_version, "resources": resources}


def _resources(api: Api) -> list[Document]:
    resource = {
        "name": api.plural,
        "singularName": api.singular,
        "namespaced": api.namespaced,
        "kind": api.kind,
        "verbs": _VERBS,
        "shortNames": list(api.short_names),
    }
    if not api.status_subresource:
        return [resource]
    status = {
        "name": f"{api.plural}/status",
        "singularName": "",
        "namespaced": api.namespaced,
        "kind": api.kind,
        "verbs": _STATUS_VERBS,
    }
    return [resource, status]
