"""A pool whose records are lost: finding out which of its addresses pods have.

Everything that was found is in quarantine, for any of it may be a pod's. A pod's status shows what it has, and that is
adopted for the pod: under an invented sandbox, because nothing in the cluster tells the real one. When no pod of the
node can have anything unseen, the rest is free. A pod is accounted for when

    it shows its addresses, or is gone or has ended, or
    it has asked for an address since: then it has no sandbox that lives, and whatever an earlier one had is free.

Without the second, a pod that waits for an address would wait for itself.

A pod's status may tell of the past: that of one whose sandbox died, or which is on its way out, shows an address that
another pod may have by now. So nothing is adopted while any pod may have something unseen, and what two pods show stays
in quarantine until one of them is gone, has ended, or shows another.
"""

from collections import defaultdict
from typing import NoReturn

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.cluster.informer import Informer
from podtide.core.errors import RetryError
from podtide.core.pool.demand import PodOnNode, reference_of
from podtide.core.pool.pool import Owner
from podtide.core.pool.states import State
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.wakeup import Wakeup

_RETRY_SECONDS = 5.0
_INTERFACE = "eth0"


def stand_in_for(pod: PodOnNode) -> Owner:
    """Who holds an adopted address: a sandbox that no runtime ever makes, of the pod that shows the address."""
    return Owner(
        sandbox=f"pod-{pod.uid}",
        interface=_INTERFACE,
        pod=pod.config_hash or pod.uid,
        namespace=pod.namespace,
        name=pod.name,
    )


def is_stand_in(owner: Owner) -> bool:
    """Whether it was invented for a pod whose sandbox is not known."""
    return owner.sandbox.startswith("pod-")


class Recovery:
    """Adopts and proves, as long as there is anything to prove."""

    def __init__(self, journaled: JournaledPool, pods: Informer[Pod], *, clock: Clock, log: Logger) -> None:
        self._journaled = journaled
        self._pods = pods
        self._clock = clock
        self._log = log
        self._wakeup = Wakeup(clock)
        self._asked: set[str] = set()
        pods.add_handler(self._pod_changed)

    def look(self) -> None:
        """Something changed that may prove something."""
        if self._journaled.lost:
            self._wakeup.wake()

    def _pod_changed(self, _old: Pod | None, _new: Pod | None) -> None:
        if self._journaled.lost:
            self._wakeup.wake()

    def asked(self, owner: Owner) -> None:
        """A pod asks for an address."""
        if self._journaled.lost:
            self._asked.add(reference_of(owner))
            self._wakeup.wake()

    async def run(self) -> NoReturn:
        """Adopt what pods show, and free the rest when all have; then there is nothing left to do."""
        await self._pods.synced.wait()
        while True:
            retry_at = None
            try:
                if self._journaled.lost and self._journaled.pool.containers():
                    self._prove()
            except RetryError as error:
                self._log.warning("cannot go on rebuilding the pool; will try again", error=str(error))
                retry_at = self._clock.monotonic() + _RETRY_SECONDS
            await self._wakeup.wait(retry_at)

    def _prove(self) -> None:
        claims, unseen = self._read_pods()
        quarantined = self._journaled.counts()[State.QUARANTINED]
        if quarantined and unseen:
            self._log.debug("waiting for pods to show their addresses", quarantined=quarantined, pods=unseen)
            return
        for ip, pods in claims.items():
            if len(pods) == 1:
                self._journaled.adopt(ip, stand_in_for(pods[0]))
        contested = [ip for ip, pods in claims.items() if len(pods) > 1]
        proven = self._journaled.prove_free(contested)
        if self._journaled.lost:
            self._log.debug("waiting for all but one pod to show another address", contested=contested)
            return
        self._asked.clear()
        self._log.info("the pool is rebuilt", proven_free=proven)

    def _read_pods(self) -> tuple[dict[str, list[PodOnNode]], list[str]]:
        """Which pods show which address, and those that may have something unseen."""
        claims = defaultdict[str, list[PodOnNode]](list)
        unseen: list[str] = []
        for pod in self._pods.items():
            there = pod_on_node(pod)
            if there.ended or pod.spec.host_network:
                continue
            shown = shown_addresses(pod)
            for ip in shown:
                claims[ip].append(there)
            has_asked = not self._asked.isdisjoint(there.references)
            if not (shown or has_asked or self._journaled.demand.holds_address(there)):
                unseen.append(str(pod.key))
        return claims, unseen
