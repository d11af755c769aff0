"""Lease: who may act, and until when.

Times are text with exactly six digits of a second (`timestamps.to_micro_time`): Kubernetes refuses any other number.
"""

from typing import ClassVar

from podtide.resources.base import Api, Part, Resource


class LeaseSpec(Part, frozen=True, kw_only=True):
    """The holder. A lease without `holder_identity` is free."""

    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(Resource, frozen=True, kw_only=True):
    """A lease."""

    api: ClassVar[Api] = Api(
        group="coordination.k8s.io",
        version="v1",
        kind="Lease",
        plural="leases",
        namespaced=True,
    )

    spec: LeaseSpec = LeaseSpec()
