"""JSON merge patches (RFC 7396): what is stated is put in, `null` takes out, lists are replaced whole.

Kubernetes knows no options for a patch's preconditions: a uid or resource version within the patch is one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from podtide.cluster.port import Invalid
from podtide.resources.base import Api


class PatchPreconditions(Struct, frozen=True, kw_only=True):
    """What must be so of the object that is patched; "" for what need not."""

    uid: str = ""
    resource_version: str = ""


def merge_patch(
    api: Api, changes: Mapping[str, Any], expected: PatchPreconditions, *, status: bool
) -> dict[str, Any]:
    """The patch of an object, or of its status, as plain JSON that shares nothing with `changes`.

    Invalid for what an API server would take otherwise than it is meant. Of what a patch of a status says beside it,
    the server takes something for one kind and nothing for another; a uid it ignores where the kind is custom.
    """
    if status and (others := sorted(set(changes) - {"status"})):
        raise Invalid(f"a patch of a status changes nothing else: patch {', '.join(others)} without `status`")
    if status and api.is_custom and expected.uid and not expected.resource_version:
        raise Invalid(
            f"an API server does not compare uids when it patches the status of a {api.kind}: say which version"
        )
    try:
        patch = msgspec.json.decode(msgspec.json.encode(changes), type=dict[str, Any])
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"these changes cannot be written as JSON: {error}") from error
    stated = {"uid": expected.uid, "resourceVersion": expected.resource_version}
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
