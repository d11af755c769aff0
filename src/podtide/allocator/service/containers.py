"""The paths of network containers, each under the cluster whose node it is: a token is for one of them.

Removed ones leave a quarantine, which is listed, moved to their machine's present container, or ended. Each end is
logged.
"""

from http import HTTPStatus
from typing import Annotated, TypeAlias

from litestar import delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from podtide.allocator.containers import (
    AllocatedContainer,
    ContainerPage,
    ContainerReservation,
    MoveResult,
    Wish,
)
from podtide.allocator.quarantine import QuarantinePage
from podtide.allocator.service.callers import CALLER, Asked, Log
from podtide.allocator.service.parameters import Limit, More, PathName, QueryName
from podtide.allocator.service.refusals import REFUSALS_OF_A_CHANGE, AnyRequest, documented
from podtide.allocator.wire import Ended, EndingBody, ReservationBody, WishBody, stated_by

Due: TypeAlias = Annotated[
    bool, QueryParameter(description="Only what has been in quarantine for long enough.")
]

ONE = "/clusters/{cluster:str}/containers/{container_id:str}"


@put(ONE, responses=REFUSALS_OF_A_CHANGE)
async def put_container(
    allocator: Asked, cluster: PathName, container_id: PathName, data: JSONBody[WishBody]
) -> AllocatedContainer:
    """State all that a node wants of a subnet, and get what it has now. The same again changes nothing."""
    return await allocator.put_container(stated_by(data, Wish, cluster=cluster, id=container_id))


@get(ONE, responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND))
async def get_container(allocator: Asked, cluster: PathName, container_id: PathName) -> AllocatedContainer:
    """What a node has."""
    return await allocator.get_container(container_id, cluster=cluster)


@delete(ONE, responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT))
async def delete_container(
    allocator: Asked, cluster: PathName, container_id: PathName, cluster_uid: QueryName = None
) -> None:
    """Say that a node is gone. Its id never comes back."""
    await allocator.delete_container(container_id, cluster=cluster, cluster_uid=cluster_uid or "")


@get("/containers", responses=documented(HTTPStatus.FORBIDDEN))
async def list_containers(  # noqa: PLR0913 - each narrows the answer in its own way
    *,
    allocator: Asked,
    cluster: QueryName = None,
    node: QueryName = None,
    network: QueryName = None,
    subnet: QueryName = None,
    limit: Limit = 500,
    more: More = "",
) -> ContainerPage:
    """Containers by id, a page at a time, narrowed by any of these; to a cluster, its own."""
    return await allocator.list_containers(
        cluster=cluster or "",
        node=node or "",
        network=network or "",
        subnet=subnet or "",
        limit=limit,
        more=more,
    )


@post(f"{ONE}/move", status_code=HTTPStatus.OK, responses=REFUSALS_OF_A_CHANGE)
async def move_container(
    allocator: Asked, cluster: PathName, container_id: PathName, data: JSONBody[WishBody]
) -> MoveResult:
    """State a node's wish, after what its machine left under a former uid was moved to it. The same again moves nothing."""
    return await allocator.move_container(stated_by(data, Wish, cluster=cluster, id=container_id))


@put(f"{ONE}/reservation", responses=REFUSALS_OF_A_CHANGE)
async def reserve_container(
    allocator: Asked, cluster: PathName, container_id: PathName, data: JSONBody[ReservationBody]
) -> AllocatedContainer:
    """Have a node hold these very addresses, which another program gave it: all or none. The same again changes nothing."""
    return await allocator.reserve_container(
        stated_by(data, ContainerReservation, cluster=cluster, id=container_id)
    )


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


@post(f"{ONE}/end-quarantine", status_code=HTTPStatus.OK, responses=REFUSALS_OF_A_CHANGE)
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


CONTAINER_ROUTES = (
    put_container,
    get_container,
    delete_container,
    list_containers,
    move_container,
    reserve_container,
    list_quarantined,
    end_quarantine,
)
