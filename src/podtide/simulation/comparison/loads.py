"""What the contestants are put under: pods that come to nodes and go again, the same for everybody."""

from collections.abc import Mapping

from msgspec import Struct

from podtide.runtime.randomness import seeded_randomness


class Load(Struct, frozen=True, kw_only=True):
    """Pods that come and go."""

    name: str
    sentence: str
    subnet: str
    nodes: int
    seconds: int
    changes: Mapping[int, Mapping[int, int]]
    """By second and by node: how many pods come, or go when it is negative."""


def _waves(nodes: int) -> dict[int, dict[int, int]]:
    """Every half minute two nodes get 5 to 40 pods each, which go after two minutes."""
    chance = seeded_randomness("waves")
    changes: dict[int, dict[int, int]] = {}
    for second in range(0, 300, 30):
        for node in chance.sample(range(nodes), 2):
            pods = chance.randint(5, 40)
            for at, change in ((second, pods), (second + 120, -pods)):
                at_once = changes.setdefault(at, {})
                at_once[node] = at_once.get(node, 0) + change
    return changes


BURST = Load(
    name="burst",
    sentence="the papers' own: a node has one pod, then 35 more are scheduled at once",
    subnet="10.0.0.0/16",
    nodes=1,
    seconds=180,
    changes={0: {0: 1}, 60: {0: 35}},
)
WAVES = Load(
    name="waves",
    sentence="every half minute two of ten nodes get 5 to 40 pods each, which go after two minutes; there is room enough",
    subnet="10.0.0.0/22",
    nodes=10,
    seconds=480,
    changes=_waves(10),
)
SCARCE = Load(
    name="scarce",
    sentence="ten nodes get 231 pods, unevenly; with the nodes' own addresses that is 95 % of the subnet",
    subnet="10.0.0.0/24",
    nodes=10,
    seconds=420,
    changes={
        0: dict.fromkeys(range(10), 3),
        60: {0: 40, 1: 30, 2: 25},
        120: {3: 20, 4: 20, 5: 15, 6: 15},
        180: {7: 15, 8: 10, 9: 11},
    },
)
LOADS = (BURST, WAVES, SCARCE)
