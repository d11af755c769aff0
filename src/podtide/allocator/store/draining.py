"""Draining a CIDR of a subnet, and listing which nodes still have addresses of it.

What is reserved in the CIDR is counted when it begins to drain, and from then on with every address that is given back
(`subnet_row`); the last one takes the CIDR out of the subnet (`drained`).
"""

from podtide.allocator.errors import SubnetInUse
from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Query, Script, bits_in
from podtide.allocator.store.subnet_transaction import SubnetTransaction, open_transaction
from podtide.allocator.store.tables.subnet_row import SubnetRow, find_subnet
from podtide.allocator.subnets import CidrHolder, CidrHolders, Subnet
from podtide.core.errors import InvalidRange
from podtide.core.ranges import parse_network
from podtide.core.subnet.layout import Block, SubnetLayout, exact_network

_FREE = (
    f"SELECT coalesce(sum({bits_in('free')}), 0) FROM chunks WHERE subnet = $1 AND chunk BETWEEN $2 AND $3"  # noqa: S608 - our own columns
)
_RESTING = f"""SELECT coalesce(sum({bits_in("mask")}), 0) FROM resting
    WHERE subnet = $1 AND chunk BETWEEN $2 AND $3 AND quarantined = $4"""  # noqa: S608 - our own columns
_HOLDERS = f"""SELECT id, cluster, node, sum(is_primary), sum(addresses) FROM (
        SELECT id, cluster, node, 1 AS is_primary, 0 AS addresses FROM containers
            WHERE subnet = $1 AND primary_number BETWEEN 16 * $2 AND 16 * $3 + 15
        UNION ALL
        SELECT containers.id, containers.cluster, containers.node, 0, {bits_in("mask")}
            FROM containers JOIN grants ON grants.container = containers.id
            WHERE containers.subnet = $1 AND grants.chunk BETWEEN $2 AND $3) AS held
    GROUP BY id, cluster, node ORDER BY cluster, node, id"""  # noqa: S608 - our own columns

_MOST_NAMED = 5


def shrink_subnet(  # noqa: PLR0913 - which, what of it, how, and when
    network: str, name: str, cidrs: tuple[str, ...], *, at_once: bool, now: float, rules: StoreRules
) -> Script[Subnet]:
    """Drain CIDRs."""
    asked = {str(exact_network(cidr)) for cidr in cidrs}
    transaction = yield from open_transaction(network, name, (), now, rules)
    row = transaction.subnet
    _refuse_parts(row, asked)
    _refuse_all(row, asked)
    yield from transaction.settle()
    yield from transaction.save()  # what is reserved is counted by what the database has
    drains = row.drains
    for block in row.layout.blocks:
        if block.cidr not in asked:
            continue
        reserved = yield from _reserved_in(transaction, block)
        if at_once and reserved:
            held = yield from read_holders(row, block)
            raise SubnetInUse(f"{block.cidr} of subnet {network}/{name} is in use: {held_words(held)}")
        drains[block.cidr] = reserved
    _let_drain(row, drains)
    yield from transaction.save()
    return row.for_callers(now)


def end_drain(row: SubnetRow, cidrs: tuple[str, ...]) -> None:
    """End the drain of those of the CIDRs that drain."""
    drains = row.drains
    if drains.keys() & set(cidrs):
        _let_drain(row, {cidr: count for cidr, count in drains.items() if cidr not in cidrs})


def holders(network: str, name: str, cidr: str, now: float) -> Script[CidrHolders]:
    """The containers with addresses of a CIDR."""
    row, _due = yield from find_subnet(network, name, now)
    cidr = str(parse_network(cidr))
    block = row.layout.find(cidr)
    if block is None:
        return CidrHolders(cidr=cidr, holders=(), quarantined=0)
    return (yield from read_holders(row, block))


def read_holders(row: SubnetRow, block: Block) -> Script[CidrHolders]:
    """The containers with addresses of a block."""
    chunks = block.first_chunk, block.last_chunk
    found = yield Query(_HOLDERS, (row.id, *chunks))
    ((quarantined,),) = yield Query(_RESTING, (row.id, *chunks, 1))
    return CidrHolders(
        cidr=block.cidr,
        holders=tuple(
            CidrHolder(
                container=id_, cluster=cluster, node=node, primary=bool(primary), addresses=int(addresses)
            )
            for id_, cluster, node, primary, addresses in found
        ),
        quarantined=int(quarantined),
    )


def held_words(held: CidrHolders) -> str:
    """The holders as text for people."""
    words = [f"node {each.node} of {each.cluster} has {each.words}" for each in held.holders[:_MOST_NAMED]]
    if len(held.holders) > _MOST_NAMED:
        words.append(f"{len(held.holders) - _MOST_NAMED} more nodes have addresses of it")
    if held.quarantined:
        words.append(f"{held.quarantined} addresses of removed nodes are in quarantine")
    return "; ".join(words)


def _let_drain(row: SubnetRow, drains: dict[str, int]) -> None:
    layout = row.layout
    row.drains = drains
    row.lay_out(
        SubnetLayout(
            layout.cidrs,
            [block.gateway for block in layout.blocks],
            map(str, layout.keep_back),
            row.keep_back_first,
            first_chunks=[block.first_chunk for block in layout.blocks],
            draining=drains,
        )
    )


def _reserved_in(transaction: SubnetTransaction, block: Block) -> Script[int]:
    row, chunks = transaction.subnet, (block.first_chunk, block.last_chunk)
    ((free,),) = yield Query(_FREE, (row.id, *chunks))
    ((cooling,),) = yield Query(_RESTING, (row.id, *chunks, 0))
    begun = row.layout.usable_in(block) - row.layout.usable_in(block, row.next_chunk(block))
    return begun - int(free) - int(cooling)


def _refuse_parts(row: SubnetRow, asked: set[str]) -> None:
    """Refuse a CIDR that only overlaps one of the subnet's: a typing error must not count as removed already."""
    own = {block.cidr: block.network for block in row.layout.blocks}
    for cidr in sorted(asked - own.keys()):
        network = parse_network(cidr)
        for other in own.values():
            if network.version == other.version and network.overlaps(other):
                raise InvalidRange(
                    f"{cidr} is not a CIDR of subnet {row.network}/{row.name}, but overlaps {other}: only a whole "
                    "CIDR can be removed, give it as `podtide subnet show` prints it"
                )


def _refuse_all(row: SubnetRow, asked: set[str]) -> None:
    drains = row.drains
    if all(cidr in asked or cidr in drains for cidr in row.layout.cidrs):
        raise InvalidRange(
            f"subnet {row.network}/{row.name} would have no CIDR left to give from ({row.layout}): grow it first, or "
            "remove the subnet"
        )
