"""The paths of network containers, each under the cluster whose node it is: a token is for one of them."""

from http import HTTPStatus

from litestar import delete, get, put
from litestar.params import JSONBody
from msgspec.structs import asdict

from podtide.allocator.containers import AllocatedContainer, ContainerPage, LastWish, Wish
from podtide.allocator.service.callers import Asked
from podtide.allocator.service.parameters import Limit, More, PathName, QueryName
from podtide.allocator.service.refusals import documented
from podtide.allocator.wire import WishBody
from podtide.core.machine_identity import MachineIdentity
from podtide.core.subnet.statement import StatedDemand

ONE = "/clusters/{cluster:str}/containers/{container_id:str}"


def wish_of(cluster: str, container_id: str, data: WishBody) -> Wish:
    """The wish that a body states for the container of a path."""
    return Wish(
        id=container_id,
        network=data.network,
        subnet=data.subnet,
        cluster=cluster,
        node=data.node,
        request_uid=data.request_uid,
        generation=data.generation,
        count=data.count,
        release=data.release,
        waiting_pods=data.waiting_pods,
        stated=None if data.stated is None else StatedDemand(**asdict(data.stated)),
        statement_number=data.statement_number,
        machine=MachineIdentity(**asdict(data.machine)),
        cluster_uid=data.cluster_uid,
        seen=data.seen,
        instead_of=None if data.instead_of is None else LastWish(**asdict(data.instead_of)),
    )


@put(
    ONE,
    responses=documented(
        HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    ),
)
async def put_container(
    allocator: Asked, cluster: PathName, container_id: PathName, data: JSONBody[WishBody]
) -> AllocatedContainer:
    """State all that a node wants of a subnet, and get what it has now. The same again changes nothing."""
    return await allocator.put_container(wish_of(cluster, container_id, data))


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


CONTAINER_ROUTES = (put_container, get_container, delete_container, list_containers)
