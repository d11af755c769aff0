"""What a container runtime hands to the plugin, and a place to collect what was logged."""

import json
from collections.abc import Mapping
from io import StringIO
from typing import Any

from agent.pool_addresses import PoolAddresses
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.plugin_protocol import Answer
from podtide.runtime.clock import Clock, LoopClock
from podtide.runtime.logging import Logger, make_logger
from podtide.runtime.memory_disk import MemoryDisk

SANDBOX = "c0ffee"
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-1;K8S_POD_UID=uid-1"


def environment(verb: str, sandbox: str = SANDBOX, ifname: str = "eth0", **more: str) -> dict[str, str]:
    return {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": sandbox,
        "CNI_NETNS": "/run/netns/x",
        "CNI_IFNAME": ifname,
        "CNI_PATH": "/opt/cni/bin",
        "CNI_ARGS": POD,
        **more,
    }


def config(
    version: str = "1.1.0",
    ipam: dict[str, Any] | None = None,
    alive: list[dict[str, str]] | None = None,
    **more: Any,
) -> bytes:
    """A network configuration; `alive` is GC's list, and None takes a key away."""
    document = {
        "cniVersion": version,
        "name": "pods",
        "type": "bridge",
        "ipam": {"type": "podtide", **(ipam or {})},
        "cni.dev/valid-attachments": alive,
    }
    return json.dumps({key: value for key, value in (document | more).items() if value is not None}).encode()


async def answer_to(
    calls: CniCalls, environment: Mapping[str, str], stdin: bytes, *, arrived: float
) -> Answer:
    """The answer to a call, after the wait if there is one."""
    answers: list[Answer] = []
    pending = calls.start(environment, stdin, arrived=arrived, respond=answers.append)
    return answers[0] if pending is None else await pending.answer()


def code(answer: Answer) -> int:
    """The code of an error, which must be one in shape: one line that says what is the matter."""
    assert answer.exit_status == 1
    document = json.loads(answer.output)
    assert set(document) == {"cniVersion", "code", "msg", "details"}
    assert document["msg"]
    assert "\n" not in document["msg"]
    assert "Traceback" not in document["msg"]
    assert isinstance(document["code"], int)
    return document["code"]


class Journal:
    """A log to read."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._stream = StringIO()
        self.log: Logger = make_logger(self._stream, clock or LoopClock(), level="debug")

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]


class NoNotes(DeletionNotes):
    """An empty directory of notes."""

    def __init__(self) -> None:
        super().__init__(MemoryDisk(), PoolAddresses(LoopClock()), log=Journal().log)
