"""What the agent has seen of the cluster, and what it may do with that.

Unknown is a state, not a zero. Until pods, NodeNetworkConfig and subnet have been seen, nothing is asked for, given
back or handed out. Later on the NodeNetworkConfig may go: then nothing new is handed out until there is another, but
the node is as ready as before, or the runtime would declare it unready and its pods would be evicted.
"""

import asyncio

from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.node_config import config_key
from podtide.agent.request.subnets import Subnets
from podtide.cluster.informer import Informer
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod


class Readiness:
    """Reads what others keep."""

    def __init__(  # noqa: PLR0913 - all that there is to know, and for how long it holds
        self,
        node: str,
        pods: Informer[Pod],
        configs: Informer[NodeNetworkConfig],
        follower: ConfigFollower,
        subnets: Subnets,
        *,
        contact_timeout_seconds: float,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once everything has been seen."""
        self._node = node
        self._pods = pods
        self._configs = configs
        self._follower = follower
        self._subnets = subnets
        self._contact_timeout_seconds = contact_timeout_seconds

    @property
    def is_complete(self) -> bool:
        """Whether demand is known, and addresses may be handed out."""
        return not self.missing

    @property
    def missing(self) -> str:
        """What is not known, or not to be gone by, in words; "" when all is known."""
        if not self._pods.synced.is_set():
            return "the node's pods have not been listed yet"
        if self._follower.refusal:
            return self._follower.refusal
        if not self._follower.networks:
            return f"NodeNetworkConfig {config_key(self._node)} has no network container yet"
        if not self._subnets.are_known:
            return f"it is not known yet what is in force in subnet {self._subnets.names}"
        return ""

    @property
    def unreadiness(self) -> str:
        """Why the node cannot serve pods at all, in words; "" when it can, be it with a full pool."""
        return "" if self.synced.is_set() and self._follower.networks else self.missing

    @property
    def is_in_contact(self) -> bool:
        """Whether the cluster would have told us by now if it had removed this node."""
        return self._configs.silent_seconds() < self._contact_timeout_seconds

    def look(self) -> None:
        """Something was seen."""
        if not self.missing:
            self.synced.set()
