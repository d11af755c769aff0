"""JSON patches (RFC 6902): a list of operations on places in the document, all carried out or none."""

from copy import deepcopy
from typing import Any

from podtide.cluster.port import Invalid
from podtide.cluster.served.statuses import BadRequest

_END = "-"


def json_patched(document: dict[str, Any], patch: Any) -> Any:
    """The document after all operations, in order."""
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise BadRequest("a JSON patch is a list of operations: send [{op, path, value}, ...]")
    result: Any = {"": deepcopy(document)}  # so that the whole document, too, is somewhere
    for operation in patch:
        _carry_out(result, operation)
    return result[""]


def _carry_out(root: Any, operation: dict[str, Any]) -> None:
    verb, steps = operation.get("op"), _steps(operation, "path")
    match verb:
        case "add":
            _put(root, steps, _value(operation), is_new=True)
        case "replace":
            _put(root, steps, _value(operation), is_new=False)
        case "remove":
            _take(root, steps)
        case "move":
            _put(root, steps, _take(root, _steps(operation, "from")), is_new=True)
        case "copy":
            _put(root, steps, deepcopy(_get(root, _steps(operation, "from"))), is_new=True)
        case "test":
            if _get(root, steps) != _value(operation):
                raise Invalid(
                    f"the patch expects another value at {operation['path']}: read the object again"
                )
        case _:
            raise BadRequest(
                f"{verb!r} is not an operation of a JSON patch: use add, remove, replace, move, copy or test"
            )


def _steps(operation: dict[str, Any], field: str) -> list[str]:
    pointer = operation.get(field)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise BadRequest(f"invalid {field} {pointer!r} in a JSON patch: write one such as /metadata/labels")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise BadRequest(f"{operation.get('op')} at {operation.get('path')} of a JSON patch needs a value")
    return operation["value"]


def _get(root: Any, steps: list[str]) -> Any:
    for step in steps:
        root = root[_place(root, step, steps)]
    return root


def _put(root: Any, steps: list[str], value: Any, *, is_new: bool) -> None:
    parent, last = _get(root, steps[:-1]), steps[-1]
    if isinstance(parent, list) and is_new:
        parent.insert(len(parent) if last == _END else _index(last, steps, len(parent)), value)
    elif isinstance(parent, dict) and is_new:
        parent[last] = value
    else:
        parent[_place(parent, last, steps)] = value


def _take(root: Any, steps: list[str]) -> Any:
    parent = _get(root, steps[:-1])
    return parent.pop(_place(parent, steps[-1], steps))


def _place(parent: Any, step: str, steps: list[str]) -> Any:
    """The key or index of something that is there."""
    if isinstance(parent, dict) and step in parent:
        return step
    if isinstance(parent, list):
        return _index(step, steps, len(parent) - 1)
    raise _no_such_place(steps)


def _index(step: str, steps: list[str], last: int) -> int:
    if not step.isascii() or not step.isdecimal() or int(step) > last:
        raise _no_such_place(steps)
    return int(step)


def _no_such_place(steps: list[str]) -> Invalid:
    return Invalid(
        f"the patch refers to {'/'.join(steps)}, which the object does not have: read the object again"
    )
