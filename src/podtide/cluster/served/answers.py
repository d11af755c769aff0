"""Answers that are written whole: an object, a list, a table, a Status."""

from enum import Enum, auto
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from podtide.cluster.embedded.api_server import Listing
from podtide.cluster.embedded.records import ObjectVersion
from podtide.cluster.served.statuses import NotAcceptable
from podtide.cluster.served.tables import TableMaker
from podtide.cluster.served.target import ApiTarget

JSON = "application/json"
_ANY_JSON = frozenset((JSON, "application/*", "*/*"))
_TABLE = {"as": "Table", "v": "v1", "g": "meta.k8s.io"}


class AnswerForm(Enum):
    """The form in which objects are returned."""

    OBJECTS = auto()
    TABLE = auto()


def form_for(accept: str) -> AnswerForm:
    """The first form in an Accept header that is supported."""
    for choice in accept.split(",") if accept.strip() else (JSON,):
        media_type, *parameters = (part.strip() for part in choice.split(";"))
        if media_type not in _ANY_JSON:
            continue
        pairs = dict(parameter.partition("=")[::2] for parameter in parameters)
        if "as" not in pairs:
            return AnswerForm.OBJECTS
        if _TABLE.items() <= pairs.items():
            return AnswerForm.TABLE
    raise NotAcceptable(f"the answer cannot be {accept!r}: accept application/json")


def json_answer(document: Any, code: int = HTTPStatus.OK) -> web.Response:
    """A response with a JSON document."""
    return web.Response(body=msgspec.json.encode(document), status=code, content_type=JSON)


def object_answer(record: ObjectVersion, code: int = HTTPStatus.OK) -> web.Response:
    """A response with the whole object."""
    return web.Response(body=record.encoded, status=code, content_type=JSON)


def single_answer(target: ApiTarget, request: web.Request, record: ObjectVersion) -> web.Response:
    """An object in the form the client asks for."""
    maker = table_maker(target, request)
    if maker is None:
        return object_answer(record)
    metadata = {"resourceVersion": str(record.version)}
    return json_answer(maker.table([record], metadata, target.server.clock.wall()))


def list_answer(target: ApiTarget, request: web.Request, listing: Listing) -> web.Response:
    """A page of a list in the form the client asks for."""
    maker = table_maker(target, request)
    metadata = {"resourceVersion": str(listing.version), "continue": listing.more}
    if maker is not None:
        return json_answer(maker.table(listing.records, metadata, target.server.clock.wall()))
    api = target.kind.api
    # The objects are JSON already: they are put together as they are.
    head = msgspec.json.encode({"kind": api.list_kind, "apiVersion": api.api_version, "metadata": metadata})
    body = head[:-1] + b',"items":[' + b",".join(record.encoded for record in listing.records) + b"]}"
    return web.Response(body=body, content_type=JSON)


def table_maker(target: ApiTarget, request: web.Request) -> TableMaker | None:
    """The maker of tables, if the client accepts tables."""
    if form_for(request.headers.get("Accept", "")) is AnswerForm.OBJECTS:
        return None
    return TableMaker(target.kind.api, request.query.get("includeObject", "Metadata"))
