"""The comparison as a table, in Markdown."""

from collections.abc import Iterable, Iterator

from comparison.trial import TrialOutcome

_COLUMNS = (
    "",
    "requests written",
    "pods whose first ADD found no address",
    "ADDs failed",
    "idle addresses held, on average",
    "average pod",
    "slowest pod",
    "pods left without an address",
    "time at the configured batch",
)


def table(outcomes: Iterable[TrialOutcome]) -> Iterator[str]:
    """The lines of the table of one load."""
    yield _line(_COLUMNS)
    yield _line("---" for _ in _COLUMNS)
    for outcome in outcomes:
        slowest = "never ready" if outcome.ready_seconds is None else f"{outcome.ready_seconds:.1f} s"
        yield _line(
            (
                outcome.contestant,
                str(outcome.requests),
                str(outcome.delayed),
                str(outcome.failed_adds),
                f"{outcome.idle:.0f}",
                f"{outcome.wait_seconds:.1f} s",
                slowest,
                str(outcome.pods - outcome.served),
                f"{float(100 * outcome.batch_share):.0f} %",
            )
        )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")
