"""Which form of an answer the client takes: the objects themselves, or a Table for people."""

from enum import Enum, auto

from podtide.cluster.served.refusals import NotAcceptable

JSON = "application/json"
_ANY_JSON = frozenset((JSON, "application/*", "*/*"))
_TABLE = {"as": "Table", "v": "v1", "g": "meta.k8s.io"}


class AnswerForm(Enum):
    """How objects are shown."""

    OBJECTS = auto()
    TABLE = auto()


def form_for(accept: str) -> AnswerForm:
    """The first form in an Accept header that we have."""
    for choice in accept.split(",") if accept.strip() else (JSON,):
        media_type, *parameters = (part.strip() for part in choice.split(";"))
        if media_type not in _ANY_JSON:
            continue
        pairs = dict(parameter.partition("=")[::2] for parameter in parameters)
        if "as" not in pairs:
            return AnswerForm.OBJECTS
        if _TABLE.items() <= pairs.items():
            return AnswerForm.TABLE
    raise NotAcceptable(f"the answer cannot be {accept!r}: accept application/json")
