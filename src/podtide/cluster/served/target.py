"""What a request is about: a kind, and by its path a namespace and a name."""

import re
from typing import Self

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from podtide.cluster.embedded import ApiServer, ObjectSelection
from podtide.cluster.served.statuses import BadRequest
from podtide.resources.base import Resource

_NUMBER = re.compile("[0-9]{1,18}")
_TRUE = frozenset(("true", "1"))


class ApiTarget(Struct, frozen=True, kw_only=True):
    """One kind of one cluster, with the namespace, name and subresource that the path names ("" for none)."""

    server: ApiServer
    kind: type[Resource]
    namespace: str = ""
    name: str = ""
    is_status: bool = False

    def named_by(self, request: web.Request) -> Self:
        """The target with the names in this request's path."""
        place = request.match_info
        return replace(self, namespace=place.get("namespace", ""), name=place.get("name", ""))

    def selection(self, request: web.Request) -> ObjectSelection:
        """The namespace and selectors of a list or watch."""
        return ObjectSelection(
            namespace=self.namespace,
            fields=request.query.get("fieldSelector", ""),
            labels=request.query.get("labelSelector", ""),
        )


def flag(request: web.Request, name: str) -> bool:
    """A boolean query parameter."""
    return request.query.get(name, "") in _TRUE


def number(request: web.Request, name: str) -> int:
    """A numeric query parameter; 0 when it is not given."""
    text = request.query.get(name, "") or "0"
    if not _NUMBER.fullmatch(text):
        raise BadRequest(f"{name}={text} is not a number: give one, 0 or more")
    return int(text)
