"""Whether this machine is a Node of the cluster, and which: without that, nothing new is handed out.

A node that was deleted while its machine lives must stop before others get its addresses (design R5).
So its Node is watched, by name, which the API server has an index for. Most nodes have no
secondary networks: the watch begins with the first call that needs it.
"""

import asyncio
from typing import NoReturn

from podtide.agent.port import NotReady, OutOfContact
from podtide.cluster.field_selector import field_is
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster
from podtide.resources.base import Key
from podtide.resources.node import Node
from podtide.runtime.durations import format_duration
from podtide.runtime.runtime import Runtime


class NodePresence:
    """The Node of this name, as the cluster has it."""

    def __init__(
        self, cluster: Cluster, node: str, *, contact_timeout_seconds: float, runtime: Runtime
    ) -> None:
        self._node = node
        self._contact_timeout_seconds = contact_timeout_seconds
        self._wanted = asyncio.Event()
        scope = Scope(fields=field_is("metadata.name", node))
        self._informer = Informer(cluster, Node, scope, runtime=runtime)
        self.on_watch = self._informer.on_watch
        """Called whenever a watch of the Node begins: what is remembered of the cluster may be of another history."""

    async def run(self) -> NoReturn:
        """Follow the Node from the first call on that asks for it, until cancelled."""
        await self._wanted.wait()
        await self._informer.run()

    def follow(self) -> None:
        """Let `run` begin before the first call."""
        self._wanted.set()

    async def known(self, seconds: float) -> None:
        """Wait until the Node has been looked for; NotReady when that takes longer than `seconds`."""
        self._wanted.set()
        try:
            async with asyncio.timeout(seconds):
                await self._informer.synced.wait()
        except TimeoutError:
            raise NotReady(
                f"the agent of {self._node} has not reached the cluster yet: check the connection to the API server"
            ) from None

    def is_watching(self) -> bool:
        """Whether the Node is watched at this moment: while it is, the server has not gone back since the watch began."""
        return self._informer.is_watching

    def require_uid(self) -> str:
        """The Node's uid; OutOfContact when it is not certain that there is such a Node."""
        if self._informer.silent_seconds() >= self._contact_timeout_seconds:
            raise OutOfContact(
                f"nothing new is handed out on {self._node}: the API server was silent for longer than "
                f"{format_duration(self._contact_timeout_seconds)}, and the cluster may have removed this node; "
                "check the connection to the API server"
            )
        node = self._informer.get(Key("", self._node))
        if node is None:
            raise OutOfContact(
                f"nothing new is handed out on {self._node}: the cluster has no Node of that name; "
                "register it, or correct the agent's node name"
            )
        return node.metadata.uid
