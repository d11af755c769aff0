"""Applies the node's NodeNetworkConfig to its pool.

The object must belong to the present Node: one that was left by an earlier Node of the same name lists addresses that soon
belong to other nodes. So before an object is used, the Node is read once, and its uid must be the owner's. Then:

    another Node than in the records   addresses that its containers grant again are kept under their new names; the rest
                                       is withdrawn: pods keep their addresses, and no other is assigned
    the same Node, another object      it was deleted by hand and created again: the pool goes on
    no records                         the addresses of the container are quarantined (see `recovery`), once the cache is
                                       as new as a GET: what a stale cache lacks would later seem to be newly granted
    a container that is missing        withdrawn, once the controller states that the request is fulfilled
    the object was deleted before      etcd was restored, and its addresses may belong to other nodes by now: it is used once
                                       the controller has confirmed that it is up to date (`resources.config_confirmation`)

While there is no object to use, nothing new is assigned, and pods keep their addresses.
"""

from collections.abc import Collection, Mapping
from typing import NoReturn

from podtide.agent.pool.journal import Identity
from podtide.agent.pool.journaled_pool import JournaledPool, Listener
from podtide.agent.request.node_config import NodeNetwork, config_key, is_settled, networks_of, refusal_of
from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster, ClusterError, NotFound
from podtide.core.errors import RetryError
from podtide.resources.base import ObjectMeta
from podtide.resources.config_confirmation import doubt_in, is_confirmed
from podtide.resources.metadata_keys import (
    AGENT_MANAGER,
    DOUBT_ANNOTATION,
    STATED_ANNOTATIONS,
)
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.runtime.runtime import Runtime
from podtide.runtime.wakeup import Wakeup


class ConfigFollower:
    """Follows the node's NodeNetworkConfig."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        informer: Informer[NodeNetworkConfig],
        journaled: JournaledPool,
        runtime: Runtime,
    ) -> None:
        self.on_look: list[Listener] = []
        """Called after every evaluation of the object."""
        self.refusal = f"NodeNetworkConfig {config_key(node)} has not been read yet"
        """Why no object can be used now, in words; "" when one can."""
        self.config: NodeNetworkConfig | None = None
        """The object that was applied last."""
        self.networks: dict[str, NodeNetwork] = {}
        """Its network containers, by id."""
        self._cluster = cluster
        self.node = node
        self._informer = informer
        self._journaled = journaled
        self._clock = runtime.clock
        self._failures = FailureStreak(Backoff(), runtime.clock, runtime.randomness)
        self._log = runtime.log
        self._wakeup = Wakeup(runtime.clock)
        self._randomness = runtime.randomness
        self._confirmed: Identity | None = None
        self._was_deleted = False
        informer.add_handler(self._on_event)
        informer.on_watch.append(self._wakeup.wake)

    @property
    def watches(self) -> int:
        """How many watches of the object were started."""
        return self._informer.watches

    def silent_seconds(self) -> float:
        """How long ago the API server was last heard of."""
        return self._informer.silent_seconds()

    async def run(self) -> NoReturn:
        """Apply the object whenever it changes, until cancelled."""
        await self._informer.synced.wait()
        retry_at = None
        while True:
            try:
                await self._follow()
                retry_at = None
            except (RetryError, ClusterError) as error:
                self._refuse(str(error), is_usual=isinstance(error, _NotYet))
                retry_at = self._clock.monotonic() + self._failures.delay_seconds(error)
            for tell in self.on_look:
                tell()
            await self._wakeup.wait(retry_at)

    def _on_event(self, _old: NodeNetworkConfig | None, new: NodeNetworkConfig | None) -> None:
        """The object changed. A deletion is noted here, because the object may be back before the loop runs."""
        if _is_gone(new):
            self._was_deleted = True
        self._wakeup.wake()

    async def _follow(self) -> None:
        config = self._informer.get(config_key(self.node))
        self._was_deleted |= _is_gone(config)
        self._record_deletion()
        refusal = refusal_of(config, self.node)
        if config is not None and not refusal:
            identity = identity_in(config)
            if identity != self._confirmed:
                await self._confirm(identity)
            if self._journaled.lost and not self.networks:
                await self._require_newest(config)
            if self._was_deleted or not self._is_current(config):
                return  # it was deleted or changed while the Node was read, and this loop was woken for that
            is_in_doubt = self._may_be_restored(identity)
            if is_in_doubt and not is_confirmed(config, self._journaled.doubt):
                await self._ask_whether_present(config)
                self._refuse(
                    f"NodeNetworkConfig {config_key(self.node)} was gone and is back, as after a restore of etcd: "
                    "waiting for the request controller to confirm which of its addresses are this node's; check that it runs"
                )
                return
            self._journaled.confirm(identity)
            self._take_in(config, identity)
            if identity == self._journaled.identity and (self.networks or not is_in_doubt):
                self._journaled.believe()
        self._refuse(refusal)

    def _record_deletion(self) -> None:
        """Record in the journal that the object was deleted, if there are records that depend on it."""
        if self._was_deleted:
            self._confirmed = None
            if self._journaled.identity is not None:
                self._journaled.doubt_it(self._new_mark())
            self._was_deleted = False

    def _may_be_restored(self, identity: Identity) -> bool:
        """Whether the object was deleted before, or is older than the one in the records: as after a restore of etcd."""
        known = self._journaled.identity
        if known is None:
            return False
        if known.config_uid == identity.config_uid:
            return bool(self._journaled.doubt)
        if not self._journaled.is_former(identity.config_uid) and not known.is_after(identity.made):
            return False
        self._journaled.doubt_it(self._new_mark())
        return True

    def _new_mark(self) -> str:
        """A mark that no object ever contained. The time is in it for programs whose random numbers start again."""
        return f"{self._clock.wall():.3f}-{self._randomness.getrandbits(64):016x}"

    async def _ask_whether_present(self, config: NodeNetworkConfig) -> None:
        """Apply the question with our mark, unless it is there."""
        if doubt_in(config.metadata.annotations) != self._journaled.doubt:
            await self._cluster.apply(_question(config, self._journaled), manager=AGENT_MANAGER, force=True)

    def _is_current(self, config: NodeNetworkConfig) -> bool:
        """Whether the cache still has this version. Compared by version, because a new list brings an equal copy."""
        now = self._informer.get(config_key(self.node))
        return now is not None and now.metadata.resource_version == config.metadata.resource_version

    def _refuse(self, why: str, *, is_usual: bool = False) -> None:
        """Set the reason, and log it once. What is usual on every new node is not a warning."""
        if why and why != self.refusal:
            (self._log.info if is_usual else self._log.warning)("nothing new is handed out", reason=why)
        self.refusal = why

    async def _confirm(self, identity: Identity) -> None:
        """Raise _OfAnotherNode unless the object belongs to the present Node."""
        try:
            present = (await self._cluster.get(Node, self.node)).metadata.uid
        except NotFound:
            present = "none"
        if present != identity.node_uid:
            known = self._journaled.identity
            if known is not None and known.node_uid == identity.node_uid:
                self._was_deleted = True
                self._record_deletion()
            raise _OfAnotherNode(
                f"NodeNetworkConfig {config_key(self.node)} is that of a Node with uid {identity.node_uid}, and the "
                f"present one's is {present}: the request controller will replace it; check that it runs"
            )
        self._confirmed = identity

    async def _require_newest(self, config: NodeNetworkConfig) -> None:
        """Raise _Outdated unless the cache has the newest version: a stale one may lack addresses that pods have."""
        newest = await self._cluster.get(NodeNetworkConfig, self.node, config.metadata.namespace)
        if newest.metadata.resource_version == config.metadata.resource_version:
            return
        is_known = f"NodeNetworkConfig {config_key(self.node)} is stale in the cache"
        if not any(each.ip_assignments for each in newest.status.network_containers):
            raise _NotYet(
                f"{is_known}, and this node has no addresses yet: waiting for the watch to catch up"
            )
        raise _Outdated(
            f"{is_known}, and this node has no records of its own: waiting for the watch to catch up"
        )

    def _take_in(self, config: NodeNetworkConfig, identity: Identity) -> None:
        known, pool = self._journaled.identity, self._journaled.pool
        is_another = known is not None and known.node_uid != identity.node_uid
        networks = {network.container.id: network for network in networks_of(config)}
        self.config = config
        if is_another and not networks:
            self.networks = {}
            return  # only its containers tell which addresses of the former Node this one keeps
        unseen = {id_ for id_ in networks if is_another or id_ not in pool.containers()}
        for network in networks.values():
            is_back = network.container.id if self._journaled.doubt else ""
            former = [id_ for id_ in pool.containers() if id_ not in networks or id_ == is_back]
            self._journaled.carry_over(network.container, former)
        if is_another:
            for container_id in pool.containers():
                if container_id not in networks:
                    self._journaled.withdraw(container_id)
        self._journaled.bind(identity)
        self._apply_all(networks, config, unseen)
        if is_settled(config):
            for container_id in pool.containers():
                if container_id not in networks:
                    self._journaled.withdraw(container_id)
        self.networks = networks

    def _apply_all(
        self, networks: Mapping[str, NodeNetwork], config: NodeNetworkConfig, unseen: Collection[str]
    ) -> None:
        """All are there before one is usable: an ADD that waits would else get an address of the first family alone."""
        for id_, network in networks.items():
            self._apply(network, config, is_unseen=id_ in unseen)
        for id_, network in networks.items():
            # Read from the pool, not from what was just granted: the agent may have been killed before this step.
            if self._journaled.pool.counts(id_).pending_programming:
                self._journaled.programmed(network.container.addresses)

    def _apply(self, network: NodeNetwork, config: NodeNetworkConfig, *, is_unseen: bool) -> None:
        container = network.container
        if self._journaled.lost and is_unseen:
            self._journaled.recover(container, config.spec.ips_not_in_use)
        else:
            # What was not there at first was granted to this program, which has not assigned it yet.
            self._journaled.apply(container)
        known = self.networks.get(container.id)
        if network.unusable and (known is None or known.unusable != network.unusable):
            self._log.error("a network container has values that cannot be used", complaints=network.unusable)


def identity_in(config: NodeNetworkConfig) -> Identity:
    """The Node that owns the object, and the object."""
    place = config.metadata
    return Identity(node_uid=config.node_uid, config_uid=place.uid, made=place.creation_timestamp or "")


def _question(config: NodeNetworkConfig, journaled: JournaledPool) -> NodeNetworkConfig:
    """The object with the question whether it is up to date (`resources.config_confirmation`), for a server-side apply.

    It is applied by the manager of the request, so it has to state all that the agent states in the object: the request
    and its annotations as they are, and the names that the node gave up by its own records. With uid and version, so
    that no other object is changed. The agent's next request leaves the question out, which costs no extra write.
    """
    pool, there = journaled.pool, config.metadata
    stated = {mark: there.annotations[mark] for mark in STATED_ANNOTATIONS if mark in there.annotations}
    names = sorted(name for container_id in pool.containers() for name in pool.named(container_id))
    return NodeNetworkConfig(
        metadata=ObjectMeta(
            name=there.name,
            namespace=there.namespace,
            uid=there.uid,
            resource_version=there.resource_version,
            annotations={**stated, DOUBT_ANNOTATION: journaled.doubt},
        ),
        spec=NodeNetworkConfigSpec(requested_ip_count=config.spec.requested_ip_count, ips_not_in_use=names),
    )


def _is_gone(config: NodeNetworkConfig | None) -> bool:
    """Whether the object is missing or being deleted. Neither can be undone, except by a restore of etcd."""
    return config is None or config.metadata.deletion_timestamp is not None


class _Outdated(RetryError):
    """The cache is stale."""


class _NotYet(_Outdated):
    """The cache is stale while the node has no addresses yet, as on every new node: no reason for a warning."""


class _OfAnotherNode(RetryError):
    """The object was left by an earlier Node of this name."""
