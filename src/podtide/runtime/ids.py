"""Identifiers that are unique by chance, made from given randomness so that a simulation makes them again."""

from random import Random

_FIXED_BITS = 0xF000_C000_0000_0000_0000
_VERSION_4 = 0x4000_8000_0000_0000_0000


def new_uuid(randomness: Random) -> str:
    """A version 4 UUID as text. Without `uuid.UUID`, which takes twice as long: simulations make millions."""
    text = f"{randomness.getrandbits(128) & ~_FIXED_BITS | _VERSION_4:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
