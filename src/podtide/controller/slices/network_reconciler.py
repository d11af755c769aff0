"""The reconcile of one secondary network: which definition is in force, which ranges are wanted, and what remains of others.

Everything about one network is done under one key by one worker at a time, so nothing here needs a lock.
"""

from msgspec import Struct

from podtide.controller.slices.attachments import DefinitionEvents, ParsedAttachment
from podtide.controller.slices.node_pools import named_network
from podtide.controller.slices.range_reconciler import RangeOutcome, RangeReconciler, WantedRange
from podtide.controller.slices.slice_pools import network_key, same_cut, slicing_of
from podtide.controller.slices.survey import SliceContext
from podtide.core.agreement import Agreement, agree
from podtide.core.ranges import AddressRange
from podtide.networks.network import NetworkRange
from podtide.networks.ownership import node_slice_pool_names, pool_range
from podtide.resources.base import Key
from podtide.resources.node_slice_pool import NodeSlicePool


class _AgreedRanges(Struct, frozen=True):
    """The ranges of a network by its definitions, whether they agree (`holds`), and the message for those that disagree."""

    ranges: tuple[NetworkRange, ...]
    holds: bool
    complaint: str


class NetworkReconciler:
    """Reconciles networks by key."""

    def __init__(self, context: SliceContext, definition_events: DefinitionEvents) -> None:
        self._context = context
        self._definition_events = definition_events
        self._ranges = RangeReconciler(context)
        self.waiting: set[str] = set()
        """Keys of networks in which a node waits for a slice: they are reconciled again when any pool is deleted."""
        self.draining: set[str] = set()
        """Keys of networks in which something waits for pools to become empty."""

    def key_of(self, node_slice_pool: str) -> str:
        """The key of the network that a NodeSlicePool of that name belongs to, whether or not the pool exists."""
        context = self._context
        listed = context.slice_pools.get(Key(context.namespace, node_slice_pool))
        wanted_by = context.attachments.network_of(node_slice_pool, listed)
        return wanted_by or (network_key(listed) if listed else node_slice_pool)

    def sliced_ranges(self, key: str) -> dict[str, list[AddressRange]]:
        """By NodeSlicePool of a named network, from which addresses pods get one; an unnamed network has none.

        An agent reads the definition of each pod: those of one network may differ in ends and excludes. By one whose range a
        slice is not within, an agent gives nothing of it; `core.networks.slice_room` leaves that out.
        """
        definitions = self._context.attachments.definitions_of(key)
        if not definitions:
            return {}
        chosen = definitions[self._agreement(key, definitions).chosen or 0]
        given = [each.addresses for of in definitions for each in _ranges(of) if each.slicing is not None]
        sliced = (of for of in _ranges(chosen) if of.slicing is not None and of.network_name)
        return {self._name(key, of): given for of in sliced}

    async def reconcile(self, key: str) -> float | None:
        """Reconcile a network. Returns after how many seconds to do it again, or None."""
        context = self._context
        context.counts.network_looks += 1
        # Until the outcome is known, every change of a pool queues the network: it may have come too late for this reconcile.
        self.waiting.add(key)
        self.draining.add(key)
        outcomes: list[RangeOutcome] = []
        definitions = context.attachments.definitions_of(key)
        if definitions:
            decided = await self._agree(key, definitions)
            sliced = [of for of in decided.ranges if of.slicing is not None]
            outcomes += [await self._assign(key, of, decided, definitions) for of in sliced]
        outcomes += [await self._ranges.abandon(name) for name in self._abandoned(key)]
        outcomes.append(await self._collect_classic(key))
        if not any(each.is_waiting for each in outcomes):
            self.waiting.discard(key)
        if not any(each.is_draining for each in outcomes):
            self.draining.discard(key)
        return min(
            (each.again_in_seconds for each in outcomes if each.again_in_seconds is not None), default=None
        )

    async def _agree(self, key: str, definitions: list[ParsedAttachment]) -> _AgreedRanges:
        """Choose the definition that is in force; write an Event on each that disagrees with it."""
        agreement = self._agreement(key, definitions)
        chosen = definitions[agreement.chosen or 0]
        assert chosen.network is not None
        in_force = "what was first is in force" if agreement.chosen is not None else "nothing is in force"
        others = [definitions[place] for place in agreement.dissenting]
        for each in others:
            await self._definition_events.warn(
                each.definition, "Disagreement", _complaint(key, definitions, in_force)
            )
        return _AgreedRanges(
            chosen.network.ranges,
            agreement.chosen is not None,
            _complaint(key, definitions, in_force) if others else "",
        )

    def _agreement(self, key: str, definitions: list[ParsedAttachment]) -> Agreement:
        return agree(
            [each.statement for each in definitions], [self._is_in_force(key, each) for each in definitions]
        )

    def _is_in_force(self, key: str, attachment: ParsedAttachment) -> bool:
        """Whether the NodeSlicePools are cut as this definition states."""
        assert attachment.network is not None
        sliced = [of for of in attachment.network.ranges if of.slicing is not None]
        return bool(sliced) and all(self._is_cut_so(key, of) for of in sliced)

    def _is_cut_so(self, key: str, of: NetworkRange) -> bool:
        listed = self._find(key, of)
        in_force = slicing_of(listed) if listed else None
        return in_force is not None and of.slicing is not None and same_cut(in_force, of.slicing)

    async def _assign(
        self, key: str, of: NetworkRange, decided: _AgreedRanges, definitions: list[ParsedAttachment]
    ) -> RangeOutcome:
        name = self._name(key, of)
        if not name:
            for each in definitions:
                await self._definition_events.warn(
                    each.definition,
                    "NameTaken",
                    f"network {key} gets no slices of {of.addresses}: the NodeSlicePool {of.node_slice_pool_name()} "
                    "is another network's; choose another network_name",
                )
            return RangeOutcome()
        wish = of.slicing if decided.holds else None
        return await self._ranges.assign(
            WantedRange(key=key, of=of, name=name, wish=wish, complaint=decided.complaint)
        )

    def _name(self, key: str, of: NetworkRange) -> str:
        """The name of a range's NodeSlicePool, which need not exist yet; "" if every name belongs to another network."""
        listed = self._find(key, of)
        return listed.metadata.name if listed else self._free_name(key, of)

    def _find(self, key: str, of: NetworkRange) -> NodeSlicePool | None:
        """The NodeSlicePool of a range, under whichever name it has."""
        context = self._context
        for name in node_slice_pool_names(of, context.naming):
            listed = context.slice_pools.get(Key(context.namespace, name))
            if listed is not None and context.attachments.network_of(name, listed) == key:
                return listed
        return None

    def _free_name(self, key: str, of: NetworkRange) -> str:
        """The name for a new NodeSlicePool; "" if every name belongs to another network."""
        context = self._context
        for name in node_slice_pool_names(of, context.naming):
            is_wanted_by = context.attachments.network_of(name, None)
            if is_wanted_by in {key, None} and context.slice_pools.get(Key(context.namespace, name)) is None:
                return name
        return ""

    def _abandoned(self, key: str) -> list[str]:
        """The names of this network's NodeSlicePools that no definition wants; some may only be named by IPPools."""
        context = self._context
        names = {each.metadata.name for each in context.slice_pools.items()} | set(
            context.node_pools.networks()
        )
        return sorted(name for name in names if self.key_of(name) == key and not self._is_wanted(name))

    def _is_wanted(self, node_slice_pool: str) -> bool:
        """Whether a definition wants it, or one that cannot be parsed may want it."""
        context = self._context
        listed = context.slice_pools.get(Key(context.namespace, node_slice_pool))
        if context.attachments.network_of(node_slice_pool, listed) is not None:
            return True
        names = {node_slice_pool, network_key(listed)} if listed else {node_slice_pool}
        return context.attachments.may_describe(names, pool_range(listed) if listed else None)

    async def _collect_classic(self, key: str) -> RangeOutcome:
        """Delete the pools for whole ranges that were this network's, once they are empty."""
        context = self._context
        found = [context.node_pools.get(name) for name in context.attachments.unused_classic_pools(key)]
        left = [
            pool
            for pool in found
            if pool is not None
            and not named_network(pool)
            and not context.attachments.may_describe((key,), pool_range(pool))
        ]
        for pool in left:
            if not pool.spec.allocations:
                await context.writes.delete(pool, unchanged=True)
        return RangeOutcome(is_draining=any(pool.spec.allocations for pool in left))


def _ranges(definition: ParsedAttachment) -> tuple[NetworkRange, ...]:
    return definition.network.ranges if definition.network else ()


def _complaint(key: str, definitions: list[ParsedAttachment], in_force: str) -> str:
    said = "; ".join(
        f"{each.definition.key} states "
        + " and ".join(
            f"{of.addresses}" + (f" cut by /{of.slice_size}" if of.slice_size else " uncut")
            for of in _ranges(each)
        )
        for each in definitions
    )
    return f"definitions of network {key} disagree, and {in_force}: {said}; make them state the same"
