"""Whose the addresses of a pool are when its records are lost: what pods show, and what another program recorded.

The status of a pod says which address the pod has, and not in which sandbox. Where podtide took another program's place,
that program's own records may say the sandbox, so that its DEL and CHECK find the address. Neither source is certain: a
status may be stale, and so may be a record, of a sandbox whose DEL was missed, or of a file that is no longer written. So
a record adds to what pods show and overrules nothing:

    one pod shows it, no record             the pod's, under an invented sandbox id
    one pod shows it, its own record        that sandbox's
    no pod shows it, one record             that sandbox's; if its pod is gone, the leak rule frees it (`leaks`)
    a pod showed it that is gone or ended   that pod's, under an invented sandbox id, until its DEL or the leak rule
    anything else                           withheld from all, until a pod or a sandbox of these is gone

The last row is told to a person where a record is part of it. A record does not prove that its pod has no other address:
a pod without an address in its status is waited for as if there were no record.

A pod that is deleted by force is gone from the cluster at once, and one that ends shows no address that counts; their
sandboxes live on until the kubelet has removed them. So what such a pod showed last is still its own, but not against a
pod that shows the address now, nor against a record.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from podtide.core.pool.address import Owner
from podtide.core.pool.demand import PodOnNode, reference_by_name
from podtide.core.pool.states import State

_INTERFACE = "eth0"
_LOST_TO_THE_NODE = (None, State.PENDING_RELEASE)


class ShowingPod(Struct, frozen=True):
    """A pod of the node, and the addresses in its status."""

    pod: PodOnNode
    addresses: tuple[str, ...] = ()


class RecordedEndpoint(Struct, frozen=True):
    """A sandbox's interface as another program recorded it."""

    sandbox: str
    interface: str
    namespace: str
    name: str
    """The pod's name; "" where the record does not say it."""
    addresses: tuple[str, ...]

    def __str__(self) -> str:
        pod = f"pod {reference_by_name(self.namespace, self.name)}" if self.name else "a pod without a name"
        return f"{pod} in sandbox {self.sandbox}"


class AdoptionPlan(Struct, frozen=True):
    """Whose each quarantined address is. What is in neither of the first two is free once all pods are accounted for."""

    adoptions: tuple[tuple[str, Owner], ...]
    contested: tuple[str, ...]
    contradictions: tuple[str, ...]
    """What a person has to know: where the records contradict the cluster, or themselves."""


def stand_in_for(pod: PodOnNode) -> Owner:
    """The owner of an adopted address: a sandbox id that no runtime creates, for the pod that shows the address."""
    return Owner(
        sandbox=f"pod-{pod.uid}",
        interface=_INTERFACE,
        pod=pod.config_hash or pod.uid,
        namespace=pod.namespace,
        name=pod.name,
    )


def is_stand_in(owner: Owner) -> bool:
    """Whether the owner is one of `stand_in_for`."""
    return owner.sandbox.startswith("pod-")


def plan_adoption(
    pods: Sequence[ShowingPod],
    recorded: Iterable[RecordedEndpoint],
    states: Mapping[str, State],
    departed: Iterable[ShowingPod] = (),
) -> AdoptionPlan:
    """Decide whose the quarantined addresses are, given the state of every address of the pool.

    `departed` are the pods that were deleted or have ended meanwhile and may still have a sandbox, in that order.
    """
    showing = defaultdict[str, list[PodOnNode]](list)
    for each in pods:
        for ip in each.addresses:
            showing[ip].append(each.pod)
    records = defaultdict[str, list[RecordedEndpoint]](list)
    for endpoint in recorded:
        for ip in endpoint.addresses:
            records[ip].append(endpoint)
    last = {ip: [each.pod] for each in departed for ip in each.addresses}
    showing.update({ip: pods for ip, pods in last.items() if ip not in showing and ip not in records})
    named = {reference_by_name(each.pod.namespace, each.pod.name): each.pod for each in pods}
    adoptions: list[tuple[str, Owner]] = []
    contested: list[str] = []
    contradictions: list[str] = []
    # What pods show comes last: the sandbox that takes an address last counts as its pod's newest.
    for ip in (*(ip for ip in records if ip not in showing), *showing):
        state, shown, written = states.get(ip), showing.get(ip, []), records.get(ip, [])
        if written and state in _LOST_TO_THE_NODE:
            contradictions.append(f"{ip} is recorded for {written[0]}, and is not an address of this node")
        if state is not State.QUARANTINED:
            continue
        owner = _owner(shown, written, named)
        if owner is not None:
            adoptions.append((ip, owner))
            continue
        contested.append(ip)
        if written:
            contradictions.append(_contradiction(ip, shown, written))
    return AdoptionPlan(tuple(adoptions), tuple(contested), tuple(contradictions))


def _owner(
    shown: Sequence[PodOnNode], written: Sequence[RecordedEndpoint], named: Mapping[str, PodOnNode]
) -> Owner | None:
    """The one owner that the claims to an address leave; None if they leave several, or one that cannot be told."""
    if len(shown) > 1 or len(written) > 1:
        return None
    if not written:
        return stand_in_for(shown[0])
    (record,) = written
    pod = named.get(reference_by_name(record.namespace, record.name))
    if not record.name or (shown and shown[0] != pod):
        return None
    # Without a uid the sandbox is its pod's by name, and a pod that is missing from the cache still proves it alive.
    uid = (pod.config_hash or pod.uid) if pod is not None else ""
    return Owner(record.sandbox, record.interface, uid, record.namespace, record.name)


def _contradiction(ip: str, shown: Sequence[PodOnNode], written: Sequence[RecordedEndpoint]) -> str:
    recorded = f"{ip} is recorded for {' and for '.join(map(str, written))}"
    pods = " and ".join(reference_by_name(pod.namespace, pod.name) for pod in shown)
    return f"{recorded}; {f'the pods that show it: {pods}' if pods else 'no pod shows it'}"
