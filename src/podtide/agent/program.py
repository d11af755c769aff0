"""The node agent: what it watches, what it keeps, and the loops that carry it.

    pods ────────────→ demand ─┐
    ClusterSubnet(State) ──────┼→ requester → NodeNetworkConfig spec
    NodeNetworkConfig ─→ pool ─┘
                          ↑ ADD, DEL (`addresses`)

Secondary networks (`networks`) are beside all that: their addresses come from pools that the cluster keeps.

Each loop looks at how things are and makes one move; none depends on being stopped in good order.
"""

import asyncio
from typing import NoReturn, TypeVar

from podtide.agent.api.address_service import AddressService
from podtide.agent.api.node_snapshot import NodeStateReader
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.leak_collector import LeakCollector
from podtide.agent.pool.pods import pod_on_node
from podtide.agent.pool.recovery import Recovery
from podtide.agent.port import Addresses
from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.gateway_warning import GatewayWarning
from podtide.agent.request.node_config import config_key, subnets_of
from podtide.agent.request.readiness import Readiness
from podtide.agent.request.requester import Requester
from podtide.agent.request.sizing_policy import ExactPolicy, RequestPolicy
from podtide.agent.request.subnet_view import SubnetView
from podtide.agent.request.subnets import Subnets
from podtide.agent.request.target import TargetMaker
from podtide.cluster.field_selector import field_is
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster
from podtide.core.pool.pacing import Pace
from podtide.core.pool.pool import Pool
from podtide.resources.base import Resource
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.disk import Disk
from podtide.runtime.runtime import Runtime

R = TypeVar("R", bound=Resource)

_EXACT = ExactPolicy()


class NodeAgent:
    """The agent of one node. Made, it has the disk's lock and knows what it knew; `run` connects it to the cluster."""

    def __init__(  # noqa: PLR0913 - whose agent, on what, by which rules, and what it runs in
        self,
        cluster: Cluster,
        node_name: str,
        disk: Disk,
        *,
        runtime: Runtime,
        policy: RequestPolicy = _EXACT,
        networks_namespace: str = SYSTEM_NAMESPACE,
        journal_slack_bytes: int | None = None,
    ) -> None:
        """`journal_slack_bytes` is how much the journal grows before it is shortened, where that is not the usual."""
        self._cluster = cluster
        self._runtime = runtime = runtime.bind(node=node_name)
        self._log = runtime.log
        self._journaled = JournaledPool.open(
            disk, cooldown_seconds=runtime.settings.cooldown_seconds, clock=runtime.clock, log=runtime.log
        )
        if journal_slack_bytes is not None:
            self._journaled.shorten_after(journal_slack_bytes)
        self.networks = SecondaryNetworks(
            cluster,
            node_name,
            namespace=networks_namespace,
            disk=disk,
            runtime=runtime,
        )
        """The networks with ranges of their own."""
        self._pods = self._informer(Pod, Scope(fields=field_is("spec.nodeName", node_name)))
        key = config_key(node_name)
        self._configs = self._informer(
            NodeNetworkConfig,
            Scope(namespace=key.namespace, fields=field_is("metadata.name", key.name)),
        )
        self._follower = ConfigFollower(
            cluster,
            node_name,
            self._configs,
            self._journaled,
            changed=self._config_changed,
            runtime=runtime,
        )
        self._subnets = Subnets(self._view, clock=runtime.clock)
        self._readiness = Readiness(
            node_name,
            self._pods,
            self._configs,
            self._follower,
            self._subnets,
            contact_timeout_seconds=runtime.settings.contact_timeout_seconds,
        )
        self._recovery = Recovery(self._journaled, self._pods, clock=runtime.clock, log=runtime.log)
        targets = TargetMaker(self._follower, self._journaled, self._subnets, policy)
        self.requester = Requester(
            cluster,
            self._follower,
            self._journaled,
            self._readiness,
            targets,
            patience=Pace(
                runtime.settings.gather_seconds,
                runtime.settings.gather_at_most_seconds,
                runtime.settings.shrink_delay_seconds,
            ),
            runtime=runtime,
        )
        self._leaks = LeakCollector(
            cluster,
            node_name,
            self._journaled,
            grace_seconds=runtime.settings.leak_grace_seconds,
            runtime=runtime,
        )
        state_reader = NodeStateReader(
            node_name,
            readiness=self._readiness,
            follower=self._follower,
            subnets=self._subnets,
            journaled=self._journaled,
            targets=targets,
            requester=self.requester,
            leaks=self._leaks,
        )
        self._service = AddressService(
            self._journaled,
            self._follower,
            self._readiness,
            self._recovery,
            state_reader,
            subnets=self._subnets,
            add_wait_seconds=runtime.settings.add_wait_seconds,
            clock=runtime.clock,
        )
        self._gateway_warning: GatewayWarning | None = None
        self._pods.add_handler(self._pod_changed)

    def expect_one_gateway(self) -> None:
        """Tell when the node's addresses need more gateways than its network can have: one, of IPv4."""
        self._gateway_warning = GatewayWarning(self._subnets, self._log)

    @property
    def addresses(self) -> Addresses:
        """What the agent's API may ask."""
        return self._service

    @property
    def pool(self) -> Pool:
        """The node's pool, to read and to follow."""
        return self._journaled.pool

    @property
    def node_uid(self) -> str:
        """The Node that the pool is of, by its uid; "" as long as none is known."""
        return self._journaled.identity.node_uid if self._journaled.identity is not None else ""

    @property
    def is_in_doubt(self) -> bool:
        """Whether the NodeNetworkConfig was seen to go, and none of the present was seen since: what is free is withheld."""
        return bool(self._journaled.doubt)

    @property
    def synced(self) -> asyncio.Event:
        """Set once pods, NodeNetworkConfig and subnet have all been seen."""
        return self._readiness.synced

    async def run(self) -> NoReturn:
        """Keep the pool until cancelled, or until an invariant is broken (StopError)."""
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
                ):
                    group.create_task(loop)
                await self._journaled.failed.wait()
                assert self._journaled.failure is not None
                raise self._journaled.failure
        except BaseExceptionGroup as errors:
            # A group of one or two equal reasons to stop would only hide them.
            raise _first(errors) from None

    def close(self) -> None:
        """Let another agent have the disk."""
        self.networks.close()
        self._journaled.close()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self._journaled.pod_seen(pod_on_node(new))
        elif old is not None:
            self._journaled.pod_gone(pod_on_node(old))

    def _config_changed(self) -> None:
        self._subnets.follow(subnets_of(self._follower.networks.values()))
        self._recovery.look()
        self._look()

    async def _look_when_pods_are_known(self) -> None:
        await self._pods.synced.wait()
        self._look()

    def _look(self) -> None:
        """Something was seen on which it depends what is asked for, and what may be handed out."""
        self._readiness.look()
        self.requester.look()
        self._service.serve()
        if self._gateway_warning is not None:
            self._gateway_warning.look(self._follower.networks.values())

    def _view(self, subnet: str) -> SubnetView:
        return SubnetView(
            subnet,
            self._cluster,
            changed=self._look,
            runtime=self._runtime,
        )

    def _informer(self, kind: type[R], scope: Scope) -> Informer[R]:
        return Informer(
            self._cluster,
            kind,
            scope,
            runtime=self._runtime,
        )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
