"""Strategic merge patches: like a merge patch, except that some lists are merged item by item.

Which lists, and by which key, is known of the kinds every cluster has, and only those can be patched so: kubectl does it
when it applies a pod from its own side. The directives it may send along (`$patch`, `$retainKeys`, `$setElementOrder/…`,
`$deleteFromPrimitiveList/…`) are carried out.
"""

from typing import Any

import msgspec

from podtide.cluster.served.statuses import BadRequest

_MERGE_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_SETS = frozenset(("finalizers", "podCIDRs"))

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def strategic_merge_patched(value: Any, patch: Any) -> Any:
    """The value after the patch."""
    if not isinstance(patch, dict):
        return patch
    changes = {name: change for name, change in patch.items() if not name.startswith("$")}
    match patch.get(_PATCH, "merge"):
        case "merge":
            result = _prepared(value if isinstance(value, dict) else {}, patch)
            _change(result, changes)
            for name, order in _directives(patch, _ORDER):
                result[name] = _ordered(name, _items(result.get(name)), order)
            return result
        case "replace":
            return changes
        case "delete":
            return {}
        case unknown:
            raise BadRequest(f"{_PATCH}: {unknown!r} is unknown: use merge, replace or delete")


def _prepared(present: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The value without what the patch's directives delete."""
    kept = _stated_list(patch, _RETAIN) if _RETAIN in patch else present
    result = {name: item for name, item in present.items() if name in kept}
    for name, gone in _directives(patch, _DELETE):
        result[name] = [item for item in _items(result.get(name)) if item not in gone]
    return result


def _change(result: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, change in changes.items():
        if change is None:
            result.pop(name, None)
        elif isinstance(change, list):
            result[name] = _merged_list(name, _items(result.get(name)), change)
        else:
            result[name] = strategic_merge_patched(result.get(name), change)


def _merged_list(name: str, present: list[Any], changes: list[Any]) -> list[Any]:
    if name in _SETS:
        return [*present, *(item for item in changes if item not in present)]
    if name not in _MERGE_KEYS:
        return changes
    if {_PATCH: "replace"} in changes:
        return [change for change in changes if change != {_PATCH: "replace"}]
    result = list(present)
    for change in changes:
        which = _identity(name, change)
        places = [place for place, item in enumerate(result) if _identity(name, item) == which]
        if change.get(_PATCH) == "delete":
            result = [item for place, item in enumerate(result) if place not in places]
        elif places:
            result[places[0]] = strategic_merge_patched(result[places[0]], change)
        else:
            result.append(strategic_merge_patched({}, change))
    return result


def _ordered(name: str, items: list[Any], order: list[Any]) -> list[Any]:
    """The items that `order` names in that order, the others where they are."""
    ranks = {_identity(name, item): rank for rank, item in enumerate(order)}
    named = [item for item in items if _identity(name, item) in ranks]
    in_turn = iter(sorted(named, key=lambda item: ranks[_identity(name, item)]))
    return [next(in_turn) if _identity(name, item) in ranks else item for item in items]


def _identity(name: str, item: Any) -> bytes:
    """The merge key value of a list's item."""
    key = _MERGE_KEYS.get(name)
    if key is None:
        return msgspec.json.encode(item)
    if not isinstance(item, dict) or key not in item:
        raise BadRequest(f"an item of {name} in a strategic merge patch must say its {key}")
    return msgspec.json.encode(item[key])


def _directives(patch: dict[str, Any], prefix: str) -> list[tuple[str, list[Any]]]:
    """The patch's directives for lists, by the lists' names."""
    return [
        (name.removeprefix(prefix), _stated_list(patch, name)) for name in patch if name.startswith(prefix)
    ]


def _stated_list(patch: dict[str, Any], name: str) -> list[Any]:
    if not isinstance(patch[name], list):
        raise BadRequest(f"{name} in a strategic merge patch must be a list")
    return _items(patch[name])


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
