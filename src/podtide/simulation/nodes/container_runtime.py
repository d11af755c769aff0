"""The part of a container runtime that concerns addresses: it calls the CNI plugin for a sandbox and reads its answer.

The environment and the configuration are those a runtime hands to an IPAM plugin, so the plugin and the agent behind
it do here all that they do on a real node. Every call is recorded with its result.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from podtide.cni.versions import LATEST, Verb
from podtide.core.errors import PodtideError
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.nodes.plugin_caller import PluginCaller
from podtide.simulation.trace import PluginCall, Trace

NETWORK = "podtide"
INTERFACE = "eth0"
CONFIGURATION = msgspec.json.encode(
    {"cniVersion": LATEST, "name": NETWORK, "type": "ptp", "ipam": {"type": "podtide"}}
)


class CallFailed(PodtideError):
    """The plugin returned an error, which is the message."""


class CallRecorder(Protocol):
    """Is told of calls as they begin and of the answers that arrive."""

    def began(self, verb: Verb, *, node: str, scope: str, pod: str, sandbox: str) -> int:
        """A call begins: its number. `scope` is the network; "" for the pools of all nodes."""
        ...

    def answered(self, call: int, addresses: tuple[str, ...]) -> None:
        """A call succeeded."""
        ...


class _Address(Struct, frozen=True):
    address: str


class _Result(Struct, frozen=True):
    ips: tuple[_Address, ...]


class _Failure(Struct, frozen=True):
    code: int
    msg: str


class ContainerRuntime:
    """The runtime of one node. Every pod is attached to the node's pool and to all secondary networks."""

    def __init__(  # noqa: PLR0913 - whose runtime it is, what it calls, and what it runs in
        self,
        node: str,
        plugin: PluginCaller,
        networks: Sequence[Definition] = (),
        *,
        clock: Clock,
        trace: Trace,
        calls: CallRecorder | None = None,
        of_cluster: str = "",
    ) -> None:
        self._node = node
        self._calls = calls
        self._of_cluster = of_cluster
        self._plugin = plugin
        self._networks = networks
        self._clock = clock
        self._trace = trace
        self.attached: dict[str, dict[str, tuple[str, ...]]] = {}
        """The addresses of sandboxes' further interfaces, by sandbox and interface."""

    async def add(self, pod: Pod, sandbox: str) -> tuple[str, ...]:
        """Call ADD for all networks, and return the sandbox's addresses, one for each family. CallFailed if one network fails."""
        addresses = await self._call(Verb.ADD, pod, sandbox)
        attached = {each.interface: await self._call(Verb.ADD, pod, sandbox, each) for each in self._networks}
        if attached:
            self.attached[sandbox] = attached
        return addresses

    async def delete(self, pod: Pod, sandbox: str) -> None:
        """Call DEL for all networks, the rest also when one fails."""
        failures = []
        for each in (*reversed(self._networks), None):
            try:
                await self._call(Verb.DEL, pod, sandbox, each)
            except CallFailed as failure:
                failures.append(failure)
        if failures:
            raise failures[0]
        self.attached.pop(sandbox, None)

    async def status(self) -> None:
        """Call STATUS: whether the plugin could serve an ADD. A runtime declares the node unready if not."""
        await self._call(Verb.STATUS)

    async def _call(
        self, verb: Verb, pod: Pod | None = None, sandbox: str = "", network: Definition | None = None
    ) -> tuple[str, ...]:
        environment = {"CNI_COMMAND": str(verb), "CNI_PATH": "/opt/cni/bin"}
        if pod is not None:
            environment |= _attachment(pod, sandbox, network.interface if network else INTERFACE)
        stdin = network.stdin if network else CONFIGURATION
        started = self._clock.monotonic()
        name = network.name if network else ""
        call = 0
        if self._calls is not None:
            call = self._calls.began(
                verb,
                node=full_name(self._of_cluster, self._node),
                scope=full_name(self._of_cluster, name) if name else "",
                pod=str(pod.key) if pod else "",
                sandbox=sandbox,
            )
        exit_status, output = await self._plugin.call(self._node, environment, stdin)
        addresses, failure = _read(verb, exit_status, output)
        if self._calls is not None and not failure:
            self._calls.answered(call, addresses)
        now = self._clock.monotonic()
        self._trace.note(
            PluginCall(
                at=now,
                took_seconds=now - started,
                node=self._node,
                verb=str(verb),
                pod=str(pod.key) if pod else "",
                sandbox=sandbox,
                ok=not failure,
                words=failure or ", ".join(addresses),
                network=name,
                cluster=self._of_cluster,
            )
        )
        if failure:
            raise CallFailed(failure)
        return addresses


def _attachment(pod: Pod, sandbox: str, interface: str) -> dict[str, str]:
    place = pod.metadata
    return {
        "CNI_CONTAINERID": sandbox,
        "CNI_IFNAME": interface,
        "CNI_NETNS": f"/var/run/netns/{sandbox[:12]}",
        "CNI_ARGS": (
            f"IgnoreUnknown=1;K8S_POD_NAMESPACE={place.namespace};K8S_POD_NAME={place.name};"
            f"K8S_POD_INFRA_CONTAINER_ID={sandbox};K8S_POD_UID={place.uid}"
        ),
    }


def _read(verb: Verb, exit_status: int, output: bytes) -> tuple[tuple[str, ...], str]:
    """The addresses, or the error's message."""
    if exit_status:
        failure = msgspec.json.decode(output, type=_Failure)
        return (), f"code {failure.code}: {failure.msg}"
    if verb is not Verb.ADD:
        return (), ""
    result = msgspec.json.decode(output, type=_Result)
    return tuple(entry.address.partition("/")[0] for entry in result.ips), ""
