"""What an API server refuses by a kind's CRD: values outside of an enum, text of the wrong form, contradicting fields.

Types, limits and what is required are the struct's to check, from which the CRD is made (`podtide.resources.crds`).
What is here a struct lets pass, so that podtide can read what a newer peer wrote; a server that knows the CRD does not.

Read off the CRD once per kind. Branches with nothing to check are left out: a thousand addresses cost nothing.
"""

import re
import socket
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from msgspec import Struct

from podtide.resources.crds import Schema
from podtide.resources.rules import Rule

_CIDR = re.compile(r"([0-9a-fA-F:.]+)/([0-9]{1,3})")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_IPV4_BITS, _IPV6_BITS = 32, 128


class FieldRule(Struct, frozen=True):
    """A condition that a value of the right type must meet, in words and as a test."""

    words: str
    is_met: Callable[[Any], bool]


class FieldRules(Struct, frozen=True):
    """The conditions for one value, and for those within it."""

    own: tuple[FieldRule, ...] = ()
    rules: tuple[Rule, ...] = ()
    """Between its fields."""
    fields: "dict[str, FieldRules]" = {}
    each: "FieldRules | None" = None
    """For the items of a list and the values of a map."""

    def complaint(self, value: Any) -> str:
        """The first field that does not meet its conditions, and why: `.spec.range cannot be ...`; "" when all do."""
        if value is None or self is NO_DEMANDS:
            return ""
        return self._own_complaint(value) or self._inner_complaint(value)

    def _own_complaint(self, value: Any) -> str:
        for demand in self.own:
            if not demand.is_met(value):
                shown = repr(value) if isinstance(value, str) else "as it is"
                return f" cannot be {shown}: it must be {demand.words}"
        for rule in self.rules:
            if not rule.is_met(value):
                return f": {rule.message}"
        return ""

    def _inner_complaint(self, value: Any) -> str:
        if isinstance(value, dict):
            for name, inner in self.fields.items():
                if name in value and (complaint := inner.complaint(value[name])):
                    return f".{name}{complaint}"
        if self.each:
            for step, item in value.items() if isinstance(value, dict) else enumerate(value):
                if complaint := self.each.complaint(item):
                    return f".{step}{complaint}"
        return ""


NO_DEMANDS = FieldRules()


def demands_in(schema: Schema, rules: Mapping[str, Rule]) -> FieldRules:
    """The conditions in a schema that the struct does not check. `rules` has every CEL rule of it."""
    below = {name: demands_in(inner, rules) for name, inner in schema.get("properties", {}).items()}
    return FieldRules(
        own=tuple(_own_demands(schema)),
        rules=tuple(rules[each["rule"]] for each in schema.get("x-kubernetes-validations", [])),
        fields={name: inner for name, inner in below.items() if inner != NO_DEMANDS},
        each=_demands_of_each(schema, rules),
    )


def _demands_of_each(schema: Schema, rules: Mapping[str, Rule]) -> FieldRules | None:
    each = schema.get("items") or schema.get("additionalProperties")
    demands = demands_in(each, rules) if each else NO_DEMANDS
    return demands if demands != NO_DEMANDS else None


def _own_demands(schema: Schema) -> list[FieldRule]:
    demands = []
    if schema.get("type") == "integer":
        demands.append(_INTEGER)
    if "enum" in schema:
        words = frozenset(schema["enum"])
        demands.append(FieldRule(f"one of {', '.join(schema['enum'])}", words.__contains__))
    if "pattern" in schema:
        demands.append(_pattern_demand(schema["pattern"]))
    if schema.get("format") in _FORMATS:
        demands.append(_FORMATS[schema["format"]])
    if schema.get("x-kubernetes-list-type") == "map":
        demands.append(_unique_demand(schema["x-kubernetes-list-map-keys"]))
    return demands


def _pattern_demand(pattern: str) -> FieldRule:
    # To the API server `$` is the very end, to Python also the place before a last newline.
    search = re.compile(re.sub(r"\$$", r"\\Z", pattern)).search
    return FieldRule(f"as {pattern} says", lambda text: search(text) is not None)


def _unique_demand(names: list[str]) -> FieldRule:
    def is_unique(items: list[dict[str, Any]]) -> bool:
        return len({tuple(item.get(name) for name in names) for item in items}) == len(items)

    return FieldRule(f"a list with each {' and '.join(names)} once", is_unique)


@lru_cache(maxsize=65_536)  # a pool of thousands of slices is written again and again
def _is_cidr(text: str) -> bool:
    """As the API server reads one: bits beyond the prefix may be set, and IPv4 may have leading zeros."""
    match = _CIDR.fullmatch(text)
    if match is None:
        return False
    address, length = match[1], int(match[2])
    if ":" in address:
        return length <= _IPV6_BITS and _is_address(socket.AF_INET6, address)
    return length <= _IPV4_BITS and _is_address(socket.AF_INET, _LEADING_ZEROS.sub("", address))


def _is_address(family: socket.AddressFamily, text: str) -> bool:
    try:
        socket.inet_pton(family, text)
    except OSError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    if not _DATE_TIME.fullmatch(text):
        return False
    try:
        datetime.strptime(f"{text[:19].upper()}Z", "%Y-%m-%dT%H:%M:%S%z")  # whether there is such a time
    except ValueError:
        return False
    return True


_FORMATS = {
    "cidr": FieldRule("a CIDR such as 10.0.0.0/16", _is_cidr),
    "date-time": FieldRule("a time such as 2026-11-05T12:00:00Z", _is_date_time),
}
"""Those of text; an integer has 64 bits whatever its format."""
_INTEGER = FieldRule("a number of 64 bits", lambda number: -(2**63) <= number < 2**63)
