"""PUT and DELETE of a container, carried out in its subnet's open book.

Everything that could refuse a call is looked at before anything is changed, because other calls share the transaction.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from msgspec import Struct, structs

from podtide.allocator.port import (
    AllocatorError,
    Container,
    NoSuchContainer,
    NoSuchSubnet,
    StaleWish,
    SubnetFull,
    Wish,
)
from podtide.allocator.store.container_row import (
    MOST_SUPERSEDED,
    ContainerRow,
    load_containers,
    save_containers,
)
from podtide.allocator.store.history import note_sample
from podtide.allocator.store.registry import behind_reason
from podtide.allocator.store.restored_requests import take_anew
from podtide.allocator.store.rules import Rules
from podtide.allocator.store.script import Script
from podtide.allocator.store.stated_text import NOTHING, to_text
from podtide.allocator.store.subnet_transaction import Book, open_book
from podtide.allocator.store.transaction_context import read_affairs
from podtide.core.errors import InvalidInput
from podtide.core.subnet.chunks import CHUNK_SIZE
from podtide.core.subnet.grants import Claim, Order, is_stale, parse_address_name, primary_name
from podtide.core.subnet.store_continuity import is_behind

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Call(Protocol[AnswerT_co]):
    """Something to be done in the book of one subnet."""

    @property
    def container(self) -> str:
        """The id of the container it is about, "" for none."""
        ...

    @property
    def cluster(self) -> str:
        """The cluster that makes it, "" for none."""
        ...

    def carry_out(self, book: Book) -> Script[AnswerT_co]:
        """Do it, or raise a refusal and leave the book as it was."""
        ...


class PutContainer(Struct, frozen=True):
    """Carry out a wish."""

    wish: Wish

    @property
    def container(self) -> str:
        """The id of the wishing one."""
        return self.wish.id

    @property
    def cluster(self) -> str:
        """Whose it is."""
        return self.wish.cluster

    def carry_out(self, book: Book) -> Script[Container]:
        """Release what is named, then grant what is missing, as far as there is."""
        wish = self.wish
        row = book.containers.get(wish.id)
        yield from refuse_by_affairs(wish, row, book)
        if row is None:
            row = ContainerRow(wish.id, wish.cluster, book.subnet.id, wish.node)
            book.containers[wish.id] = row
        else:
            take_anew(wish, row, book.subnet.id)
            refuse_what_does_not_fit(wish, row, book)
        row.cluster_uid = row.cluster_uid or wish.cluster_uid
        _note_statement(wish, row)
        _note_order(wish, row)
        note_machine(wish, row)
        released = _named_for_release(wish, row)
        if released:
            yield from book.cool_down(released, row.id)
        moved = yield from _move_primary(wish, row, book)
        granted = yield from _grant_what_is_missing(wish, row, book)
        if released or moved or granted:
            row.version = book.next_version()
        if row.primary is None:
            raise SubnetFull(
                f"subnet {wish.network}/{wish.subnet} has no address left for node {wish.node} to start with: "
                f"{book.subnet.reserved} of {book.subnet.capacity} are reserved and {book.subnet.owed} are owed; "
                "the node is remembered and is served in its turn, so try again"
            )
        return row.for_callers(book.subnet)


class DeleteContainer(Struct, frozen=True):
    """Free all of a node that is gone."""

    container: str
    cluster: str
    cluster_uid: str = ""
    is_forgotten: bool = False
    """Whether the whole cluster is gone for ever: then the store need not know again what the node held."""

    def carry_out(self, book: Book) -> Script[None]:
        """Put all it had in quarantine, and leave a tombstone."""
        yield from ()
        if not self.is_forgotten:
            book.affairs.refuse_another_cluster(self.cluster, self.cluster_uid)
            book.affairs.refuse_while_recovering()
        row = book.containers.get(self.container)
        if row is None:
            book.containers[self.container] = ContainerRow(self.container, self.cluster, None, "")
            return
        if row.cluster != self.cluster:
            raise another_cluster(self.container)
        if row.is_deleted:
            return
        if not self.is_forgotten:
            book.affairs.refuse_another_cluster(self.cluster, self.cluster_uid, row.cluster_uid)
            # Whoever says that its Node is gone has seen it: what it leaves is that cluster's to look after.
            row.cluster_uid = row.cluster_uid or self.cluster_uid
        if row.subnet != book.subnet.id:
            raise NoSuchSubnet(f"container {self.container} is in another subnet by now: look it up again")
        masks: dict[int, int] = {}
        if row.primary is not None:
            masks[row.primary.chunk] = 1 << row.primary.position
            book.subnet.containers -= 1
        for (version, chunk), mask in list(row.grants.items()):
            masks[chunk] = masks.get(chunk, 0) | mask
            row.set_grant(version, chunk, 0)
        yield from book.quarantine(masks, row)
        book.subnet.owed -= row.owed
        row.version = book.next_version()
        row.subnet, row.primary_number, row.wanted, row.owed, row.waiting_pods = None, None, 0, 0, 0
        row.stated, row.statement_number = NOTHING, 0


class Sample(Struct, frozen=True):
    """Write down how full the subnet is."""

    container: str = ""
    cluster: str = ""

    def carry_out(self, book: Book) -> Script[None]:
        """Note it, unless that was done a moment ago."""
        yield from note_sample(book.subnet, book.now)


class Settle(Struct, frozen=True):
    """Let what has rested for long enough be free."""

    container: str = ""
    cluster: str = ""

    def carry_out(self, book: Book) -> Script[None]:
        """Nothing more than every call does first."""
        yield from book.settle()


def serve(
    network: str, name: str, calls: Sequence[Call[object]], now: float, rules: Rules
) -> Script[list[object]]:
    """Carry out calls about one subnet, in order, in one transaction: for each its answer, or the refusal."""
    ids = dict.fromkeys(call.container for call in calls if call.container)
    clusters = sorted({call.cluster for call in calls} - {""})
    try:
        book = yield from open_book(network, name, list(ids), now, rules, clusters=clusters)
    except NoSuchSubnet as refusal:
        return [refusal for _ in calls]
    outcomes: list[object] = []
    for call in calls:
        try:
            outcomes.append((yield from call.carry_out(book)))
        except (AllocatorError, InvalidInput) as refusal:
            outcomes.append(refusal)
    yield from book.save()
    return outcomes


def bury(container: str, cluster: str, cluster_uid: str) -> Script[bool]:
    """Leave a tombstone for an id that is not known, so that a wish under way finds it; False when it is known by now."""
    affairs = yield from read_affairs([cluster])
    affairs.refuse_another_cluster(cluster, cluster_uid)
    affairs.refuse_while_recovering()
    if (yield from load_containers([container])):
        return False
    yield from save_containers([ContainerRow(container, cluster, None, "")])
    return True


def another_cluster(container: str) -> NoSuchContainer:
    """The refusal of a call about a container that is not the caller's."""
    return NoSuchContainer(
        f"container {container} is another cluster's: use the id of a node of this cluster"
    )


def refuse_by_affairs(wish: Wish, row: ContainerRow | None, book: Book) -> Script[None]:
    """Raises what a wish is refused with when the cluster is not who the name is bound to, or while the store recovers.

    Who asks comes first: what a stranger has seen, under a name that is not its own, proves nothing about this store.
    """
    book.affairs.refuse_another_cluster(
        wish.cluster, wish.cluster_uid, row.cluster_uid if row and row.cluster == wish.cluster else ""
    )
    yield from _refuse_if_behind(wish, book)
    book.affairs.refuse_while_recovering()


def _refuse_if_behind(wish: Wish, book: Book) -> Script[None]:
    """Begin to recover if the cluster has seen a version that was never given here. The sequence goes on above that."""
    subnet = book.subnet
    if is_behind(subnet.sequence, wish.seen):
        reason = behind_reason(wish.cluster, subnet.name, wish.seen, subnet.sequence)
        subnet.sequence = wish.seen
        yield from book.affairs.begin_recovery(reason, book.now)


def refuse_what_does_not_fit(wish: Wish, row: ContainerRow, book: Book) -> None:
    """Raises what a wish for a container that is there is refused with."""
    if row.cluster != wish.cluster:
        raise another_cluster(wish.id)
    if row.is_deleted:
        raise StaleWish(
            f"container {wish.id} was deleted and its id never comes back: "
            "a node that joins again has another uid, use that"
        )
    if row.subnet != book.subnet.id:
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
    """Keep what the wish states, unless the row's own statement of the same request and generation is the newer one."""
    if row.order == Order(wish.request_uid, wish.generation) and wish.statement_number < row.statement_number:
        return
    row.stated, row.statement_number = to_text(wish.stated), wish.statement_number


def note_machine(wish: Wish, row: ContainerRow) -> None:
    """Keep what the Node runs on. What says too little to be recognised says nothing."""
    if wish.machine.is_known:
        row.machine_id, row.system_uuid, row.boot_id = structs.astuple(wish.machine)


def _note_order(wish: Wish, row: ContainerRow) -> None:
    if row.request_uid and row.request_uid != wish.request_uid:
        row.superseded = " ".join([*row.superseded.split(), row.request_uid][-MOST_SUPERSEDED:])
    row.request_uid, row.generation = wish.request_uid, wish.generation


def _named_for_release(wish: Wish, row: ContainerRow) -> dict[int, int]:
    """Take what the wish names off the row's grants: the masks by chunk. Names of anything else change nothing."""
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


def _move_primary(wish: Wish, row: ContainerRow, book: Book) -> Script[bool]:
    """Another primary for one in a CIDR that drains, if the node says that it can do with another; whether there was one."""
    primary = row.primary
    if primary is None or primary_name(row.id) not in wish.release:
        return False
    if not book.subnet.layout.block(primary.chunk).is_draining:
        return False
    since = min(row.owed_since, book.now) if row.owed else book.now
    if not (yield from book.may_take(Claim(row.id, 1, wish.waiting_pods, since))):
        return False
    ((chunk, bit),) = (yield from book.take(1, row.id)).items()
    row.primary_number = chunk * CHUNK_SIZE + bit.bit_length() - 1
    yield from book.cool_down({primary.chunk: 1 << primary.position}, row.id)
    return True


def _grant_what_is_missing(wish: Wish, row: ContainerRow, book: Book) -> Script[bool]:
    """Grant as much as may be had and note the rest as owed; whether anything was granted."""
    missing = max(0, wish.count - row.held) + (row.primary is None)
    since = min(row.owed_since, book.now) if row.owed else book.now
    count = 0
    if missing:
        count = yield from book.may_take(Claim(row.id, missing, wish.waiting_pods, since))
    if count:
        masks = yield from book.take(count, row.id)
        if row.primary is None:
            chunk = min(masks)
            bit = masks[chunk] & -masks[chunk]
            masks[chunk] ^= bit
            row.primary_number = chunk * CHUNK_SIZE + bit.bit_length() - 1
            book.subnet.containers += 1
        for chunk, mask in masks.items():
            if mask:
                row.set_grant(book.subnet.sequence + 1, chunk, mask)
    owed = missing - count
    book.subnet.owed += owed - row.owed
    row.wanted, row.owed = wish.count, owed
    # Of one who is owed nothing these say nothing, and a change of them would be a write for nothing.
    row.owed_since, row.renewed, row.waiting_pods = (
        (since, book.now, wish.waiting_pods) if owed else (0.0, 0.0, 0)
    )
    return count > 0
