"""DELETE: an object goes at once, or is marked where something keeps it.

Pods are kept by the node they are bound to, for the grace they were given; finalizers keep anything.
"""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta, Struct

from podtide.cluster.embedded import ApiServer, ObjectSelection
from podtide.cluster.port import DeletePreconditions
from podtide.cluster.served.admission import admit_deletion, refuse_dry_run
from podtide.cluster.served.answers import json_answer, object_answer
from podtide.cluster.served.bodies import parsed
from podtide.cluster.served.statuses import BadRequest, details_of, success
from podtide.cluster.served.target import ApiTarget
from podtide.resources.namespace import Namespace
from podtide.resources.pod import Pod
from podtide.runtime.http_port import read_body

_IN_QUERY = ("gracePeriodSeconds", "propagationPolicy")


class Preconditions(Struct, frozen=True, kw_only=True, rename="camel"):
    """The uid and resourceVersion that a deletion requires."""

    uid: str = ""
    resource_version: str = ""


class DeleteOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """The DeleteOptions that a client may send in the body."""

    grace_period_seconds: Annotated[int, Meta(ge=0)] | None = None
    preconditions: Preconditions = Preconditions()
    propagation_policy: str = "Background"
    dry_run: list[str] = []


async def delete(target: ApiTarget, request: web.Request) -> web.Response:
    """Serve DELETE of an object."""
    refuse_dry_run(request.query.get("dryRun"))
    options = _delete_options(request, await read_body(request))
    server, kind, name = target.server, target.kind, target.name
    admit_deletion(kind, name)
    last = server.get(kind, name, target.namespace)
    wanted = DeletePreconditions(
        uid=options.preconditions.uid,
        resource_version=options.preconditions.resource_version,
        grace_seconds=options.grace_period_seconds,
    )
    left = server.delete(kind, name, target.namespace, wanted)
    if kind is Namespace:
        _empty(server, name)
    if left or kind is Pod:  # of a pod the API server shows the last state, and clients look at it
        return object_answer(left or last)
    return json_answer(success(details_of(kind.api, name, last.uid)))


def _empty(server: ApiServer, namespace: str) -> None:
    """Delete all objects in a namespace. What has finalizers stays until they are taken away."""
    for table in tuple(server.store.tables.values()):
        if table.kind.api.namespaced:
            for record in server.list(table.kind, ObjectSelection(namespace=namespace)).records:
                server.delete(table.kind, record.name, namespace, DeletePreconditions(grace_seconds=0))


def _delete_options(request: web.Request, body: bytes) -> DeleteOptions:
    in_body = parsed(body) if body.strip() else {}
    in_query = {name: request.query[name] for name in _IN_QUERY if name in request.query}
    try:
        options = msgspec.convert({**in_body, **in_query}, DeleteOptions, strict=False)
    except (msgspec.ValidationError, TypeError) as error:
        raise BadRequest(f"the options of the deletion cannot be read: {error}") from error
    refuse_dry_run(options.dry_run)
    if options.propagation_policy != "Background":
        raise BadRequest(
            f"{options.propagation_policy} deletion is not served here: what the object owned is collected in the "
            "background (with kubectl: --cascade=background)"
        )
    return options
