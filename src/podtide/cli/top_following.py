"""The objects behind `podtide top`, followed by informers.

A cluster is listed once and then watched: to look at it for an hour costs it no more than to look once.
"""

import asyncio
import io

import msgspec
from msgspec import Struct

from podtide.cli.observed_node import observe_nodes
from podtide.cli.top_overview import Overview, overlook
from podtide.cluster.informer import EVERYTHING, Informer, Scope
from podtide.cluster.port import Cluster, R
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import system_randomness

_SYSTEM = Scope(namespace=SYSTEM_NAMESPACE)


class FollowedCluster:
    """What is known of a cluster now. `run` keeps it up to date."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._clock = SystemClock()
        self._said = io.StringIO()
        self._pods = self._informer(Pod, EVERYTHING)
        self._configs = self._informer(NodeNetworkConfig, _SYSTEM)
        self._subnets = self._informer(ClusterSubnet, _SYSTEM)
        self._states = self._informer(ClusterSubnetState, _SYSTEM)

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (self._pods, self._configs, self._subnets, self._states):
                tasks.create_task(informer.run())

    def overview(self) -> Overview | None:
        """What is known; None until everything is."""
        informers = (self._pods, self._configs, self._subnets, self._states)
        if not all(informer.synced.is_set() for informer in informers):
            return None
        nodes = observe_nodes(self._configs.items(), self._pods.items())
        return overlook(nodes, self._subnets.items(), self._states.items())

    def complaint(self) -> str:
        """What last went wrong, and when. Informers say it once, however long it lasts."""
        lines = self._said.getvalue().splitlines()
        if not lines:
            return ""
        complaint = msgspec.json.decode(lines[-1], type=_Complaint)
        return f"{complaint.at}  {complaint.error}"

    def _informer(self, kind: type[R], scope: Scope) -> Informer[R]:
        return Informer(
            self._cluster,
            kind,
            scope,
            clock=self._clock,
            randomness=system_randomness(),
            log=make_logger(self._said, self._clock, level="warning"),
        )


class _Complaint(Struct):
    """What is read of a line of the informers' log."""

    at: str
    error: str = ""
