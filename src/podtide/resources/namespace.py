"""Namespace: the uid of kube-system tells one cluster from another, whatever people call them."""

from typing import ClassVar

from podtide.resources.base import AGE, Api, Column, Part, Resource


class NamespaceStatus(Part, frozen=True, kw_only=True):
    """How the namespace is."""

    phase: str = ""


class Namespace(Resource, frozen=True, kw_only=True):
    """A namespace."""

    api: ClassVar[Api] = Api(
        group="",
        version="v1",
        kind="Namespace",
        plural="namespaces",
        namespaced=False,
        status_subresource=True,
        short_names=("ns",),
        columns=(Column(name="Status", type="string", json_path=".status.phase"), AGE),
        field_selectors=("metadata.name", "status.phase"),
    )

    status: NamespaceStatus = NamespaceStatus()
