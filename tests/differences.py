"""Where podtide answers otherwise than a peer, on purpose: why, and the line of our documents that demands it.

A reason alone can be made up for anything. So a difference quotes the document it rests on, and the quotation is looked
up there, in ../shared beside the repository, as the recorded answers are.
"""

import re
from pathlib import Path

from msgspec import Struct

SHARED = Path(__file__).parents[2] / "shared"

TRAPS = "6. Traps seen in the real Whereabouts"
"""The section of WIRE.md on what Whereabouts gets wrong."""


class Difference(Struct, frozen=True, kw_only=True):
    """One answer that is not the peer's."""

    why: str
    line: str
    """Words of the line that demands it."""
    section: str = TRAPS
    """How the heading of that line's section begins."""
    document: str = "WIRE.md"

    def require_quoted(self) -> None:
        """The document has that line, in that section."""
        assert self.why
        text = (SHARED / self.document).read_text()
        section = re.search(
            rf"^## {re.escape(self.section)}.*?(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL
        )
        assert section is not None, f"{self.document} has no section {self.section!r}"
        assert self.line in " ".join(section[0].split()), f"{self.document} does not say: {self.line}"
