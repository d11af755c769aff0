"""GET: one object, or those of a namespace or of all, once or for as long as one watches."""

from aiohttp import web

from podtide.cluster.served.answers import list_answer, single_answer
from podtide.cluster.served.refusals import BadRequest
from podtide.cluster.served.target import RequestTarget, flag, number
from podtide.cluster.served.watching import watch


async def get(target: RequestTarget, request: web.Request) -> web.Response:
    """One object, or its status, which is shown with all the rest of it."""
    record = target.server.get(target.kind, target.name, target.namespace)
    return single_answer(target, request, record)


async def list_or_watch(target: RequestTarget, request: web.Request) -> web.StreamResponse:
    """Several objects."""
    if flag(request, "watch"):
        return await watch(target, request)
    if request.query.get("resourceVersionMatch") == "Exact":
        raise BadRequest("a list shows the present: leave out resourceVersionMatch=Exact")
    listing = target.server.list(
        target.kind,
        target.selection(request),
        limit=number(request, "limit"),
        more=request.query.get("continue", ""),
    )
    return list_answer(target, request, listing)
