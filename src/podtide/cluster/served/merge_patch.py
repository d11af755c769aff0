"""JSON merge patches (RFC 7396): what is stated is put in, `null` takes out, lists are replaced whole."""

from typing import Any


def merge_patched(value: Any, patch: Any) -> Any:
    """The value after the patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), change)
    return result
