"""JSON merge patches (RFC 7396): what is stated is put in, `null` takes out, lists are replaced whole.

Kubernetes knows no options for a patch's preconditions: a uid or resource version within the patch is one.
"""

from typing import Any

import msgspec

from podtide.cluster.port import Invalid, Patch


def merge_patch(wanted: Patch[Any]) -> dict[str, Any]:
    """The patch of an object, or of its status, as plain JSON that shares nothing with `changes`.

    Invalid for what an API server would take otherwise than it is meant. Of what a patch of a status says beside it,
    the server takes something for one kind and nothing for another; a uid it ignores where the kind is custom.
    """
    api, changes, status = wanted.kind.api, wanted.changes, wanted.status
    if status and (others := sorted(set(changes) - {"status"})):
        raise Invalid(f"a patch of a status changes nothing else: patch {', '.join(others)} without `status`")
    if status and api.is_custom and wanted.uid and not wanted.resource_version:
        raise Invalid(
            f"an API server does not compare uids when it patches the status of a {api.kind}: say which version"
        )
    try:
        patch = msgspec.json.decode(msgspec.json.encode(changes), type=dict[str, Any])
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"these changes cannot be written as JSON: {error}") from error
    stated = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
    if preconditions := {field: value for field, value in stated.items() if value}:
        patch["metadata"] = merge_patched(patch.get("metadata"), preconditions)
    return patch


def merge_patched(value: Any, patch: Any) -> Any:
    """The value after the patch. It may share parts with both, and changes neither."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), change)
    return result
