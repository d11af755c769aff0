"""An IPPool as the copy that decisions are made on, and a decided copy as the IPPool to write."""

import msgspec
from msgspec import structs

from podtide.core.networks.allocations import Allocation
from podtide.core.networks.pool_copy import PoolCopy
from podtide.core.ranges import parse_network
from podtide.networks.audit_picture import allocation_of
from podtide.resources.codec import encode
from podtide.resources.ip_pool import IPAllocation, IPPool, with_allocations

_OWNED = '"f:":{".":{},"f:id":{},"f:ifname":{},"f:podref":{},"f:poduid":{}},'
"""What an API server keeps beside each entry, to know who wrote it."""
_OWNED_CONFIGURATION = '"f:configuration":{},'
_OWNED_EARLIER = '"f:earlier":{},'
_COUNT = (
    ',"status":{"used":99999,"capacity":9007199254740992},"f:status":{".":{},"f:capacity":{},"f:used":{}}'
)
"""The most that the count takes, which every write of podtide has: it is not followed digit by digit."""


def copy_of(pool: IPPool) -> PoolCopy:
    """The pool's entries, with its size in bytes when it is stored."""
    entries = {key: allocation_of(entry) for key, entry in pool.spec.allocations.items()}
    owned = sum(_ownership_size(key, entry) for key, entry in entries.items())
    return PoolCopy(
        parse_network(pool.spec.range),
        entries,
        name=str(pool.key),
        size=len(encode(structs.replace(pool, status=None))) + len(_COUNT) + owned,
        entry_size=_entry_size,
    )


def with_entries(pool: IPPool, copy: PoolCopy, capacity: int | None) -> IPPool:
    """The pool to write: it replaces exactly the version that was read."""
    entries = {key: _written(entry) for key, entry in copy.allocations.render().items()}
    return with_allocations(pool, entries, capacity=capacity)


def version_of(pool: IPPool) -> int:
    """The pool's resourceVersion as a number that grows; 0 for one that is none."""
    version = pool.metadata.resource_version
    return int(version) if version.isdecimal() else 0


def _entry_size(key: str, holder: Allocation) -> int:
    own = len(key) + len('"":,') + len(msgspec.json.encode(_written(holder)))
    return own + _ownership_size(key, holder)


def _ownership_size(key: str, holder: Allocation) -> int:
    owned = len(key) + len(_OWNED)
    owned += len(_OWNED_CONFIGURATION) if holder.configuration else 0
    return owned + (len(_OWNED_EARLIER) if holder.earlier else 0)


def _written(holder: Allocation) -> IPAllocation:
    return IPAllocation(
        id=holder.id,
        podref=holder.podref,
        ifname=holder.ifname,
        pod_uid=holder.pod_uid,
        earlier=list(holder.earlier),
        configuration=holder.configuration,
    )
