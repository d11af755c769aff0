"""Quantities of resources, as far as podtide needs them: counts, in Kubernetes' text.

An API server writes a quantity back in a form of its own ("1000" as "1k"), so texts are read before they are compared.
"""

import re
from fractions import Fraction
from math import ceil

_QUANTITY = re.compile(
    r"\+?(?=\.?[0-9])(?P<whole>[0-9]{0,30})(?:\.(?P<part>[0-9]{0,30}))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,9})|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))",
    re.ASCII,
)
_SUFFIXES = (
    {"": Fraction(1)}
    | {suffix: Fraction(1, 1000**power) for power, suffix in enumerate("mun", start=1)}
    | {suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)}
    | {f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)}
)
_LARGEST_EXPONENT = 100
"""With so many digits as are read, anything beyond is more than the largest count, or less than one."""
_LARGEST = 2**63 - 1


def read_count(text: str) -> int | None:
    """The count that a quantity stands for, or None for text that is not one, or is below zero.

    As in Kubernetes a fraction counts as one more, and nothing counts for more than 64 bits hold.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    whole, part = match["whole"], match["part"] or ""
    return min(ceil(Fraction(int(whole + part), 10 ** len(part)) * _scale(match)), _LARGEST)


def _scale(match: re.Match[str]) -> Fraction:
    if match["exponent"] is None:
        return _SUFFIXES[match["suffix"]]
    exponent = max(-_LARGEST_EXPONENT, min(int(match["exponent"]), _LARGEST_EXPONENT))
    return Fraction(10) ** exponent
