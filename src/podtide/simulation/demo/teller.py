"""Who tells the story to people: on a screen that is redrawn, or line by line."""

from typing import Protocol

from msgspec import Struct

from podtide.simulation.demo.scene import DemoScene


class Chapter(Struct, frozen=True):
    """A part of the story: its title, and what is going to happen in it."""

    title: str
    words: str
    command: str = ""
    """One for people to copy and run: it stands on a line of its own, which is never broken."""


class Teller(Protocol):
    """Told everything as it happens."""

    def begin(self, chapter: Chapter) -> None:
        """A chapter begins."""
        ...

    def say(self, words: str) -> None:
        """What has come of something, in a sentence."""
        ...

    def decided(self, words: str, who: str = "") -> None:
        """A program decided something; `who` is the node it did so for, if any, and no part of the words."""
        ...

    def show(self, scene: DemoScene) -> None:
        """This is how everything stands."""
        ...
