"""How many pods of a node need an address (U), kept up to date one pod and one sandbox at a time.

    U = sandboxes that hold an address + pods scheduled here that hold none

A sandbox counts until it gives its address back, whatever has become of its pod: the address is not free before.
A pod without a sandbox counts while it is to have one: not on the host's network, not ended, and not being deleted,
because a kubelet starts nothing for a pod that is to go. A sandbox that asks for an address and has to wait counts as
well where its pod does not: the pod may not have been heard of yet, or an earlier sandbox of it was never given back.

Who belongs to whom: a sandbox names its pod by uid; for a static pod that uid is the hash of its configuration, which
the pod's mirror in the API carries beside a uid of its own. A sandbox that came without a uid belongs to the pod of
its name. No event makes anything be counted again: each looks at one pod and the sandboxes of that pod.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable

from msgspec import Struct

from podtide.core.pool.address import Owner

_REMEMBERED = 1024
"""Deleted sandboxes: as many as a node deletes in the time that a call can be held up."""


class PodOnNode(Struct, frozen=True):
    """The facts about a pod that decide whether it needs an address on this node."""

    uid: str
    namespace: str
    name: str
    config_hash: str = ""
    """For the mirror of a static pod: the uid by which its sandboxes know it."""
    needs_address: bool = True
    ended: bool = False

    @property
    def references(self) -> tuple[str, ...]:
        """The references that its sandboxes may use. No two pods share one."""
        name = reference_by_name(self.namespace, self.name)
        return (self.uid, self.config_hash, name) if self.config_hash else (self.uid, name)


def reference_by_name(namespace: str, name: str) -> str:
    """The reference to a pod whose uid is not known: `namespace/name`. No uid has a slash in it."""
    return f"{namespace}/{name}"


def reference_of(owner: Owner) -> str:
    """The reference to a sandbox's pod: its uid, else its name; "" when the sandbox states neither."""
    if owner.pod or not owner.name:
        return owner.pod
    return reference_by_name(owner.namespace, owner.name)


class Demand:
    """The node's pods, the sandboxes that hold addresses, and those that wait for one."""

    def __init__(self) -> None:
        self.waiting = 0
        """Pods that are to have an address and hold none, and sandboxes that ask for one beyond those."""
        self._pods: dict[str, PodOnNode] = {}
        self._pod_by_reference: dict[str, PodOnNode] = {}
        self._owners: dict[tuple[str, str], Owner] = {}
        self._owners_by_reference: dict[str, dict[tuple[str, str], Owner]] = {}
        self._asking: Counter[str] = Counter()
        self._newest_sandbox: dict[str, str] = {}
        self._deleted: OrderedDict[str, None] = OrderedDict()

    # What happens

    def pod_seen(self, pod: PodOnNode) -> bool:
        """Record the pod's state. False when nothing that matters has changed."""
        known = self._pods.get(pod.uid)
        if known == pod:
            return False
        references = pod.references
        if known is None or known.references != references:
            for reference in references:
                if (namesake := self._pod_by_reference.get(reference)) is not None:
                    self.pod_gone(namesake.uid)
        before = self._needed(references)
        self._pods[pod.uid] = pod
        for reference in references:
            self._pod_by_reference[reference] = pod
        self.waiting += self._needed(references) - before
        return True

    def pod_gone(self, uid: str) -> bool:
        """Record that the pod is gone; False if unknown. Its sandboxes keep their addresses until they free them."""
        pod = self._pods.get(uid)
        if pod is None:
            return False
        references = pod.references
        before = self._needed(references)
        del self._pods[uid]
        for reference in references:
            del self._pod_by_reference[reference]
        self.waiting += self._needed(references) - before
        return True

    def asked(self, owner: Owner) -> None:
        """Record that the sandbox waits for an address. `gave_up` must follow, also when it got one."""
        self._count_asking(owner, 1)
        self._note_newest(owner)

    def gave_up(self, owner: Owner) -> None:
        """Record that the sandbox waits no longer."""
        self._count_asking(owner, -1)
        self._forget_newest(reference_of(owner))

    def taken(self, owner: Owner) -> None:
        """Record that the sandbox has an address. Idempotent."""
        key = (owner.sandbox, owner.interface)
        if key in self._owners:
            return
        reference = reference_of(owner)
        before = self._needed((reference,))
        self._owners[key] = owner
        self._owners_by_reference.setdefault(reference, {})[key] = owner
        self._note_newest(owner)
        self.waiting += self._needed((reference,)) - before

    def deleted(self, sandbox: str) -> None:
        """Record that the sandbox was deleted: an ADD of it that comes later is stale, and its pod's others are newer."""
        self._deleted[sandbox] = None
        if len(self._deleted) > _REMEMBERED:
            self._deleted.popitem(last=False)

    def lives(self, owner: Owner) -> None:
        """Record that this is the sandbox the pod runs in, whichever others asked after it."""
        self._newest_sandbox[reference_of(owner)] = owner.sandbox

    def freed(self, sandbox: str, interface: str) -> Owner | None:
        """Record that the sandbox freed its address. Returns its owner, if it was known."""
        key = (sandbox, interface)
        owner = self._owners.get(key)
        if owner is None:
            return None
        reference = reference_of(owner)
        before = self._needed((reference,))
        del self._owners[key]
        of_this_pod = self._owners_by_reference[reference]
        del of_this_pod[key]
        if not of_this_pod:
            del self._owners_by_reference[reference]
        self._forget_newest(reference)
        self.waiting += self._needed((reference,)) - before
        return owner

    # What is so

    @property
    def total(self) -> int:
        """U: addresses assigned, and pods that need one."""
        return len(self._owners) + self.waiting

    def owner(self, sandbox: str, interface: str) -> Owner | None:
        """The owner that this sandbox's interface is known as, if it holds an address."""
        return self._owners.get((sandbox, interface))

    def owners(self) -> tuple[Owner, ...]:
        """All owners that hold an address, the longest first."""
        return tuple(self._owners.values())

    def owners_of(self, reference: str) -> tuple[Owner, ...]:
        """The owners that hold an address under this reference, the longest first."""
        owners = self._owners_by_reference.get(reference)
        return tuple(owners.values()) if owners else ()

    def newest_sandbox(self, reference: str) -> str | None:
        """The sandbox that was the last to take or ask for an address under this reference, if any is known.

        One that was deleted before it asked counts only where there is no other. Where one is known to be alive, all
        others are older.
        """
        return self._newest_sandbox.get(reference)

    def pod(self, reference: str) -> PodOnNode | None:
        """The pod with this reference, if it is on the node."""
        return self._pod_by_reference.get(reference)

    def holds_address(self, pod: PodOnNode) -> bool:
        """Whether a sandbox of the pod holds an address."""
        owners = self._owners_by_reference
        return pod.uid in owners or any(reference in owners for reference in pod.references)

    # How it is counted

    def _count_asking(self, owner: Owner, change: int) -> None:
        reference = reference_of(owner)
        before = self._needed((reference,))
        self._asking[reference] += change
        if not self._asking[reference]:
            del self._asking[reference]
        self.waiting += self._needed((reference,)) - before

    def _needed(self, references: Iterable[str]) -> int:
        """How many addresses the pod with these references, or the sandboxes without a known pod, still need."""
        for reference in references:
            if (pod := self._pod_by_reference.get(reference)) is not None:
                lacking = int(pod.needs_address and not self.holds_address(pod))
                return max(lacking, self._asking_by(pod.references)) if self._asking else lacking
        return self._asking_by(references) if self._asking else 0

    def _asking_by(self, references: Iterable[str]) -> int:
        return sum(self._asking[reference] for reference in references)

    def _note_newest(self, owner: Owner) -> None:
        reference = reference_of(owner)
        if owner.sandbox not in self._deleted or reference not in self._newest_sandbox:
            self._newest_sandbox[reference] = owner.sandbox

    def _forget_newest(self, reference: str) -> None:
        if reference not in self._owners_by_reference and not self._asking[reference]:
            self._newest_sandbox.pop(reference, None)
