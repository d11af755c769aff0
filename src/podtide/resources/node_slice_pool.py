"""NodeSlicePool: a secondary network's range cut into slices, and whose each slice is.

It grows with the cluster, so agents never watch it. It has no status subresource: spec and status are written
together, in one create or replace.
"""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from podtide.resources.base import AGE, Api, Cidr, Column, Count, Part, Resource
from podtide.resources.conditions import Conditions

# With and without the slash: Whereabouts writes whichever its configuration has.
PrefixLength = Annotated[str, Meta(extra_json_schema={"pattern": "^/?(12[0-8]|1[01][0-9]|[0-9]{1,2})$"})]


class NodeSlicePoolSpec(Part, frozen=True, kw_only=True):
    """What is cut, and how."""

    range: Annotated[Cidr, Meta(description="The network's whole range, as a CIDR.")]
    slice_size: Annotated[PrefixLength, Meta(description="The prefix length of each slice, such as /24.")]


class NodeSliceAllocation(Part, frozen=True, kw_only=True):
    """One slice, and whose it is."""

    merge_key: ClassVar[str | None] = "sliceRange"

    node_name: Annotated[str, Meta(description='The node that owns the slice; "" when it is free.')]
    slice_range: Annotated[Cidr, Meta(description="The slice, as a CIDR.")]


class NodeSlicePoolStatus(Part, frozen=True, kw_only=True):
    """The slices."""

    allocations: Annotated[
        list[NodeSliceAllocation],
        Meta(
            description="The slices in address order: all of them, or in a very large pool only those assigned."
        ),
    ]
    assigned: Annotated[Count | None, Meta(description="How many slices belong to a node.")] = None
    total: Annotated[Count | None, Meta(description="How many slices the range has.")] = None
    conditions: Conditions = field(default_factory=list)


class NodeSlicePool(Resource, frozen=True, kw_only=True):
    """A secondary network's range cut into one slice per node; named after the network."""

    api: ClassVar[Api] = Api(
        group="whereabouts.cni.cncf.io",
        version="v1alpha1",
        kind="NodeSlicePool",
        plural="nodeslicepools",
        namespaced=True,
        short_names=("nsp",),
        columns=(
            Column(name="Range", type="string", json_path=".spec.range"),
            Column(name="Slice Size", type="string", json_path=".spec.sliceSize"),
            Column(name="Assigned", type="integer", json_path=".status.assigned"),
            Column(name="Total", type="integer", json_path=".status.total"),
            AGE,
        ),
    )

    spec: NodeSlicePoolSpec
    status: NodeSlicePoolStatus | None = None
