"""The seeds that found the mutants, kept in a file: a seed means something else when the simulation draws otherwise."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from mutants.catalogue import MUTANTS

_FILE = Path(__file__).with_name("pins.json")


class Pin(Struct, frozen=True, kw_only=True):
    """A seed and what it finds."""

    seed: int
    finding: str


def read_pins() -> dict[str, Pin]:
    """By the mutants' names."""
    return msgspec.json.decode(_FILE.read_bytes(), type=dict[str, Pin])


def write_pins(pins: Mapping[str, Pin]) -> None:
    """Keep these instead, those of mutants that are no more left out."""
    kept = {mutant.name: pins[mutant.name] for mutant in MUTANTS if mutant.name in pins}
    _FILE.write_bytes(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
