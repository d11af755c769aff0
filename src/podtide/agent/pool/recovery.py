"""Rebuilds a pool whose records are lost: finds out which of its addresses pods have.

All addresses of the containers are quarantined, because any of them may be a pod's. An address that a pod's status shows
is adopted for the pod: under an invented sandbox id, because the cluster does not tell the real one, or for the sandbox
that another program recorded on this node before podtide took its place (`core.pool.adoption` decides). When every pod of
the node is accounted for, the rest is free. A pod is accounted for when

    its status shows its addresses, or it is deleted or has ended, or
    it has called ADD since: then it has no living sandbox, and what an earlier one had is free.

Without the second, a pod that waits for an address would wait for itself. What a pod showed that is deleted or
ends meanwhile stays with it until the DEL of its sandbox, or until it counts as leaked: it may still be being stopped.

A pod's status may be stale: after its sandbox died, or while it is being deleted, it shows an address that another pod may
have by now. So nothing is adopted before all pods are accounted for, and an address that two pods show, or of which
a record says something else, stays in quarantine until one of them is deleted, has ended, or shows another.
"""

from collections.abc import Callable
from typing import NoReturn

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.cluster.informer import Informer
from podtide.core.errors import RetryError
from podtide.core.pool.adoption import RecordedEndpoint, ShowingPod, plan_adoption
from podtide.core.pool.demand import reference_of
from podtide.core.pool.pool import Owner
from podtide.core.pool.states import State
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.wakeup import Wakeup

_RETRY_SECONDS = 5.0

EndpointReader = Callable[[], tuple[RecordedEndpoint, ...]]
"""Returns what another program recorded on this node."""


def _nothing_recorded() -> tuple[RecordedEndpoint, ...]:
    return ()


class Recovery:
    """Adopts addresses and ends their quarantine, while records are lost."""

    def __init__(
        self,
        journaled: JournaledPool,
        pods: Informer[Pod],
        *,
        read_endpoints: EndpointReader = _nothing_recorded,
        clock: Clock,
        log: Logger,
    ) -> None:
        """`read_endpoints` is called once, and only if records are lost."""
        self._journaled = journaled
        self._read_endpoints = read_endpoints
        self._recorded: tuple[RecordedEndpoint, ...] | None = None
        self._deleted: set[str] = set()
        self._told: set[str] = set()
        self._pods = pods
        self._clock = clock
        self._log = log
        self._wakeup = Wakeup(clock)
        self._asked: set[str] = set()
        self._departed: list[ShowingPod] = []
        """The pods that showed addresses when they were deleted or ended."""
        self._torn_down: set[str] = set()
        """The pods, by reference, of which a sandbox was deleted when they needed none any more."""
        pods.add_handler(self._pod_changed)

    def look(self) -> None:
        """Re-evaluate, because the NodeNetworkConfig changed."""
        if self._journaled.lost:
            self._wakeup.wake()

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if not self._journaled.lost:
            return
        if old is not None and (new is None or pod_on_node(new).ended):
            self._part_with(old)
        self._wakeup.wake()

    def _part_with(self, pod: Pod) -> None:
        """Remember what a pod showed that is deleted or has ended, unless its sandbox is known to be gone."""
        there, shown = pod_on_node(pod), shown_addresses(pod)
        if shown and (self._asked | self._torn_down).isdisjoint(there.references):
            self._departed.append(ShowingPod(there, shown))

    def asked(self, owner: Owner) -> None:
        """A pod called ADD, so it is accounted for."""
        if self._journaled.lost:
            self._asked.add(reference_of(owner))
            self._wakeup.wake()

    def deleted(self, owner: Owner) -> None:
        """The runtime deleted the sandbox: what was recorded of it does not count any more."""
        if self._journaled.lost:
            self._deleted.add(owner.sandbox)
            reference = reference_of(owner)
            pod = self._journaled.demand.pod(reference)
            if (
                pod is None or not pod.needs_address
            ):  # else it may be an earlier sandbox: the pod lives in another
                self._torn_down.add(reference)
                self._departed = [each for each in self._departed if reference not in each.pod.references]
            self._wakeup.wake()

    async def run(self) -> NoReturn:
        """Adopt what pods show and free the rest, once all pods are accounted for; then sleep until cancelled."""
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
        pods, unseen = self._read_pods()
        quarantined = self._journaled.counts()[State.QUARANTINED]
        if quarantined and unseen:
            self._log.debug("waiting for pods to show their addresses", quarantined=quarantined, pods=unseen)
            return
        states = {each.ip: each.state for each in self._journaled.pool.addresses() if each.state is not None}
        plan = plan_adoption(pods, self._endpoints(), states, self._departed)
        for ip, owner in plan.adoptions:
            self._journaled.adopt(ip, owner)
        self._tell(plan.contradictions)
        proven = self._journaled.prove_free(plan.contested)
        if self._journaled.lost:
            self._log.debug("waiting for all but one claim to an address to end", contested=plan.contested)
            return
        self._asked.clear()
        self._deleted.clear()
        self._departed.clear()
        self._torn_down.clear()
        self._log.info("the pool is rebuilt", proven_free=proven)

    def _endpoints(self) -> list[RecordedEndpoint]:
        """What was recorded on this node, without the sandboxes that were deleted since."""
        if self._recorded is None:
            self._recorded = self._read_endpoints()
        return [each for each in self._recorded if each.sandbox not in self._deleted]

    def _tell(self, contradictions: tuple[str, ...]) -> None:
        for words in contradictions:
            if words not in self._told:
                self._told.add(words)
                self._journaled.contradicted(words)

    def _read_pods(self) -> tuple[list[ShowingPod], list[str]]:
        """The pods with the addresses that they show, and those that are not accounted for."""
        pods: list[ShowingPod] = []
        unseen: list[str] = []
        for pod in self._pods.items():
            there = pod_on_node(pod)
            shown = shown_addresses(pod)
            pods.append(ShowingPod(there, shown))
            if there.ended or pod.spec.host_network:
                continue
            has_asked = not self._asked.isdisjoint(there.references)
            if not (shown or has_asked or self._journaled.demand.holds_address(there)):
                unseen.append(str(pod.key))
        return pods, unseen
