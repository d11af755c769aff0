"""Who is served when a subnet is short, and what a name of a granted address means.

The allocator gives what there is (design D8, "Grants"). A container that got less than it asked for has a claim, and
claims have an order: nodes with waiting pods first, more of them before fewer, then the longest owed. No container gets
addresses that an earlier claim needs, so asking later, or more often, brings no advantage. A claim that is not renewed
lapses: its node may be gone, and addresses kept for it would serve no pod.
"""

from collections.abc import Iterable

from msgspec import Struct

from podtide.core.subnet.chunks import CHUNK_SIZE, positions
from podtide.core.subnet.layout import AddressPlace


class Claim(Struct, frozen=True):
    """Addresses that a container asked for and has not been given."""

    container: str
    owed: int
    waiting_pods: int
    since: float
    """Wall-clock seconds."""

    @property
    def rank(self) -> tuple[int, float, str]:
        """The sort key in which claims are served, lowest first. The id breaks ties, so that the order is total."""
        return -self.waiting_pods, self.since, self.container


def may_take(wanted: Claim, free: int, claims: Iterable[Claim]) -> int:
    """How many of the free addresses a container may take: what the claims before it leave."""
    before = sum(claim.owed for claim in claims if claim.rank < wanted.rank)
    return min(wanted.owed, max(0, free - before))


class AddressName(Struct, frozen=True):
    """A granted address's name, parsed: the container, the version it was granted with, and its place.

    A container's version grows with every grant and its id never comes back, so no two grants have one name, and a
    name that comes late can release nothing that was granted since.
    """

    container: str
    version: int
    place: AddressPlace


def address_names(container: str, version: int, chunk: int, mask: int) -> list[str]:
    """The names of the addresses of a chunk that were granted with a version, lowest first."""
    head, start = f"{container}-{version}-", chunk * CHUNK_SIZE
    return [f"{head}{start + position}" for position in positions(mask)]


def parse_address_name(text: str) -> AddressName | None:
    """The parsed name; None when the allocator did not make it."""
    container, *numbers = text.rsplit("-", 2)
    try:
        version, number = map(int, numbers)
    except ValueError:
        return None
    if f"{container}-{version}-{number}" != text:  # as int() reads +1, 01 and 1_0 too
        return None
    return AddressName(container, version, AddressPlace(*divmod(number, CHUNK_SIZE)))


def primary_name(container: str) -> str:
    """The name by which a node asks for another primary, because its own is in a CIDR that drains. No address has it."""
    return f"{container}-primary"


class Order(Struct, frozen=True):
    """A wish's position in the order of a node's wishes: the request object's uid, and its generation."""

    request_uid: str
    generation: int


HOLDS_NOTHING = Order("", 0)
"""In place of a container that has no address: one that was deleted, or that waits for its first."""


def is_taken_anew(instead_of: Order | None, last: Order, *, holds_nothing: bool) -> bool:
    """Whether a stale wish counts all the same, because its request object itself went back (etcd was restored).

    The caller has read, in this order: that the last wish taken was `instead_of`, and then that the request object is
    an older one. Only a cluster that went back shows that. If another wish was taken meanwhile, it counts no more, so
    one that comes late changes nothing.
    """
    return instead_of == (HOLDS_NOTHING if holds_nothing else last)


def is_stale(wish: Order, last: Order, superseded: Iterable[str]) -> bool:
    """Whether a wish is older than the last one taken.

    Generations are comparable within one request object. Another object is the newer one, made after the last was
    deleted by hand, unless it is known as one that was superseded before.
    """
    if wish.request_uid == last.request_uid:
        return wish.generation < last.generation
    return wish.request_uid in superseded
