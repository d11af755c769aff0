"""What is known of an address's past. Little is kept of it, and the bound is part of the answer. No I/O."""

from collections.abc import Iterator

from msgspec import Struct

from podtide.cli.ip.facts import AddressFacts
from podtide.cli.ip.finding import shows_at_all
from podtide.cli.observed.network import observe_networks
from podtide.networks.pods import addresses_shown, has_ended

HISTORY_BOUND = (
    "as far as objects tell: pods that ended and still exist, sandboxes before the last, and Events, which a cluster "
    "keeps for an hour unless told otherwise; the allocator keeps no history of single addresses"
)


class PastHolder(Struct, frozen=True, kw_only=True):
    """Something that is known of the address's past."""

    time: str
    """RFC 3339; "" if it is not known."""
    words: str


def past_of(facts: AddressFacts) -> tuple[PastHolder, ...]:
    """What is known of the address's past, oldest first; what has no time comes first."""
    past = [*_ended_pods(facts), *_earlier_sandboxes(facts)]
    past += [
        PastHolder(
            time=event.last_timestamp or event.first_timestamp or "",
            words=f"{event.involved_object.kind} {event.involved_object.name}: {event.reason}: {event.message}",
        )
        for event in facts.events
    ]
    return tuple(sorted(past, key=lambda each: each.time))


def _ended_pods(facts: AddressFacts) -> Iterator[PastHolder]:
    for pod in facts.pods:
        shown = addresses_shown(pod) or ()
        if (
            has_ended(pod)
            and not pod.spec.host_network
            and (shows_at_all(pod, facts.address) or facts.address in shown)
        ):
            yield PastHolder(
                time=pod.metadata.creation_timestamp or "",
                words=f"pod {pod.key} on node {pod.spec.node_name}, made then, had it until it ended ({pod.status.phase})",
            )


def _earlier_sandboxes(facts: AddressFacts) -> Iterator[PastHolder]:
    networks = (
        observe_networks(facts.networks, facts.pods, facts.node_objects) if facts.networks is not None else ()
    )
    for network in networks:
        for pool in network.pools:
            holder = pool.holders.get(str(facts.address))
            for sandbox in holder.earlier if holder else ():
                yield PastHolder(
                    time="", words=f"sandbox {sandbox} of pod {holder.podref if holder else ''} had it before"
                )
