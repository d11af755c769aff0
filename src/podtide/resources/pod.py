"""Pod: the few fields that decide whether it needs an address on a node, and whether it has one.

Pods come by the thousand and in kilobytes each, so nothing else of them is decoded.
"""

from typing import ClassVar

from msgspec import field

from podtide.resources.base import Api, OpenEnum, Part, Resource


class PodPhase(OpenEnum):
    """Where a pod is in its life."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class PodContainer(Part, frozen=True, kw_only=True):
    """The least an API server asks of a container, for the pods that podtide itself makes."""

    merge_key: ClassVar[str | None] = "name"

    name: str
    image: str = ""


class PodSpec(Part, frozen=True, kw_only=True):
    """Where the pod runs."""

    node_name: str = ""
    host_network: bool = False
    containers: list[PodContainer] = field(default_factory=list)


class PodIP(Part, frozen=True, kw_only=True):
    """One address of the pod, at most one per family."""

    merge_key: ClassVar[str | None] = "ip"

    ip: str


class PodStatus(Part, frozen=True, kw_only=True):
    """How the pod is."""

    phase: PodPhase | None = None
    pod_ip: str = field(default="", name="podIP")
    pod_ips: list[PodIP] = field(default_factory=list, name="podIPs")


class Pod(Resource, frozen=True, kw_only=True):
    """A pod."""

    api: ClassVar[Api] = Api(
        group="",
        version="v1",
        kind="Pod",
        plural="pods",
        namespaced=True,
        status_subresource=True,
        keeps_unknown=False,
        short_names=("po",),
        field_selectors=("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"),
    )

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
