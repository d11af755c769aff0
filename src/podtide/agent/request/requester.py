"""Writes what the node asks for: one server-side apply per change of target, and none without a change.

The wish follows from what is so, never from what was written last: how many pods need an address, which parameters
are in force, what the pool holds. So whatever happens to the object (an edit by hand, a lost answer, a restart) the
next look compares and mends it in one write. What makes a write due:

    the target differs from the request       when `core.pool.pacing` says so
    more is held than was asked for           the surplus is named for release
    a CIDR drains                             what no pod has of it is named for release, and a primary in it is too
    `ipsNotInUse` is not what is given up     as sets: names that are gone are taken out
    a node that is owed has another number    nodes with more of them are served first
    of waiting pods than it said
    it is not stated what the request         at once for other parameters, in its own time for another demand
    follows from                              (see `stating`)

All but the first are gathered for a moment, too. Addresses are named in the journal before the cluster is told.

Pods come in bursts, and each is several changes: a target is worked out once for all that comes within a fraction of
the gathering, which still counts from when it came.
"""

from collections.abc import Mapping
from typing import NoReturn

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.node_config import is_owed
from podtide.agent.request.readiness import Readiness
from podtide.agent.request.statement import StatementSchedule
from podtide.agent.request.target import Target, TargetMaker
from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.port import Cluster, ClusterError
from podtide.core.errors import RetryError
from podtide.core.pool.pacing import Pace, Waiting, pace
from podtide.core.ranges import contains
from podtide.core.subnet.grants import primary_name
from podtide.core.subnet.scaling import to_release
from podtide.core.subnet.statement import Statement
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import (
    AGENT_MANAGER,
    STATEMENT_ANNOTATION,
    WAITING_PODS_ANNOTATION,
    waiting_pods_in,
)
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec
from podtide.resources.statement_annotation import render, statement_in
from podtide.runtime.runtime import Runtime
from podtide.runtime.wakeup import Wakeup

_NOBODYS_NAME = "podtide-none"
"""Names that another manager stated too (an Azure CNS that ran here before) do not go when we leave them out. StatementSchedule
another list makes it ours alone, so that it goes the next time; releasing a name that nobody has changes nothing."""

_RETRIES = Backoff(floor_seconds=0.2, cap_seconds=30.0)
_LOOKS_PER_GATHERING = 10


class Requester:
    """The one writer of the node's request and statement. As long as anything is unknown, it writes nothing."""

    def __init__(  # noqa: PLR0913 - from what, by which rules, and what it runs in
        self,
        cluster: Cluster,
        follower: ConfigFollower,
        journaled: JournaledPool,
        readiness: Readiness,
        targets: TargetMaker,
        *,
        patience: Pace,
        runtime: Runtime,
    ) -> None:
        self.writes = 0
        self.restatements = 0
        """How often a statement was written beside a request that stayed as it was."""
        self.decisions = 0
        """How often a target was worked out: what changes nothing must not cause that."""
        self.target: Target | None = None
        """The last one worked out."""
        self._cluster = cluster
        self._follower = follower
        self._journaled = journaled
        self._targets = targets
        self._readiness = readiness
        self._patience = patience
        self._clock = runtime.clock
        self._statements = StatementSchedule(clock=runtime.clock, randomness=runtime.randomness)
        self._failures = FailureStreak(_RETRIES, runtime.clock, runtime.randomness)
        self._log = runtime.log
        self._wakeup = Wakeup(runtime.clock, settle_seconds=patience.gather_seconds / _LOOKS_PER_GATHERING)
        self._answer: NodeNetworkConfig | None = None
        """The object as our last write left it, until the informer shows that or something later, or watches anew."""
        self._answered_in_watch = 0
        self._changing: Waiting | None = None
        self._untidy_since: float | None = None
        self._retry_at = 0.0
        self._complaint = ""
        journaled.on_change.append(self.look)

    def look(self) -> None:
        """Something changed that the request may depend on."""
        self._wakeup.wake()

    @property
    def config(self) -> NodeNetworkConfig | None:
        """The object as last heard of: from the informer, or in the answer to our own write if that is newer."""
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
        """Decide, and write if it is due. Answers when to look again at the latest."""
        if now < self._retry_at:
            return self._retry_at
        requested, demand = config.spec.requested_ip_count, self._journaled.needed
        told = self._told(config)
        target = self.target = self._targets.target(config, statement_in(told, requested))
        self.decisions += 1
        self._statements.see(demand, now)
        verdict = pace(
            self._changing,
            target.request,
            requested,
            now,
            self._patience,
            demand=demand,
            changed_at=min(self._wakeup.woken_at, now),
            exhausted=target.is_urgent,
        )
        if verdict.write:
            return await self._try_to_write(config, target, target.request, keep=target.request)
        self._changing = verdict.waiting
        # What a larger target will need is no surplus, and what a smaller one will not need is none yet.
        keep = max(target.request, requested)
        anew_at = self._statements.anew_at(target, requested)
        is_anew = anew_at is not None and now >= anew_at
        is_tidy = (
            not self._has_surplus(keep)
            and not self._holds_what_drains(target)
            and self._says_what_is_so(config, told, target)
            and not self._statements.is_missing(target, requested)
            and not is_anew
        )
        tidy_at = self._tidy_at(now, is_tidy=is_tidy)
        if tidy_at is not None and now >= tidy_at:
            return await self._try_to_write(config, target, requested, keep=keep, is_anew=is_anew)
        look_at = (verdict.look_at, tidy_at, None if is_anew else anew_at)
        return min((at for at in look_at if at is not None), default=None)

    def _tidy_at(self, now: float, *, is_tidy: bool) -> float | None:
        """When the rest of the object is to be put in order; None when it is."""
        if is_tidy:
            self._untidy_since = None
            return None
        if self._untidy_since is None:
            self._untidy_since = now
        return self._untidy_since + self._patience.gather_seconds

    def _has_surplus(self, keep: int) -> bool:
        return any(
            to_release(counts.held, counts.pending_release, keep)
            and counts.available + counts.pending_programming
            for counts in map(self._journaled.pool.counts, self._follower.networks)
        )

    def _holds_what_drains(self, target: Target) -> bool:
        pool = self._journaled.pool
        return any(pool.idle_in(container_id, target.draining) for container_id in self._follower.networks)

    def _says_what_is_so(self, config: NodeNetworkConfig, told: Mapping[str, str], target: Target) -> bool:
        if set(config.spec.ips_not_in_use) != set(self._named(target)):
            return False
        return waiting_pods_in(told) == self._journaled.demand.waiting or not is_owed(config)

    def _told(self, config: NodeNetworkConfig) -> Mapping[str, str]:
        """The annotations as last heard of. A write of them alone makes no new generation, so our answer goes first."""
        answer = self._answer
        is_the_same = answer is not None and answer.metadata.uid == config.metadata.uid
        return (answer if answer and is_the_same else config).metadata.annotations

    def _forget_an_old_answer(self) -> None:
        """Once the informer has shown what our last write left, it alone counts: others may change that again.

        So it does when another watch began: what we wrote may be gone with the rest, in a cluster that went back.
        """
        if self._answered_in_watch != self._follower.watches:
            self._answer = None
        seen, answer = self._follower.config, self._answer
        if seen is None or answer is None or answer.metadata.uid != seen.metadata.uid:
            return
        ahead = seen.metadata.generation - answer.metadata.generation
        if ahead > 0 or (ahead == 0 and _ours_in(seen) == _ours_in(answer)):
            self._answer = None

    def _named(self, target: Target) -> list[str]:
        """All that is given up: addresses of the pool, and primaries that drain, which others will take the place of."""
        pool = self._journaled.pool
        primaries = [
            primary_name(container_id)
            for container_id, network in self._follower.networks.items()
            if target.draining and network.primary and contains(target.draining, network.primary)
        ]
        names = (name for container_id in pool.containers() for name in pool.named(container_id))
        return sorted([*names, *primaries])

    async def _try_to_write(
        self, config: NodeNetworkConfig, target: Target, request: int, *, keep: int, is_anew: bool = False
    ) -> float | None:
        """Write; after a failure, answer when to try again. Whether a failed write took effect, the informer tells."""
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
        self._wakeup.wake()  # things may have changed while it was written
        return None

    def _complain(self, why: str) -> None:
        """Say it once, however long it lasts."""
        if why != self._complaint:
            self._complaint = why
            self._log.warning("cannot write the request; will go on trying", error=why)

    async def _write(self, config: NodeNetworkConfig, target: Target, request: int, keep: int) -> None:
        for container_id in self._follower.networks:
            self._journaled.name_draining(container_id, target.draining)
            counts = self._journaled.pool.counts(container_id)
            if surplus := to_release(counts.held, counts.pending_release, keep):
                self._journaled.name_for_release(container_id, surplus)
        names, waiting = self._named(target), self._journaled.demand.waiting
        statement = self._statements.statement(target, request, self._told(config))
        annotations = _annotations(waiting, statement)
        answer = await self._apply(_wish(config, request, names, annotations))
        if not names and answer.spec.ips_not_in_use:
            answer = await self._apply(_wish(config, request, [_NOBODYS_NAME], annotations))
        if statement is not None:
            self._hear(annotations, answer)
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

    def _hear(self, annotations: Mapping[str, str], answer: NodeNetworkConfig) -> None:
        """Say once that the cluster drops what is stated, however often it does."""
        kept = answer.metadata.annotations.get(STATEMENT_ANNOTATION)
        is_heard = kept == annotations[STATEMENT_ANNOTATION]
        if self._statements.is_heard and not is_heard:
            self._log.warning(
                "the cluster dropped an annotation of the NodeNetworkConfig: the batch is decided without this "
                "node's demand; see what changes annotations there",
                annotation=STATEMENT_ANNOTATION,
            )
        self._statements.is_heard = is_heard


def _annotations(waiting: int, statement: Statement | None) -> dict[str, str]:
    annotations = {WAITING_PODS_ANNOTATION: str(waiting)} if waiting else {}
    if statement is not None:
        annotations[STATEMENT_ANNOTATION] = render(statement)
    return annotations


def _ours_in(config: NodeNetworkConfig) -> tuple[str | None, ...]:
    annotations = config.metadata.annotations
    return tuple(annotations.get(mark) for mark in (WAITING_PODS_ANNOTATION, STATEMENT_ANNOTATION))


def _wish(
    config: NodeNetworkConfig, request: int, names: list[str], annotations: dict[str, str]
) -> NodeNetworkConfig:
    """All that the agent states in the object. With its uid: one that was deleted is not made again."""
    metadata = config.metadata
    return NodeNetworkConfig(
        metadata=ObjectMeta(
            name=metadata.name, namespace=metadata.namespace, uid=metadata.uid, annotations=annotations
        ),
        spec=NodeNetworkConfigSpec(requested_ip_count=request, ips_not_in_use=names),
    )
