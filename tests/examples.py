"""How many examples a law gets where the usual number does not suit it: `settings` alone would not know of quick runs."""

from typing import Any

from hypothesis import settings

USUAL = settings.get_profile("default").max_examples
FEWEST = 10


def examples(count: int = USUAL, *, quick: int | None = None, **others: Any) -> settings:
    """Settings with so many examples; in a quick run with a part of them, or with `quick` where each takes long.

    A quick run is one whose profile gives laws fewer than the usual number; its part is what all other laws are given.
    """
    part = settings().max_examples
    if part < USUAL:
        count = quick or min(count, max(FEWEST, count * part // USUAL))
    return settings(max_examples=count, **others)
