"""IPPool: the addresses of a range that are taken, and by which pod's interface.

Keys are offsets from the range's network address as decimals of any size: an IPv6 offset exceeds 64 bits
(`names` converts). Entries of one offset but another podref are another pod's, and inherit nothing.

A column of `kubectl get` cannot count entries, so every write of a pool by podtide carries the count. Whereabouts
patches entries alone; the count is then wrong until podtide's next write or the next pass of repair (design W10).
"""

from typing import Annotated, ClassVar

from msgspec import Meta, field, structs

from podtide.resources.base import AGE, Api, Cidr, Column, Count, Part, Resource

_MOST_REPORTED = 2**53


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


class IPPoolStatus(Part, frozen=True, kw_only=True):
    """How full the pool is, for people: nothing is decided by it."""

    used: Annotated[
        Count | None,
        Meta(description="How many addresses are taken, as podtide counted them with its last write."),
    ] = None
    capacity: Annotated[
        Count | None,
        Meta(description="How many addresses pods could have of the range, counted up to 2^53."),
    ] = None


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
            Column(name="Used", type="integer", json_path=".status.used"),
            Column(name="Capacity", type="integer", json_path=".status.capacity"),
            Column(name="Node", type="string", json_path=r".metadata.annotations['podtide\.io/node']"),
            AGE,
        ),
    )

    spec: IPPoolSpec
    status: IPPoolStatus | None = None

    @property
    def is_miscounted(self) -> bool:
        """Whether its count is not that of its entries. One without a count is not: another program wrote it."""
        return (
            self.status is not None
            and self.status.used is not None
            and self.status.used != len(self.spec.allocations)
        )


def with_allocations(
    pool: IPPool, allocations: dict[str, IPAllocation], *, capacity: int | None = None
) -> IPPool:
    """The pool with these entries and their count. Without a capacity, what it says of that stays."""
    known = pool.status.capacity if pool.status is not None else None
    stated = min(capacity, _MOST_REPORTED) if capacity is not None else known
    return structs.replace(
        pool,
        spec=structs.replace(pool.spec, allocations=allocations),
        status=IPPoolStatus(used=len(allocations), capacity=stated),
    )
