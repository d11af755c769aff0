"""Subnets that grew before every CIDR had a gateway of its own.

Their later CIDRs have no gateway yet, and the address that a new CIDR would keep back for it may long be a pod's. It
stays the pod's: the lowest unused address of the CIDR becomes the gateway. Where all of it is in use the CIDR has none,
and a person names one once something in it is free (`podtide subnet grow --gateway`).
"""

from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_transaction import open_transaction
from podtide.allocator.store.tables.subnet_row import NONE
from podtide.core.subnet.chunks import lowest
from podtide.core.subnet.layout import Block, SubnetLayout

_SUBNETS = "SELECT id, network, name, cidrs, gateways, next_chunks FROM subnets"
_NUMBER = "UPDATE subnets SET gateways = $2, next_chunks = $3, first_chunks = $4 WHERE id = $1"
_FREE = """SELECT chunk, free FROM chunks
    WHERE subnet = $1 AND free > 0 AND chunk BETWEEN $2 AND $3 ORDER BY chunk LIMIT 1"""


def give_gateways(now: float) -> Script[None]:
    """Give every CIDR that has none a gateway."""
    for id_, network, name, cidrs, gateways, next_chunks in (yield Query(_SUBNETS)):
        own = cidrs.split()
        if len(gateways.split()) < len(own):
            blocks = SubnetLayout(own, [""] * len(own)).blocks
            yield Query(
                _NUMBER,
                (
                    id_,
                    " ".join([gateways, *[NONE] * (len(own) - 1)]),
                    " ".join(str(_next_chunk(block, int(next_chunks))) for block in blocks),
                    " ".join(str(block.first_chunk) for block in blocks),
                ),
            )
            yield from _give_gateways(network, name, now)


def _next_chunk(block: Block, next_chunk: int) -> int:
    """Up to where a block's chunks are used, in a subnet whose chunks are used up to here."""
    return max(block.first_chunk, min(next_chunk, block.last_chunk + 1))


def _give_gateways(network: str, name: str, now: float) -> Script[None]:
    transaction = yield from open_transaction(network, name, (), now, StoreRules())
    row = transaction.subnet
    yield from transaction.save()
    gateways = []
    for block in row.layout.blocks:
        gateways.append(block.gateway)
        if block.gateway:
            continue
        used = yield Query(_FREE, (row.id, block.first_chunk, block.last_chunk))
        unused = row.layout.next_chunk(block, row.next_chunk(block))
        for chunk, free in (*used, *([] if unused is None else [(unused, row.layout.mask(unused))])):
            gateways[-1] = row.layout.addresses(chunk, lowest(free, 1))[0]
            break
    yield from transaction.lay_out(
        SubnetLayout(
            row.layout.cidrs,
            gateways,
            row.keep_back.split(),
            row.keep_back_first,
            first_chunks=[block.first_chunk for block in row.layout.blocks],
        )
    )
    yield from transaction.save()
