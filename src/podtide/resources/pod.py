"""Pod: the few fields that decide whether it needs an address on a node, requests one, and has one.

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


class ResourceRequirements(Part, frozen=True, kw_only=True):
    """What a container requests of resources: quantities by name (see `podtide.resources.quantity`)."""

    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)
    """Of an extended resource as much as is requested: an API server refuses anything else."""


class PodContainer(Part, frozen=True, kw_only=True):
    """What a container requests, and the least an API server asks of one, for the pods that podtide itself makes."""

    merge_key: ClassVar[str | None] = "name"

    name: str
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()


class PodInitContainer(PodContainer, frozen=True, kw_only=True):
    """A container that runs before the others: to its end, or as a sidecar beside them from then on."""

    restart_policy: str = ""
    """`Always` makes it a sidecar."""

    @property
    def is_sidecar(self) -> bool:
        """Whether it goes on running, so that what it requests is requested beside all that starts later."""
        return self.restart_policy == "Always"


class PodSpec(Part, frozen=True, kw_only=True):
    """Where the pod runs, and what."""

    node_name: str = ""
    host_network: bool = False
    init_containers: list[PodInitContainer] = field(default_factory=list)
    """In the order in which they start."""
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
