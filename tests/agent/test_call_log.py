import asyncio
import io
import json

import pytest

from podtide.agent.api.call_log import CallLog
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger


class Book:
    """A call log at a level, what it counts and what it writes."""

    def __init__(self, level: str = "info") -> None:
        self.counted: list[tuple[str, str, float]] = []
        self._lines = io.StringIO()
        clock = LoopClock()
        self.calls = CallLog(
            "cni",
            clock=clock,
            log=make_logger(self._lines, clock, level=level),
            count=lambda verb, outcome, seconds: self.counted.append((verb, outcome, seconds)),
        )

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Level and outcome of each line."""
        written = map(json.loads, self._lines.getvalue().splitlines())
        return [(line["level"], line["outcome"]) for line in written]


async def test_a_call_is_counted_and_written_down_when_it_is_over() -> None:
    book = Book()
    with book.calls.call(0.0) as entry:
        entry.verb = "ADD"
        await asyncio.sleep(2.0)
        assert book.counted == []
    assert book.counted == [("ADD", "ok", 2.0)]
    assert book.lines == [("info", "ok")]


async def test_a_call_that_goes_on_elsewhere_is_not_written_down_here() -> None:
    book = Book()
    with book.calls.call(0.0) as entry:
        entry.is_pending = True
    assert (book.counted, book.lines) == ([], [])


async def test_a_caller_that_went_away_has_abandoned_the_call() -> None:
    book = Book()

    async def add() -> None:
        with book.calls.call(0.0) as entry:
            entry.verb = "ADD"
            await asyncio.sleep(60.0)

    adding = asyncio.create_task(add())
    await asyncio.sleep(2.0)
    adding.cancel()
    await asyncio.wait({adding})
    assert adding.cancelled()
    assert book.counted == [("ADD", "abandoned", 2.0)]


@pytest.mark.parametrize(
    ("level", "written"), [("info", ["warning"]), ("warning", ["warning"]), ("error", [])]
)
async def test_what_nobody_reads_is_counted_all_the_same(level: str, written: list[str]) -> None:
    book = Book(level)
    with book.calls.call(0.0) as good:
        good.verb = "STATUS"  # runtimes ask it every few seconds: for the level debug alone
    with book.calls.call(0.0) as bad:
        bad.verb = "ADD"
        bad.error = InvalidInput("a bad address")
    assert [outcome for _verb, outcome, _seconds in book.counted] == ["ok", "InvalidInput"]
    assert [said for said, _outcome in book.lines] == written
