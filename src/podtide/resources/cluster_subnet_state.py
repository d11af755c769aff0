"""ClusterSubnetState: whether a subnet is exhausted, for the agents of Azure CNS that know no ClusterSubnet."""

from typing import Annotated, ClassVar

from msgspec import Meta

from podtide.resources.base import Api, Column, Part, Resource


class ClusterSubnetStateStatus(Part, frozen=True, kw_only=True):
    """Whether the subnet is exhausted, and since when that is said."""

    exhausted: Annotated[bool, Meta(description="Whether the subnet runs low.")]
    timestamp: Annotated[str, Meta(description="When this was last changed.")]


class ClusterSubnetState(Resource, frozen=True, kw_only=True):
    """Whether a subnet is exhausted; named after the subnet."""

    api: ClassVar[Api] = Api(
        group="acn.azure.com",
        version="v1alpha1",
        kind="ClusterSubnetState",
        plural="clustersubnetstates",
        namespaced=True,
        status_subresource=True,
        short_names=("css",),
        columns=(
            Column(name="Exhausted", type="boolean", json_path=".status.exhausted"),
            Column(name="Updated", type="string", json_path=".status.timestamp"),
        ),
    )

    status: ClusterSubnetStateStatus | None = None
