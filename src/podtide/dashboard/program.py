"""The page as a part of a program: its feed as a task, its server on a port, both ended with the context.

Beside a controller it must not disturb: it has informers of its own, writes nothing, and a failure of it is logged and
tried again, while the controller goes on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from podtide import __version__
from podtide.allocator.port import Allocator
from podtide.cluster.port import Cluster
from podtide.dashboard.feed import PageFeed
from podtide.dashboard.options import PageOptions
from podtide.dashboard.page_state import PageState
from podtide.dashboard.records import PageCluster
from podtide.dashboard.server import PageSources, serving_page
from podtide.resources.timestamps import to_time
from podtide.runtime.listening import ListenAddress
from podtide.runtime.logging import Logger
from podtide.runtime.runtime import Runtime

_AGAIN_SECONDS = 10.0


@asynccontextmanager
async def running_page(
    options: PageOptions, cluster: Cluster, allocator: Allocator | None, *, runtime: Runtime
) -> AsyncIterator[ListenAddress]:
    """Serve the page until the context ends; yields the address it listens on."""
    about = PageCluster(
        name=options.name,
        server=__version__,
        started_at=to_time(runtime.clock.wall()),
        has_allocator=allocator is not None,
        demo=options.demo,
    )
    state = PageState(about, runtime.clock, thresholds=options.thresholds)
    feed = PageFeed(state, cluster, allocator, runtime=runtime)
    sources = PageSources(
        feed=feed,
        cluster=cluster,
        allocator=allocator,
        networks_namespace=options.networks_namespace,
        runtime=runtime,
    )
    async with serving_page(sources, options.listen, token=options.token) as address:
        following = asyncio.create_task(_keep_following(feed, runtime.log))
        try:
            yield address
        finally:
            following.cancel()
            await asyncio.wait({following})


async def _keep_following(feed: PageFeed, log: Logger) -> None:
    while True:
        try:
            await feed.run()
        except Exception as error:
            log.exception("the page stopped following the cluster: trying again", error=str(error))
        await asyncio.sleep(_AGAIN_SECONDS)
