"""This controller's term at the allocator: which cluster it acts for, and which versions the cluster has seen.

A cluster is identified by the uid of its namespace kube-system, and its name at the allocator belongs to that uid.
Before anything is written, to the cluster or the allocator, the allocator has to agree that this controller acts for
the cluster: a controller with a wrong kubeconfig, or of a second cluster under the same name, waits and says why. The
term is renewed every few seconds, and each renewal and wish carries the highest versions that the cluster's
NodeNetworkConfigs showed, by which an allocator notices that its database was restored (design R6 and R7).

A term that is not renewed in time may belong to another controller by now: that of a cloned cluster need not wait
longer, and calls carry the cluster's uid, which both have. So a controller that was stopped, or cut off, for as long as
a term lasts does nothing more until the allocator has agreed again. Its own clock decides: it counts from before the
claim was sent, so the term ends here no later than at the allocator.

Where objects were listed again, the server may be another cluster's than before, or a restored one: so the uid is read
again, and until it is known to be the same, nothing is written.
"""

import asyncio
import re
from contextlib import suppress
from typing import NoReturn

from msgspec import structs

from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.errors import AllocatorError, AllocatorUnavailable, AnotherCluster
from podtide.allocator.limits import LARGEST_VERSION, is_name
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import Quarantined
from podtide.allocator.terms import SeenVersion, TermClaim
from podtide.cluster.port import Cluster, ClusterError
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.options import ControllerOptions
from podtide.core.errors import FixError, PodtideError, RetryError
from podtide.core.subnet.cluster_identity import TERM_SECONDS
from podtide.resources.foreign_config import has_foreign_containers
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.namespace import Namespace
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.runtime import Runtime

RENEW_SECONDS = 3.0
"""A third of the duration of a term."""
_REFUSED_SECONDS = 30.0
_LAST_WORD_SECONDS = 2.0


class ClusterDoubted(RetryError):
    """It is not certain which cluster the API server belongs to."""


class AllocatorTerm:
    """The term of one leader at the allocator."""

    def __init__(
        self,
        cluster: Cluster,
        allocator: Allocator,
        options: ControllerOptions,
        holder: str,
        runtime: Runtime,
    ) -> None:
        self.uid = ""
        """The uid of the cluster; "" until it was read."""
        self._cluster = cluster
        self._allocator = allocator
        self._options = options
        self._holder = re.sub(r"[^A-Za-z0-9]+", "-", holder).strip("-")[:200] or "controller"
        self._clock = runtime.clock
        self._log = runtime.log
        self._seen = {
            (options.network, subnet): 0 for subnet in (options.subnet, options.subnet_v6) if subnet
        }
        """The highest version by network and subnet, for every subnet that this cluster uses."""
        self._objection: PodtideError | None = None
        self._is_open = False
        self._claimed = 0.0
        """When the last claim was sent, by this machine's monotonic clock; `_agreed` is when the last successful one was."""
        self._agreed = 0.0
        self._lists = 0
        """How many lists were made, and so how often the uid of the cluster had to be read again."""
        self._doubted = asyncio.Event()
        self.recognised = asyncio.Event()
        """Set while it is certain which cluster this is."""
        self.reports = WorkQueue[int]()
        """The recoveries of the allocator that wait for a report of what this cluster holds."""
        self.news = asyncio.Event()
        """Set when the allocator starts or stops refusing this controller."""

    @property
    def objection(self) -> str:
        """Why this controller may not act; "" if it may, or if that is not known."""
        return str(self._objection or "")

    # What the cluster has seen

    def see(self, config: NodeNetworkConfig) -> None:
        """Note the versions that a NodeNetworkConfig shows; those that another program wrote are none of the allocator's."""
        if has_foreign_containers(config):
            return
        for container in config.status.network_containers:
            if container.subnet_name:
                self._note(
                    container.vnet_id or self._options.network, container.subnet_name, container.version
                )

    def see_answer(self, container: AllocatedContainer) -> None:
        """Note the version of a grant, whether or not a NodeNetworkConfig shows it yet."""
        self._note(container.network, container.subnet, container.version)

    def see_quarantined(self, left: Quarantined) -> None:
        """Note a subnet in which this cluster has something in quarantine, although no container shows a version."""
        self._note(left.network, left.subnet, 0)

    def _note(self, network: str, subnet: str, version: int) -> None:
        """Note a version, if it is valid: a bad one in a status must not make the allocator refuse the whole claim."""
        if 0 <= version <= LARGEST_VERSION and is_name(network) and is_name(subnet):
            self._seen[network, subnet] = max(version, self._seen.get((network, subnet), 0))

    def stamped(self, wish: Wish) -> Wish:
        """The wish with the cluster's uid and the version it has seen. Raises while this controller may not act."""
        self.check()
        seen = self._seen.get((wish.network, wish.subnet), 0)
        return structs.replace(wish, cluster_uid=self.uid, seen=seen)

    def doubt(self) -> None:
        """Note that objects were listed again: another cluster may have answered."""
        self._lists += 1
        self.recognised.clear()
        self._doubted.set()

    def check_cluster(self) -> None:
        """Raise while it is not certain that this is the cluster that the term is for."""
        if self.uid and not self.recognised.is_set():
            raise ClusterDoubted(
                f"objects were listed again, and it is not known yet whether this is still the cluster with uid {self.uid}: "
                "reading its namespace kube-system"
            )

    def check(self) -> None:
        """Raise while this controller may not act."""
        self.check_cluster()
        if self._objection is not None:
            raise self._objection
        if not self._is_open:
            raise AllocatorUnavailable(
                "the allocator has not confirmed yet that this controller acts for its cluster: try again"
            )
        if self._clock.monotonic() - self._agreed >= TERM_SECONDS:
            raise AllocatorUnavailable(
                f"this controller's term at the allocator was not renewed for {TERM_SECONDS:.0f} s, so another may act for "
                "this cluster: try again when it is renewed"
            )

    # The term

    async def open(self) -> None:
        """Wait until the allocator lets this controller act.

        Returns also if it cannot be reached: `keep` goes on trying.
        """
        while True:
            await self._renew()
            if self._objection is None:
                return
            await asyncio.sleep(self._pause_seconds())

    async def keep(self) -> NoReturn:
        """Renew the term until cancelled."""
        while True:
            # Counted from the last claim, so that a slow answer does not let the term expire.
            waited = self._clock.monotonic() - self._claimed
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._pause_seconds() - waited)):
                    await self._doubted.wait()
            self._doubted.clear()
            await self._renew()

    async def close(self) -> None:
        """Close the term, if the allocator answers quickly, so that the next controller need not wait."""
        if not self._is_open:
            return
        try:
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await self._allocator.close_term(self._claim())
        except (PodtideError, TimeoutError) as error:
            self._log.info("the term at the allocator was not closed; it ends by itself", error=str(error))

    def _pause_seconds(self) -> float:
        return _REFUSED_SECONDS if isinstance(self._objection, FixError) else RENEW_SECONDS

    def _claim(self) -> TermClaim:
        seen = tuple(SeenVersion(*place, version) for place, version in sorted(self._seen.items()))
        return TermClaim(cluster=self._options.cluster, cluster_uid=self.uid, holder=self._holder, seen=seen)

    async def _renew(self) -> None:
        """Send one claim. Without an answer the term stays as it is, until it ends."""
        self._claimed = self._clock.monotonic()
        try:
            if not await self._recognise():
                return
            opened = await self._allocator.open_term(self._claim())
        except AllocatorUnavailable as error:
            self._log.debug("the term was not renewed", error=str(error))
            return
        except (AllocatorError, ClusterError, FixError) as error:
            self._refuse(error)
            return
        self._is_open, self._agreed = True, self._claimed
        for reached in opened.reached:
            self._note(reached.network, reached.subnet, reached.version)
        if self._objection is not None:
            self._log.info(
                "the allocator accepts this controller", cluster=self._options.cluster, uid=self.uid
            )
            self._objection = None
            self.news.set()
        if opened.recovery:
            self.reports.add(opened.recovery)

    async def _recognise(self) -> bool:
        """Read the cluster's uid, if it is in doubt. Returns whether it is certain; AnotherCluster if it changed."""
        if self.recognised.is_set():
            return True
        lists = self._lists
        try:
            found = (await self._cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid
        except ClusterError:
            if not self.uid:
                raise
            return False  # it answered before, so this is an outage and will be retried
        if self.uid and found != self.uid:
            raise AnotherCluster(
                f"namespace kube-system has uid {found}, but had {self.uid} when this controller started: the API server is "
                "another cluster's now, or was restored from a backup of one; check the controller's kubeconfig, "
                "then restart the controller"
            )
        self.uid = found
        if lists == self._lists:
            self.recognised.set()
        return True

    def _refuse(self, error: PodtideError) -> None:
        if str(error) != self.objection:
            self._log.error("the allocator refuses this controller; waiting", error=str(error))
            self.news.set()
        self._objection = error
