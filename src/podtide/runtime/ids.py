"""Identifiers that are unique by chance, made from given randomness so that a simulation makes them again."""

from random import Random
from uuid import UUID


def new_uuid(randomness: Random) -> str:
    """A version 4 UUID as text."""
    return str(UUID(int=randomness.getrandbits(128), version=4))
