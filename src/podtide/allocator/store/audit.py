"""Whether the database fits together, by reading all of it: for tests, and for `podtide check` on a live one.

The invariants that concern every component are `core.audit.invariants`'s. What only the database can get wrong is looked at here: an
address that is in two places of it, or that no place may have.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.tables.container_row import COLUMNS, ContainerRow, gather_containers
from podtide.allocator.store.tables.demand_counts import DemandKey, count_alike
from podtide.allocator.store.tables.subnet_row import COLUMNS as SUBNET_COLUMNS
from podtide.allocator.store.tables.subnet_row import SubnetRow
from podtide.core.audit.invariants import Grant, Ledger, Picture, Violation, audit

_SUBNETS = f"SELECT {SUBNET_COLUMNS} FROM subnets ORDER BY id"  # noqa: S608 - our own columns
_CONTAINERS = f"""SELECT {COLUMNS}, grants.version, grants.chunk, grants.mask
    FROM containers LEFT JOIN grants ON grants.container = containers.id"""  # noqa: S608 - our own columns
_CHUNKS = "SELECT subnet, chunk, free FROM chunks"
_RESTING = "SELECT subnet, quarantined, chunk, mask FROM resting"
_IN_QUARANTINE = "SELECT DISTINCT holder FROM resting WHERE quarantined = 1"
_QUARANTINES = "SELECT container FROM quarantines"
_ALIKE = "SELECT subnet, cluster, stated, taken, containers FROM alike"
_BOUNDS = "SELECT subnet FROM bounds"
_STRAY = "SELECT container, chunk FROM grants WHERE container NOT IN (SELECT id FROM containers)"


class _Contents(NamedTuple):
    """All rows of a subnet."""

    containers: list[ContainerRow]
    free: dict[int, int]
    cooling: list[tuple[int, int]]
    quarantined: list[tuple[int, int]]
    alike: Counter[DemandKey]


def audit_database() -> Script[tuple[Violation, ...]]:
    """The violations, in a stable order."""
    subnets = {row[0]: SubnetRow(*row) for row in (yield Query(_SUBNETS))}
    contents: dict[int, _Contents] = defaultdict(lambda: _Contents([], {}, [], [], Counter()))
    for container in gather_containers((yield Query(_CONTAINERS))).values():
        if container.subnet is not None:
            contents[container.subnet].containers.append(container)
    for subnet, chunk, free in (yield Query(_CHUNKS)):
        contents[subnet].free[chunk] = free
    for subnet, quarantined, chunk, mask in (yield Query(_RESTING)):
        (contents[subnet].quarantined if quarantined else contents[subnet].cooling).append((chunk, mask))
    for subnet, *likeness, containers in (yield Query(_ALIKE)):
        contents[subnet].alike[DemandKey(*likeness)] = containers
    bound = {subnet for (subnet,) in (yield Query(_BOUNDS))}
    violations = [
        Violation(2, container, f"a grant of chunk {chunk} is container {container}'s, which is not there")
        for container, chunk in (yield Query(_STRAY))
    ]
    holders = {holder for (holder,) in (yield Query(_IN_QUARANTINE))}
    violations += [
        Violation(
            2,
            container,
            f"what is in quarantine of container {container} differs from its row in quarantines",
        )
        for container in holders ^ {container for (container,) in (yield Query(_QUARANTINES))}
    ]
    violations += [
        Violation(2, str(id_), f"rows are left of subnet number {id_}, which is not there")
        for id_ in {*contents, *bound} - subnets.keys()
    ]
    pictures: dict[str, list[tuple[SubnetRow, _Contents]]] = defaultdict(list)
    for id_, row in subnets.items():
        violations += _in_one_place_each(row, contents[id_])
        violations += _totals_match(row, contents[id_])
        violations += _counts_match(row, contents[id_])
        pictures[row.network].append((row, contents[id_]))
    for there in pictures.values():
        violations += audit(_picture(there))
    return tuple(sorted(violations))


def _picture(there: list[tuple[SubnetRow, _Contents]]) -> Picture:
    """The subnets of one network."""
    return Picture(
        ledgers=tuple(_ledger(row, contents) for row, contents in there),
        grants=tuple(
            _grant(row, container)
            for row, contents in there
            for container in contents.containers
            if container.primary is not None
        ),
    )


def _ledger(row: SubnetRow, contents: _Contents) -> Ledger:
    """The subnet's counts: R from its row, the others counted here; drained addresses are in none."""
    quarantined = _size(contents.quarantined)
    # Of two nodes that reported one address, the one that was to lose its primary keeps what else it has.
    kept = sum(container.held for container in contents.containers if container.primary is None)
    never_used = sum(
        row.layout.usable_in(block, row.next_chunk(block))
        for block in row.layout.blocks
        if not block.is_draining
    )
    return Ledger(
        subnet=row.name,
        capacity=row.capacity,
        reserved=row.reserved - quarantined - kept,
        free=_size(_staying(row, contents.free.items())) + never_used,
        resting=_size(_staying(row, contents.cooling)) + quarantined + kept,
    )


def _staying(row: SubnetRow, masks: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Those in CIDRs that do not drain."""
    return (each for each in masks if not row.layout.block(each[0]).is_draining)


def _grant(row: SubnetRow, container: ContainerRow) -> Grant:
    shown = container.for_callers(row)
    return Grant(
        shown.id,
        shown.node,
        shown.subnet,
        shown.primary,
        {address.name: address.ip for address in shown.addresses},
    )


def _in_one_place_each(row: SubnetRow, contents: _Contents) -> Iterator[Violation]:
    """Violations of: every usable address of a used chunk is in exactly one place, and no other address is in any."""
    seen: dict[int, int] = defaultdict(int)
    for chunk, mask in _everything(contents):
        for ip in row.layout.addresses(chunk, mask & (seen[chunk] | ~row.layout.mask(chunk))):
            yield Violation(
                2, ip, f"{ip} of subnet {row.name} is in two places, or in one although it is kept back"
            )
        seen[chunk] |= mask
    for chunk, mask in seen.items():
        if chunk >= row.next_chunk(row.layout.block(chunk)) or chunk not in contents.free:
            yield Violation(2, row.name, f"chunk {chunk} of subnet {row.name} is in use but was never begun")
        for ip in row.layout.addresses(chunk, row.layout.mask(chunk) & ~mask):
            yield Violation(2, ip, f"{ip} of subnet {row.name} is in no place: it is lost")


def _everything(contents: _Contents) -> Iterator[tuple[int, int]]:
    yield from contents.free.items()
    yield from contents.cooling
    yield from contents.quarantined
    for container in contents.containers:
        if container.primary is not None:
            yield container.primary.chunk, 1 << container.primary.position
        for (_version, chunk), mask in container.grants.items():
            yield chunk, mask


def _totals_match(row: SubnetRow, contents: _Contents) -> Iterator[Violation]:
    yield from _drains_match(row, contents)
    counted = {
        "capacity": row.layout.capacity + row.draining_reserved,
        "containers": sum(container.primary is not None for container in contents.containers),
        "owed": sum(container.owed for container in contents.containers),
        "quarantined": _size(contents.quarantined),
    }
    for what, count in counted.items():
        if (kept := getattr(row, what)) != count:
            yield Violation(2, row.name, f"subnet {row.name} counts {what} {kept}, but there are {count}")
    for container in contents.containers:
        missing = max(0, container.wanted - container.held) + (container.primary is None)
        if container.owed != missing:
            yield Violation(
                2, container.id, f"container {container.id} is owed {container.owed}, but lacks {missing}"
            )


def _drains_match(row: SubnetRow, contents: _Contents) -> Iterator[Violation]:
    """Violations of: the count of reserved addresses of a draining CIDR is right."""
    unreserved = Counter[str]()
    for chunk, mask in (*contents.free.items(), *contents.cooling):
        unreserved[row.layout.block(chunk).cidr] += mask.bit_count()
    for block in row.layout.blocks:
        if block.is_draining:
            begun = row.layout.usable_in(block) - row.layout.usable_in(block, row.next_chunk(block))
            there = begun - unreserved[block.cidr]
            if (kept := row.drains[block.cidr]) != there:
                yield Violation(
                    2,
                    row.name,
                    f"subnet {row.name} counts {kept} reserved in {block.cidr}, which drains, but there are {there}",
                )


def _counts_match(row: SubnetRow, contents: _Contents) -> Iterator[Violation]:
    """Violations of: every container is counted once by what it states and takes, and no count is of none."""
    counted = count_alike(contents.containers, row.id)
    for likeness in sorted({*counted, *contents.alike}):
        kept, there = contents.alike.get(likeness), counted.get(likeness)
        if kept != there:
            stated = likeness.stated or "nothing"
            yield Violation(
                2,
                row.name,
                f"subnet {row.name} counts {kept or 0} containers of cluster {likeness.cluster} that take "
                f"{likeness.taken} and state {stated}, but there are {there or 0}",
            )


def _size(masks: Iterable[tuple[int, int]]) -> int:
    return sum(mask.bit_count() for _chunk, mask in masks)
