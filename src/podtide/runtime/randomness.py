"""Randomness as a parameter: production draws from the machine, tests and simulations from a seed.

Whatever needs chance takes a `random.Random`, so that a run that failed can be run again, draw by draw.
"""

from random import Random, SystemRandom


def system_randomness() -> Random:
    """The machine's randomness: unpredictable, and not repeated by a forked process."""
    return SystemRandom()


def seeded_randomness(seed: int | str) -> Random:
    """The same draws for the same seed, in every process.

    Give each part of a simulation its own (`f"{seed}/node-7"`): one draw more in one part then changes nothing
    in the others.
    """
    return Random(seed)  # noqa: S311 - it has to be predictable: it repeats runs, and guards no secret
