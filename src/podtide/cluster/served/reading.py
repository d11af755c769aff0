"""GET: one object, or those of a namespace or of all, once or for as long as one watches."""

from aiohttp import web

from podtide.cluster.served.answers import list_answer, single_answer
from podtide.cluster.served.refusals import BadRequest
from podtide.cluster.served.target import ApiTarget, flag, number
from podtide.cluster.served.watching import watch


async def get(target: ApiTarget, request: web.Request) -> web.Response:
    """Serve GET of an object, or of its status, which is returned within the whole object."""
    record = target.server.get(target.kind, target.name, target.namespace)
    return single_answer(target, request, record)


async def list_or_watch(target: ApiTarget, request: web.Request) -> web.StreamResponse:
    """Serve a list or a watch."""
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
