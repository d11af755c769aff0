"""A plugin that answers as told, for tests of what calls one."""

import asyncio
from collections.abc import Mapping
from itertools import count

import msgspec

from podtide.cni.arguments import CniCall, parse_environment
from podtide.cni.versions import LATEST, Verb

OUT_OF_ADDRESSES = "no address is free"


class ScriptedPlugin:
    """Gives 10.0.0.1 and on. ADDs fail as often as `failing_adds` says, and take `add_seconds`."""

    def __init__(self, *, failing_adds: int = 0, failing_dels: int = 0, add_seconds: float = 0.0) -> None:
        self.calls: list[CniCall] = []
        self.environments: list[Mapping[str, str]] = []
        self.most_adds_at_once = 0
        self.held: dict[str, str] = {}
        self._failures = {Verb.ADD: failing_adds, Verb.DEL: failing_dels}
        self._add_seconds = add_seconds
        self._adds_under_way = 0
        self._hosts = count(1)

    def verbs(self) -> list[str]:
        return [str(call.verb) for call in self.calls]

    async def call(self, node: str, environment: Mapping[str, str], stdin: bytes) -> tuple[int, bytes]:
        assert node
        assert msgspec.json.decode(stdin)["ipam"] == {"type": "podtide"}
        call = parse_environment(environment)
        self.calls.append(call)
        self.environments.append(environment)
        if call.verb is Verb.ADD:
            self._adds_under_way += 1
            self.most_adds_at_once = max(self.most_adds_at_once, self._adds_under_way)
            await asyncio.sleep(self._add_seconds)
            self._adds_under_way -= 1
        if self._failures.get(call.verb, 0) > 0:
            self._failures[call.verb] -= 1
            failure = {"cniVersion": LATEST, "code": 11, "msg": OUT_OF_ADDRESSES, "details": ""}
            return 1, msgspec.json.encode(failure)
        if call.verb is Verb.ADD:
            address = self.held[call.container_id] = f"10.0.0.{next(self._hosts)}"
            return 0, msgspec.json.encode({"cniVersion": LATEST, "ips": [{"address": f"{address}/24"}]})
        self.held.pop(call.container_id, None)
        return 0, b""
