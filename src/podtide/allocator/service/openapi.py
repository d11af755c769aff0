"""The description of the service, at /openapi.json.

Litestar describes the paths. The structs are described by msgspec, which reads them: Litestar takes the `...` of
`tuple[X, ...]` for a type, and does not say that unknown fields are refused.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from litestar import Litestar, Response, Router, get
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from msgspec import Struct

from podtide import __version__
from podtide.allocator import wire
from podtide.allocator.containers import AllocatedContainer, ContainerPage, MoveResult
from podtide.allocator.quarantine import QuarantinePage
from podtide.allocator.subnets import CidrHolders, Debt, Subnet, SubnetDemandReport, SubnetUsage, Utilization
from podtide.allocator.terms import ClusterRegistry, OpenedTerm

BEARER = "bearer"
_BODIES = tuple(
    each
    for each in vars(wire).values()
    if isinstance(each, type) and issubclass(each, Struct) and each.__module__ == wire.__name__
)
_ANSWERS = (
    AllocatedContainer,
    CidrHolders,
    ClusterRegistry,
    ContainerPage,
    Debt,
    MoveResult,
    OpenedTerm,
    QuarantinePage,
    Subnet,
    SubnetDemandReport,
    SubnetUsage,
    Utilization,
)


def openapi_route(routers: list[Router], dependencies: Mapping[str, Provide]) -> HTTPRouteHandler:
    """The route that serves the OpenAPI document of these handlers."""

    @cache
    def document() -> bytes:
        return msgspec.json.encode(_describe(routers, dependencies))

    @get("/openapi.json", include_in_schema=False)
    async def get_openapi() -> Response[bytes]:
        """This description."""
        return Response(document(), media_type="application/json")

    return get_openapi


def _describe(routers: list[Router], dependencies: Mapping[str, Provide]) -> dict[str, Any]:
    # An application of its own, never served: one that serves its description adds paths that answer in HTML.
    described = Litestar(
        routers,
        dependencies=dependencies,
        openapi_config=OpenAPIConfig(
            title="podtide allocator",
            version=__version__,
            description="Which address of which subnet is reserved for which node.",
            use_handler_docstrings=True,
            components=Components(security_schemes={BEARER: SecurityScheme(type="http", scheme="bearer")}),
        ),
        logging_config=None,
    ).openapi_schema.to_schema()
    _, structs = msgspec.json.schema_components(
        (*_BODIES, *_ANSWERS), ref_template="#/components/schemas/{name}"
    )
    described["components"]["schemas"] = structs
    return described
