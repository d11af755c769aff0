"""A CIDR that drains, and in which nothing is reserved any more, leaves its subnet.

Nothing remains of it: neither rows, nor its gateway, nor what was kept back in it. Its numbers may be another CIDR's
later, and that is harmless: a name of a granted address has the version it was granted with.
"""

from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_row import SubnetRow
from podtide.core.subnet.layout import SubnetLayout

_DROP_CHUNKS = "DELETE FROM chunks WHERE subnet = $1 AND chunk BETWEEN $2 AND $3"
_DROP_RESTING = "DELETE FROM resting WHERE subnet = $1 AND chunk BETWEEN $2 AND $3"


def drop_drained(row: SubnetRow) -> Script[None]:
    """Take out of the subnet the CIDRs that are drained. What else was changed in it is written already."""
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
