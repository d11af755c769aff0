"""Frees addresses of leaked sandboxes: their pod is gone, or lives in another sandbox (see `core.pool.leaks`).

A pod missing from the cache is confirmed by a fresh GET before it counts as deleted (design R3). So is a pod
that has a newer sandbox: calls can arrive in another order than they were made, and the pod lives in the sandbox whose
address its status shows. If that is the older one, the newer one becomes the suspect: its ADD came late.
"""

from typing import NoReturn

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.listing import get_if_there
from podtide.cluster.port import Cluster, ClusterError
from podtide.core.errors import RetryError
from podtide.core.pool.demand import reference_of
from podtide.core.pool.leaks import Suspicion, suspicion_of
from podtide.core.pool.pool import Owner
from podtide.resources.pod import Pod
from podtide.runtime.runtime import Runtime
from podtide.runtime.wakeup import Wakeup


class LeakCollector:
    """Frees the addresses of sandboxes that were suspects for `leak_grace_seconds`, if the cluster confirms the suspicion."""

    def __init__(self, cluster: Cluster, node: str, journaled: JournaledPool, runtime: Runtime) -> None:
        self.collected = 0
        self._cluster = cluster
        self._node = node
        self._journaled = journaled
        self._grace_seconds = runtime.settings.leak_grace_seconds
        self._clock = runtime.clock
        self._failures = FailureStreak(Backoff(), runtime.clock, runtime.randomness)
        self._log = runtime.log
        self._wakeup = Wakeup(runtime.clock)
        self._due_at: float | None = None
        journaled.on_change.append(self._look)

    async def run(self) -> NoReturn:
        """Check suspects when their grace is over, until cancelled."""
        now, not_before = self._clock.monotonic(), 0.0
        while True:
            for owner in self._journaled.suspects.due(now, self._grace_seconds) if now >= not_before else ():
                try:
                    await self._judge(owner)
                except (ClusterError, RetryError) as error:
                    self._log.warning("cannot tell whether a sandbox is leaked", error=str(error))
                    not_before = self._clock.monotonic() + self._failures.delay_seconds(error)
                    break
            since = self._journaled.suspects.oldest_since
            self._due_at = None if since is None else max(since + self._grace_seconds, not_before)
            now = await self._wakeup.wait(self._due_at)

    def _look(self) -> None:
        # No other suspect is due before the oldest one, so a loop that has a time to wake up at needs no signal.
        if self._due_at is None and self._journaled.suspects.oldest_since is not None:
            self._wakeup.wake()

    async def _judge(self, owner: Owner) -> None:
        if not owner.name:
            # Without a pod name there is nothing to GET; the garbage collection of the runtime will free it.
            self._journaled.suspects.put_off(owner, self._clock.monotonic())
            return
        alive = await self._is_alive(owner)
        if self._journaled.demand.owner(owner.sandbox, owner.interface) is not owner:
            return  # it was freed, or replaced, during the GET
        if alive:
            self._journaled.lives(owner)
            return
        reason = suspicion_of(owner, self._journaled.demand)
        if reason is None:
            return  # its pod was added to the cache meanwhile
        freed = self._journaled.free(owner.sandbox, owner.interface)
        self.collected += 1
        self._log.warning(
            "collected a leaked sandbox",
            reason=reason,
            addresses=[address.ip for address in freed],
            sandbox=owner.sandbox,
            pod=owner.name,
            namespace=owner.namespace,
        )

    async def _is_alive(self, owner: Owner) -> bool:
        """Whether the cluster has the sandbox's pod on this node, and the pod lives in this sandbox."""
        pod = await get_if_there(self._cluster, Pod, owner.name, owner.namespace)
        if pod is None:
            return False
        there = pod_on_node(pod)
        is_ours = pod.spec.node_name == self._node and reference_of(owner) in there.references
        if not is_ours or there.ended:
            return False
        is_superseded = suspicion_of(owner, self._journaled.demand) is Suspicion.SUPERSEDED
        return not is_superseded or any(
            address.ip in shown_addresses(pod) for address in self._journaled.held_by(owner)
        )
