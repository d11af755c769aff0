"""The paths of subnets: what they are, how full, who waits for them, and which batch is in force."""

from collections.abc import Sequence
from http import HTTPStatus

from litestar import delete, get, post, put
from litestar.params import JSONBody

from podtide.allocator.service.callers import Asked, Cache
from podtide.allocator.service.parameters import Moment, PathName, QueryCidr, Step
from podtide.allocator.service.refusals import REFUSALS_OF_A_CHANGE, documented
from podtide.allocator.subnets import (
    Bounds,
    CidrHolders,
    Debt,
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    SubnetSpec,
    SubnetUsage,
    Utilization,
)
from podtide.allocator.wire import (
    END_OF_TIME_SECONDS,
    BoundsBody,
    GrowthBody,
    InForceBody,
    ShrinkingBody,
    SubnetBody,
    stated_by,
)

ONE = "/networks/{network:str}/subnets/{subnet:str}"


@get("/subnets", responses=documented())
async def list_all_subnets(allocator: Asked) -> Sequence[Subnet]:
    """The subnets of all networks, by network and name."""
    return await allocator.list_subnets()


@get("/networks/{network:str}/subnets", responses=documented())
async def list_subnets(allocator: Asked, network: PathName) -> Sequence[Subnet]:
    """The subnets of a network, by name."""
    return await allocator.list_subnets(network)


@put(
    ONE, responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
)
async def add_subnet(
    allocator: Asked, network: PathName, subnet: PathName, data: JSONBody[SubnetBody]
) -> Subnet:
    """Make a subnet; the same again answers the one there."""
    return await allocator.add_subnet(stated_by(data, SubnetSpec, network=network, name=subnet))


@post(f"{ONE}/cidrs", status_code=HTTPStatus.OK, responses=REFUSALS_OF_A_CHANGE)
async def grow_subnet(
    allocator: Asked, cache: Cache, network: PathName, subnet: PathName, data: JSONBody[GrowthBody]
) -> Subnet:
    """Add CIDRs to a subnet. One that it has and that drains gives addresses again, and has the gateway named for it."""
    grown = await allocator.grow_subnet(network, subnet, data.cidrs, data.gateways)
    cache.forget(network, subnet)
    return grown


@post(f"{ONE}/draining", status_code=HTTPStatus.OK, responses=REFUSALS_OF_A_CHANGE)
async def shrink_subnet(
    allocator: Asked, cache: Cache, network: PathName, subnet: PathName, data: JSONBody[ShrinkingBody]
) -> Subnet:
    """Let CIDRs of a subnet drain: nothing more is granted of them, and each leaves the subnet when it is empty."""
    shrunk = await allocator.shrink_subnet(network, subnet, data.cidrs, at_once=data.at_once)
    cache.forget(network, subnet)
    return shrunk


@get(f"{ONE}/holders", responses=documented(HTTPStatus.NOT_FOUND))
async def get_holders(allocator: Asked, network: PathName, subnet: PathName, cidr: QueryCidr) -> CidrHolders:
    """Who has addresses of a CIDR of the subnet; to a cluster, its own nodes."""
    return await allocator.holders(network, subnet, cidr)


@get(ONE, responses=documented(HTTPStatus.NOT_FOUND))
async def get_subnet(allocator: Asked, network: PathName, subnet: PathName) -> Subnet:
    """A subnet as it stands."""
    return await allocator.get_subnet(network, subnet)


@delete(ONE, responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT))
async def remove_subnet(allocator: Asked, cache: Cache, network: PathName, subnet: PathName) -> None:
    """Remove a subnet in which nothing is reserved. One that is not there is removed already."""
    await allocator.remove_subnet(network, subnet)
    cache.forget(network, subnet)


@get(f"{ONE}/utilization", responses=documented(HTTPStatus.NOT_FOUND))
async def get_utilization(cache: Cache, network: PathName, subnet: PathName) -> Sequence[Utilization]:
    """How full a subnet is: an array of one reading, from memory."""
    return await cache.read(network, subnet)


@get(f"{ONE}/history", responses=documented(HTTPStatus.NOT_FOUND))
async def get_history(
    allocator: Asked,
    network: PathName,
    subnet: PathName,
    since: Moment = 0,
    until: Moment = END_OF_TIME_SECONDS,
) -> Sequence[Utilization]:
    """How full a subnet was between two times, oldest first, thinned out the further back it lies."""
    return await allocator.history(network, subnet, since=since, until=until)


@get(f"{ONE}/usage", responses=documented(HTTPStatus.NOT_FOUND))
async def get_usage_history(  # noqa: PLR0913, PLR0917 - which subnet, and of which time
    allocator: Asked,
    network: PathName,
    subnet: PathName,
    since: Moment = 0,
    until: Moment = END_OF_TIME_SECONDS,
    step: Step = "auto",
) -> Sequence[SubnetUsage]:
    """How a subnet was used between two times, in rows of one length, oldest first."""
    return await allocator.usage_history(network, subnet, since=since, until=until, step=step)


@get(f"{ONE}/owed", responses=documented(HTTPStatus.NOT_FOUND))
async def get_owed(allocator: Asked, network: PathName, subnet: PathName) -> Sequence[Debt]:
    """Who is owed addresses, in the order they will be served; to a cluster, its own nodes."""
    return await allocator.owed(network, subnet)


@get(f"{ONE}/demand", responses=documented(HTTPStatus.NOT_FOUND))
async def get_demand(allocator: Asked, network: PathName, subnet: PathName) -> SubnetDemandReport:
    """What the batch of a subnet is decided from: counts of containers over all clusters, and the clusters' bounds."""
    return await allocator.demand(network, subnet)


@put(
    f"{ONE}/in-force",
    responses=documented(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
)
async def put_in_force(
    allocator: Asked, network: PathName, subnet: PathName, data: JSONBody[InForceBody]
) -> Subnet:
    """Let a batch be in force for the nodes of a subnet, if it was decided from what is so. The same again changes nothing."""
    return await allocator.put_in_force(network, subnet, stated_by(data, SubnetInForce))


@put(
    f"{ONE}/bounds/{{cluster:str}}",
    status_code=HTTPStatus.NO_CONTENT,
    responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
)
async def set_bounds(
    allocator: Asked, network: PathName, subnet: PathName, cluster: PathName, data: JSONBody[BoundsBody]
) -> None:
    """Keep between which bounds a cluster wants the batch of a subnet. The same again changes nothing."""
    await allocator.set_bounds(network, subnet, cluster=cluster, bounds=stated_by(data, Bounds))


SUBNET_ROUTES = (
    list_all_subnets,
    list_subnets,
    add_subnet,
    grow_subnet,
    shrink_subnet,
    get_holders,
    get_subnet,
    remove_subnet,
    get_utilization,
    get_history,
    get_usage_history,
    get_owed,
    get_demand,
    put_in_force,
    set_bounds,
)
