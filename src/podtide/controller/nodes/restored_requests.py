"""A node's wish that is stale because etcd was restored from a backup.

The NodeNetworkConfig has an earlier generation than the allocator was told, or was deleted and is back; or the Node was
deleted, with its container, and is back. Without a restore none of this can happen, so two reads, in this order, prove
one: what the allocator was told last, and then, fresh, what exists. The wish is then accepted again in place of that
last one and of no other (`core.subnet.grants.is_taken_anew`).
"""

from collections.abc import Sequence

from msgspec import structs

from podtide.allocator.containers import LastWish, Wish
from podtide.allocator.errors import NoSuchContainer, StaleWish
from podtide.cluster.port import Conflict, NotFound
from podtide.controller.nodes.grants import GrantAnswer, NodeRequest, make_wish, state
from podtide.controller.nodes.subnet_choice import ContainerPlace
from podtide.controller.term_context import TermContext
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig


class RestoredRequests:
    """Sends wishes again for nodes whose objects are older than their last wish."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self._allocator = context.allocator
        self._options = context.options

    async def ask_again(
        self, request: NodeRequest, answers: Sequence[GrantAnswer]
    ) -> tuple[GrantAnswer, ...]:
        """The answers, with new ones for wishes that were refused as stale; Conflict if only the cache was stale.

        A Node that is back, on the same machine, gets what it left in quarantine.
        """
        stale = {
            answer.place.container: await self._last(answer.place)
            for answer in answers
            if isinstance(answer.refusal, StaleWish)
        }
        if not stale:
            return tuple(answers)
        await self._require_current(request)
        most = self._context.settings.max_ips
        return tuple(
            [
                await self._anew(
                    make_wish(request, answer.place, self._options, most),
                    answer.place,
                    stale[answer.place.container],
                )
                if answer.place.container in stale
                else answer
                for answer in answers
            ]
        )

    async def _last(self, place: ContainerPlace) -> LastWish:
        try:
            held = await self._allocator.get_container(place.container, cluster=self._options.cluster)
        except NoSuchContainer:
            return LastWish()
        return LastWish(request_uid=held.request_uid, generation=held.generation)

    async def _require_current(self, request: NodeRequest) -> None:
        """Conflict unless both exist in the version that the wish was made from."""
        place, cluster = request.config.metadata, self._context.cluster
        try:
            there = (await cluster.get(Node, place.name)).metadata
            now = (await cluster.get(NodeNetworkConfig, place.name, place.namespace)).metadata
        except NotFound as error:
            raise Conflict(str(error)) from error
        if (there.uid, now.uid, now.generation) != (request.node.metadata.uid, place.uid, place.generation):
            raise Conflict(f"the request of node {place.name} changed while it was carried out")

    async def _anew(self, wish: Wish, place: ContainerPlace, last: LastWish) -> GrantAnswer:
        self._context.log.warning(
            "etcd seems to be restored from a backup: accepting an earlier request of a node again",
            node=wish.node,
            generation=wish.generation,
            instead_of=last.generation,
        )
        anew = structs.replace(wish, instead_of=last)
        moves = self._options.cluster_subnets and wish.machine.is_known
        answer = await state(self._allocator, anew, place, moves=moves)
        was_gone = last == LastWish() and answer.refusal is not None
        return structs.replace(answer, was_gone=was_gone)
