"""How much is measured: as a rule what fits into a quarter of an hour on two cores, or a little of everything."""

from msgspec import Struct


class Load(Struct, frozen=True, kw_only=True):
    """ADDs at once, and then their DELs."""

    name: str
    nodes: int
    pods_per_node: int
    rounds: int

    @property
    def calls(self) -> int:
        """How many are made at once."""
        return self.nodes * self.pods_per_node


class Sizes(Struct, frozen=True, kw_only=True):
    """All loads of a run, in their order."""

    one: Load
    burst: Load
    fleet: Load
    other_pools: int
    """How many IPPools are made before the load that follows."""
    beside_pools: Load
    idle_seconds: float
    """For how long it is counted what is asked while nobody calls a plugin."""
    memory_rounds: int

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.fleet.nodes

    def pods_on(self, node: int) -> int:
        """How many pods the node of that number has: the first has the burst."""
        return (
            max(self.burst.pods_per_node, self.fleet.pods_per_node) if node == 0 else self.fleet.pods_per_node
        )


def sizes(*, nodes: int, burst: int, per_node: int, pools: int, rounds: int) -> Sizes:
    """The loads; single ADDs, which are quick, get more rounds."""
    of_one = 6 * rounds
    return Sizes(
        one=Load(name="one ADD", nodes=1, pods_per_node=1, rounds=of_one),
        burst=Load(name=f"{burst} ADDs at once on one node", nodes=1, pods_per_node=burst, rounds=rounds),
        fleet=Load(
            name=f"{nodes * per_node} ADDs at once on {nodes} nodes",
            nodes=nodes,
            pods_per_node=per_node,
            rounds=rounds,
        ),
        other_pools=pools,
        beside_pools=Load(
            name=f"one ADD with {pools:,} IPPools present", nodes=1, pods_per_node=1, rounds=of_one
        ),
        idle_seconds=6.0 * rounds,
        memory_rounds=rounds,
    )


FULL = sizes(nodes=20, burst=40, per_node=5, pools=1_000, rounds=3)
SMALL = sizes(nodes=2, burst=4, per_node=2, pools=20, rounds=1)
