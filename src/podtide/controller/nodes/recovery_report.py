"""What the nodes of this cluster hold, reported to an allocator whose database was restored.

The status of each NodeNetworkConfig is written first and then reported as written: a write with an earlier grant that
is still in flight now fails with a conflict. So nothing can be shown to a node afterwards that was not reported. The
written condition also tells people why the node gets nothing new meanwhile.

Pods that outlived their Node have addresses that no NodeNetworkConfig shows; those were in quarantine, which may be
lost with the database. So addresses that living pods show beyond all that was reported are reported too, and granted to
no node.
"""

import asyncio

from msgspec import structs

from podtide.allocator.terms import HeldAddress, HeldContainer, ShownAddresses
from podtide.cluster.listing import get_if_there, list_kept
from podtide.cluster.port import Conflict
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.allocator_term import AllocatorTerm
from podtide.controller.grant_condition import GRANTED, GrantReason
from podtide.controller.nodes.pod_addresses import shown_by_node
from podtide.controller.term_context import TermContext
from podtide.core.ranges import parse_address, parse_network
from podtide.resources.conditions import Condition, ConditionStatus, with_condition
from podtide.resources.foreign_config import has_foreign_containers, own_ids
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NetworkContainer, NodeNetworkConfig
from podtide.resources.timestamps import to_time

CONTRADICTED = "AddressHeldTwice"
"""The reason of the Event that says that two nodes hold one address."""
_MOST_ATTEMPTS = 10
_AT_A_TIME = 16
"""As many as there are workers for nodes, which have nothing to do meanwhile."""


class RecoveryReport:
    """Reports everything this cluster holds, once for each recovery."""

    def __init__(self, context: TermContext, term: AllocatorTerm, sweep_queue: WorkQueue[str]) -> None:
        self._context = context
        self._term = term
        self._sweep_queue = sweep_queue

    async def run(self, recovery: int) -> None:
        """Report everything, then tell the allocator that the report is complete."""
        options = self._context.options
        self._term.check()
        self._context.log.warning(
            "the allocator's store went back: reporting what nodes hold", recovery=recovery
        )
        names = await self._names()
        held = await self._report_all(names, recovery)
        kept = await self._report_pods(held, recovery)
        await self._context.allocator.finish_report(
            options.cluster, cluster_uid=self._term.uid, recovery=recovery
        )
        self._context.log.info(
            "reported what nodes hold", recovery=recovery, containers=len(held), kept_for_pods=kept
        )
        for name in names:
            self._context.node_queue.add(name)
        self._sweep_queue.add(
            options.cluster
        )  # containers of nodes that were deleted since the backup exist again

    async def _names(self) -> list[str]:
        """The names of all nodes that may hold something: from a fresh list, and from the caches."""
        listed = await list_kept(
            self._context.cluster, NodeNetworkConfig, SYSTEM_NAMESPACE, keep=lambda each: each.metadata.name
        )
        configs = {each.metadata.name for each in self._context.configs.items()}
        nodes = {each.metadata.name for each in self._context.nodes.items()}
        return sorted({*listed, *configs, *nodes})

    async def _report_all(self, names: list[str], recovery: int) -> list[HeldContainer]:
        """Report several nodes at a time: nothing is granted to any node until the last one is done."""
        held: list[HeldContainer] = []
        waiting = iter(names)

        async def report_next() -> None:
            for name in waiting:
                held.extend(await self._report(name, recovery))

        reporters = [asyncio.create_task(report_next()) for _ in range(_AT_A_TIME)]
        try:
            await asyncio.gather(*reporters)
        finally:
            for reporter in reporters:
                reporter.cancel()
            await asyncio.gather(*reporters, return_exceptions=True)
        return held

    async def _report(self, name: str, recovery: int) -> list[HeldContainer]:
        config = await self._confirmed(name, recovery)
        if config is None:
            return []
        reported = [
            self._held(config, each, recovery)
            for each in config.status.network_containers
            if _is_holding(each)
        ]
        for held in reported:
            for complaint in await self._context.allocator.adopt_container(held):
                self._context.log.error("two nodes hold one address", node=name, alarm=complaint)
                await self._context.events.record(config, CONTRADICTED, complaint, warning=True)
        return reported

    async def _report_pods(self, held: list[HeldContainer], recovery: int) -> int:
        """Have the allocator keep what living pods show and no node was reported to hold.

        Returns the number of addresses.
        """
        options, kept = self._context.options, 0
        known = {each.ip for container in held for each in container.addresses}
        by_node = await shown_by_node(self._context.cluster)
        unknown = {node: shown - known for node, shown in sorted(by_node.items()) if shown - known}
        for subnet in await self._context.allocator.list_subnets(options.network) if unknown else ():
            cidrs = [parse_network(cidr) for cidr in subnet.cidrs]
            for node, shown in unknown.items():
                addresses = [ip for ip in sorted(shown) if any(parse_address(ip) in cidr for cidr in cidrs)]
                if not addresses:
                    continue
                kept += await self._context.allocator.keep_for_pods(
                    ShownAddresses(
                        network=subnet.network,
                        subnet=subnet.name,
                        cluster=options.cluster,
                        cluster_uid=self._term.uid,
                        node=node,
                        recovery=recovery,
                        addresses=tuple(addresses),
                    )
                )
        return kept

    async def _confirmed(self, name: str, recovery: int) -> NodeNetworkConfig | None:
        """The NodeNetworkConfig in a version that was written since the recovery began; None if it does not exist."""
        for _ in range(_MOST_ATTEMPTS):
            config = await get_if_there(self._context.cluster, NodeNetworkConfig, name, SYSTEM_NAMESPACE)
            if config is None:
                return None
            condition = Condition(
                type=GRANTED,
                status=ConditionStatus.FALSE,
                last_transition_time=to_time(self._context.clock.wall()),
                reason=GrantReason.RECOVERING.value,
                message=f"the allocator's database was restored: what the node holds was reported (recovery {recovery}), and "
                "more is granted when every cluster has reported",
                observed_generation=config.metadata.generation,
            )
            conditions = with_condition(config.status.conditions, condition)
            status = structs.replace(config.status, conditions=conditions)
            try:
                return await self._context.writes.replace_status(structs.replace(config, status=status))
            except Conflict:
                continue
        raise Conflict(
            f"the NodeNetworkConfig of node {name} was changed during each of {_MOST_ATTEMPTS} attempts to write its status"
        )

    def _held(self, config: NodeNetworkConfig, container: NetworkContainer, recovery: int) -> HeldContainer:
        # Addresses that the node named for release are never used there again: another node may have them by now.
        held = [each for each in container.ip_assignments if each.name not in config.spec.ips_not_in_use]
        # Of what another program still serves, the network is that program's name for it, and so is the version.
        is_own = not has_foreign_containers(config)
        return HeldContainer(
            id=own_ids(config)[container.id],
            network=(container.vnet_id if is_own else "") or self._context.options.network,
            subnet=container.subnet_name,
            cluster=self._context.options.cluster,
            cluster_uid=self._term.uid,
            node=config.metadata.name,
            primary=container.primary_ip or container.primary_ipv6,
            version=container.version if is_own else 0,
            request_uid=config.metadata.uid,
            generation=config.metadata.generation,
            recovery=recovery,
            addresses=tuple(HeldAddress(each.name, each.ip) for each in held),
            gave_up=len(container.ip_assignments) - len(held),
            is_foreign=not is_own,
        )


def _is_holding(container: NetworkContainer) -> bool:
    return bool(container.id and container.subnet_name and (container.primary_ip or container.primary_ipv6))
