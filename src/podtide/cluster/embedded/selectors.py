"""Selectors in Kubernetes' text syntax, parsed once and asked of every object.

A label selector is a list of requirements (`app=web,tier in (a,b),!draft`), a field selector one of equalities
(`spec.nodeName=n1,status.phase!=Failed`). An object without the label satisfies `!=` and `notin`; a field that is
absent reads as "".

What a watcher asks for exactly (`exact`) is what the hub files it under, so that most events never meet most watchers.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from msgspec import Struct

from podtide.cluster.port import Invalid

NAME = "metadata.name"
NAMESPACE = "metadata.namespace"

_LABEL_KEY = r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"""\s*(?:
        !\s*(?P<absent>{_LABEL_KEY})
      | (?P<key>{_LABEL_KEY})\s*(?:
            (?P<equality>==|=|!=)\s*(?P<value>{_LABEL_VALUE})
          | \s(?P<membership>in|notin)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)
_FIELD_TERM = re.compile(
    r"(?P<path>(?:[^=!,\\]|\\.)+)(?P<operator>==|=|!=)(?P<value>(?:[^,=\\]|\\.)*)(?:,|$)"
)


class LabelTerm(Struct, frozen=True):
    """One requirement: the label's value is (or, `negated`, is not) among `values`; None means any value at all."""

    key: str
    values: frozenset[str] | None
    negated: bool = False

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets the requirement."""
        value = labels.get(self.key)
        among = value is not None and (self.values is None or value in self.values)
        return among is not self.negated


class FieldTerm(Struct, frozen=True):
    """One equality: the field's text is (or, `negated`, is not) `value`."""

    path: str
    value: str
    negated: bool = False

    def holds(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these fields meets the equality."""
        return (fields.get(self.path, "") == self.value) is not self.negated


class Selector(Struct, frozen=True):
    """All terms of a list or watch; its namespace is one of the field terms."""

    labels: tuple[LabelTerm, ...] = ()
    fields: tuple[FieldTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Whether an object with these labels and fields is selected."""
        return all(term.holds(fields) for term in self.fields) and all(
            term.holds(labels) for term in self.labels
        )

    @property
    def exact(self) -> dict[str, str]:
        """The fields whose value is given: every selected object has just these."""
        return {term.path: term.value for term in self.fields if not term.negated}


@lru_cache(maxsize=4096)
def parse_selector(namespace: str, fields: str, labels: str, offered: tuple[str, ...]) -> Selector:
    """The selector for a request; `offered` are the field paths that the kind lets itself be narrowed by."""
    scope = (FieldTerm(NAMESPACE, namespace),) if namespace else ()
    return Selector(labels=_parse_labels(labels), fields=scope + _parse_fields(fields, offered))


def _parse_labels(text: str) -> tuple[LabelTerm, ...]:
    return tuple(_label_term(match) for match in _matches(_REQUIREMENT, text, "label"))


def _label_term(match: re.Match[str]) -> LabelTerm:
    if match["absent"]:
        return LabelTerm(match["absent"], None, negated=True)
    if match["equality"]:
        return LabelTerm(match["key"], frozenset((match["value"],)), negated=match["equality"] == "!=")
    if match["membership"]:
        values = frozenset(value.strip() for value in match["values"].split(","))
        return LabelTerm(match["key"], values, negated=match["membership"] == "notin")
    return LabelTerm(match["key"], None)


def _parse_fields(text: str, offered: tuple[str, ...]) -> tuple[FieldTerm, ...]:
    terms = []
    for match in _matches(_FIELD_TERM, text, "field"):
        path = match["path"].strip()
        if path not in offered:
            raise Invalid(
                f"objects cannot be selected by the field {path!r}: this kind offers {', '.join(offered)}"
            )
        value = re.sub(r"\\(.)", r"\1", match["value"])
        terms.append(FieldTerm(path, value, negated=match["operator"] == "!="))
    return tuple(terms)


def _matches(pattern: re.Pattern[str], text: str, what: str) -> list[re.Match[str]]:
    found, position = [], 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            raise Invalid(
                f"{text!r} is not a {what} selector: {text[position:]!r} is not a valid requirement"
            )
        found.append(match)
        position = match.end()
    return found


def field_reader(paths: tuple[str, ...]) -> Callable[[dict[str, object]], dict[str, str]]:
    """A function that reads these paths of a document as text, in the way field selectors compare it.

    Paths are fields of the document, or of one of its parts: no kind offers more.
    """
    split = [(path, *path.rpartition(".")[::2]) for path in paths]

    def read(document: dict[str, object]) -> dict[str, str]:
        fields = {}
        for path, part, field in split:
            within = document.get(part) if part else document
            value = within.get(field) if isinstance(within, dict) else None
            fields[path] = value if isinstance(value, str) else _as_text(value)
        return fields

    return read


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
