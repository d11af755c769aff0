"""The paths of what removed nodes left: what is in quarantine, moving it, and ending it. Each end is told in the log."""

from http import HTTPStatus
from typing import Annotated, TypeAlias

from litestar import get, post
from litestar.params import JSONBody, QueryParameter

from podtide.allocator.containers import MoveResult
from podtide.allocator.quarantine import QuarantinePage
from podtide.allocator.service.callers import CALLER, Asked, Log
from podtide.allocator.service.containers import ONE, wish_of
from podtide.allocator.service.parameters import Limit, More, PathName, QueryName
from podtide.allocator.service.refusals import AnyRequest, documented
from podtide.allocator.wire import Ended, EndingBody, WishBody

Due: TypeAlias = Annotated[
    bool, QueryParameter(description="Only what has been in quarantine for long enough.")
]


@post(
    f"{ONE}/move",
    status_code=HTTPStatus.OK,
    responses=documented(
        HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    ),
)
async def move_container(
    allocator: Asked, cluster: PathName, container_id: PathName, data: JSONBody[WishBody]
) -> MoveResult:
    """State a node's wish, after what its machine left under a former uid was moved to it. The same again moves nothing."""
    return await allocator.move_container(wish_of(cluster, container_id, data))


@get("/quarantined", responses=documented(HTTPStatus.FORBIDDEN))
async def list_quarantined(  # noqa: PLR0913 - each narrows the answer in its own way
    *,
    allocator: Asked,
    cluster: QueryName = None,
    node: QueryName = None,
    due: Due = False,
    limit: Limit = 500,
    more: More = "",
) -> QuarantinePage:
    """What removed containers left, a page at a time, narrowed by any of these; to a cluster, its own."""
    return await allocator.quarantined(
        cluster=cluster or "", node=node or "", due=due, limit=limit, more=more
    )


@post(
    f"{ONE}/end-quarantine",
    status_code=HTTPStatus.OK,
    responses=documented(
        HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    ),
)
async def end_quarantine(  # noqa: PLR0913 - what to do, and who is told of it
    *,
    request: AnyRequest,
    log: Log,
    allocator: Asked,
    cluster: PathName,
    container_id: PathName,
    data: JSONBody[EndingBody],
) -> Ended:
    """Let exactly these addresses be free that a removed container left. The same again changes nothing."""
    ended = await allocator.end_quarantine(
        container_id, data.addresses, cluster=cluster, cluster_uid=data.cluster_uid, reason=data.reason
    )
    log.info(
        "quarantine ended",
        cluster=cluster,
        container=container_id,
        addresses=list(data.addresses),
        ended=ended,
        reason=data.reason,
        caller=request.scope["state"].get(CALLER, "anybody"),
    )
    return Ended(ended)


QUARANTINE_ROUTES = (move_container, list_quarantined, end_quarantine)
