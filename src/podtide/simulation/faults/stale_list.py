"""Lists that show an earlier state."""

from random import Random

from podtide.cluster.embedded.paging import Position, to_token
from podtide.cluster.port import Gone, Page, R
from podtide.simulation.faults.line_fault import ListFault, Relist

_DOUBLINGS = 10.0
"""A cache may be one write behind or a thousand, and each time as much again is as likely as the last."""


class StaleList(ListFault):
    """A list answered from an API server's cache that is behind, with the resourceVersion that it shows.

    A watch from there catches up: what is told is true, only not true any more.
    """

    name = "stale-list"
    rate = 0.3

    async def answer(self, newest: Page[R], relist: Relist[R], chance: Random) -> Page[R]:
        """The list as it was some writes ago, or the newest if that is forgotten."""
        writes = int(2 ** chance.uniform(0.0, _DOUBLINGS))
        version = max(1, int(newest.resource_version) - writes)
        try:
            return await relist(to_token(Position(version, "")))
        except Gone:
            return newest
