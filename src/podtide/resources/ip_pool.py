"""IPPool: the addresses of a range that are taken, and by which pod's interface.

Keys are offsets from the range's network address as decimals of any size: an IPv6 offset exceeds 64 bits
(`names` converts). Entries of one offset but another podref are another pod's, and inherit nothing.
"""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from podtide.resources.base import AGE, Api, Cidr, Column, Part, Resource


class IPAllocation(Part, frozen=True, kw_only=True):
    """Who holds one address."""

    merge_key: ClassVar[str | None] = "podref"

    id: Annotated[str, Meta(description="The container (sandbox) that holds the address.")]
    podref: Annotated[str, Meta(description="The pod that holds it, as namespace/name.")]
    ifname: Annotated[str, Meta(description="The interface in the pod that has it.")] = ""
    pod_uid: Annotated[
        str, Meta(description="The pod's uid, where it is known: Whereabouts does not write it.")
    ] = field(default="", name="poduid")
    earlier: Annotated[
        list[str],
        Meta(description="Sandboxes of the pod that had it before, and of which no DEL has come."),
    ] = field(default_factory=list)
    configuration: Annotated[
        str,
        Meta(description="The CNI configuration by which it was given, in a node's own pool."),
    ] = ""


class IPPoolSpec(Part, frozen=True, kw_only=True):
    """A range and what of it is taken."""

    range: Annotated[Cidr, Meta(description="The range, as a CIDR.")]
    allocations: Annotated[
        dict[str, IPAllocation],
        Meta(description="Taken addresses, by decimal offset from the range's network address."),
    ]


class IPPool(Resource, frozen=True, kw_only=True):
    """The addresses of a range that are taken, and by whom."""

    api: ClassVar[Api] = Api(
        group="whereabouts.cni.cncf.io",
        version="v1alpha1",
        kind="IPPool",
        plural="ippools",
        namespaced=True,
        short_names=("ipp",),
        columns=(
            Column(name="Range", type="string", json_path=".spec.range"),
            Column(name="Node", type="string", json_path=r".metadata.annotations['podtide\.io/node']"),
            AGE,
        ),
    )

    spec: IPPoolSpec
