"""The story line by line, for logs and for terminals that cannot be redrawn."""

from collections.abc import Callable

from podtide.runtime.clock import Clock
from podtide.simulation.demo.scene import Scene
from podtide.simulation.demo.teller import Chapter


class PlainTeller:
    """Prints; how everything stands is told only when a chapter begins."""

    def __init__(self, write: Callable[[str], None], clock: Clock) -> None:
        self._write = write
        self._clock = clock
        self._began = clock.monotonic()
        self._chapters = 0

    def begin(self, chapter: Chapter) -> None:
        """See `Teller`."""
        self._chapters += 1
        self._write("")
        self._line(f"{self._chapters}. {chapter.title}. {chapter.words}")

    def say(self, words: str) -> None:
        """See `Teller`."""
        self._line(f"=> {words}")

    def decided(self, words: str) -> None:
        """See `Teller`."""
        self._line(f"   {words}")

    def show(self, scene: Scene) -> None:
        """See `Teller`. A line for every scene would be ten a second."""

    def _line(self, words: str) -> None:
        self._write(f"{self._clock.monotonic() - self._began:6.1f} s  {words}")
