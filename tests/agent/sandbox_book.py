"""What a runtime knows of its sandboxes: what it was answered, and what it cannot know because no answer came.

Every answer is compared with those before it at once, so an address that is given twice is noticed the moment it
happens, not when somebody looks.
"""

from collections.abc import Collection, Iterable
from enum import StrEnum

from agent.agent_process import Shown
from podtide.core.pool.states import State
from podtide.resources.pod import Pod


class Fate(StrEnum):
    """Where a sandbox stands, as far as its runtime can tell."""

    ASKED = "its ADD was not answered: it may have an address or not"
    LIVE = "its ADD was answered: it has its address"
    LEAVING = "its DEL was not answered: it may have its address still"
    GONE = "its DEL was answered: it has nothing"


class Sandbox:
    """A pod's sandbox."""

    def __init__(self, name: str, pod: Pod) -> None:
        self.name = name
        self.pod = pod
        self.fate = Fate.ASKED
        self.ip = ""


class SandboxBook:
    """All sandboxes there ever were."""

    def __init__(self) -> None:
        self.sandboxes: dict[str, Sandbox] = {}
        self._holders: dict[str, Sandbox] = {}

    def of(self, fate: Fate) -> list[Sandbox]:
        """Those with this fate, oldest first."""
        return [sandbox for sandbox in self.sandboxes.values() if sandbox.fate is fate]

    def asks(self, sandbox: Sandbox) -> None:
        """Its first ADD is about to be sent."""
        self.sandboxes[sandbox.name] = sandbox

    def was_given(self, sandbox: Sandbox, ip: str) -> None:
        """Its ADD was answered."""
        holder = self._holders.setdefault(ip, sandbox)
        assert holder is sandbox, f"{ip} was given to {sandbox.name} while {holder.name} has it"
        assert sandbox.ip in {"", ip}, f"{sandbox.name} was given {ip} after {sandbox.ip}"
        sandbox.fate, sandbox.ip = Fate.LIVE, ip

    def leaves(self, sandbox: Sandbox) -> None:
        """Its DEL is about to be sent: from now on its address may be another's."""
        self._holders.pop(sandbox.ip, None)
        sandbox.fate = Fate.LEAVING

    def has_left(self, sandbox: Sandbox) -> None:
        """Its DEL was answered."""
        sandbox.fate = Fate.GONE

    def compare(self, shown: Iterable[Shown], noted: Collection[str] = ()) -> dict[str, str]:
        """Hold it against what the agent shows while no call is under way; answers who has what by the agent's word.

        `noted` are those whose DEL the agent has still to find.
        """
        assigned = [address for address in shown if address.state is State.ASSIGNED]
        held = {address.sandbox: address.ip for address in assigned}
        assert len(held) == len({address.ip for address in assigned}) == len(assigned), "one each"
        for sandbox in self.of(Fate.LIVE):
            has = held.get(sandbox.name, "nothing")
            assert has == sandbox.ip, f"{sandbox.name} was given {sandbox.ip}, and has {has}"
        for name, ip in held.items():
            sandbox = self.sandboxes[name]
            has_left = sandbox.fate is Fate.GONE and name not in noted
            assert not has_left, f"{name} has {ip}, though {sandbox.fate}"
        return held
