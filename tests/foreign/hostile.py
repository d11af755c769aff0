"""Texts that nobody means: what a tenant can put into an annotation, a body or a file to see what breaks."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

_DEPTHS = (99, 101, 500, 900, 990, 1200, 5_000)
_NESTINGS = (("[", "]"), ('{"a":', "}"), ("[", ""), ('[{"ips":', "}]"))
_NUMBERS = (
    *("9" * 400, "9" * 5_000, "-" + "9" * 5_000, "1" * 1_000_000, "1e999999999", "-1e999999999", "1e-999999999"),
    *("NaN", "Infinity", "-Infinity", "-0", "-1", "0x10", "1_000", "٣", "1.", ".5", "1e400", str(2**63), str(2**64)),
)  # fmt: skip
_STRINGS = (
    *('"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"a\\u0000b"', '"\\uFEFF"', '"\x7f"', '"\\n\\r\\u2028"', '""'),
    *('"10.0.0.256"', '"010.0.0.1"', '"::ffff:1.2.3.4"', '"fe80::1%eth0"', '"1.2.3.4/0x8"', '"10.0.0.0/33"', '"0.0.0.0/0"'),
    *('"::/0"', '"9999999999999999999999/24"', '"\uff11\uff10.0.0.1"', '"🦀"', f'"{"a" * 100_000}"', f'"{"9" * 5_000}"'),
)  # fmt: skip
_BROKEN = (
    "",
    " ",
    "\0",
    "{",
    "[1,",
    '"',
    "nul",
    "{}{}",
    "\ufeff{}",
    '{"a":1,"a":2}',
    "'a'",
    "null",
    "true",
    "{}",
    "[]",
)

DEEP = [begin * depth + end * depth for depth in _DEPTHS for begin, end in _NESTINGS]
"""To be tried outside of hypothesis too, which lets Python go deeper than it does by itself."""

_JUST_TOO_DEEP = ["[" * 980 + "]" * 980, "[" * 1200 + "]" * 1200, '{"a":' * 1200 + "1" + "}" * 1200]
"""Each is just so deep that one reader can decode it and the next cannot walk it, or that none can."""

fragments = (
    st.sampled_from(_NUMBERS)
    | st.sampled_from(_STRINGS)
    | st.sampled_from(_BROKEN)
    | st.sampled_from(DEEP)
    | st.text(max_size=20)
)
"""What stands where JSON expects a value; little of it is one."""

plain_texts = st.sampled_from([text[1:-1] for text in _STRINGS] + list(_NUMBERS) + list(_BROKEN)) | st.text(
    max_size=30
)
"""What stands in a field of text."""


def planted(valid: Any) -> Iterator[str]:
    """The document with each of its values, at any depth, replaced by what is nested deeply."""
    for text in _with_a_hole(valid):
        for fragment in _JUST_TOO_DEEP:
            yield text.replace(_HOLE, fragment)


def documents(valid: Any) -> st.SearchStrategy[str]:
    """The document with one of its values, at any depth, replaced by what nobody means; or that alone."""
    texts = list(_with_a_hole(valid))
    return fragments | st.builds(
        lambda text, fragment: text.replace(_HOLE, fragment), st.sampled_from(texts), fragments
    )


_HOLE = "<hole>"


def _with_a_hole(value: Any) -> Iterator[str]:
    """The value as JSON, each time without another part of it."""
    yield _HOLE
    if isinstance(value, dict):
        for name, inner in value.items():
            for text in _with_a_hole(inner):
                others = "".join(
                    f"{json.dumps(key)}: {json.dumps(part)}, " for key, part in value.items() if key != name
                )
                yield f"{{{others}{json.dumps(name)}: {text}}}"
    if isinstance(value, list):
        for place, inner in enumerate(value):
            for text in _with_a_hole(inner):
                parts = [json.dumps(part) for part in value]
                yield f"[{', '.join([*parts[:place], text, *parts[place + 1 :]])}]"


def as_bytes(text: str) -> bytes:
    """As it comes over a wire: what is no Unicode too."""
    return text.encode(errors="surrogatepass")
