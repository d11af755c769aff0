"""ClusterSubnet: how every node's pool in one subnet is sized, and how full the subnet is.

Spec is for people: overrides of what the controller is configured with. Status is the request controller's: what is
in force, which agents follow. They ignore an object without `status.scaler`.
"""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from podtide.resources.base import AGE, Api, Cidr, Column, Count, Part, Resource, always
from podtide.resources.conditions import Conditions
from podtide.resources.rules import Fields, Rule

Batch = Annotated[int, Meta(ge=1, extra_json_schema={"format": "int64"})]
Buffer = Annotated[float, Meta(ge=0)]
PartOfCapacity = Annotated[float, Meta(ge=0)]


def _has(given: Fields, name: str) -> bool:
    return given.get(name) is not None


class ThresholdsOverride(Part, frozen=True, kw_only=True):
    """Between which parts of the subnet's capacity the batch is left as it is."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="0.0 < self.lower && self.lower < self.upper && self.upper < 1.0",
            message="thresholds must be 0 < lower < upper < 1, such as 0.8 and 0.9",
            is_met=lambda given: 0 < given["lower"] < given["upper"] < 1,
        ),
    )

    lower: Annotated[
        PartOfCapacity, Meta(description="A larger batch must stay below this part of the capacity.")
    ]
    upper: Annotated[
        PartOfCapacity, Meta(description="Above this part of the capacity the batch is reduced.")
    ]


class ScalerOverride(Part, frozen=True, kw_only=True):
    """What to use instead of the configured defaults; what is left out stays at its default."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.fixed) || (!has(self.batch) && !has(self.minBatch))",
            message="fixed excludes batch and minBatch: give fixed alone, or leave it out",
            is_met=lambda given: (
                not _has(given, "fixed") or not (_has(given, "batch") or _has(given, "minBatch"))
            ),
        ),
        Rule(
            cel="!has(self.minBatch) || !has(self.batch) || self.minBatch <= self.batch",
            message="minBatch must not be more than batch: give a smaller minBatch or a larger batch",
            is_met=lambda given: (
                not _has(given, "minBatch") or not _has(given, "batch") or given["minBatch"] <= given["batch"]
            ),
        ),
    )

    batch: Annotated[
        Batch | None, Meta(description="The largest batch: in force while the subnet is at ease.")
    ] = None
    min_batch: Annotated[
        Batch | None, Meta(description="The smallest batch, unless nothing is left while a node waits.")
    ] = None
    fixed: Annotated[
        Batch | None,
        Meta(
            description="The one batch to use, unless nothing is left while a node waits. Excludes the other two."
        ),
    ] = None
    buffer: Annotated[
        Buffer | None,
        Meta(description="The least to keep free, as a fraction of a batch (0.5 is half a batch)."),
    ] = None
    thresholds: ThresholdsOverride | None = None


class ScalerInForce(Part, frozen=True, kw_only=True):
    """What every node in the subnet sizes its pool by."""

    batch: Annotated[Batch, Meta(description="Addresses are held in multiples of this.")]
    buffer: Annotated[
        Buffer, Meta(description="The least to keep free, as a fraction of a batch (0.5 is half a batch).")
    ]
    top: Annotated[
        Batch | None,
        Meta(
            description="The largest batch that all clusters of the subnet allow. Below it, nodes state their demand anew."
        ),
    ] = None


class ThresholdsInForce(Part, frozen=True, kw_only=True):
    """t and T: of all clusters that share the subnet, the pair with the smallest T."""

    lower: Annotated[
        PartOfCapacity, Meta(description="Below this part of the capacity the subnet is at ease.")
    ]
    upper: Annotated[PartOfCapacity, Meta(description="Above this part of the capacity the subnet runs low.")]


class ClusterSubnetSpec(Part, frozen=True, kw_only=True):
    """What people want of the subnet's pools."""

    scaler: ScalerOverride = ScalerOverride()


class SubnetCidr(Part, frozen=True, kw_only=True):
    """One of the subnet's ranges."""

    merge_key: ClassVar[str | None] = "cidr"

    cidr: Annotated[Cidr, Meta(description="The range: its prefix length is that of the addresses in it.")]
    gateway: Annotated[str, Meta(description="The gateway of the addresses in it.")] = ""
    draining: Annotated[
        bool,
        Meta(description="Whether it is to leave the subnet: nodes give back what no pod has of it."),
    ] = False


class ClusterSubnetStatus(Part, frozen=True, kw_only=True):
    """The subnet as the request controller last saw it, and what it decided."""

    cidr: Annotated[Cidr, Meta(description="The subnet's range, or the first of several.")] = ""
    cidrs: Annotated[list[SubnetCidr], Meta(description="The subnet's ranges, each with its gateway.")] = (
        field(default_factory=list)
    )
    ranges: Annotated[
        str, Meta(description="All ranges in one text, because a column of kubectl shows one item of a list.")
    ] = ""
    capacity: Annotated[
        Count,
        Meta(
            description="Usable addresses in the subnet, counted up to 2^53 (an IPv6 subnet may have more)."
        ),
    ] = always(0)
    reserved: Annotated[Count, Meta(description="Addresses held by nodes, primaries included.")] = always(0)
    exhausted: Annotated[
        bool,
        Meta(
            description="Whether the subnet runs low: it went over the upper threshold, and not below the lower one since."
        ),
    ] = always(False)
    starved: Annotated[
        bool,
        Meta(description="Whether nothing is left while a node waits, so that nodes keep no free address."),
    ] = always(False)
    runs_out: Annotated[
        str,
        Meta(
            description="The day (UTC) on which all addresses are reserved, if use goes on as it did; the condition RunsOut says more."
        ),
    ] = ""
    scaler: ScalerInForce | None = None
    thresholds: ThresholdsInForce | None = None
    conditions: Conditions = field(default_factory=list)


class ClusterSubnet(Resource, frozen=True, kw_only=True):
    """How every node's pool in one subnet is sized, and how full the subnet is; named after the subnet."""

    api: ClassVar[Api] = Api(
        group="acn.azure.com",
        version="v1alpha1",
        kind="ClusterSubnet",
        plural="clustersubnets",
        namespaced=True,
        status_subresource=True,
        short_names=("csn",),
        columns=(
            Column(name="CIDRs", type="string", json_path=".status.ranges"),
            Column(name="Capacity", type="integer", json_path=".status.capacity"),
            Column(name="Reserved", type="integer", json_path=".status.reserved"),
            Column(name="Batch", type="integer", json_path=".status.scaler.batch"),
            Column(name="Buffer", type="number", json_path=".status.scaler.buffer"),
            Column(name="Exhausted", type="boolean", json_path=".status.exhausted"),
            Column(name="Runs-Out", type="string", json_path=".status.runsOut"),
            AGE,
        ),
    )

    spec: ClusterSubnetSpec = ClusterSubnetSpec()
    status: ClusterSubnetStatus = ClusterSubnetStatus()

    @property
    def is_judged(self) -> bool:
        """Whether the controller has written what is in force. Until then the object counts as absent."""
        return self.status.scaler is not None
