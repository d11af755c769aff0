"""The last DELs, for ADDs that arrived before them and are carried out after.

A request that has arrived can be delayed: by the disk, by the scheduler, by an ADD before it. If it were carried out after
the DEL of its sandbox, a dead sandbox would have the address. It is enough to remember as many DELs as a node carries out
while a request can be delayed; beyond that, the leak collector frees the address.
"""

from collections import OrderedDict

_REMEMBERED = 1024


class RecentDeletes:
    """The times of the last DELs, by sandbox and interface."""

    def __init__(self) -> None:
        self._at: OrderedDict[tuple[str, str], float] = OrderedDict()

    def remember(self, key: tuple[str, str], now: float) -> None:
        """Record a DEL."""
        self._at.pop(key, None)
        self._at[key] = now
        if len(self._at) > _REMEMBERED:
            self._at.popitem(last=False)

    def happened_after(self, arrived: float, key: tuple[str, str]) -> bool:
        """Whether a DEL of this key is remembered that came after that time."""
        return self._at.get(key, arrived) > arrived
