"""Where podtide answers otherwise than a peer, on purpose: why, and the entry of docs/design that demands it.

A reason alone can be made up for anything. So a difference names an entry by its number and quotes words of it, and both
are looked up there.
"""

from msgspec import Struct

from design_notes import entry


class Difference(Struct, frozen=True, kw_only=True):
    """One answer that is not the peer's."""

    why: str
    number: str
    """Of the entry that demands it, such as T12."""
    words: str
    """Of that entry."""

    def require_quoted(self) -> None:
        """The entry is there, and has these words."""
        assert self.why
        assert self.words in entry(self.number), f"design {self.number} does not say: {self.words}"
