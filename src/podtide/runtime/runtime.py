"""What a program runs in, as one value: the clock, randomness, the log and the settings.

A program is given one, and hands it on to its parts; none of it is global, so that a simulation gives each program its own.
"""

from random import Random

from msgspec import Struct, structs

from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.settings import Settings


class Runtime(Struct, frozen=True, kw_only=True):
    """Handed to every part of a program, which takes what it needs."""

    clock: Clock
    randomness: Random
    log: Logger
    settings: Settings = Settings()

    def bind(self, **context: object) -> "Runtime":
        """The same, with this said in every line of the log."""
        return structs.replace(self, log=self.log.bind(**context))
