"""The encoding of calls and answers between plugin and agent (plugin/PROTOCOL.md).

Deletion notes of the plugin have the same encoding as a call. The simulated plugin uses these functions too.
"""

from collections.abc import Mapping
from math import ceil

from msgspec import Struct

from podtide.cni.arguments import CniCall
from podtide.cni.errors import InvalidEnvironment, Undecodable
from podtide.core.pool.pool import Owner

WAIT_HEADER = "Podtide-Wait"
"""In the head of a response: for how many seconds at most the body may take."""

ACKNOWLEDGE_AFTER_SECONDS = 0.05
"""An answer that takes no longer is sent without an acknowledgement before it."""

_LAST_ANSWER_SECONDS = 5
"""On top of an ADD's wait: for the answer itself, on a busy machine."""

MOST_REQUEST_BYTES = 2 << 20
"""Twice the configuration that the plugin passes on at most: the rest is for the environment."""

_END = b"\0"


class Answer(Struct, frozen=True):
    """What the plugin is to do: print the output, and exit."""

    exit_status: int
    output: bytes = b""


def longest_wait(add_wait_seconds: float) -> str:
    """The value of WAIT_HEADER for an agent whose ADDs wait for so long."""
    return str(ceil(add_wait_seconds) + _LAST_ANSWER_SECONDS)


def encode_call(environment: Mapping[str, str], stdin: bytes) -> bytes:
    """The call as a request's body."""
    variables = [f"{name}={value}\0" for name, value in environment.items()]
    return "".join(variables).encode() + _END + stdin


def decode_call(body: bytes) -> tuple[dict[str, str], bytes]:
    """The environment and the configuration in a request's body."""
    if body.startswith(_END):
        return {}, body[1:]
    written, end, stdin = body.partition(_END + _END)
    if not end:
        raise Undecodable("the request ends within its environment: call the agent by the podtide plugin")
    environment: dict[str, str] = {}
    for variable in _text(written).split("\0"):
        name, equals, value = variable.partition("=")
        if not equals or not name:
            raise InvalidEnvironment(
                f"the environment has {variable.encode()!r}; each variable is NAME=value"
            )
        environment[name] = value
    return environment, stdin


def _text(written: bytes) -> str:
    try:
        return written.decode()
    except UnicodeDecodeError as error:
        begin, end = written.rfind(_END, 0, error.start) + 1, written.find(_END, error.start)
        variable = written[begin : end if end >= 0 else None]
        raise InvalidEnvironment(
            f"the environment has {variable!r}, which is not UTF-8: call the agent by the podtide plugin"
        ) from None


def owner_of(call: CniCall, network: str = "") -> Owner:
    """The sandbox's interface that a call is about, with what the runtime says of its pod."""
    return Owner(
        sandbox=call.container_id,
        interface=call.ifname,
        pod=call.pod.pod_uid,
        namespace=call.pod.pod_namespace,
        name=call.pod.pod_name,
        network=network,
    )


def encode_answer(answer: Answer) -> bytes:
    """The answer as a response's body."""
    return f"{answer.exit_status} {len(answer.output)}\n".encode() + answer.output


def decode_answer(body: bytes) -> Answer | None:
    """The answer in a response's body; None when it ends early, as it does if the agent died over it."""
    first, newline, output = body.partition(b"\n")
    exit_status, _, length = first.partition(b" ")
    if not (newline and exit_status.isdigit() and length.isdigit()) or len(output) != int(length):
        return None
    return Answer(int(exit_status), output)
