"""aiohttp's server on a port with limits: from listening to the last answer.

Malformed HTTP is the client's fault and is answered with 400: it costs a line in the log, and no traceback.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.hdrs import CONTENT_ENCODING
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from podtide.runtime.listening import ListenAddress
from podtide.runtime.open_port import OpenPort, at_work, body_coming, listen
from podtide.runtime.port_limits import PortLimits

_LAST_ANSWERS_SECONDS = 2.0
_BODY_SECONDS = PortLimits().request_seconds


@asynccontextmanager
async def serving_http(
    application: web.Application, address: ListenAddress, *, limits: PortLimits
) -> AsyncIterator[ListenAddress]:
    """Serve at the address that this yields until the context ends; requests in flight are still answered."""
    listener = listen(address, limits)
    port: int = listener.getsockname()[1]
    async with http_server(application) as server:
        opened = OpenPort(listener, server, limits=limits)
        opened.open()
        try:
            yield ListenAddress(address.host, port)
        finally:
            await opened.close()


@asynccontextmanager
async def http_server(application: web.Application) -> AsyncIterator[web.Server]:
    """A factory of the protocols that answer connections of an OpenPort.

    A client that disconnects while it is being answered cancels its handler.
    """
    application.middlewares.insert(0, _mark_work)
    runner = web.AppRunner(
        application,
        handler_cancellation=True,
        auto_decompress=False,  # where it fails, aiohttp takes the client's fault for ours
        access_log=None,
        logger=_server_logger(),
        shutdown_timeout=_LAST_ANSWERS_SECONDS,
    )
    await runner.setup()
    assert runner.server is not None  # it is there from its setup on
    try:
        yield runner.server
    finally:
        await runner.cleanup()


async def read_body(request: web.Request) -> bytes:
    """The request's body, if it arrives in time and is not compressed: no client of ours compresses it."""
    if request.headers.get(CONTENT_ENCODING, "identity") != "identity":
        raise web.HTTPUnsupportedMediaType(
            text="the request's body is encoded: send it without Content-Encoding"
        )
    try:
        with body_coming():
            async with asyncio.timeout(_BODY_SECONDS):
                return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the request's body did not come") from None
    except (
        web.RequestPayloadError,
        HttpProcessingError,
    ):  # which of the two, aiohttp's parser decides: it has two
        raise web.HTTPBadRequest(
            text="the request's body is not valid HTTP: check its length and its chunks"
        ) from None


@web.middleware
async def _mark_work(request: web.Request, handler: Handler) -> web.StreamResponse:
    with at_work():
        return await handler(request)


def _server_logger() -> logging.Logger:
    logger = logging.getLogger("podtide.http")
    logger.addFilter(_explain_malformed)  # the same function twice is one filter
    return logger


def _explain_malformed(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError | web.RequestPayloadError):
        record.msg, record.args = "malformed HTTP was answered with 400", ()
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = None
    return True
