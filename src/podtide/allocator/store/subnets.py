"""Making, growing, removing and showing subnets. Shrinking is in `draining`."""

from collections.abc import Sequence

from msgspec.structs import replace

from podtide.allocator.errors import SubnetExists, SubnetInUse
from podtide.allocator.limits import check_new_subnet
from podtide.allocator.store.draining import end_drain
from podtide.allocator.store.rules import StoreRules
from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_transaction import SubnetTransaction, open_transaction
from podtide.allocator.store.tables.history import note_usage
from podtide.allocator.store.tables.subnet_row import COLUMNS, DUE, SubnetRow, find_subnet, insert_subnet
from podtide.allocator.subnets import Subnet, SubnetSpec
from podtide.core.ranges import parse_address
from podtide.core.subnet.layout import SubnetLayout, choose_gateways, first_overlap

_MAKE_NETWORK = "INSERT INTO networks (name) VALUES ($1) ON CONFLICT (name) DO NOTHING"
_LOCK_NETWORK = "SELECT name FROM networks WHERE name = $1 /*lock*/"
_OF_NETWORK = "SELECT name, cidrs FROM subnets WHERE network = $1"
_NEXT_ID = "SELECT coalesce(max(id), 0) + 1 FROM subnets"
_LIST = f"SELECT {COLUMNS}, {DUE} FROM subnets ORDER BY network, name"  # noqa: S608 - our own columns
_LIST_OF_NETWORK = f"SELECT {COLUMNS}, {DUE} FROM subnets WHERE network = $2 ORDER BY name"  # noqa: S608 - our own columns
_SEQUENCE = "SELECT removed_sequences FROM store WHERE id = 1"
_KEEP_SEQUENCE = "UPDATE store SET removed_sequences = removed_sequences + $1 WHERE id = 1"
_REMOVE = (
    "DELETE FROM samples WHERE subnet = $1",
    "DELETE FROM alike WHERE subnet = $1",
    "DELETE FROM bounds WHERE subnet = $1",
    "DELETE FROM resting WHERE subnet = $1",
    "DELETE FROM chunks WHERE subnet = $1",
    "DELETE FROM containers WHERE subnet = $1",  # newcomers that still wait for a first address
    "DELETE FROM subnets WHERE id = $1",
)


def add_subnet(spec: SubnetSpec, now: float) -> Script[Subnet]:
    """Create a subnet, or return the existing one."""
    gateways = choose_gateways(spec.cidrs, spec.gateways)
    layout = SubnetLayout(spec.cidrs, gateways, spec.keep_back, spec.keep_back_first)
    yield Query(_MAKE_NETWORK, (spec.network,))
    there = yield from _cidrs_by_subnet(spec.network)
    if spec.name in there:
        row, _due = yield from find_subnet(spec.network, spec.name, now)
        _refuse_another_definition(spec, layout, row.for_callers(now))
        return row.for_callers(now)
    check_new_subnet(spec.name)
    _refuse_overlap(spec.network, spec.name, layout.cidrs, there)
    ((id_,),) = yield Query(_NEXT_ID)
    ((sequence,),) = yield Query(_SEQUENCE)
    row = SubnetRow(
        id=id_,
        network=spec.network,
        name=spec.name,
        cidrs="",
        gateways="",
        keep_back="",
        keep_back_first=spec.keep_back_first,
        capacity=0,
        reserved=0,
        containers=0,
        owed=0,
        next_chunks="",
        sampled=0.0,
        sequence=sequence,  # above all that a subnet of this name ever gave
    )
    row.lay_out(layout)
    yield from note_usage(row, row, now)
    yield from insert_subnet(row)
    return row.for_callers(now)


def grow_subnet(  # noqa: PLR0913, PLR0917 - which, by what, and when
    network: str, name: str, cidrs: tuple[str, ...], gateways: tuple[str, ...], now: float, rules: StoreRules
) -> Script[Subnet]:
    """Add CIDRs to a subnet, end the drain of those that drain, and set the gateways that were named."""
    there = yield from _cidrs_by_subnet(network)
    transaction = yield from open_transaction(network, name, (), now, rules)
    row = transaction.subnet
    asked = SubnetLayout(cidrs, chosen := choose_gateways(cidrs, gateways))
    named = {str(parse_address(address)) for address in gateways}
    own = {block.cidr: block.gateway for block in row.layout.blocks}
    added = [cidr for cidr in asked.cidrs if cidr not in own]
    if added:
        _refuse_overlap(network, name, added, there)
    after = own | {
        cidr: gateway
        for cidr, gateway in zip(asked.cidrs, chosen, strict=True)
        if cidr in added or gateway in named or not own[cidr]
    }
    end_drain(row, asked.cidrs)
    if after != own:
        yield from _lay_out(transaction, after)
    yield from transaction.save()
    return row.for_callers(now)


def _lay_out(transaction: SubnetTransaction, gateways: dict[str, str]) -> Script[None]:
    """Set the subnet's gateways, by CIDR."""
    row = transaction.subnet
    layout = SubnetLayout(
        list(gateways),
        list(gateways.values()),
        row.keep_back.split(),
        row.keep_back_first,
        first_chunks=[block.first_chunk for block in row.layout.blocks],
        draining=row.drains,
    )
    own = row.layout.blocks
    if used := (yield from transaction.lay_out(layout)):
        wanted = [gateways[block.cidr] for block in own if gateways[block.cidr] != block.gateway]
        if taken := [address for address in wanted if address in used]:
            raise SubnetInUse(
                f"{', '.join(taken)} of subnet {row.network}/{row.name} is a node's, or was until a moment ago, and so "
                "cannot be a gateway: name an address that is free"
            )
        raise SubnetInUse(
            f"with gateway {', '.join(wanted)} the first {row.keep_back_first} addresses of subnet {row.network}/{row.name}, "
            f"which are kept back, would be others, and {', '.join(used)} among them is a node's, or was until a moment "
            "ago: name a gateway that is not one of those kept back"
        )


def remove_subnet(network: str, name: str, now: float, rules: StoreRules) -> Script[None]:
    """Delete a subnet in which nothing is reserved."""
    there = yield from _cidrs_by_subnet(network)
    if name not in there:
        return
    transaction = yield from open_transaction(network, name, (), now, rules)
    transaction.context.refuse_while_recovering()
    if transaction.subnet.reserved:
        held = (
            f"containers in it: {transaction.subnet.containers}"
            if transaction.subnet.containers
            else f"addresses of removed nodes in quarantine: {transaction.subnet.reserved}; see `podtide quarantine list`"
        )
        raise SubnetInUse(f"subnet {network}/{name} is in use ({held}): remove it when they are gone")
    yield Query(_KEEP_SEQUENCE, (transaction.subnet.sequence,))
    for statement in _REMOVE:
        yield Query(statement, (transaction.subnet.id,))


def show_subnet(network: str, name: str, now: float) -> Script[tuple[Subnet, bool]]:
    """A subnet, and whether a cool-down in it is over."""
    row, due = yield from find_subnet(network, name, now)
    return row.for_callers(now), due


def list_subnets(network: str, now: float) -> Script[list[tuple[Subnet, bool]]]:
    """Subnets by network and name, and whether a cool-down in each is over."""
    rows = yield Query(_LIST_OF_NETWORK, (now, network)) if network else Query(_LIST, (now,))
    return [(SubnetRow(*columns).for_callers(now), bool(due)) for *columns, due in rows]


def _cidrs_by_subnet(network: str) -> Script[dict[str, list[str]]]:
    """The CIDRs of each subnet of a network, locked until this transaction ends."""
    yield Query(_LOCK_NETWORK, (network,))
    rows = yield Query(_OF_NETWORK, (network,))
    return {name: cidrs.split() for name, cidrs in rows}


def _refuse_another_definition(spec: SubnetSpec, layout: SubnetLayout, there: Subnet) -> None:
    # It may have grown since it was made: then the definition it was made by is still its own.
    there = replace(
        there, cidrs=there.cidrs[: len(layout.cidrs)], gateways=there.gateways[: len(layout.cidrs)]
    )
    asked = replace(
        there,
        cidrs=layout.cidrs,
        gateways=tuple(block.gateway for block in layout.blocks),
        keep_back=tuple(map(str, layout.keep_back)),
        keep_back_first=spec.keep_back_first,
    )
    if asked != there:
        raise SubnetExists(
            f"subnet {spec.network}/{spec.name} is there with CIDRs {', '.join(there.cidrs)}, gateways "
            f"{', '.join(there.gateways)} and {len(there.keep_back)} + {there.keep_back_first} addresses kept back: take "
            "another name, or grow it"
        )


def _refuse_overlap(network: str, name: str, cidrs: Sequence[str], there: dict[str, list[str]]) -> None:
    owners = {cidr: owner for owner, theirs in there.items() for cidr in theirs}
    if twins := first_overlap([*cidrs, *owners]):
        one, other = twins
        taken, asked = (one, other) if one in owners else (other, one)
        raise SubnetExists(
            f"{asked} for subnet {name} overlaps {taken} of subnet {owners[taken]} in network {network}: "
            "give CIDRs that no subnet of the network has, or use another network"
        )
