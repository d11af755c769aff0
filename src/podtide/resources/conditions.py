"""Conditions: what an object's controller found, in the form `kubectl describe` and `kubectl wait` understand.

Setting one is a pure function of the list, so that a controller can compare before and after and write
only when something changed.
"""

from typing import Annotated, ClassVar

from msgspec import Meta
from msgspec.structs import replace

from podtide.resources.base import Count, OpenEnum, Part


class ConditionStatus(OpenEnum):
    """Whether the condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Part, frozen=True, kw_only=True):
    """One aspect of an object's state, as its controller last saw it."""

    merge_key: ClassVar[str | None] = "type"

    type: Annotated[str, Meta(description="What is observed, in CamelCase; unique in the list.")]
    status: Annotated[ConditionStatus, Meta(description="Whether it holds.")]
    last_transition_time: Annotated[
        str, Meta(description="When status last changed.", extra_json_schema={"format": "date-time"})
    ]
    reason: Annotated[str, Meta(description="Why, as one CamelCase word for programs.", min_length=1)]
    message: Annotated[str, Meta(description="Why, as a sentence for people.")]
    observed_generation: Annotated[
        Count, Meta(description="The metadata.generation this was concluded from.")
    ] = 0


Conditions = Annotated[
    list[Condition],
    Meta(
        description="What the controller found, one entry per type.",
        extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]


def with_condition(conditions: list[Condition], new: Condition) -> list[Condition]:
    """The list with `new` in the place of its type's, or at the end.

    While status stays the same, so does lastTransitionTime: saying the same again yields an equal list.
    """
    result = list(conditions)
    for index, old in enumerate(conditions):
        if old.type == new.type:
            same_status = old.status == new.status
            since = old.last_transition_time if same_status else new.last_transition_time
            result[index] = replace(new, last_transition_time=since)
            return result
    return [*result, new]


def without_condition(conditions: list[Condition], kind: str) -> list[Condition]:
    """The list without the condition of that type."""
    return [each for each in conditions if each.type != kind]
