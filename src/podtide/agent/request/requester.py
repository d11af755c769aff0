"""Writes the node's request: one server-side apply per change of target, and none without a change.

The request follows from the current state, never from what was written last: how many pods need an address, which
parameters are in force, what the pool holds. So whatever happens to the object (an edit by hand, a lost answer, a
restart), the next reconciliation corrects it in one write. What makes a write due:

    the target differs from the request       when `core.pool.pacing` says so
    more is held than was asked for           the surplus is named for release
    a CIDR drains                             its addresses without a pod are named for release, and a primary in it is too
    `ipsNotInUse` is not what was given up    compared as sets: names that are gone are removed
    the number of waiting pods differs        where the subnet owes the node addresses: nodes with more of them come first
    the statement is missing or outdated      at once for other parameters, later for another demand (see `statement`)
    other pods use an address unrequested     later, too, where a pod requests one (see `pod_requests`)

All but the first wait for the gathering time, too. Addresses are named in the journal before the cluster is written.

Pods come in bursts, and each is several changes: the target is computed once for all that come within a fraction of the
gathering time, which still counts from the first of them.
"""

from collections.abc import Mapping
from typing import NoReturn

from podtide.agent.request.node_config import is_owed
from podtide.agent.request.node_inputs import NodeInputs
from podtide.agent.request.pod_requests import PodRequests
from podtide.agent.request.statement import StatementSchedule
from podtide.agent.request.target import RequestTarget, TargetCalculator
from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.port import Cluster, ClusterError
from podtide.core.errors import RetryError
from podtide.core.pool.pacing import Pace, Waiting, WantedTarget, pace
from podtide.core.ranges import contains
from podtide.core.subnet.grants import primary_name
from podtide.core.subnet.scaling import to_release
from podtide.core.subnet.statement import Statement
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import (
    AGENT_MANAGER,
    STATED_ANNOTATIONS,
    STATEMENT_ANNOTATION,
    UNREQUESTED_ANNOTATION,
    WAITING_PODS_ANNOTATION,
    unrequested_in,
    waiting_pods_in,
)
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.statement_annotation import render, statement_in
from podtide.runtime.runtime import Runtime
from podtide.runtime.wakeup import Wakeup

_UNKNOWN_NAME = "podtide-none"
"""Names that another field manager applied too (an Azure CNS that ran here before) stay when we leave them out. Applying
another list makes the field ours alone, so that the next apply can empty it; releasing an unknown name is a no-op."""

_RETRIES = Backoff(floor_seconds=0.2, cap_seconds=30.0)
_LOOKS_PER_GATHERING = 10


class Requester:
    """The only writer of the node's request and statement. It writes nothing before the agent has synced."""

    def __init__(
        self,
        cluster: Cluster,
        inputs: NodeInputs,
        targets: TargetCalculator,
        pods: PodRequests,
        runtime: Runtime,
    ) -> None:
        self.writes = 0
        self.restatements = 0
        """How often a new statement was written beside an unchanged request."""
        self.decisions = 0
        """How often a target was computed. Tests hold that events without effect do not cause it."""
        self.target: RequestTarget | None = None
        """The last target that was computed."""
        self._cluster = cluster
        self._follower = inputs.follower
        self._journaled = inputs.journaled
        self._targets = targets
        self._pod_requests = pods
        self._readiness = inputs.readiness
        self._patience = patience = Pace(
            runtime.settings.gather_seconds,
            runtime.settings.gather_at_most_seconds,
            runtime.settings.shrink_delay_seconds,
        )
        self._clock = runtime.clock
        self._statements = StatementSchedule(clock=runtime.clock, randomness=runtime.randomness)
        self._failures = FailureStreak(_RETRIES, runtime.clock, runtime.randomness)
        self._log = runtime.log
        self._wakeup = Wakeup(runtime.clock, settle_seconds=patience.gather_seconds / _LOOKS_PER_GATHERING)
        self._answer: NodeNetworkConfig | None = None
        """The object as our last write returned it, until the informer has that or a later version, or watches anew."""
        self._answered_in_watch = 0
        self._changing: Waiting | None = None
        self._untidy_since: float | None = None
        self._retry_at = 0.0
        self._complaint = ""
        inputs.journaled.on_change.append(self.look)

    def look(self) -> None:
        """Reconcile soon, because something changed that the request may depend on."""
        self._wakeup.wake()

    @property
    def config(self) -> NodeNetworkConfig | None:
        """The newest known version of the object: from the informer, or from our own write if that is newer."""
        seen, answer = self._follower.config, self._answer
        if seen is None or answer is None or answer.metadata.uid != seen.metadata.uid:
            return seen
        return answer if answer.metadata.generation > seen.metadata.generation else seen

    async def run(self) -> NoReturn:
        """Write whenever it is due, until cancelled."""
        now = self._clock.monotonic()
        while True:
            self._forget_an_old_answer()
            config, look_at = self.config, None
            if config is not None and self._readiness.is_complete:
                look_at = await self._step(config, now)
            now = await self._wakeup.wait(look_at)

    async def _step(self, config: NodeNetworkConfig, now: float) -> float | None:
        """Decide, and write if it is due. Returns when to reconcile again at the latest."""
        if now < self._retry_at:
            return self._retry_at
        requested, demand = config.spec.requested_ip_count, self._journaled.needed
        told = self._told(config)
        target = self.target = self._targets.target(config, statement_in(told, requested))
        self.decisions += 1
        self._statements.see(demand, now, target.said)
        changed_at = min(self._wakeup.woken_at, now)
        wanted = WantedTarget(target.request, requested, demand, changed_at, target.is_urgent)
        verdict = pace(self._changing, wanted, now, self._patience)
        if verdict.write:
            return await self._try_to_write(config, target, target.request, keep=target.request)
        self._changing = verdict.waiting
        # Addresses that a larger target will need are not surplus; those that a smaller one will not need are not yet.
        keep = max(target.request, requested)
        anew_at = self._statements.anew_at(
            target,
            requested,
            unrequested_differs=unrequested_in(told) != self._unrequested(),
            is_placed=self._pod_requests.any_requested,
        )
        is_anew = anew_at is not None and now >= anew_at
        is_tidy = (
            not self._has_surplus(keep)
            and not self._holds_what_drains(target)
            and self._is_up_to_date(config, told, target)
            and not self._statements.is_missing(target, requested)
            and (unrequested_in(told) is not None or not self._statements.is_heard)
            and not is_anew
        )
        tidy_at = self._tidy_at(now, is_tidy=is_tidy)
        if tidy_at is not None and now >= tidy_at:
            return await self._try_to_write(config, target, requested, keep=keep, is_anew=is_anew)
        look_at = (verdict.look_at, tidy_at, None if is_anew else anew_at)
        return min((at for at in look_at if at is not None), default=None)

    def _tidy_at(self, now: float, *, is_tidy: bool) -> float | None:
        """When the rest of the object has to be corrected; None when it is right."""
        if is_tidy:
            self._untidy_since = None
            return None
        if self._untidy_since is None:
            self._untidy_since = now
        return self._untidy_since + self._patience.gather_seconds

    def _unrequested(self) -> int:
        return self._pod_requests.unrequested(self._journaled.needed, self._journaled.pool.outlived())

    def _has_surplus(self, keep: int) -> bool:
        return any(
            to_release(counts.held, counts.pending_release, keep)
            and counts.available + counts.pending_programming
            for counts in map(self._journaled.pool.counts, self._follower.networks)
        )

    def _holds_what_drains(self, target: RequestTarget) -> bool:
        pool = self._journaled.pool
        return any(pool.idle_in(container_id, target.draining) for container_id in self._follower.networks)

    def _is_up_to_date(
        self, config: NodeNetworkConfig, told: Mapping[str, str], target: RequestTarget
    ) -> bool:
        if set(config.spec.ips_not_in_use) != set(self._named(target)):
            return False
        return waiting_pods_in(told) == self._journaled.demand.waiting or not is_owed(config)

    def _told(self, config: NodeNetworkConfig) -> Mapping[str, str]:
        """The newest known annotations. Writing them makes no new generation, so what our write returned has precedence."""
        answer = self._answer
        is_the_same = answer is not None and answer.metadata.uid == config.metadata.uid
        return (answer if answer and is_the_same else config).metadata.annotations

    def _forget_an_old_answer(self) -> None:
        """Forget what our last write returned once the informer has it: from then on, others may have changed it again.

        Also when a new watch was started: after a restore of etcd, what we wrote may be lost.
        """
        if self._answered_in_watch != self._follower.watches:
            self._answer = None
        seen, answer = self._follower.config, self._answer
        if seen is None or answer is None or answer.metadata.uid != seen.metadata.uid:
            return
        ahead = seen.metadata.generation - answer.metadata.generation
        if ahead > 0 or (ahead == 0 and _ours_in(seen) == _ours_in(answer)):
            self._answer = None

    def _named(self, target: RequestTarget) -> list[str]:
        """The names that were given up: addresses of the pool, and draining primaries, which the controller replaces."""
        pool = self._journaled.pool
        primaries = [
            primary_name(container_id)
            for container_id, network in self._follower.networks.items()
            if target.draining and network.primary and contains(target.draining, network.primary)
        ]
        names = (name for container_id in pool.containers() for name in pool.named(container_id))
        return sorted([*names, *primaries])

    async def _try_to_write(
        self,
        config: NodeNetworkConfig,
        target: RequestTarget,
        request: int,
        *,
        keep: int,
        is_anew: bool = False,
    ) -> float | None:
        """Write. After a failure, returns when to retry. The informer shows whether a failed write took effect."""
        try:
            await self._write(config, target, request, keep)
        except (ClusterError, RetryError) as error:
            self._retry_at = self._clock.monotonic() + self._failures.delay_seconds(error)
            self._complain(str(error))
            return self._retry_at
        if is_anew:
            self._statements.stated_anew(self._clock.monotonic())
        self._complaint = ""
        self._changing = self._untidy_since = None
        self._wakeup.wake()  # the state may have changed during the write
        return None

    def _complain(self, why: str) -> None:
        """Log it once, however long it lasts."""
        if why != self._complaint:
            self._complaint = why
            self._log.warning("cannot write the request; will go on trying", error=why)

    async def _write(self, config: NodeNetworkConfig, target: RequestTarget, request: int, keep: int) -> None:
        for container_id in self._follower.networks:
            self._journaled.name_draining(container_id, target.draining)
            counts = self._journaled.pool.counts(container_id)
            if surplus := to_release(counts.held, counts.pending_release, keep):
                self._journaled.name_for_release(container_id, surplus)
        names, waiting = self._named(target), self._journaled.demand.waiting
        statement = self._statements.statement(target, request, self._told(config))
        annotations = _annotations(waiting, statement, self._unrequested())
        answer = await self._apply(_wish(config, request, names, annotations))
        if not names and answer.spec.ips_not_in_use:
            answer = await self._apply(_wish(config, request, [_UNKNOWN_NAME], annotations))
        if statement is not None:
            self._check_statement(annotations, answer)
            self.restatements += statement != target.said and request == config.spec.requested_ip_count
        self._log.info(
            "request written",
            decision=str(target.decided),
            before=config.spec.requested_ip_count,
            request=request,
            giving_back=len(names),
            waiting_pods=waiting,
        )

    async def _apply(self, wish: NodeNetworkConfig) -> NodeNetworkConfig:
        self.writes += 1
        watch = self._follower.watches
        self._answer = answer = await self._cluster.apply(wish, manager=AGENT_MANAGER, force=True)
        self._answered_in_watch = watch
        return answer

    def _check_statement(self, annotations: Mapping[str, str], answer: NodeNetworkConfig) -> None:
        """Log once that the cluster dropped the statement, however often it does."""
        kept = answer.metadata.annotations.get(STATEMENT_ANNOTATION)
        is_heard = kept == annotations[STATEMENT_ANNOTATION]
        if self._statements.is_heard and not is_heard:
            self._log.warning(
                "the cluster dropped an annotation of the NodeNetworkConfig: the batch is decided without this "
                "node's demand; see what changes annotations there",
                annotation=STATEMENT_ANNOTATION,
            )
        self._statements.is_heard = is_heard


def _annotations(waiting: int, statement: Statement | None, unrequested: int) -> dict[str, str]:
    annotations = {UNREQUESTED_ANNOTATION: str(unrequested)}
    if waiting:
        annotations[WAITING_PODS_ANNOTATION] = str(waiting)
    if statement is not None:
        annotations[STATEMENT_ANNOTATION] = render(statement)
    return annotations


def _ours_in(config: NodeNetworkConfig) -> tuple[str | None, ...]:
    annotations = config.metadata.annotations
    return tuple(annotations.get(mark) for mark in STATED_ANNOTATIONS)


def _wish(
    config: NodeNetworkConfig, request: int, names: list[str], annotations: dict[str, str]
) -> NodeNetworkConfig:
    """The object to apply: all fields of the agent. With the uid, so that a deleted object is not created again."""
    metadata = config.metadata
    return NodeNetworkConfig(
        metadata=ObjectMeta(
            name=metadata.name, namespace=metadata.namespace, uid=metadata.uid, annotations=annotations
        ),
        spec=NodeNetworkConfigSpec(requested_ip_count=request, ips_not_in_use=names),
    )
