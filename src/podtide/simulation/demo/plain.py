"""The story line by line, for logs and for terminals that cannot be redrawn."""

import textwrap
from collections.abc import Callable

from podtide.runtime.clock import Clock
from podtide.simulation.demo.folding import FoldedDecisions
from podtide.simulation.demo.scene import DemoScene
from podtide.simulation.demo.teller import Chapter

_GATHER_SECONDS = 1.0
"""How long a decision is held back, to be printed together with others in the same words."""
_MANY = 1_000


class PlainTeller:
    """Prints the story line by line. Decisions are held back for a moment; `flush` prints them."""

    def __init__(self, write: Callable[[str], None], clock: Clock, width: int | None = None) -> None:
        self._write = write
        self._width = width
        """The terminal's width; None without a terminal: then lines are not wrapped."""
        self._clock = clock
        self._began = clock.monotonic()
        self._chapters = 0
        self._decisions = FoldedDecisions(_MANY)

    def begin(self, chapter: Chapter) -> None:
        """Print a chapter's number, title and text."""
        self.flush()
        self._chapters += 1
        self._write("")
        self._line(self._seconds(), f"{self._chapters}. {chapter.title}. {chapter.words}")
        if chapter.command:
            self._write(f"    {chapter.command}")

    def say(self, words: str) -> None:
        """Print a result."""
        self.flush()
        self._line(self._seconds(), f"=> {words}")

    def decided(self, words: str, who: str = "") -> None:
        """Hold a decision back for a moment."""
        self._decisions.add(words, who, self._seconds())

    def show(self, scene: DemoScene) -> None:
        """Print the decisions that were held back long enough. Scenes are not printed: there are ten a second."""
        del scene
        self._tell_decisions(self._seconds() - _GATHER_SECONDS)

    def flush(self) -> None:
        """Print all decisions that are held back."""
        self._tell_decisions(self._seconds())

    def _tell_decisions(self, until: float) -> None:
        for at, words in self._decisions.take(until):
            self._line(at, f"   {words}")

    def _seconds(self) -> float:
        return self._clock.monotonic() - self._began

    def _line(self, at: float, words: str) -> None:
        when = f"{at:6.1f} s  "
        if self._width is None:
            self._write(when + words)
            return
        for line in textwrap.wrap(
            when + words,
            self._width,
            subsequent_indent=" " * len(when),
            break_long_words=False,
            break_on_hyphens=False,
        ):
            self._write(line)
