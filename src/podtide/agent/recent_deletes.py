"""The last DELs, for the ADDs that arrived before them and are carried out after.

A request that has arrived can be held up: by the disk, by the scheduler, by an ADD before it. Were it carried out after
the DEL of its sandbox, the address would be a dead sandbox's. Memory for as many as a node deletes in the time that a
request can be held up is enough; beyond that, leaks are collected.
"""

from collections import OrderedDict

_REMEMBERED = 1024


class RecentDeletes:
    """When each of the last sandboxes was deleted, by sandbox and interface."""

    def __init__(self) -> None:
        self._at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def remember(self, key: tuple[str, str], now: float) -> None:
        """It was deleted now."""
        self._at.pop(key, None)
        self._at[key] = now
        if len(self._at) > _REMEMBERED:
            self._at.popitem(last=False)

    def happened_after(self, arrived: float, key: tuple[str, str]) -> bool:
        """Whether it was deleted after that time."""
        return self._at.get(key, arrived) > arrived
