"""The life of a node: from the Node to its NodeNetworkConfig and network containers, and back when it is deleted.

Everything about one node is done under one key, its name, by one worker at a time, so its creation, its requests and
its deletion never race. Two rules keep it safe (design R3, "Absence"):

- The finalizer is on the NodeNetworkConfig before the first wish is sent, and is removed after the containers are
  deleted. So no container is left of a node that is forgotten.
- A Node missing from the cache is confirmed by a fresh GET, by uid, before it counts as deleted. Nor is anything created
  for a Node that only a stale cache shows: garbage collection would delete it, and the next event would create it again.

    Node exists, no NodeNetworkConfig        create it, with request 0
    NodeNetworkConfig of another Node uid    that Node is deleted: delete its containers and the config, then as above
    as another program wrote it              left alone until it is handed over (see `foreign_configs`)
    being deleted, and its Node exists       somebody deleted it: let it go and create it again, the containers stay
    Node deleted, NodeNetworkConfig or not   delete the containers, then remove the finalizer
"""

from collections import defaultdict

from podtide.cluster.listing import get_if_there
from podtide.controller.nodes.config_ownership import (
    bound,
    is_being_deleted,
    is_bound,
    new_config,
    uid_of,
    without_finalizer,
)
from podtide.controller.nodes.foreign_configs import ForeignConfigs
from podtide.controller.nodes.quarantine import QuarantineReconciler
from podtide.controller.nodes.request_reconciler import RequestReconciler
from podtide.controller.nodes.retirement import Retirement
from podtide.controller.term_context import TermContext
from podtide.resources.base import Key
from podtide.resources.container_ids import container_ids
from podtide.resources.foreign_config import is_foreign
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig


class NodeReconciler:
    """Reconciles nodes by name."""

    def __init__(
        self,
        context: TermContext,
        requests: RequestReconciler,
        *,
        quarantines: QuarantineReconciler,
        retirement: Retirement,
        foreign: ForeignConfigs,
    ) -> None:
        self._context = context
        self._retirement = retirement
        self._foreign = foreign
        self._requests = requests
        self._quarantines = quarantines
        self._suspects: defaultdict[str, set[str]] = defaultdict(set)
        """Uids of Nodes that seem to be deleted, by name, whose containers may still exist."""

    def suspect(self, name: str, uid: str) -> None:
        """Note that the Node of that name and uid seems to be deleted."""
        self._suspects[name].add(uid)

    async def reconcile(self, name: str) -> float | None:
        """Reconcile a node. Returns after how many seconds to do it again, or None."""
        self._context.counts.reconciles += 1
        node = self._context.nodes.get(Key("", name))
        config = self._context.configs.get(Key(SYSTEM_NAMESPACE, name))
        known = self._uids_heard_of(name, node, config)
        if _is_doubtful(known, node, config):
            # Only a fresh read is certain, and from now on it is newer than the cache.
            node = await get_if_there(self._context.cluster, Node, name)
            gone = known - {uid_of(node)}
            if (seconds := self._retirement.wait_seconds(gone)) is not None:
                return seconds
            await self._delete_containers(name, gone)
            if config is not None and (is_being_deleted(config) or config.node_uid in gone):
                await self._let_go(config)
                self._note_retired(name, gone)
                return None  # its end is an event, and then there is room for a new one
            self._note_retired(name, gone)
        if node is None:
            self._forget(name)
            return None
        if config is not None and is_foreign(config):
            await self._foreign.leave_alone(config)
            return None
        if self._foreign.unreserved:
            return None  # the end of that queues every node again
        if config is None:
            config = await self._context.writes.create(new_config(node))
        elif not is_bound(config, node):
            config = await self._context.writes.replace(bound(config, node))
        return await self._requests.carry_out(node, config, self._context.configs.watches)

    def _uids_heard_of(
        self, name: str, node: Node | None, config: NodeNetworkConfig | None
    ) -> frozenset[str]:
        """The uids of all Nodes of that name that may have containers, including the present one."""
        owner = config.node_uid if config else ""
        return frozenset({*self._suspects.get(name, ()), owner, uid_of(node)} - {""})

    async def _delete_containers(self, name: str, gone: frozenset[str]) -> None:
        """Delete the containers of Nodes that are deleted. Their addresses go into quarantine."""
        for uid in sorted(gone):
            for container in container_ids(uid):
                await self._context.allocator.delete_container(
                    container, cluster=self._context.options.cluster
                )
        if gone:
            self._quarantines.begun(name)

    def _note_retired(self, name: str, gone: frozenset[str]) -> None:
        """Count and log Nodes for which everything is done.

        Not earlier, or an outage of the API would count one many times.
        """
        for uid in sorted(gone):
            self._context.counts.retired_nodes += 1
            self._context.log.info("node retired", node=name, uid=uid)
            self._suspects[name].discard(uid)
        if gone:
            self._forget(name)

    async def _let_go(self, config: NodeNetworkConfig) -> None:
        await self._context.writes.replace(without_finalizer(config))
        if not is_being_deleted(config):
            await self._context.writes.delete(config)

    def _forget(self, name: str) -> None:
        if not self._suspects.get(name):
            self._suspects.pop(name, None)
        self._requests.forget(name)


def _is_doubtful(known: frozenset[str], node: Node | None, config: NodeNetworkConfig | None) -> bool:
    """Whether something may have to be created or deleted, so that a fresh read is needed."""
    if config is None:
        return bool(known)
    return is_being_deleted(config) or bool(known - {uid_of(node)})
