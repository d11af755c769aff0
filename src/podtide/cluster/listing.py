"""Reads beyond one request: whole lists, page by page, and objects that may not exist.

A list of all pods of a large cluster is hundreds of megabytes. A caller that needs three facts of each takes them page
by page (`list_kept`).
"""

from collections.abc import Callable
from typing import TypeVar

from podtide.cluster.port import Cluster, Gone, NotFound, R

T = TypeVar("T")

_PAGE_ITEMS = 500
_ALL_IN_ONE = 0


async def get_if_there(cluster: Cluster, kind: type[R], name: str, namespace: str = "") -> R | None:
    """The object; None if it does not exist."""
    try:
        return await cluster.get(kind, name, namespace)
    except NotFound:
        return None


async def list_kept(
    cluster: Cluster, kind: type[R], namespace: str = "", *, fields: str = "", keep: Callable[[R], T | None]
) -> list[T]:
    """What `keep` returns for every object, all of one instant; None is left out."""

    async def read(limit: int) -> list[T]:
        kept: list[T] = []
        more, is_last = "", False
        while not is_last:
            page = await cluster.list(kind, namespace, fields=fields, limit=limit, more=more)
            kept += [fact for fact in map(keep, page.items) if fact is not None]
            more, is_last = page.more, not page.more
        return kept

    try:
        return await read(_PAGE_ITEMS)
    except Gone:
        # The server forgot the list's instant between two pages. In one answer there is nothing to forget.
        return await read(_ALL_IN_ONE)


async def list_all(cluster: Cluster, kind: type[R], namespace: str = "", *, fields: str = "") -> list[R]:
    """All objects of a kind, all of one instant."""
    return await list_kept(cluster, kind, namespace, fields=fields, keep=lambda item: item)


async def list_if_known(cluster: Cluster, kind: type[R], namespace: str = "") -> list[R]:
    """The same; an empty list if the cluster does not know the kind."""
    try:
        return await list_all(cluster, kind, namespace)
    except NotFound:
        return []
