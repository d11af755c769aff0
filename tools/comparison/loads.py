"""The loads of the comparison: pods that are created and deleted on nodes, the same for every contestant."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from podtide.runtime.randomness import seeded_randomness

_HOUR = 3600
_DAY = 24 * _HOUR

Changes: TypeAlias = dict[int, dict[int, int]]


class Load(Struct, frozen=True, kw_only=True):
    """Which pods are created and deleted, when and where."""

    name: str
    sentence: str
    subnet: str
    nodes: int
    seconds: int
    sample_seconds: int = 1
    """How often to take a sample, beginning with second 0. A load of a day needs none every second."""
    changes: Mapping[int, Mapping[int, int]]
    """By second and by node: how many pods are created, or deleted if negative."""


def _waves(nodes: int) -> Changes:
    """Every half minute two nodes get 5 to 40 pods each, which are deleted after two minutes."""
    chance = seeded_randomness("waves")
    changes: Changes = {}
    for second in range(0, 300, 30):
        for node in chance.sample(range(nodes), 2):
            _visit(changes, node, chance.randint(5, 40), second, second + 120)
    return changes


def _day(nodes: int) -> Changes:
    """A pod on every node; 14 more for ten minutes, once; then, every half to one and a half hours, 2 to 8 for 5 to 15 minutes."""
    chance = seeded_randomness("peak and after")
    changes: Changes = {0: dict.fromkeys(range(nodes), 1)}
    for node in range(nodes):
        _visit(changes, node, 14, _HOUR, _HOUR + 600)
        second = 2 * _HOUR + chance.randint(0, _HOUR)
        while second < _DAY - _HOUR:
            _visit(changes, node, chance.randint(2, 8), second, second + chance.randint(300, 900))
            second += chance.randint(_HOUR // 2, _HOUR * 3 // 2)
    return changes


def _visit(changes: Changes, node: int, pods: int, since: int, until: int) -> None:
    """Create pods on a node, and delete them later."""
    for at, change in ((since, pods), (until, -pods)):
        at_once = changes.setdefault(at, {})
        at_once[node] = at_once.get(node, 0) + change


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
PEAK_AND_AFTER = Load(
    name="peak and after",
    sentence=(
        "a day: eight nodes with a pod each get 14 more each for ten minutes, once, which is more than the subnet has "
        "room for by batches of 16; from then on a node gets 2 to 8 pods every hour or so, which go after 5 to 15 minutes"
    ),
    subnet="10.0.0.0/24",
    nodes=8,
    seconds=_DAY,
    sample_seconds=60,
    changes=_day(8),
)
LOADS = (BURST, WAVES, SCARCE, PEAK_AND_AFTER)
