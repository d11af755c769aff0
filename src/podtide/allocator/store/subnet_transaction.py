"""A transaction in one subnet: its row is locked, and whatever is read and changed of the subnet passes through here.

Calls that wait at the same moment share a transaction: they are decided one after the other in memory, on what was read
once, and what they changed is written once. A call that is refused has changed nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Query, Script, execute_changes
from podtide.allocator.store.tables.container_row import (
    ContainerRow,
    container_changes,
    load_containers,
    remove_container,
)
from podtide.allocator.store.tables.cooldown import Rest, Resting
from podtide.allocator.store.tables.demand_counts import count_alike, count_changes
from podtide.allocator.store.tables.history import note_usage
from podtide.allocator.store.tables.quarantines import begin_quarantine, forget_quarantine
from podtide.allocator.store.tables.subnet_row import SubnetRow, find_subnet, subnet_change
from podtide.allocator.store.tables.supply import Supply
from podtide.allocator.store.tables.transaction_context import TransactionContext, read_context
from podtide.core.errors import StopError
from podtide.core.intervals import both, without
from podtide.core.subnet.chunks import masks_of
from podtide.core.subnet.demand_reading import DemandReading
from podtide.core.subnet.grants import Claim, may_take
from podtide.core.subnet.layout import SubnetLayout

_CLAIMS = """SELECT id, owed, waiting_pods, owed_since, renewed FROM containers /*index containers_owed*/
    WHERE subnet = $1 AND owed > 0 AND renewed > $2 ORDER BY waiting_pods DESC, owed_since, id LIMIT $3"""
_DROP_CHUNKS = "DELETE FROM chunks WHERE subnet = $1 AND chunk BETWEEN $2 AND $3"
_DROP_RESTING = "DELETE FROM resting WHERE subnet = $1 AND chunk BETWEEN $2 AND $3"
_RENEW_NOW = """UPDATE containers SET renewed = $1, owed_since = CASE WHEN owed_since > $1 THEN $1 ELSE owed_since END
    WHERE subnet = $2 AND owed > 0 AND renewed > $1"""


class SubnetTransaction:
    """What a transaction has read and changed of a subnet. Opened by `open_transaction`, written by `save`."""

    def __init__(
        self,
        subnet: SubnetRow,
        containers: dict[str, ContainerRow],
        now: float,
        rules: StoreRules,
        context: TransactionContext,
    ) -> None:
        self.subnet = subnet
        self.context = context
        self.containers = containers
        """Those the calls are about; a call can be mistaken, so tombstones and containers of other subnets are among them."""
        self.now = now
        self.rules = rules
        self._reading: DemandReading | None = None
        self._saved = replace(subnet)
        self._counted = count_alike(containers.values(), subnet.id)
        self._supply = Supply(subnet, len(containers))
        self._resting = Resting(subnet.id)
        self._claims: list[Claim] = []
        self._claims_limit = 0

    def bring_in(self, ids: Sequence[str]) -> Script[None]:
        """Load further containers that an operation needs."""
        missing = [id_ for id_ in ids if id_ not in self.containers]
        found = yield from load_containers(missing)
        self._counted += count_alike(found.values(), self.subnet.id)
        self.containers.update(found)

    def remove(self, row: ContainerRow) -> Script[None]:
        """Delete a container that has no primary and no other addresses left, without a tombstone."""
        self.subnet.owed -= row.owed
        del self.containers[row.id]
        yield from remove_container(row.id)

    def next_version(self) -> int:
        """A version for a container whose grants change: higher than any that was given in the subnet."""
        self.subnet.sequence += 1
        return self.subnet.sequence

    def note_demand(self, reading: DemandReading) -> None:
        """Have a reading of what the subnet's pods need written down with its totals."""
        self._reading = reading

    def settle(self) -> Script[None]:
        """Free the addresses whose cool-down is over."""
        while due := (yield from self._resting.take_due(self.now)):
            masks: dict[int, int] = {}
            for rest, mask in due:
                masks[rest.chunk] = masks.get(rest.chunk, 0) | mask
            yield from self._supply.give_back(masks)

    def may_take(self, wanted: Claim) -> Script[int]:
        """How many of the wanted addresses a container may take: what is free, less what is owed before it."""
        if wanted.owed > self.subnet.free:
            # On opening, PostgreSQL may have looked for what is due before it waited for the lock.
            yield from self.settle()
        free = max(0, self.subnet.free)
        owed_by_others = self.subnet.owed - self.containers[wanted.container].owed
        if not free or wanted.owed + owed_by_others <= free:
            return min(wanted.owed, free)
        yield from self._read_claims(free)
        renewed_after = self.now - self.rules.claim_seconds
        claims = [claim for claim in self._claims if claim.container not in self.containers]
        claims += [
            row.claim
            for row in self.containers.values()
            if row.subnet == self.subnet.id
            and row.id != wanted.container
            and row.is_owed_since_renewal(renewed_after)
        ]
        return may_take(wanted, free, claims)

    def take(self, count: int, holder: str) -> Script[dict[int, int]]:
        """Take exactly `count` free addresses, as masks by chunk; those that cool down go last."""
        taken = yield from self._supply.take(count)
        if missing := count - _size(taken):
            draining = [block.chunks for block in self.subnet.layout.blocks if block.is_draining]
            cooling = yield from self._resting.take_cooling(missing, holder, draining)
            for chunk, mask in cooling.items():
                taken[chunk] = taken.get(chunk, 0) | mask
        if _size(taken) != count:
            raise StopError(
                f"subnet {self.subnet.network}/{self.subnet.name} counts {self.subnet.free} free addresses, but only "
                f"{_size(taken)} were found: its totals are wrong; nothing was changed, run `podtide check`"
            )
        self.subnet.reserved += count
        return taken

    def take_these(self, masks: dict[int, int], *, but_for: Collection[str] = ()) -> Script[dict[int, int]]:
        """Take these addresses as far as no container has them, also from quarantine; returns those taken, by chunk.

        What removed containers of the ids `but_for` left in quarantine stays there.
        """
        free = yield from self._supply.take_if_free(masks)
        (cooling, quarantined), ended = yield from self._resting.take_these(masks, but_for)
        for holder in ended:
            yield from forget_quarantine(holder)
        self.subnet.reserve(free)
        self.subnet.reserve(cooling)
        self.subnet.quarantined -= _size(quarantined)
        taken = dict(free)
        for part in (cooling, quarantined):
            for chunk, mask in part.items():
                taken[chunk] = taken.get(chunk, 0) | mask
        return taken

    def held_by_others(self, masks: dict[int, int], holder: str) -> Script[tuple[str, ...]]:
        """Those of these addresses that a container has, or that another one than the holder left in quarantine."""
        free = yield from self._supply.free_of(masks)
        at_rest = yield from self._resting.at_rest_of(masks, holder)
        used = {
            chunk: rest
            for chunk, mask in masks.items()
            if (rest := mask & ~free.get(chunk, 0) & ~at_rest.get(chunk, 0))
        }
        return tuple(ip for chunk in sorted(used) for ip in self.subnet.layout.addresses(chunk, used[chunk]))

    def cool_down(self, masks: dict[int, int], holder: str) -> Script[None]:
        """Release a container's addresses: they are free after their cool-down."""
        self.subnet.unreserve(masks)
        until = self.now + self.rules.cooldown_seconds
        if until <= self.now:
            yield from self._supply.give_back(masks)
            return
        for chunk, mask in masks.items():
            self._resting.add(Rest(0, until, chunk, holder), mask)

    def quarantine(self, masks: dict[int, int], former: ContainerRow) -> Script[None]:
        """Put the addresses of a removed node in quarantine until the controller releases them; they stay reserved."""
        if not masks:
            return
        self.subnet.quarantined += _size(masks)
        until = self.now + self.rules.quarantine_seconds
        for chunk, mask in masks.items():
            self._resting.add(Rest(1, until, chunk, former.id), mask)
        yield from begin_quarantine(self.subnet.id, former, _size(masks), began=self.now, until=until)

    def end_quarantine(self, holder: str, wanted: dict[int, int] | None = None) -> Script[int]:
        """Free these, or all, that a removed container left in quarantine; returns how many."""
        masks = yield from self._resting.take_quarantined(holder, wanted)
        if not masks:
            return 0
        self.subnet.quarantined -= _size(masks)
        self.subnet.unreserve(masks)
        yield from self._supply.give_back(masks)
        if not self._resting.is_in_quarantine(holder):
            yield from forget_quarantine(holder)
        return _size(masks)

    def take_over(self, holder: str) -> Script[dict[int, int]]:
        """Remove from quarantine all that a removed container left, for another container; returns masks by chunk."""
        masks = yield from self._resting.take_quarantined(holder)
        self.subnet.quarantined -= _size(masks)
        yield from forget_quarantine(holder)
        return masks

    def lay_out(self, layout: SubnetLayout) -> Script[tuple[str, ...]]:
        """Set the subnet's CIDRs, all of its own included.

        If an address that they exclude is in use, nothing changes, and these addresses are returned.
        """
        before, begun = self.subnet.layout, self.subnet.begun_numbers
        gone = without(before.usable, layout.usable)
        used = yield from self._supply.take_these(masks_of(both(gone, begun)))
        if used:
            return tuple(ip for chunk in sorted(used) for ip in before.addresses(chunk, used[chunk]))
        come = without(layout.usable, before.usable)
        self.subnet.lay_out(layout)
        yield from self._supply.give_back(masks_of(both(come, begun)))
        return ()

    def save(self) -> Script[None]:
        """Write all changes."""
        rows = self.containers.values()
        changes = [
            *container_changes(rows),
            *count_changes(self.subnet.id, self._counted, count_alike(rows, self.subnet.id)),
            self._supply.changes,
            *self._resting.changes,
        ]
        # While the store recovers, nodes may have what is not known yet to be reserved.
        if self.subnet.drains and not self.context.recovery:
            yield from execute_changes(*changes)
            changes = []
            yield from drop_drained(self.subnet)
        if _totals(self.subnet) != _totals(self._saved) or self._reading is not None:
            yield from note_usage(self.subnet, self._saved, self.now, self._reading)
        if self.subnet != self._saved:
            changes.append(subnet_change(self.subnet))
        yield from execute_changes(*changes)

    def _read_claims(self, free: int) -> Script[None]:
        """Read claims in their order until they amount to all that is free: each is for one address at least.

        Those of the containers in this transaction are read too, but stand in it as they are now, so there may be that many more.
        """
        limit = free + len(self.containers)
        if limit > self._claims_limit:
            rows = yield Query(_CLAIMS, (self.subnet.id, self.now - self.rules.claim_seconds, limit))
            self._claims = [Claim(*row) for *row, _renewed in rows]
            self._claims_limit = limit
            if any(renewed > self.now for *_row, renewed in rows):
                yield from renew_now(self.subnet.id, self.now)
                for row in self.containers.values():
                    row.renew_now(self.now)


def open_transaction(  # noqa: PLR0913 - which subnet, what is to be read, and what it is carried out by
    network: str,
    name: str,
    ids: Sequence[str],
    now: float,
    rules: StoreRules,
    *,
    clusters: Sequence[str] = (),
) -> Script[SubnetTransaction]:
    """Lock the subnet and read what calls about these containers need; NoSuchSubnet when there is none."""
    subnet, due = yield from find_subnet(network, name, now, lock=True)
    context = yield from read_context(clusters)
    transaction = SubnetTransaction(subnet, (yield from load_containers(ids)), now, rules, context)
    if due:
        yield from transaction.settle()
    return transaction


def _size(masks: dict[int, int]) -> int:
    return sum(mask.bit_count() for mask in masks.values())


def _totals(subnet: SubnetRow) -> tuple[int | str, ...]:
    """The columns that change how the subnet is used."""
    return (
        *(subnet.capacity, subnet.reserved, subnet.containers, subnet.owed, subnet.quarantined),
        *(subnet.next_chunks, subnet.batch, subnet.exhausted, subnet.starved),
    )


def drop_drained(row: SubnetRow) -> Script[None]:
    """Remove from the subnet each CIDR that drains and in which nothing is reserved any more.

    Nothing remains of it: neither rows, nor its gateway, nor what was kept back in it. Its numbers may be another CIDR's
    later, and that is harmless: a name of a granted address has the version it was granted with. What else was changed in
    the subnet is written already.
    """
    drained = [cidr for cidr, reserved in row.drains.items() if not reserved]
    if not drained:
        return
    layout = row.layout
    kept_back = list(layout.keep_back)
    for block in (block for block in layout.blocks if block.cidr in drained):
        for sql in (_DROP_CHUNKS, _DROP_RESTING):
            yield Query(sql, (row.id, block.first_chunk, block.last_chunk))
        row.keep_back_first -= layout.kept_first_in(block)
        kept_back = [address for address in kept_back if address not in block.network]
    stay = [block for block in layout.blocks if block.cidr not in drained]
    row.lay_out(
        SubnetLayout(
            [block.cidr for block in stay],
            [block.gateway for block in stay],
            map(str, kept_back),
            row.keep_back_first,
            first_chunks=[block.first_chunk for block in stay],
            draining=[block.cidr for block in stay if block.is_draining],
        )
    )


def renew_now(subnet: int, now: float) -> Script[None]:
    """Renew now every claim in the subnet that was renewed by a clock that was ahead.

    A claim holds others up as long as it is renewed. One from the future would do so until that day comes, even if its
    node is never heard of again; so it counts as renewed now, and lapses in its time.
    """
    yield Query(_RENEW_NOW, (now, subnet))


def renew_now_in(network: str, name: str, now: float) -> Script[None]:
    """Do the same for a subnet by its name, in which no transaction is open."""
    subnet, _due = yield from find_subnet(network, name, now, lock=True)
    yield from renew_now(subnet.id, now)
