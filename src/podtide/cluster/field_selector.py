"""A field selector as text that means what it says, whatever the value has in it.

Commas and equals signs part one equality from the next. A name that somebody else wrote may contain them: unescaped
it would be another selector, or one that no server accepts.
"""

_ESCAPED = str.maketrans({character: f"\\{character}" for character in "\\,="})


def field_is(path: str, value: str) -> str:
    """A field selector for objects whose field at this path has this value."""
    return f"{path}={value.translate(_ESCAPED)}"
