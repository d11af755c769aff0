"""Around the whole application: a request is under way, and its body must come in time, and whole."""

import asyncio
from contextlib import ExitStack

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPReceiveMessage, Receive, Scope, Send

from podtide.core.errors import InvalidInput
from podtide.runtime.open_port import at_work, body_coming


class UnfinishedBody(InvalidInput):
    """A client that announced more than it sent. To the framework it would be a failure of ours."""


class BodyDeadline:
    """An ASGI application whose port knows that it is at work, and whose clients do not keep it waiting."""

    def __init__(self, app: ASGIApp, body_seconds: float) -> None:
        self._app = app
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        with at_work(), ExitStack() as until_whole:
            await self._app(scope, self._in_time(receive, until_whole), send)

    def _in_time(self, receive: Receive, until_whole: ExitStack) -> Receive:
        """What comes of the body, as long as it comes."""
        deadline = asyncio.get_running_loop().time() + self._body_seconds
        asked = False

        async def receive_in_time() -> HTTPReceiveMessage:
            nonlocal asked
            if not asked:
                asked = True  # once: a client that trickles its body is not a new one with every byte
                until_whole.enter_context(body_coming())
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise UnfinishedBody("the request's body did not come in time: send it at once") from None
            if message["type"] != "http.request":
                raise UnfinishedBody("the request's body ended early: send all that was announced")
            if not message["more_body"]:
                until_whole.close()
            return message

        return receive_in_time
