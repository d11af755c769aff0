"""The table of mutants in docs/simulation.md, made from the catalogue and the pins so that it stays true."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutants.catalogue import Mutant
from mutants.pins import Pin
from podtide.simulation.run.shrinking import kind_of_failure

PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"
_BEGIN = "<!-- made by `make mutants ARGS=--pin` -->\n"
_END = "<!-- end -->\n"
_ENDED = re.compile(r"(?P<program>agent|controller)\S* (\S+ )?ended by (?P<error>\w+)")


def table(mutants: Iterable[Mutant], pins: Mapping[str, Pin]) -> str:
    """The lines of the table."""
    lines = ["| Mutant | What its line does | In | Seed | Found by |", "|---|---|---|---|---|"]
    for mutant in mutants:
        if mutant.test:
            lines.append(_row_of_test(mutant))
        elif mutant.name in pins:
            lines.append(_row(mutant, pins[mutant.name]))
    return "".join(f"{line}\n" for line in lines)


def table_in(page: str) -> str:
    """The table that the page shows."""
    return page.partition(_BEGIN)[2].partition(_END)[0]


def with_table(page: str, lines: str) -> str:
    """The page with these lines as its table."""
    before, begin, rest = page.partition(_BEGIN)
    return f"{before}{begin}{lines}{_END}{rest.partition(_END)[2]}"


def _row(mutant: Mutant, pin: Pin) -> str:
    options = (
        f"--networks {mutant.networks}" if mutant.networks else "--placement" if mutant.placement else ""
    )
    seed = f"{pin.seed} (`{options}`)" if options else str(pin.seed)
    return f"| {mutant.name} | {mutant.why} | `{mutant.file}` | {seed} | {_found_by(pin.finding)} |"


def _row_of_test(mutant: Mutant) -> str:
    return f"| {mutant.name} | {mutant.why} | `{mutant.file}` | none | `{mutant.test}` |"


def _found_by(finding: str) -> str:
    """An invariant by its number; else which program's own checks ended it, or how the run ended."""
    if (ended := _ENDED.match(finding)) is not None:
        return f"{ended['program']} ended by {ended['error']}"
    return kind_of_failure(finding)
