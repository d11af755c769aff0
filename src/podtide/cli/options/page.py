"""What the commands that serve the page share: its address, its token, the URL that is printed, and how it runs beside a program."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from podtide.allocator.port import Allocator
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidInput, PodtideError
from podtide.dashboard.options import OPEN_BECAUSE, PageOptions
from podtide.runtime.listening import ListenAddress, parse_listen_address
from podtide.runtime.runtime import Runtime

_LEAST_LENGTH = 16
_AGAIN_SECONDS = 30.0
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - it is what a person gave


def page_address(text: str, *, flag: str, token_file: Path | None) -> ListenAddress:
    """The address to listen on; without a token only a loopback one."""
    return parse_listen_address(text, flag=flag, open_because="" if token_file else OPEN_BECAUSE)


def page_token(file: Path | None) -> str:
    """The token in a file; "" without one."""
    if file is None:
        return ""
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the page's token {file} cannot be read ({error}): correct the path or the rights"
        ) from error
    if len(token) < _LEAST_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(
            f"{file} has no usable token: write {_LEAST_LENGTH} or more letters and digits in one line, such as `openssl rand -hex 24` makes"
        )
    return token


def page_url(address: ListenAddress) -> str:
    """The URL to open. It has no token: what is printed may be kept."""
    return f"http://{ListenAddress(_EVERYWHERE.get(address.host, address.host), address.port)}/"


@asynccontextmanager
async def page_beside(
    options: PageOptions, cluster: Cluster, allocator: Allocator, *, runtime: Runtime
) -> AsyncIterator[None]:
    """Serve the page as a task of its own until the context ends.

    A port that is taken is logged and tried again: a program that grants addresses does not stop for want of a page.
    """
    serving = asyncio.create_task(_keep_serving(options, cluster, allocator, runtime.bind(part="dashboard")))
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def _keep_serving(
    options: PageOptions, cluster: Cluster, allocator: Allocator, runtime: Runtime
) -> None:
    from podtide.dashboard.program import running_page  # noqa: PLC0415 - only where there is a page

    while True:
        try:
            async with running_page(options, cluster, allocator, runtime=runtime) as address:
                runtime.log.info("serving the page", url=page_url(address))
                await asyncio.Event().wait()
        except PodtideError as error:
            runtime.log.warning("the page is not served: trying again", error=str(error))
        await asyncio.sleep(_AGAIN_SECONDS)
