"""Event: something worth a person's attention happened to an object.

This is the core/v1 Event and not that of events.k8s.io/v1 (the API server stores both as one): it can be narrowed
by `involvedObject.*`, which is how `kubectl describe` finds an object's events, and a repetition is one more `count`
on the same object instead of a series with rules of its own.

An event about a namespaced object must be in the same namespace; one about a cluster-scoped object goes to `default`.
"""

from typing import ClassVar, Self

from podtide.resources.base import Api, OpenEnum, Part, Resource, always


class EventType(OpenEnum):
    """How bad it is."""

    NORMAL = "Normal"
    WARNING = "Warning"


class ObjectReference(Part, frozen=True, kw_only=True):
    """The object an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def to(cls, item: Resource) -> Self:
        """A reference to `item` as it was read."""
        return cls(
            api_version=item.api.api_version,
            kind=item.api.kind,
            namespace=item.metadata.namespace,
            name=item.metadata.name,
            uid=item.metadata.uid,
            resource_version=item.metadata.resource_version,
        )


class EventSource(Part, frozen=True, kw_only=True):
    """Which program said it, and on which node."""

    component: str = ""
    host: str = ""


class Event(Resource, frozen=True, kw_only=True):
    """Something happened to an object."""

    api: ClassVar[Api] = Api(
        group="",
        version="v1",
        kind="Event",
        plural="events",
        namespaced=True,
        short_names=("ev",),
        field_selectors=(
            "metadata.name",
            "metadata.namespace",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "reason",
            "type",
        ),
    )

    involved_object: ObjectReference = ObjectReference()
    type: EventType = always(EventType.NORMAL)
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    count: int = 0
    first_timestamp: str | None = None
    last_timestamp: str | None = None
