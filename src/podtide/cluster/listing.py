"""Whole lists, page by page, of which only what is asked for is kept.

A list of all pods of a large cluster is hundreds of megabytes. Whoever needs three facts of each takes them while the
pages pass by.
"""

from collections.abc import Callable
from typing import TypeVar

from podtide.cluster.port import Cluster, Gone, R

T = TypeVar("T")

_PAGE_ITEMS = 500
_ALL_IN_ONE = 0


async def list_kept(
    cluster: Cluster, kind: type[R], namespace: str = "", *, keep: Callable[[R], T | None]
) -> list[T]:
    """What `keep` returns for every object, all of one instant; None is left out."""
    try:
        return await _read(cluster, kind, namespace, keep, _PAGE_ITEMS)
    except Gone:
        # The server forgot the list's instant between two pages. In one answer there is nothing to forget.
        return await _read(cluster, kind, namespace, keep, _ALL_IN_ONE)


async def _read(
    cluster: Cluster, kind: type[R], namespace: str, keep: Callable[[R], T | None], limit: int
) -> list[T]:
    kept: list[T] = []
    more, is_last = "", False
    while not is_last:
        page = await cluster.list(kind, namespace, limit=limit, more=more)
        kept += [fact for fact in map(keep, page.items) if fact is not None]
        more, is_last = page.more, not page.more
    return kept
