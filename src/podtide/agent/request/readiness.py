"""Whether the agent has synced what it needs from the cluster, and what it may do meanwhile.

Unknown is a state, not a zero. Until pods, NodeNetworkConfig and subnet have been read, no address is requested, released
or assigned. The NodeNetworkConfig may be deleted later: then nothing new is assigned until there is another, but the node
stays ready, or the runtime would declare it unready and its pods would be evicted.
"""

import asyncio

from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.node_config import config_key
from podtide.agent.request.subnets import NodeSubnets
from podtide.cluster.informer import Informer
from podtide.resources.pod import Pod


class Readiness:
    """Tells whether the agent has synced its pods, its NodeNetworkConfig and its subnet."""

    def __init__(
        self,
        pods: Informer[Pod],
        follower: ConfigFollower,
        subnets: NodeSubnets,
        *,
        contact_timeout_seconds: float,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once everything has been synced."""
        self._pods = pods
        self._follower = follower
        self._subnets = subnets
        self._contact_timeout_seconds = contact_timeout_seconds

    @property
    def is_complete(self) -> bool:
        """Whether the demand is known, and addresses may be assigned."""
        return not self.missing

    @property
    def missing(self) -> str:
        """What is not synced or cannot be used, in words; "" when nothing is missing."""
        if not self._pods.synced.is_set():
            return "the node's pods have not been listed yet"
        if self._follower.refusal:
            return self._follower.refusal
        if not self._follower.networks:
            return f"NodeNetworkConfig {config_key(self._follower.node)} has no network container yet"
        if not self._subnets.are_known:
            return f"the parameters of subnet {self._subnets.names} have not been read yet"
        return ""

    @property
    def unreadiness(self) -> str:
        """Why the node cannot serve pods at all, in words; "" when it can, also with a full pool."""
        return "" if self.synced.is_set() and self._follower.networks else self.missing

    @property
    def is_in_contact(self) -> bool:
        """Whether the watch is recent enough to have shown the removal of this node."""
        return self._follower.silent_seconds() < self._contact_timeout_seconds

    def look(self) -> None:
        """Set `synced` if nothing is missing any more."""
        if not self.missing:
            self.synced.set()
