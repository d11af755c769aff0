"""How a story is shown: on a screen that is redrawn, or line by line."""

from typing import Protocol

from msgspec import Struct

from podtide.simulation.demo.scene import DemoScene


class Chapter(Struct, frozen=True):
    """A part of the story: its title, and what will happen in it."""

    title: str
    words: str
    command: str = ""
    """A command to copy and run: it is printed on a line of its own, which is never broken."""


class Teller(Protocol):
    """Shows a story as it happens."""

    def begin(self, chapter: Chapter) -> None:
        """Show that a chapter begins."""
        ...

    def say(self, words: str) -> None:
        """Show a result, in a sentence."""
        ...

    def decided(self, words: str, who: str = "") -> None:
        """Show a program's decision; `who` is its node, if any, which is not in the words."""
        ...

    def show(self, scene: DemoScene) -> None:
        """Show the present state."""
        ...
