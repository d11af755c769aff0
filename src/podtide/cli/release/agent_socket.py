"""`podtide release --agent-socket`: asks the agent of this node to free an address of its pool."""

from http import HTTPStatus
from pathlib import Path

import aiohttp
import msgspec

from podtide.agent.pool.manual_release import ManualRelease, ManualReleaseAnswer
from podtide.core.errors import InvalidInput, RetryError

_ANSWER_SECONDS = 30.0
_PATH = "http://agent/addresses/release"


class NoAgent(InvalidInput):
    """No agent answers on the socket."""


class AgentFailed(RetryError):
    """The agent could not tell."""


async def ask_agent(socket: Path, asked: ManualRelease) -> ManualReleaseAnswer:
    """What the agent did, or what speaks against it."""
    timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket)), timeout=timeout) as session,
            session.post(_PATH, data=msgspec.json.encode(asked)) as answer,
        ):
            body = await answer.read()
            if answer.status == HTTPStatus.OK:
                return msgspec.json.decode(body, type=ManualReleaseAnswer)
            words = body.decode(errors="replace").strip()
            kind = InvalidInput if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR else AgentFailed
            raise kind(words or f"the agent on {socket} answers with {answer.status}")
    except PermissionError as error:
        raise NoAgent(f"{socket} is for root: run this as root") from error
    except TimeoutError as error:
        raise AgentFailed(f"the agent on {socket} did not answer in {_ANSWER_SECONDS:g} s") from error
    except (aiohttp.ClientError, OSError) as error:
        raise NoAgent(
            f"no agent listens on {socket}: run this on the node that has the address, while its agent runs"
        ) from error
