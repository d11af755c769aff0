"""The parts of a documentation page that a tool writes: whatever stands between `<!-- NAME -->` and `<!-- end -->`."""

import re


def with_section(page: str, name: str, lines: str) -> str:
    """The page with these lines in its section of that name. A page without that section is a mistake of who calls."""
    changed, count = re.subn(
        rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{lines}\n{found[2]}",
        page,
        flags=re.DOTALL,
    )
    assert count == 1, f"the page has {count} sections between <!-- {name} --> and <!-- end -->, not one"
    return changed
