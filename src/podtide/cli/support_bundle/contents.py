"""What a support bundle contains, part by part. A part that cannot be read is written down, and the others still come."""

import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from podtide import __version__
from podtide.allocator.pages import every_container, every_quarantined
from podtide.allocator.port import Allocator
from podtide.cli.check.command import read as read_check
from podtide.cli.check.findings import find
from podtide.cli.support_bundle.redaction import Redactor
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster
from podtide.core.errors import PodtideError
from podtide.resources.base import Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.codec import to_document
from podtide.resources.event import Event
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NAME_LABEL, PODTIDE, SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod, PodPhase

_COMPONENT_LABEL = "app.kubernetes.io/component"
_METRICS_PORTS = {"agent": 9391, "controller": 9392, "allocator": 9390}
"""Where the chart lets programs serve their metrics."""
_LOG_BYTES = 4_000_000
"""The most of one log."""


class ReadPath(Protocol):
    """Reads a path of the API server."""

    async def __call__(self, path: str, **query: str) -> bytes:
        """The answer."""
        ...


class BundleFile(Struct, frozen=True):
    """One file of the bundle, without secrets."""

    name: str
    data: bytes


class LogLimits(Struct, frozen=True):
    """How much of podtide's own logs to take."""

    lines: int
    """The last ones of each log."""
    pods: int
    """Of how many pods."""


class BundleContents:
    """Reads the parts. `tell` is called with the name of each before it is read."""

    def __init__(  # noqa: PLR0913 - whom to ask, how much, and what to take out
        self,
        cluster: Cluster,
        allocator: Allocator | None,
        read_path: ReadPath,
        *,
        namespace: str,
        logs: LogLimits,
        redactor: Redactor,
        tell: Callable[[str], None],
    ) -> None:
        """`namespace` is that of secondary networks' pools."""
        self.problems: list[str] = []
        """What could not be read, and why."""
        self._cluster = cluster
        self._allocator = allocator
        self._read_path = read_path
        self._namespace = namespace
        self._logs = logs
        self._redactor = redactor
        self._tell = tell

    async def files(self) -> AsyncIterator[BundleFile]:
        """All files, the list of problems last."""
        yield self._document(
            "versions.json",
            {"podtide": __version__, "python": platform.python_version(), "system": platform.platform()},
        )
        async for file in self._part("kubernetes-version.json", partial(self._read_path, "/version")):
            yield file
        for kind, namespace in self._kinds():
            name = f"objects/{kind.api.plural}.json"
            async for file in self._part(name, partial(self._objects, kind, namespace)):
                yield file
        async for file in self._part("check.json", self._check):
            yield file
        async for file in self._of_allocator():
            yield file
        async for file in self._of_programs():
            yield file
        problems = "".join(f"{self._redactor.text(line)}\n" for line in self.problems)
        yield BundleFile("problems.txt", (problems or "everything was read\n").encode())

    def _kinds(self) -> Iterable[tuple[type[Resource], str]]:
        yield from (
            (kind, SYSTEM_NAMESPACE) for kind in (NodeNetworkConfig, ClusterSubnet, ClusterSubnetState)
        )
        yield from (
            (kind, self._namespace) for kind in (IPPool, OverlappingRangeIPReservation, NodeSlicePool)
        )
        yield from ((kind, "") for kind in (NetworkAttachmentDefinition, Node, Pod))
        yield from ((kind, SYSTEM_NAMESPACE) for kind in (Lease, Event))

    async def _objects(self, kind: type[Resource], namespace: str) -> object:
        # Unknown fields stay away: nothing of them is needed, and what is in them cannot be judged.
        return [
            to_document(item, keep_unknown=False) for item in await list_all(self._cluster, kind, namespace)
        ]

    async def _check(self) -> object:
        return find(await read_check(self._cluster, self._allocator, self._namespace))

    async def _of_allocator(self) -> AsyncIterator[BundleFile]:
        allocator = self._allocator
        if allocator is None:
            self.problems.append("allocator: not asked; name it with --allocator or --database")
            return

        async def containers() -> object:
            return [each async for each in every_container(allocator)]

        async def quarantined() -> object:
            return [each async for each in every_quarantined(allocator)]

        for name, read in (
            ("allocator/subnets.json", allocator.list_subnets),
            ("allocator/containers.json", containers),
            ("allocator/quarantine.json", quarantined),
        ):
            async for file in self._part(name, read):
                yield file

    async def _of_programs(self) -> AsyncIterator[BundleFile]:
        """Logs and metrics of podtide's own pods: the controller's and the allocator's first, then agents in trouble."""
        try:
            pods = [pod for pod in await list_all(self._cluster, Pod) if _component(pod)]
        except PodtideError as error:
            self.problems.append(f"logs: {error}")
            return
        pods.sort(
            key=lambda pod: (_component(pod) == "agent", pod.status.phase is PodPhase.RUNNING, str(pod.key))
        )
        if len(pods) > self._logs.pods:
            self.problems.append(
                f"logs: of {len(pods)} pods only {self._logs.pods}; more of them with --log-pods"
            )
        if not pods:
            self.problems.append("logs: no pod of podtide's is there")
        for pod in pods[: self._logs.pods]:
            where = f"{pod.metadata.namespace}_{pod.metadata.name}"
            path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
            for container in pod.spec.containers:
                read_log = partial(
                    self._read_path,
                    f"{path}/log",
                    container=container.name,
                    tailLines=str(self._logs.lines),
                    limitBytes=str(_LOG_BYTES),
                    timestamps="true",
                )
                async for file in self._part(f"logs/{where}_{container.name}.log", read_log):
                    yield file
            port = _METRICS_PORTS[_component(pod)]
            read_metrics = partial(self._read_path, f"{path}:{port}/proxy/metrics")
            async for file in self._part(f"metrics/{where}.txt", read_metrics):
                yield file

    async def _part(self, name: str, read: Callable[[], Awaitable[object]]) -> AsyncIterator[BundleFile]:
        self._tell(name)
        try:
            found = await read()
        except PodtideError as error:
            self.problems.append(f"{name}: {error}")
            return
        if isinstance(found, bytes):
            yield BundleFile(name, self._redactor.text(found.decode(errors="replace")).encode())
        else:
            yield self._document(name, found)

    def _document(self, name: str, found: object) -> BundleFile:
        plain: Any = msgspec.to_builtins(found, str_keys=True)
        encoded = msgspec.json.encode(self._redactor.document(plain))
        return BundleFile(name, msgspec.json.format(encoded) + b"\n")


def _component(pod: Pod) -> str:
    """Which of podtide's programs a pod runs; "" if none."""
    labels = pod.metadata.labels
    component = labels.get(_COMPONENT_LABEL, "")
    is_ours = labels.get(NAME_LABEL) == PODTIDE or pod.metadata.name.startswith(f"{PODTIDE}-")
    return component if is_ours and component in _METRICS_PORTS else ""
