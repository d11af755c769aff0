"""Rules between the fields of one part of an object, which a schema of types and limits cannot state.

An API server is given a rule as CEL, in the CRD, and refuses what breaks it before it is stored. The embedded
cluster evaluates no CEL: it has the same rule as a Python function. That the two agree is held by the contract suite,
which tries both on the same objects.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

Fields: TypeAlias = Mapping[str, Any]
"""A part as on the wire, by its wire names. A field that is absent or `null` is not given."""


class Rule(Struct, frozen=True, kw_only=True):
    """What must hold for a part that is there."""

    cel: str
    """For the API server; `self` is the part."""
    message: str
    """Shown to the author of the object: what is wrong, and what to give instead."""
    is_met: Callable[[Fields], bool]
