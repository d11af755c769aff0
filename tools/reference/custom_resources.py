"""Every field of every kind, from the CRDs."""

from collections.abc import Iterator
from typing import Any

from podtide.resources.crds import crds
from reference.markdown import code, described, table

_GIVEN = ("apiVersion", "kind", "metadata")
"""Fields that all kinds have, and that the API server describes."""


def page() -> Iterator[str]:
    """The page of custom resources."""
    yield "# Custom resources"
    yield "The kinds that podtide reads and writes, as `podtide crds` prints them. [Wire formats](../design/wire.md) says who writes what."
    yield ""
    for definition in crds():
        yield from _kind(definition)


def _kind(definition: dict[str, Any]) -> Iterator[str]:
    spec, names = definition["spec"], definition["spec"]["names"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    yield f"## {names['kind']}"
    yield ""
    yield described(schema.get("description"), names["kind"])
    yield ""
    yield from table(
        ("Group and version", "Names for kubectl", "Scope"),
        [
            (
                code(f"{spec['group']}/{version['name']}"),
                ", ".join(map(code, (names["plural"], *names.get("shortNames", ())))),
                spec["scope"],
            )
        ],
    )
    own = {name: field for name, field in schema["properties"].items() if name not in _GIVEN}
    rows = [
        row
        for name, field in own.items()
        for row in _fields(name, field, required=schema.get("required", ()))
    ]
    yield from table(("Field", "Type", "What it is"), rows)
    columns = version.get("additionalPrinterColumns", ())
    yield from table(
        ("Column of `kubectl get`", "Field"), [(each["name"], code(each["jsonPath"])) for each in columns]
    )


def _fields(path: str, field: dict[str, Any], *, required: object) -> Iterator[tuple[str, str, str]]:
    name = path.rpartition(".")[2].removesuffix("[]").removesuffix("{}")
    must = isinstance(required, list) and name in required
    yield code(path), _type(field), described(field.get("description"), path) + (" Required." if must else "")
    inner, mark = field, ""
    if field.get("type") == "array":
        inner, mark = field["items"], "[]"
    elif isinstance(field.get("additionalProperties"), dict):
        inner, mark = field["additionalProperties"], "{}"
    for each, content in inner.get("properties", {}).items():
        yield from _fields(f"{path}{mark}.{each}", content, required=inner.get("required", ()))


def _type(field: dict[str, Any]) -> str:
    words = field.get("enum")
    if words:
        return ", ".join(map(code, filter(None, words)))
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.get("format") or field.get("type", "any"))
