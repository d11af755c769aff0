"""What a request is about: a kind, and by its path a namespace and a name."""

import re
from typing import Self

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from podtide.cluster.embedded import ApiServer, ObjectSelection
from podtide.cluster.served.refusals import BadRequest
from podtide.resources.base import Resource

_NUMBER = re.compile("[0-9]{1,18}")
_TRUE = frozenset(("true", "1"))


class RequestTarget(Struct, frozen=True, kw_only=True):
    """One kind of one cluster, and what of it the path names ("" where it names none)."""

    server: ApiServer
    kind: type[Resource]
    namespace: str = ""
    name: str = ""
    is_status: bool = False

    def named_by(self, request: web.Request) -> Self:
        """The same, with what the path of this request says."""
        place = request.match_info
        return replace(self, namespace=place.get("namespace", ""), name=place.get("name", ""))

    def selection(self, request: web.Request) -> ObjectSelection:
        """Which objects a list or watch is to show."""
        return ObjectSelection(
            namespace=self.namespace,
            fields=request.query.get("fieldSelector", ""),
            labels=request.query.get("labelSelector", ""),
        )


def flag(request: web.Request, name: str) -> bool:
    """A parameter that is true or false."""
    return request.query.get(name, "") in _TRUE


def number(request: web.Request, name: str) -> int:
    """A parameter that is a number, 0 when it is not given."""
    text = request.query.get(name, "") or "0"
    if not _NUMBER.fullmatch(text):
        raise BadRequest(f"{name}={text} is no number: give one, 0 or more")
    return int(text)
