"""Calls of ADD and DEL as kubelets make them, over all nodes and clusters, and whether they contradict each other.

This is a second opinion on the one promise that matters most, that no two sandboxes have one address. It shares nothing
with the invariants of `core.audit`, which are followed through agents, allocator and objects: it knows the calls alone.
"""

import math
from collections import defaultdict
from itertools import count

from msgspec import Struct

from podtide.cni.versions import Verb
from podtide.simulation.checks.linearizability import Hold, contradiction

_SHOWN_OF_SANDBOX = 12


class _Add(Struct, eq=False, kw_only=True):
    """A call of ADD. Its caller may never hear of it again."""

    scope: str
    """The addresses of one scope are different: the pools of all nodes are one, each secondary network of a cluster is one."""
    sandbox: str
    pod: str
    node: str
    """By its full name."""
    asked: int
    answered: int = 0
    given_up: float = math.inf


class CallHistory:
    """All calls so far. They are numbered, because many things happen at one virtual instant."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._held: dict[str, dict[tuple[str, str], list[_Add]]] = defaultdict(dict)
        """The ADDs whose sandbox was not given up yet, by node, and then by scope and sandbox."""
        self._in_flight: dict[int, _Add] = {}
        self._torn_down: set[tuple[str, str]] = set()
        """Sandboxes whose DEL has begun, by scope. Their ids are never used again."""
        self._by_address: dict[tuple[str, str], list[_Add]] = defaultdict(list)

    def began(self, verb: Verb, *, node: str, scope: str, pod: str, sandbox: str) -> int:
        """A call begins. Returns its number."""
        number, held = next(self._numbers), self._held[node]
        if verb is Verb.DEL:
            self._torn_down.add((scope, sandbox))
            _give_up(held.pop((scope, sandbox), []), number)
        elif verb is Verb.ADD:
            call = _Add(scope=scope, sandbox=sandbox, pod=pod, node=node, asked=number)
            if (scope, sandbox) in self._torn_down:
                call.given_up = number  # the runtime had not noticed yet: no sandbox keeps what this brings
            else:
                held.setdefault((scope, sandbox), []).append(call)
            self._in_flight[number] = call
        return number

    def answered(self, call: int, addresses: tuple[str, ...]) -> None:
        """A call succeeded; an ADD has brought these addresses."""
        if (add := self._in_flight.pop(call, None)) is not None:
            add.answered = next(self._numbers)
            for address in addresses:
                self._by_address[add.scope, address].append(add)

    def switched_off(self, node: str) -> None:
        """A machine has no power: its sandboxes are gone, with no call."""
        number = next(self._numbers)
        for calls in self._held.pop(node, {}).values():
            _give_up(calls, number)

    def finding(self) -> str:
        """Two calls that contradict each other, in a sentence; "" if all of them can be explained."""
        for (_scope, address), calls in self._by_address.items():
            by_hold = {
                Hold(
                    holder=call.sandbox, asked=call.asked, answered=call.answered, given_up=call.given_up
                ): call
                for call in calls
            }
            if found := contradiction(by_hold):
                first, second = (_words(by_hold[hold]) for hold in found)
                return f"history of calls: {address} belonged to {first} and to {second} at once"
        return ""


def _give_up(calls: list[_Add], number: int) -> None:
    for call in calls:
        call.given_up = number


def _words(call: _Add) -> str:
    where = f" of {call.scope}" if call.scope else ""
    return f"pod {call.pod} on {call.node}{where} (sandbox {call.sandbox[:_SHOWN_OF_SANDBOX]})"
