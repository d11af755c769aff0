"""The paths of clusters: their terms, their reports to a store that went back, and what the administration does with names."""

from http import HTTPStatus
from typing import cast

from litestar import delete, get, put
from litestar.params import JSONBody

from podtide.allocator.errors import NotAllowed
from podtide.allocator.port import AdministeredAllocator, Allocator
from podtide.allocator.service.authority import CallerAllocator
from podtide.allocator.service.callers import CALLER, Asked, Log
from podtide.allocator.service.parameters import Flag, PathName, QueryName, Reason
from podtide.allocator.service.refusals import REFUSALS_OF_A_CHANGE, AnyRequest, documented
from podtide.allocator.terms import ClusterRegistry, HeldContainer, OpenedTerm, ShownAddresses, TermClaim
from podtide.allocator.wire import (
    Forgotten,
    HeldBody,
    Kept,
    NameBody,
    ReportBody,
    ShownBody,
    TermBody,
    stated_by,
)

ONE = "/clusters/{cluster:str}"


@put(f"{ONE}/term", responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT))
async def open_term(allocator: Asked, cluster: PathName, data: JSONBody[TermBody]) -> OpenedTerm:
    """Act for a cluster from now on. The same again renews the term."""
    return await allocator.open_term(stated_by(data, TermClaim, cluster=cluster))


@delete(f"{ONE}/terms/{{uid:str}}/{{holder:str}}", responses=documented(HTTPStatus.FORBIDDEN))
async def close_term(allocator: Asked, cluster: PathName, uid: PathName, holder: PathName) -> None:
    """Act for a cluster no longer."""
    await allocator.close_term(TermClaim(cluster=cluster, cluster_uid=uid, holder=holder))


@put(f"{ONE}/report/{{container_id:str}}", responses=REFUSALS_OF_A_CHANGE)
async def adopt_container(
    allocator: Asked, cluster: PathName, container_id: PathName, data: JSONBody[HeldBody]
) -> list[str]:
    """Report what a node holds to a recovering allocator; the answer lists contradictions with other reports."""
    held = stated_by(data, HeldContainer, cluster=cluster, id=container_id)
    return list(await allocator.adopt_container(held))


@put(f"{ONE}/report/pods/{{node:str}}", responses=REFUSALS_OF_A_CHANGE)
async def keep_for_pods(
    allocator: Asked, cluster: PathName, node: PathName, data: JSONBody[ShownBody]
) -> Kept:
    """Report what pods show that outlived their Node; the answer is how much of it went to quarantine."""
    return Kept(await allocator.keep_for_pods(stated_by(data, ShownAddresses, cluster=cluster, node=node)))


@put(f"{ONE}/report", responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT))
async def finish_report(allocator: Asked, cluster: PathName, data: JSONBody[ReportBody]) -> None:
    """All that the cluster's nodes hold was reported."""
    await allocator.finish_report(cluster, cluster_uid=data.cluster_uid, recovery=data.recovery)


@get("/clusters", responses=documented(HTTPStatus.FORBIDDEN))
async def list_clusters(allocator: Asked) -> ClusterRegistry:
    """All clusters, and whether the store grants."""
    return await _administered(allocator).list_clusters()


@put(f"{ONE}/uid", responses=documented(HTTPStatus.FORBIDDEN))
async def move_cluster(allocator: Asked, cluster: PathName, data: JSONBody[NameBody]) -> None:
    """Let a cluster's name belong to another uid."""
    await _administered(allocator).move_cluster(cluster, uid=data.uid)


@delete(
    ONE,
    status_code=HTTPStatus.OK,
    responses=documented(HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT),
)
async def forget_cluster(  # noqa: PLR0913 - what to forget, and who is told of it
    *,
    request: AnyRequest,
    log: Log,
    allocator: Asked,
    cluster: PathName,
    uid: QueryName = None,
    without_uid: Flag = False,
    reason: Reason = "",
) -> Forgotten:
    """Delete a cluster's containers and let its name be free; with a uid, or without any, those that record it alone."""
    which = "" if without_uid else uid
    deleted = await _administered(allocator).forget_cluster(cluster, uid=which, reason=reason)
    log.info(
        "cluster forgotten",
        cluster=cluster,
        uid="all" if which is None else which or "none",
        containers=deleted,
        reason=reason,
        caller=request.scope["state"].get(CALLER, "anybody"),
    )
    return Forgotten(deleted)


@delete("/recovery", responses=documented(HTTPStatus.FORBIDDEN))
async def end_recovery(allocator: Asked) -> None:
    """Grant again without the reports that are missing."""
    await _administered(allocator).end_recovery()


def _administered(allocator: Allocator) -> AdministeredAllocator:
    if isinstance(allocator, CallerAllocator):
        raise NotAllowed("a cluster's token may not do this: use one for administration")
    return cast("AdministeredAllocator", allocator)


CLUSTER_ROUTES = (
    open_term,
    close_term,
    adopt_container,
    keep_for_pods,
    finish_report,
    list_clusters,
    move_cluster,
    forget_cluster,
    end_recovery,
)
