"""Objects as the rows of a Table, which is how kubectl has a server print them.

A cell is what the column's path finds first, in the column's type; a date is how long ago it was. What is not there is
null, which kubectl shows as <none>.
"""

import re
from collections.abc import Sequence
from typing import Any

from podtide.cluster.embedded.records import Document, ObjectVersion
from podtide.cluster.served.ages import age
from podtide.resources.base import AGE, Api, Column
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds

_STEP = re.compile(r"""\.(\w+)|\['((?:\\.|[^'\\])+)'\]|\[\?\(@\.(\w+)=="([^"]*)"\)\]|\[\*\]""")
"""A field; one in quotes, whose dots are escaped; the item of a list that has a field of that value; or the first item."""
_BUILT_IN: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Pod"): (
        Column(name="Status", type="string", json_path=".status.phase"),
        AGE,
        Column(name="IP", type="string", json_path=".status.podIP", priority=1),
        Column(name="Node", type="string", json_path=".spec.nodeName", priority=1),
    ),
    ("", "Event"): (
        Column(name="Last Seen", type="date", json_path=".lastTimestamp"),
        Column(name="Type", type="string", json_path=".type"),
        Column(name="Reason", type="string", json_path=".reason"),
        Column(name="Kind", type="string", json_path=".involvedObject.kind"),
        Column(name="Object", type="string", json_path=".involvedObject.name"),
        Column(name="Message", type="string", json_path=".message"),
    ),
    ("coordination.k8s.io", "Lease"): (
        Column(name="Holder", type="string", json_path=".spec.holderIdentity"),
        AGE,
    ),
}


class TableMaker:
    """Makes tables of one kind; `include` is how much of each object comes with its row: None, Metadata or Object."""

    def __init__(self, api: Api, include: str) -> None:
        self._columns = columns_of(api)
        self._include = include
        self._headers = [_NAME, *(_header(column) for column in self._columns)]

    def table(
        self, records: Sequence[ObjectVersion], metadata: dict[str, str], now: float, *, headers: bool = True
    ) -> Document:
        """A table of these objects. In a watch only the first one needs headers."""
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": self._headers if headers else [],
            "rows": [self._row(record.document(), now) for record in records],
        }

    def _row(self, document: Document, now: float) -> Document:
        cells = [document["metadata"]["name"], *(_cell(column, document, now) for column in self._columns)]
        match self._include:
            case "None":
                return {"cells": cells}
            case "Object":
                return {"cells": cells, "object": document}
            case _:
                partial = {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": document["metadata"],
                }
                return {"cells": cells, "object": partial}


def find_first(document: Any, json_path: str) -> Any:
    """What a path such as `.status.networkContainers[*].id` finds first, or None."""
    for step in _STEP.finditer(json_path):
        field, quoted, key, value = step.groups()
        name = quoted.replace("\\", "") if quoted else field
        if name is not None:
            document = document.get(name) if isinstance(document, dict) else None
        else:
            items = document if isinstance(document, list) else []
            document = next((item for item in items if key is None or _has(item, key, value)), None)
    return document


def _has(item: Any, key: str, value: str) -> bool:
    return isinstance(item, dict) and item.get(key) == value


_NAME: Document = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "The object's name.",
    "priority": 0,
}


def _header(column: Column) -> Document:
    return {
        "name": column.name,
        "type": column.type,
        "format": "",
        "description": column.description or f"What {column.json_path} holds.",
        "priority": column.priority,
    }


def _cell(column: Column, document: Document, now: float) -> Any:
    value = find_first(document, column.json_path)
    if value is None:
        return None
    match column.type:
        case "string":
            return str(value)
        case "date":
            return _ago(value, now)
        case _:
            return value


def _ago(value: Any, now: float) -> str:
    try:
        return age(now - to_wall_seconds(str(value)))
    except InvalidTimestamp:
        return "<invalid>"


def columns_of(api: Api) -> tuple[Column, ...]:
    """The columns of `kubectl get` after the name: those of the kind's CRD, and for a kind without one the few used here."""
    return api.columns or _BUILT_IN.get((api.group, api.kind), (AGE,))
