"""The kinds that are served: podtide's own world, and two that people expect of any cluster.

Namespaces are there to be listed, made and deleted; an object may be in any, whether or not that was created. Kinds are
built in, so a CustomResourceDefinition adds none: that of a kind which is served is kept, any other is refused.
"""

from typing import ClassVar

from podtide.resources.base import Api, Column, Part, Resource
from podtide.resources.kinds import ALL_KINDS, PODTIDE_KINDS
from podtide.resources.network_attachment import NetworkAttachmentDefinition

STANDING_NAMESPACES = ("default", "kube-system")
"""Those that are there from the start."""


class DefinedNames(Part, frozen=True, kw_only=True):
    """The names of the defined kind."""

    kind: str
    plural: str


class CustomResourceDefinitionSpec(Part, frozen=True, kw_only=True):
    """The group and names of the defined kind."""

    group: str
    names: DefinedNames


class CustomResourceDefinition(Resource, frozen=True, kw_only=True):
    """The definition of a kind, as `podtide crds` prints it."""

    api: ClassVar[Api] = Api(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
        status_subresource=True,
        short_names=("crd", "crds"),
        columns=(Column(name="Created At", type="string", json_path=".metadata.creationTimestamp"),),
        field_selectors=("metadata.name",),
    )

    spec: CustomResourceDefinitionSpec


CUSTOM_KINDS: tuple[type[Resource], ...] = (*PODTIDE_KINDS, NetworkAttachmentDefinition)
"""Those that a real cluster has only by a definition."""

SERVED_KINDS: tuple[type[Resource], ...] = (*ALL_KINDS, CustomResourceDefinition)
