"""The entries of docs/design by their numbers, for tests that look up what code and tests name."""

import re
from pathlib import Path

DESIGN = Path(__file__).parent.parent / "docs" / "design"
PAGES = {
    "D": DESIGN / "decisions.md",
    "R": DESIGN / "rules.md",
    "I": DESIGN / "invariants.md",
    "W": DESIGN / "wire.md",
    "T": DESIGN / "traps.md",
}
"""Each page by the letter of its numbers."""

NUMBER = r"[DRIWT][0-9]+"


def numbers_of(page: Path) -> list[str]:
    """The numbers of a page's headings, in their order."""
    return re.findall(rf"^#+ ({NUMBER})\. ", page.read_text(), flags=re.MULTILINE)


def entry(number: str) -> str:
    """The text of an entry, its heading included, in one line; KeyError where there is none."""
    text = PAGES[number[0]].read_text()
    found = re.search(rf"^#+ {number}\. .*?(?=^#|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    if found is None:
        raise KeyError(number)
    return " ".join(found[0].split())
