"""NetworkAttachmentDefinition: a secondary network's CNI configuration. Multus owns the kind; podtide only reads it."""

from typing import Annotated, ClassVar

from msgspec import Meta

from podtide.resources.base import Api, Part, Resource


class NetworkAttachmentDefinitionSpec(Part, frozen=True, kw_only=True):
    """The network."""

    config: Annotated[
        str, Meta(description="The CNI configuration as JSON text: a single plugin's, or a list of plugins.")
    ] = ""


class NetworkAttachmentDefinition(Resource, frozen=True, kw_only=True):
    """A secondary network that pods can ask to be attached to."""

    api: ClassVar[Api] = Api(
        group="k8s.cni.cncf.io",
        version="v1",
        kind="NetworkAttachmentDefinition",
        plural="network-attachment-definitions",
        namespaced=True,
        keeps_unknown=False,
        short_names=("net-attach-def",),
    )

    spec: NetworkAttachmentDefinitionSpec = NetworkAttachmentDefinitionSpec()
