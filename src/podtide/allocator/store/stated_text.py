"""What a container states, as the text that it is kept and counted by: containers that state the same have one text."""

from functools import lru_cache

import msgspec

from podtide.core.exact import exact, text
from podtide.core.subnet.statement import StatedDemand

NOTHING = ""
"""The text of a container that has asked for nothing yet."""


@lru_cache(maxsize=16_384)
def to_text(stated: StatedDemand | None) -> str:
    """The text for the database: compact JSON with every field, so that it means the same whatever the defaults become."""
    if stated is None:
        return NOTHING
    same = msgspec.structs.replace(stated, buffer=text(exact(stated.buffer, "buffer")))
    return msgspec.json.encode(same).decode()


@lru_cache(maxsize=16_384)
def from_text(kept: str) -> StatedDemand:
    """What a text of the database says."""
    return msgspec.json.decode(kept, type=StatedDemand) if kept else StatedDemand()
