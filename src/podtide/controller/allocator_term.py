"""This controller's standing at the allocator: who its cluster is, its term there, and what the cluster has seen.

The cluster is known by the uid of its namespace kube-system, and its name at the allocator belongs to that uid. Before
anything is written, here or there, the allocator has to agree that this controller acts for the cluster: a controller
with a wrong kubeconfig, or of a second cluster under the same name, waits and says why. The term is renewed every few
seconds, and each renewal and wish carries the highest versions that the cluster's NodeNetworkConfigs showed, by which an
allocator notices that its store went back (DESIGN.md "Who a cluster is", "A store that went back").

A term that is not renewed in time may be another's by now: a controller of a clone's need not wait longer. What a call
carries is the cluster's uid, which both have. So a controller that was stopped, or cut off, for as long as a term lasts
does nothing more until the allocator has agreed again. Its own clock tells: it counts from before the claim was sent, so
the term is over here no later than there.

Where objects were listed anew, the server may be another cluster's than before, or this one's restored: so the uid is
read again, and until it is known to be the same, nothing is written.
"""

import asyncio
import re
from contextlib import suppress
from typing import NoReturn

from msgspec import structs

from podtide.allocator.limits import LARGEST_VERSION, is_name
from podtide.allocator.port import (
    Allocator,
    AllocatorError,
    AllocatorUnavailable,
    AnotherCluster,
    Container,
    Quarantined,
    Wish,
)
from podtide.allocator.terms import SeenVersion, TermClaim
from podtide.cluster.port import Cluster, ClusterError
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.counts import ControllerCounts
from podtide.controller.options import ControllerOptions
from podtide.core.errors import FixError, PodtideError, RetryError
from podtide.core.subnet.cluster_identity import TERM_SECONDS
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.namespace import Namespace
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

RENEW_SECONDS = 3.0
"""A third of how long a term lasts."""
_REFUSED_SECONDS = 30.0
_LAST_WORD_SECONDS = 2.0


class ClusterDoubted(RetryError):
    """It is not certain which cluster this is."""


class AllocatorTerm:
    """One term's standing."""

    def __init__(  # noqa: PLR0913 - whom it speaks with, for whom, and what it runs in: each a parameter, none global
        self,
        cluster: Cluster,
        allocator: Allocator,
        options: ControllerOptions,
        holder: str,
        *,
        reports: WorkQueue[int],
        counts: ControllerCounts,
        clock: Clock,
        log: Logger,
    ) -> None:
        self.uid = ""
        """The cluster's; "" until it was read."""
        self._cluster = cluster
        self._allocator = allocator
        self._options = options
        self._holder = re.sub(r"[^A-Za-z0-9]+", "-", holder).strip("-")[:200] or "controller"
        self._reports = reports
        self._counts = counts
        self._clock = clock
        self._log = log
        self._seen = {
            (options.network, subnet): 0 for subnet in (options.subnet, options.subnet_v6) if subnet
        }
        """The highest version by network and subnet: of every subnet that the cluster has to do with."""
        self._objection: PodtideError | None = None
        self._is_open = False
        self._claimed = 0.0
        """When the last claim was sent, by this machine's monotonic clock, and when the last that was agreed to."""
        self._agreed = 0.0
        self._lists = 0
        """How often anything was listed, and so how often it was asked which cluster this is."""
        self._doubted = asyncio.Event()
        self.recognised = asyncio.Event()
        """Set while it is certain which cluster this is."""
        self.news = asyncio.Event()
        """Set when the allocator begins or ceases to refuse this controller."""

    @property
    def objection(self) -> str:
        """Why this controller may not act, in words; "" when it may, or when that is not known."""
        return str(self._objection or "")

    # What the cluster has seen

    def see(self, config: NodeNetworkConfig) -> None:
        """A NodeNetworkConfig shows what the allocator once granted."""
        for container in config.status.network_containers:
            if container.subnet_name:
                self._note(
                    container.vnet_id or self._options.network, container.subnet_name, container.version
                )

    def see_answer(self, container: Container) -> None:
        """The allocator granted something, whether or not a NodeNetworkConfig shows it yet."""
        self._note(container.network, container.subnet, container.version)

    def see_quarantined(self, left: Quarantined) -> None:
        """Something of the cluster is in a subnet, although no container shows a version."""
        self._note(left.network, left.subnet, 0)

    def _note(self, network: str, subnet: str, version: int) -> None:
        """What somebody else wrote into a status must not make the allocator refuse the claim as a whole."""
        if 0 <= version <= LARGEST_VERSION and is_name(network) and is_name(subnet):
            self._seen[network, subnet] = max(version, self._seen.get((network, subnet), 0))

    def stamped(self, wish: Wish) -> Wish:
        """The wish with who makes it and what it has seen. Raises while this controller may not act."""
        self.check()
        seen = self._seen.get((wish.network, wish.subnet), 0)
        return structs.replace(wish, cluster_uid=self.uid, seen=seen)

    def doubt(self) -> None:
        """Objects were listed anew: it may be another cluster that answered."""
        self._lists += 1
        self.recognised.clear()
        self._doubted.set()

    def check_cluster(self) -> None:
        """Raise while it is not certain that this is the cluster which the term is for."""
        if self.uid and not self.recognised.is_set():
            raise ClusterDoubted(
                f"objects were listed anew, and it is not known yet whether this is still the cluster with uid {self.uid}: "
                "reading its namespace kube-system"
            )

    def check(self) -> None:
        """Raise while this controller may not act."""
        self.check_cluster()
        if self._objection is not None:
            raise self._objection
        if not self._is_open:
            raise AllocatorUnavailable(
                "the allocator has not answered yet who acts for this cluster: try again"
            )
        if self._clock.monotonic() - self._agreed >= TERM_SECONDS:
            raise AllocatorUnavailable(
                f"this controller's term at the allocator was not renewed for {TERM_SECONDS:.0f} s, so another may act for "
                "this cluster: try again when it is renewed"
            )

    # The term

    async def open(self) -> None:
        """Wait until the allocator lets this controller act, or cannot be reached to say so: then `keep` goes on trying."""
        while True:
            await self._renew()
            if self._objection is None:
                return
            await asyncio.sleep(self._pause_seconds())

    async def keep(self) -> NoReturn:
        """Renew the term until cancelled."""
        while True:
            # Counted from the last claim: an answer that took long must not cost the term.
            waited = self._clock.monotonic() - self._claimed
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._pause_seconds() - waited)):
                    await self._doubted.wait()
            self._doubted.clear()
            await self._renew()

    async def close(self) -> None:
        """Leave the next controller nothing to wait for, if the allocator can be told at once."""
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
        """Ask once. Where there is no answer, what was so stays so, until the term is over."""
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
            self._log.info("this controller may act now", cluster=self._options.cluster, uid=self.uid)
            self._objection = None
            self._counts.refused = False
            self.news.set()
        if opened.recovery:
            self._reports.add(opened.recovery)

    async def _recognise(self) -> bool:
        """Read which cluster this is, if that is not certain; AnotherCluster if it is not the one it was."""
        if self.recognised.is_set():
            return True
        lists = self._lists
        try:
            found = (await self._cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid
        except ClusterError:
            if not self.uid:
                raise
            return False  # the server was there a moment ago
        if self.uid and found != self.uid:
            raise AnotherCluster(
                f"namespace kube-system has uid {found}, and had {self.uid} when this controller began: the API server is "
                "another cluster's now, or was restored from the backup of one; see where the controller's kubeconfig leads, "
                "then restart the controller"
            )
        self.uid = found
        if lists == self._lists:
            self.recognised.set()
        return True

    def _refuse(self, error: PodtideError) -> None:
        if str(error) != self.objection:
            self._log.error("this controller may not act; it waits", error=str(error))
            self.news.set()
        self._objection = error
        self._counts.refused = True
