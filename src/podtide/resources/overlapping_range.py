"""OverlappingRangeIPReservation: one address taken across all pools, so that overlapping ranges never collide.

The object's name is the address (see `names`): creating it is the reservation, and a name that is taken is an
address that is taken.
"""

from typing import Annotated, ClassVar

from msgspec import Meta, field

from podtide.resources.base import AGE, Api, Column, Part, Resource


class OverlappingRangeIPReservationSpec(Part, frozen=True, kw_only=True):
    """Who holds the address."""

    podref: Annotated[str, Meta(description="The pod that holds the address, as namespace/name.")]
    ifname: Annotated[str, Meta(description="The interface in the pod that has it.")] = ""
    container_id: Annotated[str, Meta(description="The container (sandbox) that holds it.")] = field(
        default="", name="containerid"
    )
    pod_uid: Annotated[
        str, Meta(description="The pod's uid, where it is known: Whereabouts does not write it.")
    ] = field(default="", name="poduid")


class OverlappingRangeIPReservation(Resource, frozen=True, kw_only=True):
    """One address taken across all pools; named after the address."""

    api: ClassVar[Api] = Api(
        group="whereabouts.cni.cncf.io",
        version="v1alpha1",
        kind="OverlappingRangeIPReservation",
        plural="overlappingrangeipreservations",
        namespaced=True,
        short_names=("ipr",),
        columns=(
            Column(name="Pod", type="string", json_path=".spec.podref"),
            Column(name="Interface", type="string", json_path=".spec.ifname", priority=1),
            AGE,
        ),
    )

    spec: OverlappingRangeIPReservationSpec
