"""The node agent: its watches, its state, and the loops that run it.

    pods ────────────→ demand ─┐
    ClusterSubnet(State) ──────┼→ requester → NodeNetworkConfig spec
    NodeNetworkConfig ─→ pool ─┘
                          ↑ ADD, DEL (`addresses`)

Secondary networks (`networks`) are independent of that: their addresses come from IPPools in the cluster.

Each loop reads the current state and takes one step towards the wanted one; none depends on an orderly shutdown.
"""

import asyncio
from typing import NoReturn, TypeVar

from msgspec import Struct

from podtide.agent.api.address_service import AddressService
from podtide.agent.api.node_snapshot import NodeStateReader
from podtide.agent.bridge.gateways import BridgeGateways, NodeAddresses
from podtide.agent.bridge.port import Bridge
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.pool.cns_state import CnsStateFile
from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.leak_collector import LeakCollector
from podtide.agent.pool.manual_release import ManualReleases
from podtide.agent.pool.pods import pod_on_node
from podtide.agent.pool.recovery import Recovery
from podtide.agent.port import Addresses
from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.node_config import config_key, subnets_of
from podtide.agent.request.node_inputs import NodeInputs
from podtide.agent.request.pod_requests import PodRequests
from podtide.agent.request.readiness import Readiness
from podtide.agent.request.requester import Requester
from podtide.agent.request.sizing_policy import ExactPolicy, RequestPolicy
from podtide.agent.request.subnet_view import SubnetView
from podtide.agent.request.subnets import NodeSubnets
from podtide.agent.request.target import TargetCalculator
from podtide.cluster.field_selector import field_is
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster
from podtide.core.pool.adoption import RecordedEndpoint
from podtide.core.pool.pool import Pool
from podtide.resources.base import Resource
from podtide.resources.metadata_keys import BEFORE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.disk import Disk
from podtide.runtime.runtime import Runtime

R = TypeVar("R", bound=Resource)


class AgentOptions(Struct, frozen=True, kw_only=True):
    """What differs between the agents of clusters."""

    policy: RequestPolicy = ExactPolicy()
    networks_namespace: str = SYSTEM_NAMESPACE
    bridge: Bridge | None = None
    """The bridge of the node's primary network, where it has one that the agent looks after."""
    cns_state: CnsStateFile | None = None
    """Read on a node that was handed over and whose agent has no records."""
    journal_slack_bytes: int | None = None
    """By how much the journal grows before it is rewritten; None for the default."""


_DEFAULT_OPTIONS = AgentOptions()


class NodeAgent:
    """The agent of one node. The constructor locks its disk and replays its journal; `run` connects it to the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        node_name: str,
        disk: Disk,
        *,
        runtime: Runtime,
        options: AgentOptions = _DEFAULT_OPTIONS,
    ) -> None:
        self._cluster = cluster
        self._runtime = runtime = runtime.bind(node=node_name)
        self._log = runtime.log
        self._journaled = JournaledPool.open(
            disk, cooldown_seconds=runtime.settings.cooldown_seconds, clock=runtime.clock, log=runtime.log
        )
        if options.journal_slack_bytes is not None:
            self._journaled.shorten_after(options.journal_slack_bytes)
        self.networks = SecondaryNetworks(
            cluster, node_name, namespace=options.networks_namespace, disk=disk, runtime=runtime
        )
        """The networks with ranges of their own."""
        self._pods = Informer(
            cluster, Pod, Scope(fields=field_is("spec.nodeName", node_name)), runtime=runtime
        )
        key = config_key(node_name)
        config_scope = Scope(namespace=key.namespace, fields=field_is("metadata.name", key.name))
        self._configs = Informer(cluster, NodeNetworkConfig, config_scope, runtime=runtime)
        self._follower = ConfigFollower(cluster, node_name, self._configs, self._journaled, runtime)
        self._follower.on_look.append(self._config_changed)
        self._subnets = NodeSubnets(self._view, clock=runtime.clock)
        self._readiness = Readiness(
            self._pods,
            self._follower,
            self._subnets,
            contact_timeout_seconds=runtime.settings.contact_timeout_seconds,
        )
        inputs = NodeInputs(
            journaled=self._journaled,
            follower=self._follower,
            subnets=self._subnets,
            readiness=self._readiness,
        )
        self._cns_state = options.cns_state
        self._recovery = Recovery(
            self._journaled,
            self._pods,
            read_endpoints=self._endpoints_before,
            clock=runtime.clock,
            log=runtime.log,
        )
        targets = TargetCalculator(inputs, options.policy)
        self._pod_requests = PodRequests()
        self.requester = Requester(cluster, inputs, targets, self._pod_requests, runtime)
        self._leaks = LeakCollector(cluster, node_name, self._journaled, runtime)
        state_reader = NodeStateReader(
            inputs=inputs, targets=targets, requester=self.requester, leaks=self._leaks
        )
        self._gateways = (
            BridgeGateways(options.bridge, self._addresses_held, runtime=runtime)
            if options.bridge is not None
            else None
        )
        self._service = AddressService(
            inputs, self._recovery, state_reader, gateways=self._gateways, runtime=runtime
        )
        self.manual_releases = ManualReleases(
            cluster, node_name, self._journaled, self._service.delete, runtime
        )
        """What people ask to be freed."""
        self._pods.add_handler(self._pod_changed)

    @property
    def addresses(self) -> Addresses:
        """The port for the agent's API."""
        return self._service

    @property
    def pool(self) -> Pool:
        """The node's pool. To read, and to add listeners to."""
        return self._journaled.pool

    @property
    def node_uid(self) -> str:
        """The uid of the Node that the pool belongs to; "" while it is unknown."""
        return self._journaled.identity.node_uid if self._journaled.identity is not None else ""

    @property
    def is_in_doubt(self) -> bool:
        """Whether the NodeNetworkConfig was deleted and has not been confirmed since: free addresses are withheld."""
        return bool(self._journaled.doubt)

    @property
    def synced(self) -> asyncio.Event:
        """Set once pods, NodeNetworkConfig and subnet have been read for the first time."""
        return self._readiness.synced

    @property
    def network_ready(self) -> asyncio.Event:
        """Set once pods can be started: everything was read, and the bridge, if there is one, has its gateways."""
        return self._gateways.in_place if self._gateways is not None else self.synced

    async def run(self) -> NoReturn:
        """Run all loops until cancelled, or until an invariant is broken (StopError)."""
        try:
            async with asyncio.TaskGroup() as group:
                for loop in (
                    self._pods.run(),
                    self._configs.run(),
                    self._follower.run(),
                    self._subnets.run(),
                    self._recovery.run(),
                    self.requester.run(),
                    self._leaks.run(),
                    self.networks.run(),
                    self._look_when_pods_are_known(),
                    *((self._gateways.run(),) if self._gateways is not None else ()),
                ):
                    group.create_task(loop)
                await self._journaled.failed.wait()
                assert self._journaled.failure is not None
                raise self._journaled.failure
        except BaseExceptionGroup as errors:
            # The group would only hide its one error, or two equal ones.
            raise _first(errors) from None

    def close(self) -> None:
        """Release the lock of the disk."""
        self.networks.close()
        self._journaled.close()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self._pod_requests.note(new)
            self._journaled.pod_seen(pod_on_node(new))
        elif old is not None:
            self._pod_requests.forget(old)
            self._journaled.pod_gone(pod_on_node(old))

    def _config_changed(self) -> None:
        self._subnets.follow(subnets_of(self._follower.networks.values()))
        self._recovery.look()
        self._look()

    async def _look_when_pods_are_known(self) -> None:
        await self._pods.synced.wait()
        self._look()

    def _look(self) -> None:
        """Re-evaluate everything that depends on pods, NodeNetworkConfig and subnet."""
        self._readiness.look()
        if self._gateways is not None:
            self._gateways.look()  # before any ADD is answered
        self.requester.look()
        self._service.serve()

    def _addresses_held(self) -> NodeAddresses | None:
        """What the bridge's gateways depend on; None until everything was read, because addresses may be missing."""
        if not self.synced.is_set():
            return None
        stated: dict[str, str] = {}
        for network in self._follower.networks.values():
            for space in (*network.spaces, *self._subnets.spaces(network.subnet)):
                stated[space.cidr] = stated.get(space.cidr) or space.gateway
        return NodeAddresses(stated, frozenset(address.ip for address in self.pool.addresses()))

    def _endpoints_before(self) -> tuple[RecordedEndpoint, ...]:
        """What CNS recorded on this node, if podtide took its place here."""
        config = self._follower.config
        if self._cns_state is None or config is None or BEFORE_ANNOTATION not in config.metadata.annotations:
            return ()
        return self._cns_state.read()

    def _view(self, subnet: str) -> SubnetView:
        return SubnetView(subnet, self._cluster, changed=self._look, runtime=self._runtime)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
