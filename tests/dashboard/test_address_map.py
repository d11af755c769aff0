"""The map of a subnet: each address is what its ranges and its node make it, block by block."""

import base64
from ipaddress import ip_address, ip_network

from hypothesis import given
from hypothesis import strategies as st

from podtide.dashboard.address_map import BLOCK_SIZE, MOST_IPV6_BLOCKS, CellState, SubnetMap, map_range

FIRST = int(ip_address("10.0.0.0"))
RANGES = ["10.0.0.0/26", "10.0.0.128/27", "10.0.1.0/24", "10.0.2.0/23", "10.0.0.64/28", "10.0.4.0/22"]


def map_of(*cidrs: str) -> SubnetMap:
    there = SubnetMap()
    ranges = (map_range(cidr, str(ip_network(cidr)[1])) for cidr in cidrs)
    there.set_ranges(tuple(each for each in ranges if each), frozenset())
    return there


def drawn(there: SubnetMap) -> dict[int, tuple[int, int]]:
    """State and owner of each address that the map shows, by number."""
    rendered = there.render(0, 256, frozenset())
    states = base64.b64decode(rendered.cells)
    owners = memoryview(base64.b64decode(rendered.owners)).cast("H")
    found: dict[int, tuple[int, int]] = {}
    for place, base in enumerate(rendered.bases):
        for cell in range(BLOCK_SIZE):
            index = place * BLOCK_SIZE + cell
            owner = rendered.owners_used[owners[index] - 1] if owners[index] else 0
            assert int(ip_address(base)) + cell not in found  # a block is there once
            found[int(ip_address(base)) + cell] = states[index], owner
    return found


@given(
    cidrs=st.lists(st.sampled_from(RANGES), min_size=1, max_size=4, unique=True),
    puts=st.lists(
        st.tuples(
            st.integers(0, 2047),
            st.sampled_from([CellState.HELD, CellState.PRIMARY, None]),
            st.integers(1, 3),
        ),
        max_size=30,
    ),
)
def test_every_address_of_the_ranges_is_drawn_once_as_it_is(
    cidrs: list[str], puts: list[tuple[int, CellState | None, int]]
) -> None:
    there = map_of(*cidrs)
    held: dict[int, tuple[int, int]] = {}
    for offset, state, owner in puts:
        address = FIRST + offset
        if state is not None:
            there.put(address, state, owner)
            held[address] = state, owner
        elif there.remove(address, owner) is not None:
            assert held.pop(address)[1] == owner
    networks = [ip_network(cidr) for cidr in cidrs]
    shown = drawn(there)
    for network in networks:
        for number in range(int(network[0]), int(network[-1]) + 1):
            special = number in {int(network[0]), int(network[1]), int(network[-1])}
            free = CellState.KEPT_BACK if special else CellState.FREE
            assert shown[number] == held.get(number, (free, 0))
            cell = there.cell(number)
            assert (cell.state, cell.owner) == shown[number]
    assert len(shown) == BLOCK_SIZE * there.block_count
    for number, (found, _) in shown.items():
        inside = any(ip_address(number) in network for network in networks)
        assert inside or number in held or found == CellState.OUTSIDE
    for index, (base, used) in enumerate(there.usage(0, 256)):
        number = int(ip_address(base))
        assert there.index_of(number // BLOCK_SIZE) == index
        assert used == sum(number <= each < number + BLOCK_SIZE for each in held)


def test_pods_are_drawn_on_what_a_node_holds_and_on_nothing_else() -> None:
    there = map_of("10.0.0.0/24")
    there.put(FIRST + 10, CellState.HELD, 1)
    there.put(FIRST + 11, CellState.PRIMARY, 1)
    rendered = there.render(0, 1, frozenset({FIRST + 10, FIRST + 11, FIRST + 12, FIRST + 9999}))
    states = base64.b64decode(rendered.cells)
    assert list(states[10:13]) == [CellState.POD, CellState.PRIMARY, CellState.FREE]


def test_a_large_subnet_costs_what_is_used_of_it() -> None:
    there = map_of("10.0.0.0/8")
    there.put(FIRST + 5_000_000, CellState.HELD, 1)
    assert (there.block_count, len(there._blocks)) == (65_536, 1)
    assert there.render(65_535, 256, frozenset()).bases == ("10.255.255.0",)
    assert there.render(65_536, 1, frozenset()).bases == ()


def test_of_an_ipv6_range_the_blocks_up_to_the_last_in_use_are_drawn() -> None:
    there = map_of("fd00::/64")
    assert (there.family, there.block_count) == (6, 1)
    first = int(ip_address("fd00::"))
    there.put(first + 300, CellState.HELD, 1)
    assert there.block_count == 2
    assert [used for _, used in there.usage(0, 5)] == [0, 1]
    there.put(first + 2**40, CellState.HELD, 1)
    assert there.block_count == MOST_IPV6_BLOCKS
    there.remove(first + 2**40, 1)
    assert there.block_count == 2


def test_what_is_not_a_range_is_left_out() -> None:
    assert map_range("pods") is None
    found = map_range("10.0.0.0/24", "fd00::1")
    assert found is not None
    assert found.gateway is None
