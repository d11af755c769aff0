"""PUT and DELETE of a container, carried out in its subnet's open transaction.

Everything that could refuse a call is checked before anything is changed, because other calls share the transaction.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from msgspec import Struct, structs

from podtide.allocator.containers import AllocatedContainer, Wish
from podtide.allocator.errors import AllocatorError, NoSuchContainer, NoSuchSubnet, StaleWish, SubnetFull
from podtide.allocator.store.registry import behind_reason
from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Script, execute_changes
from podtide.allocator.store.subnet_transaction import SubnetTransaction, open_transaction
from podtide.allocator.store.tables.container_row import (
    MOST_SUPERSEDED,
    NOTHING,
    ContainerRow,
    container_changes,
    load_containers,
    take_anew,
    to_text,
)
from podtide.allocator.store.tables.transaction_context import read_context
from podtide.core.errors import InvalidInput
from podtide.core.subnet.chunks import CHUNK_SIZE
from podtide.core.subnet.grants import Claim, Order, is_stale, parse_address_name, primary_name
from podtide.core.subnet.store_continuity import is_behind

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class SubnetOperation(Protocol[AnswerT_co]):
    """An operation in the transaction of one subnet."""

    @property
    def container(self) -> str:
        """The id of the container it is about, "" for none."""
        ...

    @property
    def cluster(self) -> str:
        """The cluster that makes it, "" for none."""
        ...

    def carry_out(self, transaction: SubnetTransaction) -> Script[AnswerT_co]:
        """Carry it out, or raise and leave the transaction unchanged."""
        ...


class WishOperation(Struct, frozen=True):
    """An operation that carries out a wish."""

    wish: Wish

    @property
    def container(self) -> str:
        """The container's id."""
        return self.wish.id

    @property
    def cluster(self) -> str:
        """The container's cluster."""
        return self.wish.cluster


class PutContainer(WishOperation, frozen=True):
    """Carries out a wish."""

    def carry_out(self, transaction: SubnetTransaction) -> Script[AllocatedContainer]:
        """Release what is named, then grant what is missing, as far as there is."""
        wish = self.wish
        row = (yield from fitting_row(wish, transaction)) or new_row(wish, transaction)
        row.cluster_uid = row.cluster_uid or wish.cluster_uid
        _note_statement(wish, row)
        _note_order(wish, row)
        note_machine(wish, row)
        released = _named_for_release(wish, row)
        if released:
            yield from transaction.cool_down(released, row.id)
        moved = yield from _move_primary(wish, row, transaction)
        granted = yield from _grant_what_is_missing(wish, row, transaction)
        if released or moved or granted:
            row.version = transaction.next_version()
        if row.primary is None:
            raise SubnetFull(
                f"subnet {wish.network}/{wish.subnet} has no address left for node {wish.node} to start with: "
                f"{transaction.subnet.reserved} of {transaction.subnet.capacity} are reserved and {transaction.subnet.owed} are owed; "
                "the node is remembered and is served in its turn, so try again"
            )
        return row.for_callers(transaction.subnet)


class DeleteContainer(Struct, frozen=True):
    """Deletes the container of a removed Node."""

    container: str
    cluster: str
    cluster_uid: str = ""
    is_forgotten: bool = False
    """Whether the whole cluster is gone for ever: then the store need not know again what the node held."""

    def carry_out(self, transaction: SubnetTransaction) -> Script[None]:
        """Put all it had in quarantine, and leave a tombstone."""
        yield from ()
        if not self.is_forgotten:
            transaction.context.refuse_another_cluster(self.cluster, self.cluster_uid)
            transaction.context.refuse_while_recovering()
        row = transaction.containers.get(self.container)
        if row is None:
            transaction.containers[self.container] = ContainerRow(self.container, self.cluster, None, "")
            return
        if row.cluster != self.cluster:
            raise another_cluster(self.container)
        if row.is_deleted:
            return
        if not self.is_forgotten:
            transaction.context.refuse_another_cluster(self.cluster, self.cluster_uid, row.cluster_uid)
            # The caller has seen that its Node is gone, so the quarantine belongs to the caller's cluster.
            row.cluster_uid = row.cluster_uid or self.cluster_uid
        if row.subnet != transaction.subnet.id:
            raise NoSuchSubnet(f"container {self.container} is in another subnet by now: look it up again")
        masks: dict[int, int] = {}
        if row.primary is not None:
            masks[row.primary.chunk] = 1 << row.primary.position
            transaction.subnet.containers -= 1
        for (version, chunk), mask in list(row.grants.items()):
            masks[chunk] = masks.get(chunk, 0) | mask
            row.set_grant(version, chunk, 0)
        yield from transaction.quarantine(masks, row)
        transaction.subnet.owed -= row.owed
        row.version = transaction.next_version()
        row.subnet, row.primary_number, row.wanted, row.owed, row.waiting_pods = None, None, 0, 0, 0
        row.stated, row.statement_number = NOTHING, 0


class Settle(Struct, frozen=True):
    """Frees the addresses whose cool-down is over."""

    container: str = ""
    cluster: str = ""

    def carry_out(self, transaction: SubnetTransaction) -> Script[None]:
        """Settle, as every operation does first."""
        yield from transaction.settle()


def serve(
    network: str, name: str, calls: Sequence[SubnetOperation[object]], now: float, rules: StoreRules
) -> Script[list[object]]:
    """Carry out operations in one subnet, in order, in one transaction; returns for each its answer or its refusal."""
    ids = dict.fromkeys(call.container for call in calls if call.container)
    clusters = sorted({call.cluster for call in calls} - {""})
    try:
        transaction = yield from open_transaction(network, name, list(ids), now, rules, clusters=clusters)
    except NoSuchSubnet as refusal:
        return [refusal for _ in calls]
    outcomes: list[object] = []
    for call in calls:
        try:
            outcomes.append((yield from call.carry_out(transaction)))
        except (AllocatorError, InvalidInput) as refusal:
            outcomes.append(refusal)
    yield from transaction.save()
    return outcomes


def bury(container: str, cluster: str, cluster_uid: str) -> Script[bool]:
    """Write a tombstone for an unknown id, so that a wish in flight is refused; False when the id is known by now."""
    context = yield from read_context([cluster])
    context.refuse_another_cluster(cluster, cluster_uid)
    context.refuse_while_recovering()
    if (yield from load_containers([container])):
        return False
    yield from execute_changes(*container_changes([ContainerRow(container, cluster, None, "")]))
    return True


def another_cluster(container: str) -> NoSuchContainer:
    """The error for a container of another cluster."""
    return NoSuchContainer(
        f"container {container} is another cluster's: use the id of a node of this cluster"
    )


def fitting_row(wish: Wish, transaction: SubnetTransaction) -> Script[ContainerRow | None]:
    """The container of a wish, None if there is none yet; a wish that must not be carried out is refused."""
    row = transaction.containers.get(wish.id)
    yield from _refuse_by_context(wish, row, transaction)
    if row is not None:
        take_anew(wish, row, transaction.subnet.id)
        _refuse_what_does_not_fit(wish, row, transaction)
    return row


def new_row(wish: Wish, transaction: SubnetTransaction) -> ContainerRow:
    """The container of a wish, made."""
    row = ContainerRow(wish.id, wish.cluster, transaction.subnet.id, wish.node)
    transaction.containers[wish.id] = row
    return row


def _refuse_by_context(wish: Wish, row: ContainerRow | None, transaction: SubnetTransaction) -> Script[None]:
    """Refuse a wish whose cluster name belongs to another uid, or that comes while the store recovers.

    Who asks comes first: what a stranger has seen, under a name that is not its own, proves nothing about this store.
    """
    transaction.context.refuse_another_cluster(
        wish.cluster, wish.cluster_uid, row.cluster_uid if row and row.cluster == wish.cluster else ""
    )
    yield from _refuse_if_behind(wish, transaction)
    transaction.context.refuse_while_recovering()


def _refuse_if_behind(wish: Wish, transaction: SubnetTransaction) -> Script[None]:
    """Begin a recovery if the cluster has seen a version that this store never gave. The sequence goes on above that."""
    subnet = transaction.subnet
    if is_behind(subnet.sequence, wish.seen):
        reason = behind_reason(wish.cluster, subnet.name, wish.seen, subnet.sequence)
        subnet.sequence = wish.seen
        yield from transaction.context.begin_recovery(reason, transaction.now)


def _refuse_what_does_not_fit(wish: Wish, row: ContainerRow, transaction: SubnetTransaction) -> None:
    """Refuse a wish that does not fit the existing container."""
    if row.cluster != wish.cluster:
        raise another_cluster(wish.id)
    if row.is_deleted:
        raise StaleWish(
            f"container {wish.id} was deleted and its id never comes back: "
            "a node that joins again has another uid, use that"
        )
    if row.subnet != transaction.subnet.id:
        raise InvalidInput(
            f"container {wish.id} is not in subnet {wish.network}/{wish.subnet} but in another: "
            "a node's container stays in its subnet until it is deleted"
        )
    if row.node != wish.node:
        raise InvalidInput(
            f"container {wish.id} is node {row.node}'s, not {wish.node}'s: use each Node's own uid"
        )
    if is_stale(Order(wish.request_uid, wish.generation), row.order, row.superseded.split()):
        raise StaleWish(
            f"container {wish.id} was told generation {row.generation} of request {row.request_uid} since: generation "
            f"{wish.generation} of {wish.request_uid} came too late and changed nothing; read the request again"
        )


def _note_statement(wish: Wish, row: ContainerRow) -> None:
    """Store what the wish states, unless the row has a newer statement of the same request and generation."""
    if row.order == Order(wish.request_uid, wish.generation) and wish.statement_number < row.statement_number:
        return
    row.stated, row.statement_number = to_text(wish.stated), wish.statement_number


def note_machine(wish: Wish, row: ContainerRow) -> None:
    """Store the machine that the Node runs on. An identity that says too little is ignored."""
    if wish.machine.is_known:
        row.machine_id, row.system_uuid, row.boot_id = structs.astuple(wish.machine)


def _note_order(wish: Wish, row: ContainerRow) -> None:
    if row.request_uid and row.request_uid != wish.request_uid:
        row.superseded = " ".join([*row.superseded.split(), row.request_uid][-MOST_SUPERSEDED:])
    row.request_uid, row.generation = wish.request_uid, wish.generation


def _named_for_release(wish: Wish, row: ContainerRow) -> dict[int, int]:
    """Remove the named addresses from the row's grants; returns their masks by chunk. Unknown names change nothing."""
    released: dict[int, int] = {}
    for name in map(parse_address_name, wish.release):
        if name is None or name.container != row.id:
            continue
        chunk, bit = name.place.chunk, 1 << name.place.position
        mask = row.grants.get((name.version, chunk), 0)
        if mask & bit:
            row.set_grant(name.version, chunk, mask & ~bit)
            released[chunk] = released.get(chunk, 0) | bit
    return released


def _move_primary(wish: Wish, row: ContainerRow, transaction: SubnetTransaction) -> Script[bool]:
    """Replace a primary in a draining CIDR, if the node named it; returns whether it was replaced."""
    primary = row.primary
    if primary is None or primary_name(row.id) not in wish.release:
        return False
    if not transaction.subnet.layout.block(primary.chunk).is_draining:
        return False
    since = min(row.owed_since, transaction.now) if row.owed else transaction.now
    if not (yield from transaction.may_take(Claim(row.id, 1, wish.waiting_pods, since))):
        return False
    ((chunk, bit),) = (yield from transaction.take(1, row.id)).items()
    row.primary_number = chunk * CHUNK_SIZE + bit.bit_length() - 1
    yield from transaction.cool_down({primary.chunk: 1 << primary.position}, row.id)
    return True


def _grant_what_is_missing(wish: Wish, row: ContainerRow, transaction: SubnetTransaction) -> Script[bool]:
    """Grant as much as is available and record the rest as owed; returns whether anything was granted."""
    missing = max(0, wish.count - row.held) + (row.primary is None)
    since = min(row.owed_since, transaction.now) if row.owed else transaction.now
    count = 0
    if missing:
        count = yield from transaction.may_take(Claim(row.id, missing, wish.waiting_pods, since))
    if count:
        masks = yield from transaction.take(count, row.id)
        if row.primary is None:
            chunk = min(masks)
            bit = masks[chunk] & -masks[chunk]
            masks[chunk] ^= bit
            row.primary_number = chunk * CHUNK_SIZE + bit.bit_length() - 1
            transaction.subnet.containers += 1
        for chunk, mask in masks.items():
            if mask:
                row.set_grant(transaction.subnet.sequence + 1, chunk, mask)
    owed = missing - count
    transaction.subnet.owed += owed - row.owed
    row.wanted, row.owed = wish.count, owed
    # Of one who is owed nothing these say nothing, and a change of them would be a write for nothing.
    row.owed_since, row.renewed, row.waiting_pods = (
        (since, transaction.now, wish.waiting_pods) if owed else (0.0, 0.0, 0)
    )
    return count > 0
