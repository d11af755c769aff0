"""From a node's request to what it gets: one wish to the allocator, and one status, each only when something changed.

The wish is sent again when anything it was made from changed (any part of the NodeNetworkConfig, the node's labels or
addresses), when it is an owed node's turn or its claim would expire, and once after a start. So an edit by hand, also
of the status, is undone, and a node at rest costs nothing.
"""

from collections.abc import Sequence

from msgspec import structs

from podtide.allocator.errors import AllocatorUnavailable, SubnetFull
from podtide.controller.grant_condition import GRANTED, condition_of, has_all_requested
from podtide.controller.nodes.answered_requests import AnsweredRequests, RequestBasis
from podtide.controller.nodes.config_status import (
    FORMER,
    PLACED,
    scaler_shown,
    status_after,
    wire_scaler,
)
from podtide.controller.nodes.container_status import own_addresses
from podtide.controller.nodes.grants import GrantAnswer, GrantRefusal, NodeRequest, ask
from podtide.controller.nodes.quarantine import QuarantineReconciler
from podtide.controller.nodes.restored_requests import RestoredRequests
from podtide.controller.nodes.subnet_choice import places_of
from podtide.controller.subnets.known_subnets import KnownSubnets
from podtide.controller.term_context import TermContext
from podtide.core.errors import InvalidScaler, RetryError
from podtide.core.subnet.scaler import SubnetScaler
from podtide.resources.conditions import ConditionStatus
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigStatus, ScalerStatus
from podtide.resources.timestamps import to_time


class RequestReconciler:
    """Carries out the requests of nodes, one at a time for each node."""

    def __init__(
        self, context: TermContext, subnets: KnownSubnets, quarantines: QuarantineReconciler
    ) -> None:
        self._writes = context.writes
        self._allocator = context.allocator
        self._outage = context.outage
        self._events = context.events
        self._options = context.options
        self._clock = context.clock
        self._log = context.log
        self._max_ips = context.settings.max_ips
        self._default = SubnetScaler(context.settings.batch, context.settings.buffer)
        self._subnets = subnets
        self._quarantines = quarantines
        self._answered = AnsweredRequests(context.clock)
        self._restored = RestoredRequests(context)

    def forget(self, node: str) -> None:
        """Forget a node that was deleted."""
        self._answered.forget(node)
        self._subnets.forget_node(node)

    async def carry_out(self, node: Node, config: NodeNetworkConfig, watch: int) -> float | None:
        """Bring what the node has in line with what it asks for. Returns after how many seconds to do it again, or None.

        `watch` is the number of the watch that filled the cache: resourceVersions known from an earlier watch may be of
        another history (etcd was restored), and prove nothing.
        """
        name = config.metadata.name
        request = NodeRequest(node, config, places_of(node, config.status.network_containers, self._options))
        self._subnets.use(name, [place.subnet for place in request.places])
        scaler = self._scaler(request)
        basis = self._basis(request, watch)
        is_urged = self._subnets.take_turn(name) or self._quarantines.is_to_move(name)
        if not is_urged and self._answered.is_answered(name, basis, config.metadata.resource_version):
            await self._write_scaler(config, scaler)
        else:
            self._answered.forget(name)  # until all of it is done
            answers = await self._restored.ask_again(request, await self._ask(request))
            self._tell_subnets(config, answers)
            await self._quarantines.note_asked(config, [answer.moved for answer in answers if answer.moved])
            await self._conclude(request, answers, scaler, watch)
        return self._answered.renew_in_seconds(name)

    def _basis(self, request: NodeRequest, watch: int) -> RequestBasis:
        uid, waiting = request.config.metadata.uid, self._quarantines.waiting(request.name)
        return RequestBasis(uid, request.places, own_addresses(request.node), watch, request.machine, waiting)

    async def _ask(self, request: NodeRequest) -> Sequence[GrantAnswer]:
        """The allocator's answers to the node's wishes; during a known outage, refusals without a call."""
        if self._outage.is_known:
            answers: Sequence[GrantAnswer] = [
                GrantAnswer(place, refusal=AllocatorUnavailable(self._outage.error))
                for place in request.places
            ]
        else:
            answers = await ask(self._allocator, request, self._options, self._max_ips)
            self._note_whether_answered(answers)
        if any(isinstance(answer.refusal, AllocatorUnavailable) for answer in answers):
            self._outage.note_refused(request.name)
        return answers

    def _note_whether_answered(self, answers: Sequence[GrantAnswer]) -> None:
        for answer in answers:
            if isinstance(answer.refusal, AllocatorUnavailable):
                self._outage.note_failure(answer.refusal)
            else:
                self._outage.note_answer()

    def _scaler(self, request: NodeRequest) -> ScalerStatus:
        """The scaler to show to the node: of two subnets, the one with the smaller batch decides.

        Until its subnets were reconciled, it is the one that the status shows already.
        """
        in_force = map(self._subnets.in_force, (place.subnet for place in request.places))
        decided = [scaler for scaler in in_force if scaler is not None]
        if not decided:
            try:
                shown = scaler_shown(request.config)
            except InvalidScaler as error:
                self._log.warning(
                    "the scaler of a NodeNetworkConfig is refused and replaced by the configured one",
                    node=request.name,
                    error=str(error),
                )
            else:
                if shown is not None:
                    return shown
        least = min(decided, key=lambda scaler: (scaler.batch, scaler.buffer), default=self._default)
        return wire_scaler(least, self._max_ips)

    def _tell_subnets(self, config: NodeNetworkConfig, answers: Sequence[GrantAnswer]) -> None:
        versions = {container.id: container.version for container in config.status.network_containers}
        for answer in answers:
            if answer.refusal is not None and not answer.owed:
                continue  # what is owed after a failure is not known
            container = answer.container
            changed = container is not None and container.version != versions.get(container.id)
            self._subnets.note_answer(
                answer.place.subnet,
                config.metadata.name,
                owed=answer.owed,
                gave_back=changed and bool(config.spec.ips_not_in_use),
            )

    async def _conclude(
        self, request: NodeRequest, answers: Sequence[GrantAnswer], scaler: ScalerStatus, watch: int
    ) -> None:
        """Write the status for these answers, and raise the failure for which the wish has to be retried."""
        config = request.config
        failure = _worst(answers)
        is_of_the_past = any(answer.was_gone for answer in answers)
        if isinstance(failure, AllocatorUnavailable) and has_all_requested(config) and not is_of_the_past:
            raise failure  # the node has all it asked for, so its status does not change in an outage
        written = config
        now, waiting = to_time(self._clock.wall()), self._quarantines.waiting(request.name)
        status = status_after(request, answers, scaler, now, waiting=waiting)
        if self._differs(status, config.status):
            written = await self._write(config, status)
        if failure is not None:
            raise failure
        places = tuple(answer.place for answer in answers)
        self._answered.note(
            request.name,
            self._basis(structs.replace(request, places=places), watch),
            frozenset({config.metadata.resource_version, written.metadata.resource_version}),
            owed=any(answer.owed for answer in answers),
        )

    async def _write_scaler(self, config: NodeNetworkConfig, scaler: ScalerStatus) -> None:
        """Write a new batch to the node's status, where that is the only way it learns of it."""
        status = structs.replace(config.status, scaler=scaler)
        if self._differs(status, config.status):
            written = await self._write(config, status)
            self._answered.note_version(config.metadata.name, written.metadata.resource_version)

    def _differs(self, status: NodeNetworkConfigStatus, shown: NodeNetworkConfigStatus) -> bool:
        """Whether the status has to be written.

        A new batch alone is not worth a write per node where agents read it from the ClusterSubnet (design D11).
        """
        if self._options.cluster_subnets:
            return structs.replace(status, scaler=shown.scaler) != shown
        return status != shown

    async def _write(self, config: NodeNetworkConfig, status: NodeNetworkConfigStatus) -> NodeNetworkConfig:
        written = await self._writes.replace_status(structs.replace(config, status=status))
        for kind in (GRANTED, PLACED, FORMER):
            before, now = condition_of(config, kind), condition_of(written, kind)
            is_good = now is None or now.status == ConditionStatus.TRUE
            if now is None or (before is None and is_good):
                continue  # no Event for a new node that gets what it asks for
            if before is None or (before.status, before.reason) != (now.status, now.reason):
                await self._events.record(written, now.reason, now.message, warning=not is_good)
        return written


def _worst(answers: Sequence[GrantAnswer]) -> GrantRefusal | None:
    """The refusal that decides when to retry: of several, one that may pass by itself.

    Being owed addresses is not a failure.
    """
    refusals = [each.refusal for each in answers if each.refusal and not isinstance(each.refusal, SubnetFull)]
    return next(
        (each for each in refusals if isinstance(each, RetryError)), refusals[0] if refusals else None
    )
