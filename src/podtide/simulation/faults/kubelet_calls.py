"""Kubelets and runtimes that repeat, forget or reorder their calls of the plugin."""

import asyncio
from random import Random

from podtide.agent.api.cni_calls import refusal
from podtide.agent.port import NotReady
from podtide.cni.versions import Verb
from podtide.simulation.faults.plugin_fault import Answer, Call, Leave, PluginFault

_SOON_SECONDS = 10.0
_LATEST_SECONDS = 120.0
_VERY_LATE = 0.3


class RepeatedCall(PluginFault):
    """A runtime that calls again for the same sandbox, because it did not record the answer."""

    name = "repeated-call"
    rate = 0.1
    verbs = frozenset({Verb.ADD, Verb.DEL})

    async def call(self, call: Call, leave: Leave, chance: Random) -> Answer:
        """Call twice, and return the second answer."""
        del leave, chance
        await call()
        return await call()


class ForgottenDelete(PluginFault):
    """A runtime that lost its records, or was killed: it never calls for a sandbox's deletion."""

    name = "forgotten-delete"
    rate = 0.05
    verbs = frozenset({Verb.DEL})

    async def call(self, call: Call, leave: Leave, chance: Random) -> Answer:
        """Return success without a call."""
        del call, leave, chance
        return 0, b""


class LateAdd(PluginFault):
    """A runtime that gives up on an ADD which is still in flight: its DEL arrives first, and perhaps the next ADD."""

    name = "late-add"
    rate = 0.03
    verbs = frozenset({Verb.ADD})

    async def call(self, call: Call, leave: Leave, chance: Random) -> Answer:
        """Fail at once, and let the call arrive later."""
        leave(_arrive(call, _lateness_seconds(chance)))
        given_up = refusal(NotReady("the runtime gave the call up"), b"")
        return given_up.exit_status, given_up.output


class LateDelete(PluginFault):
    """A DEL that comes when dead sandboxes are collected: by then its pod may have had another one for minutes."""

    name = "late-delete"
    rate = 0.1
    verbs = frozenset({Verb.DEL})

    async def call(self, call: Call, leave: Leave, chance: Random) -> Answer:
        """Return success, and let the call arrive later."""
        leave(_arrive(call, _lateness_seconds(chance)))
        return 0, b""


async def _arrive(call: Call, seconds: float) -> None:
    await asyncio.sleep(seconds)
    await call()


def _lateness_seconds(chance: Random) -> float:
    return chance.uniform(0.0, _LATEST_SECONDS if chance.random() < _VERY_LATE else _SOON_SECONDS)
