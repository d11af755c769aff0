"""Whole lists of objects, page by page, for commands that read once."""

from typing import TypeVar

from podtide.cluster.port import Cluster, Gone, NotFound
from podtide.resources.base import Resource

R = TypeVar("R", bound=Resource)

_PAGE_ITEMS = 500
_ALL_IN_ONE = 0


async def list_all(cluster: Cluster, kind: type[R], namespace: str = "", *, fields: str = "") -> list[R]:
    """All objects of a kind, consistent at one resourceVersion."""
    try:
        return await _read_pages(cluster, kind, namespace, fields, _PAGE_ITEMS)
    except Gone:
        # The resourceVersion of the list expired between two pages. A list in one page cannot expire.
        return await _read_pages(cluster, kind, namespace, fields, _ALL_IN_ONE)


async def list_if_known(cluster: Cluster, kind: type[R], namespace: str = "") -> list[R]:
    """The same; an empty list if the cluster does not know the kind."""
    try:
        return await list_all(cluster, kind, namespace)
    except NotFound:
        return []


async def get_if_there(cluster: Cluster, kind: type[R], name: str, namespace: str = "") -> R | None:
    """The object; None if it does not exist."""
    try:
        return await cluster.get(kind, name, namespace)
    except NotFound:
        return None


async def _read_pages(cluster: Cluster, kind: type[R], namespace: str, fields: str, limit: int) -> list[R]:
    page = await cluster.list(kind, namespace, fields=fields, limit=limit)
    items = list(page.items)
    while page.more:
        page = await cluster.list(kind, namespace, fields=fields, limit=limit, more=page.more)
        items += page.items
    return items
